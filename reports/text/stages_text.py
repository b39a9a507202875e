"""Where each batch's time goes, and where waiting came from, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from ...advisors.schema.report_model import LoaderReport
from ...profiler.base.metadata import clean
from ..words.glosses import GLOSSES, label_of
from ..words.reasons import by_reason
from ..words.rows import StageRow, cause_rows, stage_groups
from ..words.units import bar, duration, percent
from .layout import heading, indented

LABEL, FIGURE = 13, 9  # columns
LEAST_CAUSE = 0.0005
# Causes named in a line.
LEAST_NAMED, MOST_NAMED = 0.05, 4
LEAST_WAITED = 0.01
# What fetching does is told from this part of the waiting on.
LEAST_FETCHED = 0.1
# Below these widths the percentiles, the bars and the explanations go; from the last one on these
# are longer.
PERCENTILES_FROM = LABEL + 4 * FIGURE
BARS_FROM = 58
SHORT_GLOSSES_FROM = 76
LONG_GLOSSES_FROM = 110


def stage_lines(
    loader: LoaderReport, width: int, least: float | None = None
) -> Iterator[RenderableType]:
    """A table a group of stages, their columns of one width each; what has no room is left out.

    With `least`, one table of the stages that take at least this share of a step, and of waiting
    and computing.
    """
    glosses = 0 if width < SHORT_GLOSSES_FROM else 1 if width < LONG_GLOSSES_FROM else 2
    bars = 16 if glosses == 2 else 8 if width >= BARS_FROM else 0
    figures = slice(0, 3 if width >= PERCENTILES_FROM else 1)

    def table(rows: Iterable[Sequence[str | Text]]) -> Table:
        grid = Table.grid()
        grid.add_column(width=LABEL, no_wrap=True)
        for _ in range(figures.stop + 1):
            grid.add_column(width=FIGURE, justify="right", no_wrap=True)
        if bars:
            grid.add_column(width=bars + 3, no_wrap=True)
        if glosses:
            grid.add_column(no_wrap=True, overflow="ellipsis", style="dim")
        for row in rows:
            grid.add_row(*row)
        return grid

    def cells(row: StageRow) -> Iterator[str | Text]:
        label, *gloss = GLOSSES[row.name]
        yield Text(f"  {label}", style="bold" if row.name == "wait" else "")
        yield from (*row.figures[figures], row.share)
        if bars:
            style = "red" if row.name in ("wait", "stall") else "cyan"
            yield Text(f"  {bar(loader.stages[row.name].share, bars)}", style=style)
        if glosses:
            yield gloss[glosses - 1]

    heads = ("", *("mean", "p50", "p95")[figures], "of step")
    yield table([[Text(head, style="dim") for head in heads]])
    if least is not None:
        known = [
            row for _, rows in stage_groups(loader) for row in rows if _shown(row.name, loader)
        ]
        yield table([list(cells(row)) for row in known if _matters(row.name, loader, least)])
        return
    for title, rows in stage_groups(loader):
        shown = [list(cells(row)) for row in rows if _shown(row.name, loader)]
        if shown:
            yield indented(title, "italic dim")
            yield table(shown)


def _matters(name: str, loader: LoaderReport, least: float) -> bool:
    """Batches that lie ready cost nothing; what starting costs is told with the causes of
    waiting."""
    share = loader.stages[name].share
    return name in ("wait", "compute") or (
        name not in ("queued", "startup") and share is not None and share >= least
    )


def _shown(name: str, loader: LoaderReport) -> bool:
    stage = loader.stages[name]
    if name not in GLOSSES or not stage.count:
        return False
    return not (name == "stall" and stage.reason)  # equals wait: said once is enough


def unmeasured_stages(loader: LoaderReport) -> Iterator[str]:
    """'pin (pin_memory is off)', stages with one reason together."""
    lacking = [(label_of(name), stage) for name, stage in loader.stages.items() if not stage.count]
    told = by_reason((label, stage.reason or "no reason known") for label, stage in lacking)
    return (f"{labels} ({reason})" for labels, reason in told)


def waiting_line(loader: LoaderReport) -> str | None:
    """'Waiting, 5.69 s in all: collate 28 %, hand-over 21 %.' None where nothing was waited for."""
    waiting = loader.waiting
    if waiting is None or waiting.total_s <= 0:
        return None
    rows = [row for row in cause_rows(loader) if row.fraction >= LEAST_NAMED][:MOST_NAMED]
    causes = ", ".join(f"{row.cause} {row.share}" for row in rows)
    return f"Waiting came to {duration(waiting.total_s)}" + (f": {causes}." if causes else ".")


def waiting_lines(loader: LoaderReport, width: int) -> Iterator[RenderableType]:
    waiting = loader.waiting
    assert waiting is not None
    yield heading(f"Where waiting came from ({duration(waiting.total_s)} in all)")
    table = Table.grid(padding=(0, 1))
    for justify in ("left", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_column(no_wrap=True, width=8)
    table.add_column(style="dim")
    rows = cause_rows(loader)
    for row in rows:
        if row.fraction >= LEAST_CAUSE or len(rows) == 1:
            meaning = row.meaning if width >= SHORT_GLOSSES_FROM else ""
            drawn = Text(bar(row.fraction, 8), style="red")
            table.add_row(Text(f"    {row.cause}"), row.time, row.share, drawn, meaning)
    yield table
    for line in waiting_sentences(loader):
        yield indented(line, by=4)
    yield Text("")


def waiting_sentences(loader: LoaderReport) -> Iterator[str]:
    waiting = loader.waiting
    assert waiting is not None
    if "workers-busy" in waiting.causes and waiting.work:
        verbs = {"fetch": "fetching", "collate": "collating", "pack": "packing"}
        work = ", ".join(
            f"{verbs.get(name, clean(name, 20))} {percent(share)}"
            for name, share in sorted(waiting.work.items(), key=lambda item: -item[1])
            if share >= 0.005
        )
        if work:
            yield f"While the loop waited, the workers were {work} of that time."
    fetched = max(
        waiting.work.get("fetch", 0.0),
        waiting.causes["fetch"].share if "fetch" in waiting.causes else 0.0,
    )
    if fetched < LEAST_FETCHED:
        return
    idle = waiting.fetch_idle_share
    no_core = waiting.fetch_core_wait_share
    if idle is not None and idle >= 0.05 and no_core is not None:
        parts = (
            (no_core, "for a free core"),
            (max(0.0, idle - no_core), "for I/O, locks and the like"),
        )
        told = ", ".join(
            f"{percent(share)} {what}" for share, what in parts if share >= LEAST_WAITED
        )
        yield f"{percent(idle)} of fetch is waiting: {told}; the rest is computing."
    elif idle is not None and idle >= 0.05:
        yield (
            f"{percent(idle)} of fetch is waiting (I/O, locks, other processes); the rest is "
            "computing."
        )
    elif idle is not None:
        yield "Fetch is computing nearly all of its time: the CPU makes the samples, not the disk."
