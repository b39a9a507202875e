"""What a machine must have for a loader of a run to be no limit to training.

In the long run, and with workers: a batch is ready in each step if the cores do as much work as the
batches take, and if as many workers are at it as one batch takes steps to make. The beginnings of
epochs are added, unless workers stay.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...profiler.base.errors import UsageError
from ...profiler.store.run.run import Run
from ..schema.codec import dump
from ..schema.ranges import Range
from ..whatif.accuracy import ranged
from ..whatif.predict import WhatIf, chosen_of, whatif_of
from .build_report import build_report

SCHEMA = 1
# Batches do not all take the same time: so much more than keeps up on average.
SPARE = 1.15
_KINDS = frozenset({"cpus", "num_workers", "hand-over"})


@dataclass(frozen=True)
class Need:
    """What a training needs whose computing is `speed` times as fast as in the run.

    `batches_per_s` and `samples_per_s` are its speed if loading is no limit. `cpus` are cores, the
    training process's own included, with the range that holds the true number four times in five;
    `workers` have one core each or less. `waits_share` is what the loop would wait with the CPUs
    and settings of the run.
    """

    speed: float
    batches_per_s: float
    samples_per_s: float | None
    cpus: Range
    workers: int
    waits_share: float


@dataclass(frozen=True)
class Size:
    """`now_cpus` and `now_workers` are those of the run. `read_bytes_per_sample` are read by system
    calls, from the disk where the page cache does not hold them; `dataset_bytes` is what it must
    hold for that. None where not measured, with the reason in `reasons`."""

    schema: int
    run: str
    loader: str
    device: str | None
    now_cpus: float
    now_workers: int
    needs: tuple[Need, ...]
    read_bytes_per_sample: float | None
    dataset_bytes: float | None
    memory_bytes: int | None
    reasons: dict[str, str]

    def to_json(self, indent: int | None = 2) -> str:
        """The figures as JSON text."""
        return dump(self, indent)


def size_of(run: Run, loader: str | None, speeds: Sequence[float]) -> Size:
    """What the loader of this name needs, by default the one that costs most. Raises UsageError
    where nothing can be predicted, and as `need` does."""
    if loader is None:
        costliest = build_report(run, advice=False).costliest
        loader = next((each.name for each in costliest if each.kind == "dataloader"), None)
    process, chosen = chosen_of(run, loader)
    whatif = whatif_of(run, process, chosen)
    place = process.path.name, chosen.index
    (found,) = build_report(run, loader=place, advice=False).loaders
    per_batch = found.samples / found.batches if found.samples and found.batches else None
    storage = found.storage
    known = {
        name: getattr(storage, name, None)
        for name in ("read_bytes_per_sample", "dataset_bytes", "memory_bytes")
    }
    why = storage.reasons if storage is not None else {}
    return Size(
        schema=SCHEMA,
        run=run.id,
        loader=chosen.name,
        device=process.device,
        now_cpus=whatif.workload.plan.cpus,
        now_workers=chosen.num_workers,
        needs=tuple(need(whatif, speed, per_batch) for speed in speeds),
        **known,
        reasons={
            name: why.get(name, "what is read was not recorded")
            for name in ("read_bytes_per_sample", "dataset_bytes")
            if known[name] is None
        },
    )


def need(whatif: WhatIf, speed: float, batch_size: float | None) -> Need:
    """Raises UsageError for a speed that is no positive number, or a loop that computes nothing."""
    if not (math.isfinite(speed) and speed > 0):
        raise UsageError(f"a speed is a positive number, such as 2 for twice as fast, not {speed}")
    w = whatif.workload
    free = whatif.free(num_workers=max(1, w.num_workers), compute=1 / speed)
    if not math.isfinite(free):
        raise UsageError("this loop computes nothing: loading is its limit on any machine")
    # Taking a batch from a worker is the loop's own, however fast it was made.
    taking_ns = w.handover.receive_ns + w.handover.unpack_ns
    step_ns = 1e9 / (whatif.baseline_batches_per_s * free) + taking_ns
    computes_ns = float(w.cpu_ns.mean()) + w.handover.pack_ns
    idle_ns = float(w.idle_ns.mean())
    own = (w.compute_cores if w.compute_cores is not None else 1.0) * (step_ns - taking_ns)
    cores = SPARE * (computes_ns + own + taking_ns) / step_ns
    # The work is the same at any speed, so only errors that do not grow with a gain count.
    spread = ranged(1.0, 1.0, 1.0, _KINDS, 0.0, whatif.misfit)
    rate = 1e9 / step_ns
    now = whatif.predict(compute=1 / speed).mid * whatif.baseline_batches_per_s
    return Need(
        speed=speed,
        batches_per_s=rate,
        samples_per_s=rate * batch_size if batch_size else None,
        cpus=Range(cores * spread.low, cores, cores * spread.high),
        workers=max(1, math.ceil(SPARE * (computes_ns + idle_ns) / step_ns)),
        waits_share=max(0.0, 1 - now / rate),
    )
