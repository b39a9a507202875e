"""A comparison as rows of ready texts, and the sentence that sums it up."""

from __future__ import annotations

from dataclasses import dataclass

from ...advisors.schema.report_model import Range
from ...profiler.base.metadata import clean
from ..words.advice_words import predicted_text
from ..words.glosses import label_of
from ..words.units import UNKNOWN, micros, percent, rate
from .compare_model import Comparison, LoaderComparison, Setting, StageDifference

CAVEAT = (
    "The ranges come from the variation within each run. Runs also differ from one to the next (a "
    "warm page cache, other work on the machine): before relying on a small difference, record "
    "both twice."
)
NO_DIFFERENCE = "no real difference"


@dataclass(frozen=True)
class DifferenceRow:
    """One figure of both runs in words; `judgement` is 'faster', 'slower', 'no real difference', or
    why not known."""

    name: str
    before: str
    after: str
    change: str
    judgement: str


def headline(loader: LoaderComparison) -> str:
    """'Faster: 1.5 times the throughput (1.47 to 1.53, 19 times in 20).', or that there is no real
    difference."""
    found = loader.throughput
    if found.factor is None or found.low is None or found.high is None:
        return f"The throughput cannot be compared: {found.reason}."
    spread = (
        f"{found.factor:.3g} times the throughput ({found.low:.3g} to {found.high:.3g}, 19 times "
        "in 20)"
    )
    if not found.real:
        return f"No real difference: {spread}."
    return f"{'Faster' if found.factor > 1 else 'Slower'}: {spread}."


def difference_rows(loader: LoaderComparison) -> list[DifferenceRow]:
    """Throughput, lost share, verdict, then the stages."""
    through, stall = loader.throughput, loader.stall_share
    spread = UNKNOWN
    if through.factor is not None and through.low is not None and through.high is not None:
        spread = predicted_text(Range(through.low, through.factor, through.high))
    rows = [
        DifferenceRow(
            loader.unit,
            rate(through.before),
            rate(through.after),
            spread,
            _judged(through.real, (through.factor or 1) > 1)
            or clean(through.reason or UNKNOWN, 120),
        ),
        DifferenceRow(
            "lost to loading",
            percent(stall.before),
            percent(stall.after),
            _points(loader),
            _judged(stall.real, (stall.change or 0) < 0, "less", "more")
            or clean(stall.reason or UNKNOWN, 120),
        ),
        DifferenceRow(
            "verdict",
            loader.verdict_before,
            loader.verdict_after,
            "",
            "" if loader.verdict_before == loader.verdict_after else "changed",
        ),
    ]
    return rows + [_stage_row(name, stage) for name, stage in loader.stages.items()]


def _points(loader: LoaderComparison) -> str:
    stall = loader.stall_share
    if stall.change is None or stall.low is None or stall.high is None:
        return UNKNOWN
    low, mid, high = (
        f"{value * 100:+.1f}".replace("-", "−") for value in (stall.low, stall.change, stall.high)
    )
    return f"{mid} points ({low} to {high})"


def _stage_row(name: str, stage: StageDifference) -> DifferenceRow:
    label = label_of(name)
    if stage.change_us is None or stage.low_us is None or stage.high_us is None:
        return DifferenceRow(
            label, micros(stage.before_us), micros(stage.after_us), UNKNOWN, "in one run only"
        )
    change = f"{_signed(stage.change_us)} ({_signed(stage.low_us)} to {_signed(stage.high_us)})"
    judged = _judged(stage.real, stage.change_us < 0, "less", "more") or UNKNOWN
    if name == "queued" and stage.real:
        judged = "ready earlier" if stage.change_us > 0 else "ready later"
    return DifferenceRow(label, micros(stage.before_us), micros(stage.after_us), change, judged)


def _signed(value_us: float) -> str:
    return "0" if not value_us else f"{'−' if value_us < 0 else '+'}{micros(abs(value_us))}"


def _judged(real: bool | None, better: bool, good: str = "faster", bad: str = "slower") -> str:
    if real is None:
        return ""
    return NO_DIFFERENCE if not real else good if better else bad


def setting_rows(settings: tuple[Setting, ...]) -> list[tuple[str, str, str]]:
    """(name, before, after) of what is configured differently."""
    return [(clean(each.name, 60), _value(each.before), _value(each.after)) for each in settings]


def _value(value: object) -> str:
    return UNKNOWN if value is None else clean(value, 120)


def name_of(loader: LoaderComparison) -> str:
    """The loader's name, with its rank if it has one."""
    return (
        clean(loader.name, 80)
        if loader.rank is None
        else f"{clean(loader.name, 80)} (rank {loader.rank})"
    )


def notes_of(comparison: Comparison) -> list[str]:
    """What a reader must know beside the figures."""
    notes = [clean(note) for note in comparison.notes]
    for word, names in (("first", comparison.only_before), ("second", comparison.only_after)):
        if names:
            notes.append(f"only in the {word} run: {', '.join(clean(name, 60) for name in names)}")
    return notes
