"""Stage statistics: how long each stage of a batch takes, and its share of the training loop's
time.

Folded detail counts: exactly in counts, means and totals, within a histogram bin (4.5 %) in
percentiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ...profiler.store.lanes.compacted import Totals
from ...profiler.store.run.run import LoaderRun
from ..schema.report_model import Stage

# Stage name → column. `startup` comes from the epochs, `stall` from stall_ns or wait_ns.
COLUMNS: dict[str, str] = {
    "index": "index_ns",
    "fetch": "fetch_ns",
    "collate": "collate_ns",
    "fetch_cpu": "fetch_cpu_ns",
    "collate_cpu": "collate_cpu_ns",
    "pack": "pack_ns",
    "queued": "queued_ns",
    "unpack": "unpack_ns",
    "pin": "pin_ns",
    "wait": "wait_ns",
    "h2d": "h2d_ns",
    "h2d_host": "h2d_host_ns",
    "compute": "compute_ns",
    "compute_device": "compute_device_ns",
    "stall": "stall_ns",
}

NAMES = (*COLUMNS, "startup")

# CPU time is measured on some batches only, and not on a fair sample of them (slow ones always, and
# the first): its share is the share of the whole, times CPU over wall on the batches that have
# both.
SAMPLED = {"fetch_cpu": "fetch", "collate_cpu": "collate"}

# Copies are looked at of some batches only, a fair sample.
COPYING = ("h2d", "h2d_host")

QUANTILES = (0.50, 0.95, 0.99)

_WORKER_STAGES = frozenset({"pack", "queued", "unpack"})
_DEVICE_STAGES = frozenset({"h2d", "h2d_host", "compute_device"})


def stages(loader: LoaderRun, device: str | None) -> dict[str, Stage]:
    """Every stage by name, in the order of the pipeline. `device` is the training device, None
    where there is none."""
    batches, fold = loader.batches, loader.folded.columns
    columns: dict[str, tuple[npt.NDArray[Any], Totals | None]] = {
        name: (batches[column], fold.get(column)) for name, column in COLUMNS.items()
    }
    notes: dict[str, str] = {}
    if not measured(*columns["stall"]) and measured(*columns["wait"]):
        columns["stall"] = columns["wait"]
        notes["stall"] = (
            "no device: equals wait"
            if device is None
            else "device events not measured: equals wait"
        )
    columns["startup"] = (startup_ns(loader), None)
    step_total_ns = step_totals(loader)
    found = {}
    for name in NAMES:
        values, folded = columns[name]
        reason = notes.get(name) or why_not(name, loader, device)
        found[name] = stage(values, folded, step_total_ns, reason, name in notes)
        if name in SAMPLED:
            whole = found[SAMPLED[name]].share
            ratio = cpu_share(columns[SAMPLED[name]][0], values)
            share = whole * ratio if whole is not None and ratio is not None else None
            found[name] = replace(found[name], share=share)
        if name in COPYING:
            found[name] = _of_all(loader, found[name], step_total_ns)
    return found


def _of_all(loader: LoaderRun, copying: Stage, step_total_ns: float) -> Stage:
    """Total and share of all batches, of which some were looked at."""
    copies = loader.batches["h2d_copies"]
    looked = int(np.count_nonzero(copies >= 0))
    if copying.mean_us is None or not looked or step_total_ns <= 0:
        return copying
    total_ns = copying.mean_us * 1e3 * loader.count * np.count_nonzero(copies > 0) / looked
    return replace(copying, share=float(total_ns / step_total_ns), total_s=float(total_ns / 1e9))


def measured(values: npt.NDArray[Any], folded: Totals | None) -> bool:
    return bool((folded is not None and folded.count) or np.any(values >= 0))


def startup_ns(loader: LoaderRun) -> npt.NDArray[np.int64]:
    """From `iter()` to the first batch, a value an epoch; -1 where no batch came."""
    began, first = loader.epochs["t_iter_ns"], loader.epochs["t_first_ns"]
    return np.where((began >= 0) & (first >= began), first - began, -1)


def cpu_share(wall: npt.NDArray[Any], cpu: npt.NDArray[Any]) -> float | None:
    """CPU over wall time, on the batches on which both were measured; 1 - it is time spent waiting.
    None if none."""
    both = np.flatnonzero(cpu >= 0)
    both = both[wall[both] >= 0]
    total = float(wall[both].sum(dtype=np.float64))
    return min(1.0, float(cpu[both].sum(dtype=np.float64)) / total) if total else None


def step_totals(loader: LoaderRun) -> float:
    """Time of all steps, ns. A step whose end is not known counts with its wait alone."""
    batches, fold = loader.batches, loader.folded.columns
    total = 0.0
    for column in ("wait_ns", "compute_ns"):
        values = batches[column]
        total += float(values.sum(where=values >= 0, dtype=np.float64))
        if column in fold:
            total += fold[column].total
    return total


def stage(
    values: npt.NDArray[Any],
    folded: Totals | None,
    step_total_ns: float,
    reason: str | None = None,
    keep_reason: bool = False,
) -> Stage:
    """One stage's statistics; `share` is of `step_total_ns`.

    `reason` is kept where nothing was measured, or always with `keep_reason`.
    """
    if values.dtype.kind == "f":
        values = values[values >= 0]
    elif len(values) and not values.strides[0]:  # one value for all rows
        values = values if values[0] >= 0 else values[:0]
    elif not len(values) or values.min() < 0:
        values = values[values >= 0]
    count = len(values) + (folded.count if folded is not None else 0)
    if not count:
        return Stage(0, None, None, None, None, None, None, reason or "not measured")
    total = float(values.sum(dtype=np.float64)) + (folded.total if folded is not None else 0)
    p50, p95, p99 = quantiles(values, folded)
    return Stage(
        count=count,
        mean_us=total / count / 1e3,
        p50_us=p50 / 1e3,
        p95_us=p95 / 1e3,
        p99_us=p99 / 1e3,
        share=total / step_total_ns if step_total_ns > 0 else None,
        total_s=total / 1e9,
        reason=reason if keep_reason else None,
    )


def quantiles(values: npt.NDArray[Any], folded: Totals | None = None) -> tuple[float, ...]:
    """The QUANTILES of measured values: linear between neighbours, or from log bins where some are
    folded."""
    if folded is not None and folded.count:
        both = Totals(folded.count, folded.total, folded.low, folded.high, folded.bins)
        both.add(values)
        return both.quantiles(*QUANTILES)
    places = [q * (len(values) - 1) for q in QUANTILES]
    below = [int(place) for place in places]
    above = [min(place + 1, len(values) - 1) for place in below]
    ordered = np.partition(values, sorted({*below, *above}))
    return tuple(
        float(ordered[i]) + (float(ordered[j]) - float(ordered[i])) * (place - i)
        for place, i, j in zip(places, below, above, strict=True)
    )


def why_not(name: str, loader: LoaderRun, device: str | None) -> str:
    """Why a stage has no figures, as far as recording has not said so itself."""
    reasons: Mapping[str, str] = loader.reasons
    for key in (name, COLUMNS.get(name, ""), "h2d" if name in _DEVICE_STAGES else ""):
        if key in reasons:
            return reasons[key]
    if loader.count == 0:
        return "no batches"
    if name in _DEVICE_STAGES and device is None:
        return "no device"
    if loader.kind == "iterable" and name not in ("wait", "compute", "stall", "startup"):
        return "not a DataLoader: only waiting and computing are seen"
    if name in _WORKER_STAGES and not loader.num_workers:
        return "no workers"
    if name == "pin" and not loader.config.get("pin_memory"):
        return "pin_memory is off"
    if name in ("index", "collate", "collate_cpu") and loader.config.get("batch_size", 0) is None:
        return "batch_size=None: the data set makes the batches"
    return "not measured"
