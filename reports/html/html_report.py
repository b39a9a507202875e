"""The report as one HTML file that opens anywhere, offline: nothing is fetched, nothing is sent."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import LoaderRun, Run
from ..words.glosses import CAUSES, GLOSSES
from ..words.matching import recorded
from ..words.plan_words import plan_cells, plan_rows, plan_summary
from ..words.ranks import rank_rows, rank_sentences
from ..words.rows import (
    advice_row,
    capacity_rows,
    cause_rows,
    config_rows,
    run_rows,
    stage_groups,
    title_of,
)
from ..words.sentences import (
    headroom_sentence,
    limit_sentence,
    nothing_to_change,
    overhead_sentence,
    throughput_line,
)
from ..words.system_words import system_rows
from ..words.tuned_words import tried_heading, tried_rows, tuned_lead
from ..words.units import factor, micros, percent, rate
from .html_code import Room, inside_view
from .html_loader import loader_figures
from .html_page import fill
from .html_system import system_figures

# plotly.js takes 4.8 MB of the 6 MB a file may have; a loader's plots take up to 100 kB, its tables
# some 30 kB.
MAX_PLOTTED = 6
MAX_LOADERS = 16
MAX_NOTES = 50
SLOWEST = 10


def render_html(report: Report, run: Run) -> str:
    """One self-contained page of at most 6 MB. Raises UsageError where jinja2 or plotly is not
    installed."""
    several = len(report.loaders) > 1
    room = Room(len(report.loaders))
    with np.errstate(all="ignore"):  # damaged columns may hold any number
        # The one that costs most first.
        both = sorted(
            zip(report.loaders, recorded(report, run), strict=True),
            key=lambda pair: -pair[0].lost_s,
        )
        pairs = both[:MAX_LOADERS]
        views = [
            _view(
                f"loader{number}",
                loader,
                found[1] if found else None,
                several,
                number < MAX_PLOTTED,
                room,
            )
            for number, (loader, found) in enumerate(pairs)
        ]
        machine = list(system_figures(run))
    plots = [
        plot
        for view in views
        for plot in (*view["plots"], *filter(None, [view["inside"]["flame"]]))
    ] + machine
    return fill(
        "report.html.j2",
        plots,
        title=f"{views[0]['verdict']}: {views[0]['title']}" if views else "nothing recorded",
        loaders=views,
        more_loaders=max(0, len(report.loaders) - MAX_LOADERS),
        machine=machine,
        system=system_rows(report.system),
        overhead=overhead_sentence(report.overhead),
        notes=[clean(note) for note in report.notes[:MAX_NOTES]],
        missing=[clean(sentence) for sentence in report.missing[:MAX_NOTES]],
        run=run_rows(report),
        stages=[(name.strip(), long) for name, _, long in _definitions()],
        causes=list(CAUSES.items()),
    )


def _definitions() -> list[tuple[str, str, str]]:
    """The stages with what they are; a part of a stage is named in full."""
    return [
        (f"{name.removesuffix('_cpu')}, of it CPU" if name.endswith("_cpu") else shown, short, long)
        for name, (shown, short, long) in GLOSSES.items()
    ]


def _view(
    key: str,
    loader: LoaderReport,
    columns: LoaderRun | None,
    several: bool,
    plotted: bool,
    room: Room,
) -> dict[str, Any]:
    """What the template shows of one loader: texts, none of them markup."""
    inside = inside_view(key, loader, room)
    told = loader.verdict != "too-short"
    return {
        "key": key,
        "title": title_of(loader, several),
        "verdict": loader.verdict,
        "tuned": tuned_lead(loader.tuning) if loader.tuning is not None else [],
        "tried": list(tried_rows(loader.tuning)) if loader.tuning is not None else [],
        "tried_heading": tried_heading(loader.tuning) if loader.tuning is not None else "",
        "sentence": clean(loader.basis.sentence),
        "headroom": headroom_sentence(loader) if told else None,
        "limit": limit_sentence(loader),
        "ranks": rank_sentences(loader),
        "spread": rank_rows(loader),
        "throughput": throughput_line(loader),
        "tiles": tiles_of(loader),
        "nothing": nothing_to_change(loader),
        "recommendations": [(advice_row(row.advice), row) for row in plan_rows(loader)],
        "steps": plan_cells(loader),
        "plan": plan_summary(loader),
        "rejected": [advice_row(each) for each in loader.rejected],
        "unmeasured": [
            (clean(rule, 60), clean(reason, 300)) for rule, reason in loader.unmeasured.items()
        ],
        "groups": list(stage_groups(loader)),
        "causes": [(row.cause, row.time, row.share, row.meaning) for row in cause_rows(loader)],
        "capacities": capacity_rows(loader),
        "config": config_rows(loader),
        "notes": [*(clean(note) for note in loader.notes[:MAX_NOTES]), *inside["notes"]],
        "slowest": _slowest(columns) if columns is not None else [],
        "plots": list(loader_figures(key, loader, columns)) if plotted else [],
        "inside": inside,
    }


def tiles_of(loader: LoaderReport) -> list[tuple[str, str, str]]:
    """(what it is, the figure, how to read it) of what one looks at first."""
    basis = loader.basis
    tiles = []
    if loader.samples_per_s is not None:
        tiles.append(
            ("samples/s", rate(loader.samples_per_s), f"{rate(loader.batches_per_s)} batches/s")
        )
    elif loader.batches_per_s is not None:
        tiles.append(("batches/s", rate(loader.batches_per_s), ""))
    if basis.stall_share is not None:
        spread = ""
        if basis.stall_share_low is not None and basis.stall_share_high is not None:
            spread = (
                f"{percent(basis.stall_share_low)} to {percent(basis.stall_share_high)}, 19 times "
                "in 20"
            )
        lost = "lost to loading" if basis.lost == "stall" else "spent waiting for data"
        tiles.append((lost, percent(basis.stall_share), spread))
    if loader.verdict != "too-short":
        free = (
            "if loading were free"
            if loader.headroom is not None
            else "without loading, nothing would be left"
        )
        tiles.append(("headroom", factor(loader.headroom), free))
    tiles.append(("confidence", basis.confidence, f"{basis.steady_batches:,} steady batches"))
    return tiles


def _slowest(loader: LoaderRun) -> list[tuple[str, ...]]:
    """The batches waited for longest: number, epoch, worker, then times in words."""
    batches = loader.batches
    wait = batches["wait_ns"]
    found = []
    for at in np.argsort(-wait, kind="stable")[:SLOWEST].tolist():
        if wait[at] < 0:
            continue
        cells: list[Any] = [loader.folded.records + at]
        cells += [
            int(batches[name][at]) if batches[name][at] >= 0 else "–"
            for name in ("epoch", "worker")
        ]
        for name in ("wait_ns", "fetch_ns", "collate_ns", "compute_ns"):
            value = int(batches[name][at])
            cells.append(micros(value / 1e3 if value >= 0 else None))
        found.append(tuple(map(str, cells)))
    return found
