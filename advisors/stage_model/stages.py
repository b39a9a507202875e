"""Stage statistics: how long each stage of a batch takes, and its share of the training loop's
time."""

from dataclasses import replace
from functools import partial

import numpy as np

from ...profiler.base.arrays import Array, Ints
from ...profiler.store.run.run import LoaderRun
from ..schema.report_model import Stage
from .measured import measured

# Stage name → column. `startup` comes from the epochs, `stall` from stall_ns or wait_ns.
COLUMNS = {
    name: f"{name}_ns"
    for name in (
        "index",
        "fetch",
        "collate",
        "fetch_cpu",
        "collate_cpu",
        "pack",
        "queued",
        "unpack",
        "pin",
        "wait",
        "h2d",
        "h2d_host",
        "compute",
        "compute_device",
        "stall",
    )
}

# Their CPU time is measured on some batches only, and not on a fair sample of them (slow ones
# always, and the first): its share is the share of the whole, times CPU over wall on the batches
# that have both.
SAMPLED = ("fetch", "collate")

# Copies are timed for some batches only, a fair sample.
COPYING = ("h2d", "h2d_host")

QUANTILES = (0.50, 0.95, 0.99)


_WORKER_STAGES = frozenset({"pack", "queued", "unpack"})
_DEVICE_STAGES = frozenset({"h2d", "h2d_host", "compute_device"})
_OF_ITERABLES = frozenset({"wait", "compute", "stall", "startup"})


def stages(loader: LoaderRun, device: str | None) -> dict[str, Stage]:
    """Every stage by name, in the order of the pipeline. `device` is the training device, None
    if there is none."""
    step_total_ns = step_totals(loader)
    reason = partial(_why_not, loader, device)
    found = {
        name: stage(loader.batches[column], step_total_ns, reason(name))
        for name, column in COLUMNS.items()
    }
    if not found["stall"].count and found["wait"].count:
        events = "no device" if device is None else "device events not measured"
        found["stall"] = replace(found["wait"], reason=f"{events}: equals wait")
    found["startup"] = stage(startup_ns(loader), step_total_ns, reason("startup"))
    for name, ratio in zip(SAMPLED, cpu_shares(loader), strict=True):
        whole = found[name].share
        share = whole * ratio if whole is not None and ratio is not None else None
        found[f"{name}_cpu"] = replace(found[f"{name}_cpu"], share=share)
    for name in COPYING:
        found[name] = _of_all(loader, found[name], step_total_ns)
    return found


def _of_all(loader: LoaderRun, copying: Stage, step_total_ns: float) -> Stage:
    """Total and share of all batches, of which some were timed."""
    copies = measured(loader.batches["h2d_copies"])
    if copying.mean_us is None or not len(copies) or step_total_ns <= 0:
        return copying
    total_ns = float(copying.mean_us * 1e3 * loader.batches.rows * np.mean(copies > 0))
    return replace(copying, share=total_ns / step_total_ns, total_s=total_ns / 1e9)


def startup_ns(loader: LoaderRun) -> Ints:
    """From `iter()` to the first batch, a value per epoch; -1 if no batch came."""
    began, first = loader.epochs["t_iter_ns"], loader.epochs["t_first_ns"]
    return np.where((began >= 0) & (first >= began), first - began, -1)


def cpu_share(wall: Array, cpu: Array) -> float | None:
    """CPU over wall time, on the batches on which both were measured; 1 - it is time spent waiting.
    None if none."""
    both = np.flatnonzero((cpu >= 0) & (wall >= 0))
    total = float(wall[both].sum(dtype=np.float64))
    return min(1.0, float(cpu[both].sum(dtype=np.float64)) / total) if total else None


def cpu_shares(loader: LoaderRun) -> tuple[float | None, float | None]:
    """Of fetching and of collating."""
    fetch, collate = (
        cpu_share(loader.batches[f"{name}_ns"], loader.batches[f"{name}_cpu_ns"])
        for name in SAMPLED
    )
    return fetch, collate


def total(loader: LoaderRun, *columns: str) -> float:
    """Σ of these columns over all batches; 0 if nothing was measured."""
    return float(sum(measured(loader.batches[name]).sum(dtype=np.float64) for name in columns))


def step_totals(loader: LoaderRun) -> float:
    """Time of all steps, ns. A step whose end is not known counts with its wait alone."""
    return total(loader, "wait_ns", "compute_ns")


def stage(values: Array, step_total_ns: float, reason: str) -> Stage:
    """One stage's statistics; `share` is of `step_total_ns`. `reason` is why nothing was
    measured."""
    values = measured(values)
    if not len(values):
        return Stage(0, None, None, None, None, None, None, reason)
    total = float(values.sum(dtype=np.float64))
    p50, p95, p99 = np.quantile(values, QUANTILES).tolist()
    return Stage(
        count=len(values),
        mean_us=total / len(values) / 1e3,
        p50_us=p50 / 1e3,
        p95_us=p95 / 1e3,
        p99_us=p99 / 1e3,
        share=total / step_total_ns if step_total_ns > 0 else None,
        total_s=total / 1e9,
    )


def _why_not(loader: LoaderRun, device: str | None, name: str) -> str:
    """Why a stage has no figures, as far as recording has not said so itself."""
    on_device = name in _DEVICE_STAGES
    for key in (name, COLUMNS.get(name, ""), "h2d" if on_device else ""):
        if key in loader.reasons:
            return loader.reasons[key]
    whole = loader.config.get("batch_size", 0) is None
    for applies, reason in (
        (loader.count == 0, "no batches"),
        (on_device and device is None, "no device"),
        (
            loader.kind == "iterable" and name not in _OF_ITERABLES,
            "not a DataLoader: only waiting and computing are seen",
        ),
        (name in _WORKER_STAGES and not loader.num_workers, "no workers"),
        (name == "pin" and not loader.config.get("pin_memory"), "pin_memory is off"),
        (name == "pin" and device is None, "no device to pin for"),
        (
            name in ("index", "collate", "collate_cpu") and whole,
            "batch_size=None: the data set makes the batches",
        ),
    ):
        if applies:
            return reason
    return "not measured"
