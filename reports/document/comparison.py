"""A comparison of two runs as sections of blocks."""

from collections.abc import Iterator

from ...profiler.base.metadata import clean
from ..compare.compare_model import Comparison, LoaderComparison, Setting
from ..words.advice_words import predicted_text
from ..words.glosses import label_of
from ..words.units import UNKNOWN, micros, percent, rate
from .blocks import Block, Pairs, Section, Sentence, bullets, section, sentences, table

CAVEAT = (
    "The ranges come from the variation within each run. Runs also differ from one to the next (a "
    "warm page cache, other work on the machine): before relying on a small difference, record "
    "both twice."
)
NOTHING = "Nothing to compare: no loader was recorded in both runs."


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
    found = loader.throughput
    yield Sentence(headline(loader), "lead")
    rows = [
        (found.unit, rate(found.before), rate(found.after)),
        ("lost to loading", *map(percent, loader.stall_share)),
        ("verdict", *loader.verdicts),
        *((label_of(name), *map(micros, both)) for name, both in loader.stages_us.items()),
    ]
    yield from table(("per batch", "before", "after"), rows, "wnn", "Figures of both runs")
    yield from bullets(loader.notes)
    yield from _settings(loader.settings)


def headline(loader: LoaderComparison) -> str:
    """'Faster: the throughput is ×1.50 (1.47–1.53), at least 19 times in 20.'"""
    found = loader.throughput
    if not found.factor:
        return f"The throughput cannot be compared: {found.reason}."
    word = "Faster" if found.factor.mid > 1 else "Slower"
    return (
        f"{word if found.real else 'No real difference'}: the throughput is "
        f"{predicted_text(found.factor)}, at least 19 times in 20."
    )


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
