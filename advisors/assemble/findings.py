"""What a loader's waiting is made of: the lines and calls that cost most, with or without a known
remedy."""

from collections.abc import Iterator, Mapping

from ...profiler.base.metadata import clean
from ..case.case import Case
from ..case.fetching import waited_on
from ..case.workers import many_small, parts_of_more, per_batch
from ..code.hot.functions import SAMPLES_MADE, Unknown
from ..code.hot.in_loop import in_loop
from ..code.loop_fields import fields_of
from ..schema.evidence import size
from ..schema.report_model import Finding, Range
from ..stacks.stage_parts import Part, parts_of
from ..stage_model.verdict import LITTLE_TO_GAIN, first_of_epoch
from ..whatif.changes import NAMES
from .plan import capped

# Below this part of all waiting, nothing is a finding.
LEAST_WAITING = 0.05
# Objects take this part of handing a batch over, if they are to be named.
MOSTLY = 0.5
# Of fewer samples a share says little: of 10, a half may be a fifth or four fifths.
LEAST_SAMPLES = 10
MOST = 5
WORK = ("index", "fetch", "collate")  # stages of which the lines are known
# Stage as predictions or the report name it → the causes of waiting that belong to it.
REST: Mapping[str, tuple[str, ...]] = {
    "transfer": ("hand-over", "queue", "unpack"),
    "pin": ("pin",),
    "startup": ("startup",),
    "other": ("other",),
    "unknown": ("unknown",),
}
_WHOLE = Range(1.0, 1.0, 1.0)


def findings_of(case: Case) -> tuple[Finding, ...]:
    """By stages, that which the loop would gain most without first. Of a loop that does not wait
    only what it runs besides; none where too little was recorded."""
    report, found = case.report, list(_in_loop(case))
    if report.waiting is not None and report.verdict not in ("compute-bound", "too-short"):
        found += [finding for stage in WORK for finding in _of_work(case, stage)]
        found += _of_the_rest(case)
    # A line is worth a finding although hardly anything waits for it, if workers that share the
    # loop's cores slow down what it does itself.
    found = [
        each
        for each in found
        if each.waiting_share >= LEAST_WAITING
        or (each.text and each.factor and each.factor.mid >= LITTLE_TO_GAIN)
    ]
    sizes = {each.stage: _of_all(case, each) for each in found}
    found.sort(key=lambda each: (-sizes[each.stage], -each.waiting_share))
    return tuple(found[:MOST])


def _of_all(case: Case, found: Finding) -> float:
    """The share of all time that the loop would save if nothing in the finding's stage cost
    anything."""
    if found.stage == "compute":
        return found.waiting_share
    free = _free(case, found.stage, _WHOLE)
    if free is None:
        return found.waiting_share * max(LEAST_WAITING, case.report.basis.stall_share or 0.0)
    own = case.whatif.handover_share if found.stage == "transfer" and case.whatif else 1.0
    return (1 - 1 / free.mid) * own


def _in_loop(case: Case) -> Iterator[Finding]:
    """What the loop runs of the loader's parts besides waiting: shares are of all time."""
    found = in_loop(case)
    if found is not None and case.report.verdict != "too-short":
        share, name = found.of_all, found.method.name if found.place is not None else None
        free = _free(case, "compute", found.method, share.mid)
        yield Finding("compute", found.text, found.place, name, share, share.mid, free)


def _of_work(case: Case, stage: str) -> Iterator[Finding]:
    """Of drawing indices, fetching or collating: lines where stacks were sampled, or the stage."""
    waiting = _drawn(case) if stage == "index" else waited_on(case, stage)
    if not waiting and not case.num_workers:
        return
    code, parts = case.code_stage(stage, LEAST_SAMPLES), list[Part]()
    if code is not None:
        # What a sampler asks samples for is the sampler's, not theirs.
        parts = list(parts_of(code, SAMPLES_MADE if stage == "index" else ()))
    whole = Part(None, None, None, _WHOLE, code.doing if code is not None else ())
    for part in parts or [whole] * (waiting > 0):
        free, share = _free(case, stage, part.share), waiting * part.share.mid
        yield Finding(stage, *part[:4], share, free, part.doing)


def _drawn(case: Case) -> float:
    """Of all waiting, the share that drawing indices takes. What is drawn before an epoch's first
    batch counts too, although that batch is not steady."""
    batches, waited_s = case.loader.batches, case.waiting.total_s
    drawn = batches["index_ns"].clip(0)[first_of_epoch(batches["epoch"])]
    before_s = float(drawn.sum()) / 1e9
    together = waited_s + before_s
    return (case.waited_for("index") * waited_s + before_s) / together if together else 0.0


def _of_the_rest(case: Case) -> Iterator[Finding]:
    """All other causes, as far as they are waited for."""
    for stage, causes in REST.items():
        share, what = case.waited_for(*causes), None
        if stage == "transfer":
            share, what = share + case.waiting.work.get("pack", 0.0), _handed_over(case)
        if share > 0:
            yield Finding(stage, what, None, None, _WHOLE, share, _free(case, stage, _WHOLE))


def _handed_over(case: Case) -> str | None:
    """What of a batch takes most of handing it over: the fields whose objects are pickled, large
    memory, or many small tensors."""
    objects = fields_of(each.path for each in case.inspection.leaves if each.kind != "tensor")
    if objects and case.whatif is not None and case.whatif.objects_share >= MOSTLY:
        return "pickling " + ", ".join(f"batch{clean(each, 40)}" for each in objects[:3])
    if parts := parts_of_more(case):
        return f"tensors that are parts of {size(parts[1])}"
    return f"{per_batch(case, 'tensors'):.0f} tensors per batch" if many_small(case) else None


def _free(case: Case, stage: str, share: Range | Unknown, besides: float = 0.0) -> Range | None:
    if case.whatif is None or stage not in NAMES:
        return None
    left = 1 - share.high, 1 - share.low
    predicted = case.predict(**{stage: left} | ({"draw": left} if stage == "index" else {}))
    return capped(predicted, case.report, besides)
