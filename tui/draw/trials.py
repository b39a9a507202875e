"""The seventh screen, of a loader whose settings are tried: what was, what is and what comes next;
intervals close."""

from __future__ import annotations

from math import log

from textual.content import Content

from ...advisors.schema.figures import times
from ...advisors.schema.report_model import Range
from ...profiler.store.run.tuning import Tried, Tuned, changed_words
from ...reports.words.advice_words import predicted_text, tried_text
from ...reports.words.units import plural
from ..snapshot import Snapshot
from .marks import BAD, DIM, FAIR, GOOD, MARK, Part, course, fitted, line, lines, text

_OUTCOMES = {
    "proven": ("✓", GOOD),
    "not faster": ("✗", DIM),
    "undecided": ("?", FAIR),
    "failed": ("!", BAD),
}
_COURSE = 12  # windows of a kind that are shown


def status(s: Snapshot, width: int, height: int) -> Content:
    """What tuning is at, and what can be asked of it."""
    tuned = s.tuning.tuned if s.tuning is not None else None
    if tuned is None:
        return line(("the settings of this loader are not tried: loaderscope tune", DIM))
    chosen = changed_words(tuned.own, tuned.chosen) or "the code's own settings"
    trial = _at_work(tuned, s.state)
    if trial is not None:
        turn = "its" if len(trial.base_rates) > len(trial.rates) else "the best's so far"
        first = line(
            ("trying ", DIM), (_name(tuned, trial), f"bold {MARK}"), (f"   {turn} turn", DIM)
        )
    elif tuned.decided or s.state != "live":
        first = line((text(tuned.said), "bold"))
    else:
        first = line(("looking at the loop as it is", DIM))
    rank = f"as rank {tuned.follows} decides · " if tuned.follows is not None else ""
    rows = [first, line((f"{rank}in use: ", DIM), chosen)]
    if s.state == "live" and (not tuned.decided or tuned.chosen != tuned.own):
        keys = "b puts the code's settings back"
        if not tuned.decided:
            keys = "k keeps what is tried now · b puts the code's settings back · x tries no more"
        rows.append(line((keys, DIM)))
    return lines(rows)


def table(s: Snapshot, width: int, height: int) -> Content:
    """Each trial in two lines: its result in words, its prediction and interval on one scale for
    all."""
    tuned = s.tuning.tuned if s.tuning is not None else None
    if tuned is None:
        return line(("–", DIM))
    if not tuned.trials and not tuned.waiting:
        return line(("nothing was tried" if tuned.decided else "nothing yet", DIM))
    at_work = _at_work(tuned, s.state)
    scale = _Scale(
        [
            Range(*each)
            for trial in tuned.trials
            for each in (trial.measured, trial.predicted)
            if each
        ],
        max(12, min(48, width - _second_column(width) - 2)),
    )
    rows = []
    for trial in tuned.trials:
        rows += _trial(tuned, trial, trial is at_work, scale, width)
    if scale.any:
        rows.append(line((" " * _second_column(width), ""), (scale.legend, DIM)))
    if tuned.waiting:
        rows += [line(""), line(("To be tried", "bold"))]
        room = _name_width(width)
        rows += [
            line((f"  {fitted(_name(tuned, each), room)}  ", ""), (_predicted(each), DIM))
            for each in tuned.waiting
        ]
    return lines(rows)


def _name_width(width: int) -> int:
    return max(20, min(60, width - 46))


def _second_column(width: int) -> int:
    """Where the intervals are drawn; below the results, where there is room for that."""
    return max(42, _name_width(width) + 4)


def _trial(tuned: Tuned, trial: Tried, at_work: bool, scale: _Scale, width: int) -> list[Content]:
    mark, style = (
        ("▸", f"bold {MARK}") if at_work else _OUTCOMES.get(trial.outcome or "", ("–", DIM))
    )
    found = Range(*trial.measured) if trial.measured is not None else None
    name = fitted(_name(tuned, trial), _name_width(width))
    first = line(
        (f"{mark} ", style), (name, "bold" if at_work else ""), f"  {_said(trial, found, at_work)}"
    )
    if trial.why is not None and found is None:
        return [first, line((f"    {text(trial.why, max(20, width - 4))}", DIM))]
    windows = plural(len(trial.base_rates) + len(trial.rates), "window", "windows")
    room = _second_column(width)
    second: list[str | Part] = [(f"    {_predicted(trial):<26}  {windows}".ljust(room), DIM)]
    second.append(scale.drawn(found, MARK if at_work else style))
    return [first, line(*second), *(_course(trial) if at_work else [])]


def _said(trial: Tried, found: Range | None, at_work: bool) -> str:
    """'proved ×1.63 (1.55–1.70) in 10 s', 'not faster: ×0.93 (0.85–1.01) in 12 s', 'so far ×1.8
    (1.4–2.3)'."""
    outcome = text(trial.outcome or "not decided")
    if found is None:
        return "not measured yet" if at_work else outcome
    if at_work:
        return f"so far {predicted_text(found)}"
    if trial.outcome == "proven":
        return tried_text(found, trial.seconds, trial.outcome)
    return f"{outcome}: {predicted_text(found)} in {trial.seconds:.0f} s"


def _course(trial: Tried) -> list[Content]:
    """The windows of the two, so that who is faster is seen before it is certain."""
    rates = (trial.base_rates[-_COURSE:], trial.rates[-_COURSE:])
    top = max((each for kind in rates for each in kind), default=0.0)
    rows = []
    for label, kind in zip(("best so far", "this one"), rates, strict=True):
        drawn = course(kind, len(kind), 1, top)[0] if kind else ""
        last = f"{kind[-1]:,.1f} batches/s" if kind else "–"
        rows.append(line((f"    {label:<12}", DIM), (f"{drawn:<{_COURSE}}  ", MARK), (last, DIM)))
    return rows


class _Scale:
    """Factors on a line, by their logarithm; 1 is marked."""

    def __init__(self, ranges: list[Range], width: int) -> None:
        self.any = bool(ranges)
        self._width = width
        self._low = max(0.01, min([0.8, *(each.low for each in ranges)]))
        self._high = min(100.0, max([1.25, *(each.high for each in ranges)]))

    def _at(self, factor: float) -> int:
        share = log(factor / self._low) / log(self._high / self._low)
        return round(min(1.0, max(0.0, share)) * (self._width - 1))

    def drawn(self, found: Range | None, style: str) -> Part:
        cells = ["·"] * self._width
        cells[self._at(1.0)] = "│"
        if found is not None:
            low, mid, high = self._at(found.low), self._at(found.mid), self._at(found.high)
            cells[low : high + 1] = "─" * (high + 1 - low)
            cells[low], cells[high], cells[mid] = "├", "┤", "●"
        return "".join(cells), style

    @property
    def legend(self) -> str:
        """Under the lines: their ends, and where nothing is gained."""
        one, end = self._at(1.0), times(self._high)
        begin = times(self._low)[: max(0, one - 1)]
        return begin.ljust(one) + "×1".ljust(max(3, self._width - one - len(end))) + end


def _at_work(tuned: Tuned, state: str) -> Tried | None:
    last = tuned.trials[-1] if tuned.trials else None
    return (
        last
        if last is not None and last.outcome is None and not tuned.decided and state == "live"
        else None
    )


def _name(tuned: Tuned, trial: Tried) -> str:
    return text(changed_words(tuned.own, trial.settings), 60)


def _predicted(trial: Tried) -> str:
    return (
        f"predicted {predicted_text(Range(*trial.predicted))}"
        if trial.predicted is not None
        else "no prediction"
    )
