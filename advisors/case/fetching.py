"""What fetching costs and what it waits for: figures that the rules about access to the data
share."""

from __future__ import annotations

from ...profiler.store.inspection import Attribute, Part
from .case import Case

# Above this part of its wall time spent waiting, fetching is said to wait; below FETCH_COMPUTES, to
# compute.
FETCH_WAITS = 0.5
FETCH_COMPUTES = 0.15
# A stage is the cause of waiting from half of it on.
MAIN_PART = 0.5


def sample_time_us(case: Case) -> float | None:
    """Fetching, µs a sample; None where it was not measured."""
    fetch = case.mean_us("fetch")
    samples, batches = case.report.samples, case.report.batches
    if fetch is None or not samples or not batches:
        return None
    return fetch * batches / samples


def sample_bytes(case: Case) -> float | None:
    """What a sample takes as it reaches the batch; None where it was not measured."""
    batch, samples = case.report.bytes_per_batch, case.report.samples
    return batch * case.report.batches / samples if batch is not None and samples else None


def fetch_idle_share(case: Case) -> float | None:
    """Of fetch's wall time, spent waiting for files, locks and the like: for a core, too, only
    where that was not counted."""
    waiting = case.report.waiting
    if waiting is None or waiting.fetch_idle_share is None:
        return None
    return max(0.0, waiting.fetch_idle_share - (waiting.fetch_core_wait_share or 0.0))


def making_share(case: Case) -> float:
    """Share of all waiting that goes into making batches; with workers, into handing them over
    too."""
    waiting = case.report.waiting
    if waiting is None:
        return 0.0
    if not case.num_workers:
        return case.waited_for("fetch", "collate")
    busy = sum(waiting.work.values())
    return min(1.0, busy + case.waited_for("hand-over", "queue", "unpack", "pin"))


def waited_on(case: Case, stage: str) -> float:
    """Share of all waiting that is fetching or collating, in main or in workers."""
    if not case.num_workers:
        return case.waited_for(stage)
    waiting = case.report.waiting
    return waiting.work.get(stage, 0.0) if waiting is not None else 0.0


def fetch_share(case: Case) -> float:
    """Share of all waiting that is fetching, in main or in workers."""
    return waited_on(case, "fetch")


def names_used(case: Case) -> frozenset[str]:
    """Names that the access methods of the data set, and of the sets inside it, use."""
    return frozenset(name for part in case.inspection.parts for name in part.names)


def held(case: Case, *kinds: str) -> tuple[Part, Attribute] | None:
    """The first attribute of these kinds, and the data set that holds it."""
    for part in case.inspection.parts:
        for attribute in part.attributes:
            if attribute.kind in kinds:
                return part, attribute
    return None


def file_suffix(case: Case) -> str | None:
    """The commonest suffix of the files it lists, lower case ('.png'); None where it lists none."""
    found = held(case, "paths")
    return (found[1].suffix or "").lower() if found is not None else None
