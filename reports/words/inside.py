"""What goes on inside the stages, as rows of ready texts: functions, the user's lines,
transforms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...advisors.schema.report_model import (
    Code,
    CodeStage,
    HotSpot,
    LoaderReport,
    Report,
    TransformTime,
)
from ...profiler.base.metadata import clean
from ...profiler.record.inspect.uses import place_of
from ...profiler.store.run.run import Run
from .storage_words import MAX_ROWS, unmeasured_storage
from .units import count, duration, micros, percent, plural, rate, span

# The stages in the order of the pipeline, as `CodeStage`s are named.
STAGES = ("fetch", "collate", "pack", "pin", "wait", "compute")
# Shares of fewer samples say nothing: of 10, a half may be a fifth or four fifths.
LEAST_SAMPLES = 10
# Functions and lines below these shares are not listed.
LEAST_SHARE, LEAST_LINE_SHARE = 0.005, 0.01


@dataclass(frozen=True)
class HotRow:
    """A function, or with `line` one line of the user's. `share` counts what it called, `itself`
    does not.

    `share` has the range that holds it 19 times in 20. `kind` is "yours", "library" or "compiled".
    `where` is the commonest line of a function. Compiled code that a line of the user's calls
    counts to that line itself.
    """

    share: str
    itself: str
    name: str
    where: str
    caller: str
    kind: str
    fraction: float  # as `share`
    alone: float  # as `itself`
    line: bool = False
    code: str = ""  # the text of a line, where it is known


def code_stages(code: Code | None) -> list[tuple[str, CodeStage]]:
    """The stages of which there are samples, in the pipeline's order."""
    if code is None:
        return []
    order = [*STAGES, *(name for name in code.stages if name not in STAGES)]
    return [
        (name, code.stages[name])
        for name in order
        if name in code.stages and code.stages[name].samples > 0
    ]


def hot_row(spot: HotSpot, line: bool = False) -> HotRow:
    """One function, or one line of the user's; every text clean."""
    function, library = clean(spot.function, 80), clean(spot.library or "", 40)
    return HotRow(
        share=f"{percent(spot.total_share)} ({span(spot.low, spot.high)})",
        itself=percent(spot.share),
        name=function
        if not library or function.startswith(f"{library}.")
        else f"{library} {function}",
        where=place_of(spot.file, spot.line) if spot.file else "",
        caller=clean(spot.called_from or "", 60),
        kind="yours" if spot.own else "compiled" if spot.native else "library",
        fraction=spot.total_share,
        alone=spot.share,
        line=line,
        code=clean((spot.text or "").strip(), 80) if line else "",
    )


def own_lines(stage: CodeStage, besides: Iterable[HotRow] = ()) -> list[HotRow]:
    """The user's own lines; not those of which one of the rows `besides` says the same."""
    shown = {(row.where, row.share) for row in besides if row.kind == "yours"}
    rows = [hot_row(spot, line=True) for spot in stage.lines]
    return [row for row in rows if (row.where, row.share) not in shown]


def hot_rows(stage: CodeStage, least: float) -> list[HotRow]:
    """The functions in which at least this share was spent itself, the hottest first."""
    return [row for row in map(hot_row, stage.hot) if row.alone >= least]


def hottest(stage: CodeStage, functions: int = 10, lines: int = 6) -> list[HotRow]:
    """The hottest functions, then the user's own lines; none of too few samples."""
    if stage.samples < LEAST_SAMPLES:
        return []
    found = hot_rows(stage, LEAST_SHARE)[:functions]
    own = [row for row in own_lines(stage, found) if row.fraction >= LEAST_LINE_SHARE]
    return [*found, *own[:lines]]


def basis_text(code: Code, stage: CodeStage | None = None) -> str:
    """'1,204 samples in 1 burst of 8.0 s; the GIL was held in 31 % of them', of one stage or of
    all."""
    samples = code.samples if stage is None else stage.samples
    bursts = f"1 burst of {duration(code.seconds)}"
    if code.bursts != 1:
        bursts = f"{count(code.bursts)} bursts, {duration(code.seconds)} in all"
    text = f"{plural(samples, 'sample', 'samples')} in {bursts}"
    if stage is not None and stage.gil_share is not None:
        text += f"; the GIL was held in {percent(stage.gil_share)} of them"
    elif stage is None and code.rate_hz:
        text += f", {rate(code.rate_hz)} a second"
    return text + ("; with compiled frames" if stage is None and code.native else "")


def transform_rows(transforms: Iterable[TransformTime]) -> list[tuple[str, str, str, str, str]]:
    """(callable, mean time a call, share of fetch, calls, where its chain hangs), in their
    order."""
    return [
        (
            f"{each.position + 1}. {clean(each.name, 80)}",
            micros(each.mean_us),
            percent(each.share),
            count(each.calls),
            clean(each.chain, 80),
        )
        for each in list(transforms)[:MAX_ROWS]
    ]


def inside_notes(loader: LoaderReport) -> list[str]:
    """Why functions were not seen, and what of storage was not: a sentence each."""
    code, storage = loader.code, loader.storage
    notes = [
        f"functions: {clean(code.reason, 300)}" if code is not None and code.reason else None,
        unmeasured_storage(storage) if storage is not None else None,
    ]
    return [note for note in notes if note]


def why_no_stacks(report: Report, run: Run) -> str:
    """The reason there are none, as far as anything of the run tells, with what to do."""
    reasons: Iterable[str | None] = (
        *(loader.code.reason for loader in report.loaders if loader.code is not None),
        *(burst.reason for system in run.systems for burst in system.bursts),
        *(system.reasons.get("stacks") for system in run.systems),
        *(process.reasons.get("stacks") for process in run.processes),
    )
    found = next((reason for reason in reasons if reason), None)
    if found is not None:
        return clean(found, 300)
    if run.state == "live":
        return "none were taken yet; `loaderscope stacks` takes some"
    return "none were taken; while a run goes on, `loaderscope stacks` takes some"
