"""The seventh screen, of a loader whose settings are tried: what was, what is and what comes next;
intervals close."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from textual.content import Content

from ...advisors.schema.report_model import Range
from ...profiler.store.run.tuning import Tried, Tuned, changed_words
from ...reports.words.advice_words import predicted_text, tried_text
from ...reports.words.units import factor, plural, rate
from ..snapshot import Snapshot
from .marks import BAD, DIM, FAIR, GOOD, MARK, course, dim, fitted, line, lines, text

_OUTCOMES = {
    "proven": ("✓", GOOD),
    "not faster": ("✗", DIM),
    "undecided": ("?", FAIR),
    "failed": ("!", BAD),
}
_COURSE = 12  # windows of a kind that are shown


def status(s: Snapshot, width: int, height: int) -> Content:
    """What tuning is at, and the settings in use."""
    if s.tuning is None:
        return dim("this loader is not being tuned (see loaderscope tune)")
    tuned, live = s.tuning.tuned, s.state == "live"
    trial = _at_work(tuned, live)
    if trial is not None:
        turn = "these" if len(trial.base_rates) > len(trial.rates) else "the best so far"
        name = (_name(tuned, trial), f"bold {MARK}")
        first = line(("trying ", DIM), name, (f"   now measuring {turn}", DIM))
    elif tuned.decided or not live:
        first = line((text(tuned.said), "bold"))
    else:
        first = dim("measuring the loop as it is")
    rank = f"decided by rank {tuned.follows} · " if tuned.follows is not None else ""
    chosen = changed_words(tuned.own, tuned.chosen) or "the code's own settings"
    return lines([first, line((f"{rank}in use: ", DIM), chosen)])


def table(s: Snapshot, width: int, height: int) -> Content:
    """Each trial in two lines: its result in words, its prediction and interval on one scale for
    all."""
    tuned = s.tuning.tuned if s.tuning is not None else None
    if tuned is None or not (tuned.trials or tuned.waiting):
        return dim("nothing was tried" if tuned and tuned.decided else "nothing yet")
    at_work = _at_work(tuned, s.state == "live")
    known = [each for trial in tuned.trials for each in (trial.measured, trial.predicted) if each]
    room = max(20, min(60, width - 46))
    column = max(42, room + 4)  # of the intervals: below the results, where there is room for that
    scale = _Scale(
        max(0.01, min([0.8, *(low for low, _, _ in known)])),
        min(100.0, max([1.25, *(high for _, _, high in known)])),
        max(12, min(48, width - column - 2)),
    )
    rows = []
    for trial in tuned.trials:
        now = trial is at_work
        found = Range(*trial.measured) if trial.measured is not None else None
        mark, style = ("▸", MARK) if now else _OUTCOMES.get(trial.outcome or "", ("–", DIM))
        name = (fitted(_name(tuned, trial), room), "bold" if now else "")
        rows.append(line((f"{mark} ", style), name, f"  {_result(trial, found, now)}"))
        if trial.why is not None and found is None:
            rows.append(dim(f"    {text(trial.why, width - 4)}"))
            continue
        windows = plural(len(trial.base_rates) + len(trial.rates), "window", "windows")
        before = f"    {_predicted(trial):<26}  {windows}"
        rows.append(line((before.ljust(column), DIM), (scale.interval(found), style)))
        rows += _rates(trial) if now else []
    if known:
        rows.append(dim(" " * column + scale.legend))
    if tuned.waiting:
        rows += [line(""), line(("To be tried", "bold"))]
    rows += [
        line(f"  {fitted(_name(tuned, each), room)}  ", (_predicted(each), DIM))
        for each in tuned.waiting
    ]
    return lines(rows)


def _result(trial: Tried, found: Range | None, now: bool) -> str:
    """'proved ×1.63 (1.55–1.70) in 10 s', 'so far ×1.8 (1.4–2.3)', 'not tried'."""
    if found is None:
        return "not measured yet" if now else text(trial.outcome or "not decided")
    if now:
        return f"so far {predicted_text(found)}"
    return tried_text(found, trial.seconds, trial.outcome)


def _rates(trial: Tried) -> list[Content]:
    """The windows of the two, so that who is faster is seen before it is certain."""
    top = max([*trial.base_rates[-_COURSE:], *trial.rates[-_COURSE:]], default=0.0)
    rows = []
    for label, rates in (("best so far", trial.base_rates), ("this one", trial.rates)):
        drawn = course(rates[-_COURSE:], min(_COURSE, len(rates)), 1, top)[0]
        last = f"{rate(rates[-1])} batches/s" if rates else "–"
        rows.append(line((f"    {label:<12}", DIM), (f"{drawn:<{_COURSE}}  ", MARK), (last, DIM)))
    return rows


@dataclass(frozen=True)
class _Scale:
    """Factors on a line, by their logarithm; 1 is marked."""

    low: float
    high: float
    width: int

    def _at(self, value: float) -> int:
        share = log(value / self.low) / log(self.high / self.low)
        return round(min(1.0, max(0.0, share)) * (self.width - 1))

    def interval(self, found: Range | None) -> str:
        """Its ends and its likeliest value."""
        cells = ["·"] * self.width
        cells[self._at(1.0)] = "│"
        if found is not None:
            low, mid, high = map(self._at, (found.low, found.mid, found.high))
            cells[low : high + 1] = "─" * (high + 1 - low)
            cells[low], cells[high], cells[mid] = "├", "┤", "●"
        return "".join(cells)

    @property
    def legend(self) -> str:
        """Under the lines: their ends, and where nothing is gained."""
        one, end = self._at(1.0), factor(self.high)
        begin = factor(self.low)[: max(0, one - 1)].ljust(one)
        return begin + "×1".ljust(max(3, self.width - one - len(end))) + end


def _at_work(tuned: Tuned, live: bool) -> Tried | None:
    last = tuned.trials[-1] if tuned.trials else None
    return last if last and last.outcome is None and not tuned.decided and live else None


def _name(tuned: Tuned, trial: Tried) -> str:
    return text(changed_words(tuned.own, trial.settings), 60)


def _predicted(trial: Tried) -> str:
    if trial.predicted is None:
        return "no prediction"
    return f"predicted {predicted_text(Range(*trial.predicted))}"
