"""A comparison of two runs as sections of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...profiler.base.metadata import clean
from ..compare.compare_model import Comparison, Difference, LoaderComparison, Setting
from ..words.advice_words import predicted_text
from ..words.glosses import label_of
from ..words.units import UNKNOWN, micros, percent, rate
from .blocks import (
    Block,
    Cell,
    Column,
    Pairs,
    Section,
    Sentence,
    Styled,
    Table,
    bullets,
    section,
    sentences,
    table,
)

CAVEAT = (
    "The ranges come from the variation within each run. Runs also differ from one to the next (a "
    "warm page cache, other work on the machine): before relying on a small difference, record "
    "both twice."
)
NO_DIFFERENCE = "no real difference"
NOTHING = "Nothing to compare: no loader was recorded in both runs."
CHANGE_FROM = 90  # columns of a terminal
_STYLES = {"faster": "good", "slower": "bad", "less": "good", "more": "bad", NO_DIFFERENCE: "dim"}


def comparison_sections(comparison: Comparison) -> Iterator[Section]:
    """Both runs, each loader with its figures, then what was configured differently."""
    runs = Pairs([("before", comparison.before), ("after", comparison.after)], "The runs")
    yield section([runs])
    for number, loader in enumerate(comparison.loaders):
        yield section(_loader(loader), name_of(loader), f"loader{number}")
    yield section(sentences([None if comparison.loaders else NOTHING], "strong"))
    yield section(_settings(comparison.settings), "The runs differ in", "settings")
    notes = list(comparison.notes)
    for word, names in (("first", comparison.only_before), ("second", comparison.only_after)):
        if names:
            notes.append(f"only in the {word} run: {', '.join(clean(name, 60) for name in names)}")
    yield section(bullets(notes), "Notes", "notes")
    yield section(sentences([CAVEAT if comparison.loaders else None], "dim"))


def _loader(loader: LoaderComparison) -> Iterator[Block]:
    yield Sentence(headline(loader), "lead")
    yield from sentences(followed_lines(loader))
    columns = (
        Column(f"per {loader.per}", "name"),
        Column("before", "number"),
        Column("after", "number"),
        Column("change", "number", CHANGE_FROM),
        Column("is it real?"),
    )
    yield Table(columns, list(_rows(loader)), "Figures of both runs")
    yield from bullets(loader.notes)
    yield from _settings(loader.settings)


def headline(loader: LoaderComparison) -> str:
    """'Faster: 1.5 times the throughput (1.47 to 1.53, at least 19 times in 20).'"""
    found = loader.throughput
    if found.change is None:
        return f"The throughput cannot be compared: {found.reason}."
    word = "Faster" if found.change > 1 else "Slower"
    return (
        f"{word if found.real else 'No real difference'}: {found.change:.3g} times the throughput "
        f"({found.low:.3g} to {found.high:.3g}, at least 19 times in 20)."
    )


def followed_lines(loader: LoaderComparison) -> Iterator[str]:
    """'Followed: Use 4 workers, predicted ×2.4 (2.0–2.8). Measured: ×5.9.'"""
    for each in loader.followed:
        yield f"Followed: {each.title}, predicted {predicted_text(each.predicted)}."
    found = loader.throughput.range
    if not loader.followed or not found:
        return
    last = loader.followed[-1].together
    together = f"Together predicted {predicted_text(last)}, m" if len(loader.followed) > 1 else "M"
    where = "" if last.low <= found.mid <= last.high else " That is outside of the predicted range."
    yield f"{together}easured {predicted_text(found)}.{where}"


def _rows(loader: LoaderComparison) -> Iterator[tuple[Cell, ...]]:
    """Throughput, lost share, verdict, then the stages."""
    found, stall = loader.throughput, loader.stall_share
    points = _spread(_points, stall)
    yield (
        loader.unit,
        rate(found.before),
        rate(found.after),
        predicted_text(found.range) if found.range else UNKNOWN,
        _judged(found.real, (found.change or 1) > 1, "faster", "slower", found.reason),
    )
    yield (
        "lost to loading",
        percent(stall.before),
        percent(stall.after),
        points,
        _judged(stall.real, (stall.change or 0) < 0, reason=stall.reason),
    )
    before, after = loader.verdict_before, loader.verdict_after
    yield ("verdict", before, after, "", "" if before == after else "changed")
    yield from (_stage_row(name, stage) for name, stage in loader.stages.items())


def _stage_row(name: str, stage: Difference) -> tuple[Cell, ...]:
    longer = (stage.change or 0) > 0
    judged = _judged(stage.real, not longer, reason="in one run only")
    if name == "queued" and stage.real:
        judged = Styled("ready earlier" if longer else "ready later", "")
    change = _spread(_signed, stage)
    return (label_of(name), micros(stage.before), micros(stage.after), change, judged)


def _spread(shown: Callable[[float], str], found: Difference) -> str:
    """'−12 µs (−14 µs to −10 µs)' of a change and its ends, where they are known."""
    known = found.range
    if not known:
        return UNKNOWN
    return f"{shown(known.mid)} ({shown(known.low)} to {shown(known.high)})"


def _points(share: float) -> str:
    return f"{share * 100:+.1f} points".replace("-", "−")


def _signed(value_us: float) -> str:
    return "0" if not value_us else f"{'−' if value_us < 0 else '+'}{micros(abs(value_us))}"


def _judged(
    real: bool | None,
    better: bool,
    good: str = "less",
    bad: str = "more",
    reason: str | None = None,
) -> Styled:
    said = NO_DIFFERENCE if not real else good if better else bad
    if real is None:
        said = reason or UNKNOWN
    return Styled(said, _STYLES.get(said, ""))


def _settings(settings: tuple[Setting, ...]) -> list[Block]:
    """What is configured differently."""
    heads = ("configured differently", "before", "after")
    rows = [(each.name, _value(each.before), _value(each.after)) for each in settings]
    return table(heads, rows)


def _value(value: object) -> str:
    return UNKNOWN if value is None else clean(value, 120)


def name_of(loader: LoaderComparison) -> str:
    """The loader's name, with its rank if it has one."""
    rank = f" (rank {loader.rank})" if loader.rank is not None else ""
    return f"{clean(loader.name, 80)}{rank}"
