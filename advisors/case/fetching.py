"""What fetching costs and what it waits for: figures that the rules about access to the data
share."""

from ...profiler.store.inspection import Attribute, Part
from ..schema.evidence import size
from .case import Case

# Above this part of its wall time spent waiting, fetching is said to wait.
FETCH_WAITS = 0.5
# A stage is the cause of waiting from half of it on.
MAIN_PART = 0.5
# Files of which so many times what reaches the batch is read, and not little, are read for a part.
MANY_TIMES, NOT_LITTLE = 4.0, 1 << 16
# So many samples that were made again are enough to tell.
MADE_AGAIN = 8


def sample_time_us(case: Case) -> float | None:
    """Fetching, µs per sample; per item of a data set that gives batches of unknown size."""
    return per_sample(case, case.mean_us("fetch"))


def sample_bytes(case: Case) -> float | None:
    """Bytes of a sample as it reaches the batch."""
    return per_sample(case, case.report.bytes_per_batch)


def read_for_a_part(case: Case) -> str | None:
    """What a sample reads of files, if only a small part of it reaches the batch."""
    storage, used = case.report.storage, sample_bytes(case)
    read = (storage and storage.read_bytes_per_sample) or 0.0
    if not used or read < max(NOT_LITTLE, MANY_TIMES * used):
        return None
    return f"Each sample reads {size(read)} of files, of which {size(used)} reach the batch"


def per_sample(case: Case, per_batch: float | None) -> float | None:
    """A mean per batch as one per sample."""
    samples = case.report.samples or case.report.batches
    return per_batch * case.report.batches / samples if per_batch is not None and samples else None


def fetch_idle_share(case: Case) -> float | None:
    """Of fetch's wall time, spent waiting for files, locks and the like; for a core only if that
    was not counted."""
    idle = case.waiting.fetch_idle_share
    return None if idle is None else max(0.0, idle - core_wait_share(case))


def handed_over(case: Case) -> float:
    """Of fetch's stack samples, those that wait while somebody else computes for them: threads, a
    program or another process. 0 where these compete: fetching then waits for a core as well."""
    stage = case.code_stage("fetch")
    shares = {each.kind: each.share for each in (stage.doing if stage is not None else ())}
    given = sum(shares.get(kind, 0.0) for kind in ("threads", "child", "server"))
    return given if shares.get("core", 0.0) < MAIN_PART * given else 0.0


def makes_the_same(case: Case) -> bool:
    """Whether all samples that were made again, in a later epoch, were seen to be the same."""
    looks = case.loader.looks
    return looks.again >= MADE_AGAIN and looks.same == looks.again


def room_of(case: Case) -> tuple[float, str]:
    """Memory that is left: of the container's limit if that is below the machine's, else of the
    machine's."""
    limit, peak = case.system.cgroup_mem_limit_bytes, case.system.cgroup_mem_peak_bytes
    left = case.system.mem_available_min_bytes
    if limit and peak is not None and (left is None or limit - peak < left):
        return max(1.0, float(limit - peak)), "the container's memory"
    return float(left or 0), "the machine's memory"


def core_wait_share(case: Case) -> float:
    """Of fetch's wall time, spent waiting for a core; 0 if that was not counted."""
    return case.waiting.fetch_core_wait_share or 0.0


def making_share(case: Case) -> float:
    """Share of all waiting that goes into making batches; with workers, into handing them over
    too."""
    if not case.num_workers:
        return case.waited_for("fetch", "collate")
    busy = sum(case.waiting.work.values())
    return min(1.0, busy + case.waited_for("hand-over", "queue", "unpack", "pin"))


def waited_on(case: Case, stage: str) -> float:
    """Share of all waiting that is fetching or collating, in main or in workers."""
    return case.waiting.work.get(stage, 0.0) if case.num_workers else case.waited_for(stage)


def fetch_share(case: Case) -> float:
    """Share of all waiting that is fetching, in main or in workers."""
    return waited_on(case, "fetch")


def names_used(case: Case) -> frozenset[str]:
    """Names that the access methods of the data set, and of the sets inside it, use."""
    return frozenset(name for part in case.inspection.parts for name in part.names)


def held(case: Case, *kinds: str) -> tuple[Part, Attribute] | None:
    """The first attribute of these kinds, and the data set that holds it."""
    found = ((part, each) for part in case.inspection.parts for each in part.attributes)
    return next(((part, each) for part, each in found if each.kind in kinds), None)


def file_suffix(case: Case) -> str | None:
    """The most common suffix of the files it lists, lower case ('.png'); None if it lists none."""
    found = held(case, "paths")
    return (found[1].suffix or "").lower() if found is not None else None
