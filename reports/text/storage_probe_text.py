"""A storage probe as text: two tables, what they come to in plain sentences, and what was not tried."""

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


def render_storage_probe(probe: StorageProbe, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """The probe as text of at most `width` columns. Texts from file names are shown as they are, never as markup."""
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
        yield indented("* read in sequence, as it is stored: shuffling needs a buffer, and is weaker", "dim")
        yield Text("")
    yield heading("What this means")
    yield from bullets(probe.verdict)
    not_tried = tuple(f"{_label(each)}: {each.reason}" for each in probe.layouts if each.reason)
    skipped = tuple(f"{plural(n, 'file', 'files')} left out: {why}" for why, n in probe.skipped.items())
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
        f"{kind}: {least}{plural(probe.whole_files, 'file', 'files')}, {size(probe.whole_bytes)}; tried on "
        f"{count(probe.samples)} of them, {size(probe.sample_bytes)}, copied to "
        f"{clean(probe.file_system or 'an unknown file system', 40)}"
    )
    decoding = f"decoding with {probe.decoder} {micros(probe.decode_us)} a sample; " if probe.decode_us else ""
    yield indented(
        f"{decoding}one process, {plural(probe.rounds, 'round', 'rounds')}, {duration(probe.seconds)} in all"
    )


def _totals(timed: Sequence[LayoutTrial], width: int) -> Table:
    table = _table(width, "cold", "warm", "gain", "whole\nset", "convert", "epochs\nto pay")
    for each in timed:
        table.add_row(
            _cell(each),
            _median(each.total_cold),
            _median(each.total_warm),
            _mid(each.total_steady_factor),
            size(each.whole_bytes),
            duration(each.whole_convert_s),
            _epochs(each, each.pays_after_total),
        )
    return table


def _readings(timed: Sequence[LayoutTrial], width: int) -> Table:
    spread = width >= WIDE
    table = _table(width, "cold", "warm", "gain\ncold", "gain\nwarm", "epochs\nto pay")
    for each in timed:
        table.add_row(
            _cell(each),
            _spread(each.read_cold) if spread else _median(each.read_cold),
            _spread(each.read_warm) if spread else _median(each.read_warm),
            _mid(each.read_cold_factor),
            _mid(each.read_warm_factor),
            _epochs(each, each.pays_after_reading),
        )
    return table


def _table(width: int, *others: str) -> Table:
    gap = 1 if width < NARROW else 2
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="dim", pad_edge=False)
    table.add_column(Text("\n  samples/s"), no_wrap=True)
    for name in others:
        table.add_column(Text(name if "\n" in name else f"\n{name}"), justify="right", no_wrap=True)
    return table


def _label(each: LayoutTrial) -> str:
    return f"{each.label}, decoded" if each.form == "decoded" else each.label


def _cell(each: LayoutTrial) -> Text:
    return Text(f"  {_label(each)}{' *' if each.order == 'in sequence' else ''}")


def _median(value: Rate | None) -> str:
    return rate(value.median) if value is not None else UNKNOWN


def _spread(value: Rate | None) -> str:
    return f"{rate(value.median)} ({rate(value.low)}–{rate(value.high)})" if value is not None else UNKNOWN


def _mid(value: Range | None) -> str:
    return factor(value.mid if value is not None else None)


def _epochs(each: LayoutTrial, epochs: int | None) -> str:
    if each.convert_s is None:
        return UNKNOWN
    return "never" if epochs is None else count(epochs)
