"""From a run to what a machine must have for one of its loaders to be no limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...profiler.store.run.run import Run
from ..schema.codec import dump
from ..whatif.predict import chosen_of, whatif_of
from ..whatif.size import Need, needs
from .build_report import build_report

SCHEMA = 1


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
    where nothing can be predicted."""
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
        needs=tuple(needs(whatif, speeds, per_batch)),
        **known,
        reasons={
            name: why.get(name, "what is read was not recorded")
            for name in ("read_bytes_per_sample", "dataset_bytes")
            if known[name] is None
        },
    )
