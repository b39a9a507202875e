"""Where each batch's time goes, and where waiting came from."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...advisors.case.workers import WAITS_FOR
from ...advisors.schema.report_model import Cause, LoaderReport
from ...advisors.stage_model.verdict import first_of_epoch
from ...advisors.stage_model.waiting import waiting
from ...profiler.base.arrays import Ints
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import LoaderRun
from ..words.glosses import CAUSES, GLOSSES, GROUPS, label_of
from ..words.units import UNKNOWN, by_reason, duration, micros, percent, plural
from .blocks import Bar, Block, Cell, Column, Styled, Table, sentences, table

# Widths of a terminal from which percentiles, bars and explanations have room.
PERCENTILES_FROM, BARS_FROM, GLOSSES_FROM, P99_FROM = 49, 58, 76, 126
STAGE_COLUMNS = (
    Column("stage", "name"),
    Column("mean", "number"),
    Column("p50", "number", PERCENTILES_FROM),
    Column("p95", "number", PERCENTILES_FROM),
    Column("p99", "number", P99_FROM),
    Column("of step", "number"),
    Column("", "bar", BARS_FROM),
    Column("what it is", "gloss", GLOSSES_FROM),
)
CAUSE_COLUMNS = (
    Column("waiting for", "name"),
    Column("time", "number"),
    Column("share", "number"),
    Column("", "bar"),
    Column("what that is", "dim", GLOSSES_FROM),
)
LEAST_CAUSE = 0.0005
# Causes named in a sentence.
LEAST_NAMED, MOST_NAMED = 0.05, 4
LEAST_WAITED = 0.01
# From this part of the waiting on, the report says what fetching does.
LEAST_FETCHED = 0.1
SLOWEST = 10


def stage_table(loader: LoaderReport, least: float | None = None) -> list[Block]:
    """The stages in groups. With `least`, only those that take at least this share of a step, and
    waiting and computing, without groups."""
    workers = loader.config.get("num_workers")
    where = "in the training process"
    if isinstance(workers, int) and workers > 0:
        where = f"in {plural(workers, 'worker')}"
    known = {name for _, names in GROUPS for name in names}
    others = tuple(name for name in loader.stages if name not in known)
    rows: list[tuple[Cell, ...] | str] = []
    for title, names in (*GROUPS, ("other", others)):
        found = [_stage_row(name, loader) for name in names if _shown(name, loader, least)]
        rows += [title.format(where=where)] if found and least is None else []
        rows += found
    return [Table(STAGE_COLUMNS, rows, "Time of each stage per batch")] if rows else []


def _shown(name: str, loader: LoaderReport, least: float | None) -> bool:
    stage = loader.stages.get(name)
    if stage is None or not stage.count or (name == "stall" and stage.reason):  # it equals wait
        return False
    if least is None or name in ("wait", "compute"):
        return True
    # Batches that lie ready cost nothing, and starting is among the causes of waiting.
    return name not in ("queued", "startup") and (stage.share or 0.0) >= least


def _stage_row(name: str, loader: LoaderReport) -> tuple[Cell, ...]:
    stage = loader.stages[name]
    label, gloss = GLOSSES.get(name, (name, ""))
    figures = [micros(each) for each in (stage.mean_us, stage.p50_us, stage.p95_us, stage.p99_us)]
    whole = loader.stages.get(name.removesuffix("_cpu"))
    part = stage.share if whole is not stage else None
    if whole and whole.mean_us and whole.share and part is not None:
        # CPU time is measured on few batches, and not on a fair sample of them: its mean follows
        # from its share of the whole.
        figures = [micros(whole.mean_us * part / whole.share), *[UNKNOWN] * 3]
    lost = name in ("wait", "stall")
    return (
        Styled(label, "strong") if name == "wait" else label,
        *figures,
        percent(stage.share),
        Bar(stage.share, "bad" if lost else "bar"),
        gloss,
    )


def unmeasured_stages(loader: LoaderReport) -> str | None:
    """'Not measured: pin (pin_memory is off).' Stages with one reason stand together."""
    lacking = [(label_of(name), stage) for name, stage in loader.stages.items() if not stage.count]
    found = by_reason((label, stage.reason or "no reason known") for label, stage in lacking)
    return f"Not measured: {found}." if found else None


def waiting_line(loader: LoaderReport) -> str | None:
    """'Waiting came to 5.69 s: collate 28 %, hand-over 21 %.' None where nothing was waited for."""
    waits = loader.waiting
    if not waits or waits.total_s <= 0:
        return None
    named = [
        f"{name} {percent(each.share)}"
        for name, each in causes(loader)
        if each.share >= LEAST_NAMED
    ]
    ending = f": {', '.join(named[:MOST_NAMED])}." if named else "."
    return f"Waiting came to {duration(waits.total_s)}{ending}"


def causes(loader: LoaderReport) -> list[tuple[str, Cause]]:
    """The causes of waiting, the greatest first."""
    found = loader.waiting.causes.items() if loader.waiting else ()
    return sorted(found, key=lambda item: -item[1].share)


def waiting_blocks(loader: LoaderReport) -> list[Block]:
    """The causes of waiting as a table, then what the workers did meanwhile."""
    found = causes(loader)
    rows = [
        (
            name,
            duration(each.seconds),
            percent(each.share),
            Bar(each.share, "bad"),
            CAUSES.get(name, ""),
        )
        for name, each in found
        if each.share >= LEAST_CAUSE or len(found) == 1
    ]
    return [Table(CAUSE_COLUMNS, rows, "Causes of waiting"), *sentences(waiting_sentences(loader))]


def waiting_sentences(loader: LoaderReport) -> Iterator[str]:
    waits = loader.waiting
    if not waits:
        return
    if "workers-busy" in waits.causes:
        verbs = {"fetch": "fetching", "collate": "collating", "pack": "packing"}
        work = ", ".join(
            f"{verbs.get(name, name)} {percent(share)}"
            for name, share in sorted(waits.work.items(), key=lambda item: -item[1])
            if share >= 0.005
        )
        if work:
            yield f"While the loop waited, the workers were {work} of that time."
    fetch = waits.causes.get("fetch")
    fetched = max(waits.work.get("fetch", 0.0), fetch.share if fetch else 0.0)
    idle, no_core = waits.fetch_idle_share, waits.fetch_core_wait_share
    if fetched < LEAST_FETCHED or idle is None:
        return
    if idle < 0.05:
        yield "Fetch computes nearly all of its time: the CPU makes the samples, not the disk."
    elif no_core is None:
        yield (
            f"{percent(idle)} of fetch is waiting (I/O, locks, other processes); the rest is "
            "computing."
        )
    else:
        parts = ((no_core, "a free core"), (max(0.0, idle - no_core), _waited_for(loader)))
        found = ", ".join(
            f"{percent(share)} for {what}" for share, what in parts if share >= LEAST_WAITED
        )
        yield f"{percent(idle)} of fetch is waiting: {found}; the rest is computing."


def _waited_for(loader: LoaderReport) -> str:
    """What fetching mostly waits for besides a core, where stack samples saw it."""
    fetch = loader.code.stages.get("fetch") if loader.code else None
    seen = fetch.doing if fetch else ()
    kind = next((each.kind for each in seen if each.kind not in ("compute", "core")), "")
    return WAITS_FOR.get(kind, "for I/O, locks and the like").removeprefix("for ")


def slowest_batches(loader: LoaderRun) -> list[Block]:
    """The batches in which one stage took longest, with what each mostly waited for."""
    batches, times = loader.batches, ("wait", "fetch", "collate", "compute")
    rows = []
    for at in slowest_rows(batches["wait_ns"]):
        places = (int(batches[name][at]) for name in ("epoch", "worker"))
        found = (int(batches[f"{name}_ns"][at]) for name in times)
        rows.append(
            (
                f"{loader.older + at}",
                *(f"{place}" if place >= 0 else UNKNOWN for place in places),
                *(micros(value / 1e3 if value >= 0 else None) for value in found),
                cause_of(loader, at),
            )
        )
    heads = ("batch", "epoch", "worker", *times, "cause")
    title = "The batches with the longest waits"
    return table(heads, rows, "nnnnnnnw", title)


def slowest_rows(values: Ints) -> list[int]:
    """Rows of the largest values, largest first."""
    rows = np.argsort(-values, kind="stable")[:SLOWEST].tolist()
    return [row for row in rows if values[row] >= 0]


def cause_of(loader: LoaderRun, row: int) -> str:
    """The largest part of a batch's wait."""
    batches = loader.batches
    one = Columns({name: values[row : row + 1] for name, values in batches.items()}, 1)
    first = first_of_epoch(batches["epoch"])[row : row + 1]
    found = waiting(replace(loader, batches=one, older=0), first)
    if not found or found.total_s <= 0:
        return UNKNOWN
    return max(found.causes, key=lambda name: found.causes[name].seconds)


def not_judged(loader: LoaderReport) -> str | None:
    """'Not judged: page-cache (storage was not recorded).' Rules with one reason stand together."""
    found = by_reason(loader.unmeasured.items())
    return f"Not judged: {found}." if found else None
