"""The seventh screen, of a loader whose settings are tried: what was, what is and what comes next;
intervals close."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from textual.content import Content

from ...advisors.schema.report_model import Range
from ...profiler.store.run.tuning import Tried, Tuned, changed_words
from ...reports.document.blocks import Column, Styled, Table
from ...reports.words.advice_words import predicted_text, tried_text
from ...reports.words.units import UNKNOWN, factor, rate
from ..snapshot import Snapshot
from .marks import DIM, MARK, blocks, course, dim, line, lines, text

_OUTCOMES = {
    "proven": ("✓", "good"),
    "not faster": ("✗", "dim"),
    "undecided": ("?", "own"),
    "failed": ("!", "bad"),
}
_COURSE = 12  # windows of a kind that are shown
WHOLE_FROM, WIDE_FROM = 100, 150  # columns from which intervals, and more of them, have room


def status(s: Snapshot, width: int, height: int) -> Content:
    """What tuning is at, and the settings in use."""
    if not s.tuning:
        return dim("this loader is not being tuned (see loaderscope tune)")
    tuned, live = s.tuning.tuned, s.state == "live"
    trial = _at_work(tuned, live)
    if trial:
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
    """A row a trial: its result in words, its prediction, its interval on one scale for all."""
    tuned = s.tuning.tuned if s.tuning else None
    if not tuned or not (tuned.trials or tuned.waiting):
        return dim("nothing was tried" if tuned and tuned.decided else "nothing yet")
    at_work = _at_work(tuned, s.state == "live")
    known = [each for trial in tuned.trials for each in (trial.measured, trial.predicted) if each]
    scale = _Scale(
        max(0.01, min([0.8, *(low for low, _, _ in known)])),
        min(100.0, max([1.25, *(high for _, _, high in known)])),
        48 if width >= WIDE_FROM else 20,
    )
    columns = (
        Column("", "name"),
        Column("settings"),
        Column("result"),
        Column("predicted"),
        Column("windows", "number", WIDE_FROM),
        Column(scale.legend if known else "", "name", WHOLE_FROM),
    )
    rows = []
    for trial in tuned.trials:
        now = trial is at_work
        mark, style = ("▸", "code") if now else _OUTCOMES.get(trial.outcome or "", ("–", "dim"))
        rows.append(
            (
                Styled(mark, style),
                Styled(_name(tuned, trial), "strong" if now else ""),
                _result(trial, now),
                _predicted(trial),
                f"{len(trial.base_rates) + len(trial.rates)}",
                Styled(scale.interval(trial.measured), style),
            )
        )
    waiting = [
        ("", _name(tuned, each), "to be tried", _predicted(each), "", "") for each in tuned.waiting
    ]
    found = blocks([Table(columns, [*rows, *waiting])], width)
    return lines([found, *(_rates(at_work) if at_work else [])])


def _result(trial: Tried, now: bool) -> str:
    """'proved ×1.63 (1.55–1.70) in 10 s', 'so far ×1.8 (1.4–2.3)', 'not tried: why'."""
    if not trial.measured:
        said = "not measured yet" if now else trial.outcome or "not decided"
        return f"{said}: {trial.why}" if trial.why else said
    found = Range(*trial.measured)
    return (
        f"so far {predicted_text(found)}"
        if now
        else tried_text(found, trial.seconds, trial.outcome)
    )


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

    def interval(self, found: tuple[float, float, float] | None) -> str:
        """Its ends and its likeliest value."""
        cells = ["·"] * self.width
        cells[self._at(1.0)] = "│"
        if found:
            low, mid, high = map(self._at, found)
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
    if not trial.predicted:
        return UNKNOWN
    return predicted_text(Range(*trial.predicted))
