"""A storage probe as text: two tables, what they come to in plain sentences, and what was not
tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...advisors.schema.report_model import Range
from ...advisors.storage_probe.probe_model import LayoutTrial, Rate, StorageProbe
from ...profiler.base.metadata import clean
from ..words.units import UNKNOWN, count, duration, factor, micros, plural, rate, size
from .layout import bullets, heading, indented
from .terminal import fitting_width, printed

# Below this width columns stand one space apart.
NARROW = 92

# From this width on, the spread of the passes has room beside the median.
WIDE = 120


def render_storage_probe(
    probe: StorageProbe, width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """The probe as text of at most `width` columns. Texts from file names are shown as they are,
    never as markup."""
    width = fitting_width(width)
    return printed(_parts(probe, width), width, color, unicode)


def _parts(probe: StorageProbe, width: int) -> Iterator[RenderableType]:
    timed = [each for each in probe.layouts if each.reason is None]
    yield from _about(probe)
    yield Text("")
    yield heading("A sample, decoding included" if probe.decoder else "Reading a sample")
    yield _totals(timed, width)
    yield Text("")
    if probe.decoder:
        yield heading("Reading alone")
        yield _readings([each for each in timed if each.form == "encoded"], width)
        yield Text("")
    if any(each.order == "in sequence" for each in timed):
        yield indented(
            "* read in sequence, as it is stored: shuffling needs a buffer, and is weaker", "dim"
        )
        yield Text("")
    yield heading("What this means")
    yield from bullets(probe.verdict)
    not_tried = tuple(f"{_label(each)}: {each.reason}" for each in probe.layouts if each.reason)
    skipped = tuple(
        f"{plural(n, 'file', 'files')} left out: {why}" for why, n in probe.skipped.items()
    )
    cold = (f"cold not measured, because {probe.cold_reason}",) if probe.cold_reason else ()
    for title, lines in (("Not tried", not_tried), ("Notes", (*cold, *skipped, *probe.notes))):
        if lines:
            yield Text("")
            yield heading(title)
            yield from bullets(lines)


def _about(probe: StorageProbe) -> Iterator[RenderableType]:
    least = "at least " if probe.whole_is_lower_bound else ""
    kind = clean(probe.suffix, 20) or "files without a suffix"
    yield Text(clean(probe.source, 400), style="bold")
    yield indented(
        f"{kind}: {least}{plural(probe.whole_files, 'file', 'files')}, {size(probe.whole_bytes)}; "
        f"tried on {count(probe.samples)} of them, {size(probe.sample_bytes)}, copied to "
        f"{clean(probe.file_system or 'an unknown file system', 40)}"
    )
    decoding = (
        f"decoding with {probe.decoder} {micros(probe.decode_us)} a sample; "
        if probe.decode_us
        else ""
    )
    yield indented(
        f"{decoding}one process, {plural(probe.rounds, 'round', 'rounds')}, "
        f"{duration(probe.seconds)} in all"
    )


def _totals(timed: Sequence[LayoutTrial], width: int) -> Table:
    rows = [
        (
            _rate(each.total_cold),
            _rate(each.total_warm),
            _mid(each.total_steady_factor),
            size(each.whole_bytes),
            duration(each.whole_convert_s),
            _epochs(each, each.pays_after_total),
        )
        for each in timed
    ]
    return _table(
        timed, rows, width, "cold", "warm", "gain", "whole\nset", "convert", "epochs\nto pay"
    )


def _readings(timed: Sequence[LayoutTrial], width: int) -> Table:
    spread = width >= WIDE
    rows = [
        (
            _rate(each.read_cold, spread),
            _rate(each.read_warm, spread),
            _mid(each.read_cold_factor),
            _mid(each.read_warm_factor),
            _epochs(each, each.pays_after_reading),
        )
        for each in timed
    ]
    return _table(timed, rows, width, "cold", "warm", "gain\ncold", "gain\nwarm", "epochs\nto pay")


def _table(
    timed: Sequence[LayoutTrial], rows: Sequence[Sequence[str]], width: int, *heads: str
) -> Table:
    gap = 1 if width < NARROW else 2
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="dim", pad_edge=False)
    table.add_column(Text("\n  samples/s"), no_wrap=True)
    for name in heads:
        table.add_column(Text(name if "\n" in name else f"\n{name}"), justify="right", no_wrap=True)
    for each, cells in zip(timed, rows, strict=True):
        table.add_row(
            Text(f"  {_label(each)}{' *' if each.order == 'in sequence' else ''}"), *cells
        )
    return table


def _label(each: LayoutTrial) -> str:
    return f"{each.label}, decoded" if each.form == "decoded" else each.label


def _rate(value: Rate | None, spread: bool = False) -> str:
    if value is None:
        return UNKNOWN
    return rate(value.median) + (f" ({rate(value.low)}–{rate(value.high)})" if spread else "")


def _mid(value: Range | None) -> str:
    return factor(value.mid if value is not None else None)


def _epochs(each: LayoutTrial, epochs: int | None) -> str:
    if each.convert_s is None:
        return UNKNOWN
    return "never" if epochs is None else count(epochs)
