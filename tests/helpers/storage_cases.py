"""Cases about storage: a real loader over real files, with made-up looks inside its fetching."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from builders import MS, T0
from loaderscope.advisors.assemble.build_report import loader_report
from loaderscope.advisors.case.case import Case
from loaderscope.profiler.record.inspect.inspect_batch import inspect_batch
from loaderscope.profiler.store.sampled_fetches import (
    ContainerFile,
    EpochTotals,
    MountTotals,
    SampledFetches,
    SuffixTotals,
)
from rule_cases import FakeWhatIf, case_of
from rule_rows import rows_of

SAMPLES = 400  # looked at


def looked(case: Case, looks: SampledFetches) -> Case:
    """The same case, whose fetching was seen from inside."""
    loader = replace(case.loader, looks=looks)
    process = replace(case.process, loaders=(loader,))
    run = replace(case.run, processes=(process,))
    report = loader_report(run, process, loader)
    return replace(case, run=run, process=process, loader=loader, report=report)


def looks_of(
    suffix: str | None = ".png",
    mean_bytes: int = 100_000,
    *,
    fetch_ms: float = 5.0,
    idle: float = 0.8,
    opens: int | None = None,
    distinct: int | None = None,
    read: int | None = None,
    disk: int | None = None,
    faults: int = 0,
    mount: str = "ext4",
    containers: tuple[tuple[str, str, int | None], ...] = (),
    **more: Any,
) -> SampledFetches:
    """Looks at SAMPLES samples of one epoch, each of which opens one file (`suffix` None: none).
    Times a sample; bytes a sample, by default those of the file, all from the disk."""
    opened = (SAMPLES if suffix is not None else 0) if opens is None else opens
    read = mean_bytes * (suffix is not None) if read is None else read
    disk = read if disk is None else disk
    paths = opened if distinct is None else distinct
    fetch = round(fetch_ms * MS * SAMPLES)
    counted = (opened, *(each * SAMPLES for each in (read, 2, disk, faults)))
    epoch = EpochTotals(0, SAMPLES // 4, SAMPLES, fetch, round(fetch * (1 - idle)), *counted)
    told: dict[str, Any] = {"batches": SAMPLES // 4, "samples": SAMPLES, "fetch_ns": fetch}
    told |= {"opens": opened, "different": opened, "distinct": paths, "reopened": opened - paths}
    told |= {"directories": 1, "epochs": (epoch,)}
    told["containers"] = tuple(ContainerFile(path, kind, size) for kind, path, size in containers)
    if suffix:
        sums = SuffixTotals(opened, opened, mean_bytes * opened, mean_bytes)
        told["suffixes"] = {suffix: sums}
    if opened:
        told |= {"folders": {"/data": opened}, "mounts": (MountTotals("/", mount, opened),)}
    return SampledFetches(**{**told, **more})


def memory(total: float = 32e9, **columns: Any) -> dict[str, Any]:
    """A sampler that saw so much memory, and a training process that holds 1 GB of it."""
    held = {"pid": 4000, "owner_pid": 4000, "role": 0, "pss_bytes": 1_000_000_000}
    seen = {"machine": {"mem_total_bytes": int(total), **columns}, "process": held}
    times = range(T0, T0 + 2000 * MS, 200 * MS)
    return {lane: [{"t_ns": t, **row} for t in times] for lane, row in seen.items()}


def stored_case(
    tmp_path: Path,
    loader: DataLoader[Any],
    looks: SampledFetches | None = None,
    *,
    idle: float = 0.8,
    fetch_ms: float = 20.0,
    compute_ms: float = 5.0,
    batch: Any = None,
    whatif: FakeWhatIf | None = None,
    system: Mapping[str, Any] | None = None,
    **more: Any,
) -> Case:
    """A loop that waits for batches of four. The first batch of the loader is looked at as a
    recording would."""
    fetch = round(fetch_ms * MS)
    one = batch if batch is not None else next(iter(loader))
    made = {"fetch_ns": fetch, "fetch_cpu_ns": round(fetch * (1 - idle)), "collate_ns": MS}
    made |= {"samples": 4, "bytes": sum(each.nbytes for each in _tensors(one))}
    rows, epochs = rows_of(1, wait_ms=fetch_ms + 2, compute_ms=compute_ms, **made)
    more |= {"loader": loader, "inspection": inspect_batch(one), "whatif": whatif, "system": system}
    case = case_of(tmp_path, rows, epochs=epochs, **more)
    return looked(case, looks) if looks is not None else case


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    inside = value.values() if isinstance(value, dict) else value
    held = isinstance(value, dict | list | tuple)
    return [tensor for each in inside for tensor in _tensors(each)] if held else []


def pasted(code: str, dataset: Any, **names: Any) -> Any:
    """The loader that the code makes, as where a person pastes it."""
    given: dict[str, Any] = {"dataset": dataset, "__name__": "pasted", **names}
    exec(compile(code, "<pasted>", "exec"), given)
    return given["loader"]


def equal(one: Any, other: Any) -> bool:
    """Whether two batches hold the same, in tensors of the same types."""
    if isinstance(one, torch.Tensor):
        return (
            isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
        )
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def same_batches(loader: Any, other: Any) -> bool:
    """Whether two loaders give the same batches, in the same order."""
    return all(equal(one, two) for one, two in zip(loader, other, strict=True))
