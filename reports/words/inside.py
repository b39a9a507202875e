"""What a loader's waiting is made of, and what goes on inside the stages: what stacks and probes
rest on, and what they lack."""

from ...advisors.case.workers import WAITS_FOR
from ...advisors.schema.report_model import (
    Code,
    CodeStage,
    Doing,
    Finding,
    HotSpot,
    LoaderReport,
    Report,
)
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from .storage_words import unmeasured_storage
from .units import count, duration, factor, percent, plural, rate

STAGES = {
    "index": "drawing indices",
    "fetch": "fetching samples",
    "collate": "collating",
    "transfer": "handing batches over from the workers",
    "pin": "copying to page-locked memory",
    "startup": "starting, until the first batch of each epoch",
    "other": "the DataLoader's own work between batches",
    "unknown": "what the iterable does for a batch (it is no DataLoader: not recorded in detail)",
}
LEAST_GAIN = 1.05  # of what would be free, to be worth saying
LEAST_DOING = 0.1  # of a finding, to be said

# The stages in the order of the pipeline, as `CodeStage`s are named.
PIPELINE = ("fetch", "collate", "pack", "pin", "wait", "compute")


def doing_text(found: Doing) -> str:
    """'waits for a lock shared by 4 workers, 93 %'"""
    what = "sleeps" if found.kind == "sleep" else f"waits {WAITS_FOR[found.kind]}"
    if found.processes > 1:
        what += f" shared by {found.processes} workers"
    if found.what:
        what += f" {clean(found.what, 60)}"
    return f"{what}, {percent(found.share)}"


def finding_text(found: Finding) -> str:
    """'`gc.collect()` data.py:610, 100 % of fetch; without it ×628'"""
    if found.stage == "transfer" or not found.text:
        what = STAGES.get(found.stage, found.stage)
        what += f" ({clean(found.text, 100)})" if found.text else ""
        what += f", {percent(found.waiting_share)} of the wait"
    else:
        code = found.place
        what = f"`{clean(found.text, 60)}`" if code else clean(found.text, 60)
        what += f" {clean(found.place, 60)}" if code else ""
        what += f" ({clean(found.call, 60)})" if found.call else ""
        of = "all time, in the loop itself" if found.stage == "compute" else found.stage
        what += f", {percent(found.share.mid)} of {of}"
    waits = [each for each in found.doing if each.kind in WAITS_FOR and each.share >= LEAST_DOING]
    if waits:
        what += f" ({'; '.join(map(doing_text, waits[:2]))})"
    if found.factor and found.factor.mid >= LEAST_GAIN:
        what += f"; without it {factor(found.factor.mid)}"
    return what


def what_costs(loader: LoaderReport) -> str | None:
    """'What costs: …': the leading finding. None where nothing stands out."""
    return f"What costs: {finding_text(loader.findings[0])}." if loader.findings else None


def code_stages(code: Code | None) -> list[tuple[str, CodeStage]]:
    """The stages of which there are samples, in the pipeline's order."""
    if not code:
        return []
    order = dict.fromkeys((*PIPELINE, *code.stages))
    found = ((name, code.stages.get(name)) for name in order)
    return [(name, stage) for name, stage in found if stage and stage.samples > 0]


def function_name(spot: HotSpot) -> str:
    """'PIL ImageFile.load': the function with its library."""
    function, library = clean(spot.function, 80), clean(spot.library or "", 40)
    named = not library or function.startswith(f"{library}.")
    return function if named else f"{library} {function}"


def basis_text(code: Code, stage: CodeStage | None = None) -> str:
    """'1,204 samples in 1 burst of 8.0 s; the GIL was held in 31 % of them', of one stage or of
    all."""
    samples = code.samples if not stage else stage.samples
    bursts = f"1 burst of {duration(code.seconds)}"
    if code.bursts != 1:
        bursts = f"{count(code.bursts)} bursts, {duration(code.seconds)} in all"
    text = f"{plural(samples, 'sample')} in {bursts}"
    if stage and stage.gil_share is not None:
        text += f"; the GIL was held in {percent(stage.gil_share)} of them"
    elif not stage and code.rate_hz:
        text += f", {rate(code.rate_hz)} a second"
    return text


def inside_notes(loader: LoaderReport) -> list[str]:
    """Why functions were not seen, and what of storage was not: a sentence each."""
    code, storage = loader.code, loader.storage
    notes = [
        f"functions: {code.reason}" if code and code.reason else None,
        unmeasured_storage(storage) if storage else None,
    ]
    return [note for note in notes if note]


def why_no_stacks(report: Report, run: Run) -> str:
    """The reason there are none, with what to do."""
    reasons = (loader.code.reason for loader in report.loaders if loader.code)
    when = " yet;" if run.state == "live" else "; while a run goes on,"
    return next(filter(None, reasons), f"none were taken{when} `loaderscope stacks` takes some")
