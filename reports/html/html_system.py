"""The plots of the machine: what the system sampler saw, as curves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import Run, SystemRun
from ..words.units import percent, size
from .html_plot import SERIES, Figure, figures, layout, plain

Floats = npt.NDArray[np.float64]
Curve = tuple[str, Floats, Floats]  # name, seconds, values

POINTS = 500
MAX_PROCESSES = 12
MAX_GPUS = 8


def system_figures(run: Run) -> Iterator[Figure]:
    """The plots there are samples for, of the host that the report's summary is of."""
    system = run.first_host
    if system is None or system.machine.rows < 2:
        return
    begin = int(system.machine["t_ns"][0])
    machine = system.machine
    t = _seconds(machine, begin)
    idle = machine.floats("cpu_idle_pct")
    cpu: list[Curve] = [
        ("busy", t, 100 - idle - np.nan_to_num(machine.floats("cpu_iowait_pct"))),
        ("idle with I/O outstanding", t, machine.floats("cpu_iowait_pct")),
    ]
    yield from _figure(
        "cpu", "CPU", "% of all cores", cpu, "up to {}", lambda v: percent(v / 100), top=100
    )
    cores = _processes(system, begin)
    yield from _figure(
        "processes",
        "CPU of the training processes",
        "cores",
        cores,
        "up to {} cores",
        "{:.2f}".format,
    )
    memory = [
        (label, t, machine.floats(name) / 1e9)
        for name, label in (
            ("mem_available_bytes", "available"),
            ("page_cache_bytes", "page cache"),
            ("cgroup_mem_bytes", "charged to the container"),
            ("shm_used_bytes", "/dev/shm used"),
        )
    ]
    yield from _figure("memory", "Memory", "GB", memory, "up to {}", lambda v: size(v * 1e9))
    traffic = [
        (label, *_rates(machine, name, begin))
        for name, label in (
            ("disk_read_bytes", "disk read"),
            ("disk_write_bytes", "disk written"),
            ("net_recv_bytes", "network received"),
        )
    ]
    rates = [(label, seconds, values / 1e6) for label, seconds, values in traffic]
    yield from _figure(
        "io", "Disk and network", "MB/s", rates, "up to {}/s", lambda v: size(v * 1e6)
    )
    util, used = _gpus(system, begin)
    yield from _figure(
        "gpu",
        "GPU: some kernel running",
        "% of the time",
        util,
        "up to {}",
        lambda v: percent(v / 100),
        top=100,
    )
    yield from _figure(
        "gpu-memory", "GPU memory in use", "GB", used, "up to {}", lambda v: size(v * 1e9)
    )


def _figure(
    key: str,
    title: str,
    unit: str,
    curves: list[Curve],
    most: str,
    words: Any,
    top: float | None = None,
) -> Iterator[Figure]:
    data, told = [], []
    for number, (name, seconds, values) in enumerate(curves):
        known = np.isfinite(values)
        if not known.any():
            continue
        x, y = _thinned(seconds[known], values[known])
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": figures(x),
                "y": figures(y),
                "line": {"color": SERIES[number % len(SERIES)], "width": 1.6},
            }
        )
        told.append(f"{name} {most.format(words(float(values[known].max())))}")
    if data:
        axis = {"rangemode": "tozero", **({"range": [0, top]} if top is not None else {})}
        yield Figure(
            f"system-{key}",
            title,
            f"{title} over the run: {'; '.join(told)}.",
            data,
            layout(
                260,
                "seconds from the first sample",
                unit,
                hovermode="x unified",
                showlegend=True,
                yaxis=axis,
            ),
        )


def _seconds(columns: Columns, begin: int) -> Floats:
    return (columns["t_ns"] - begin).astype(np.float64) / 1e9


def _rates(columns: Columns, name: str, begin: int) -> tuple[Floats, Floats]:
    """Growth of a counter a second, between one sample that measured it and the next."""
    where = np.flatnonzero(columns[name] >= 0)
    t, values = columns["t_ns"][where].astype(np.float64), columns[name][where].astype(np.float64)
    passed = np.diff(t) / 1e9
    grown = np.divide(np.diff(values), passed, out=np.full(len(passed), np.nan), where=passed > 0)
    return (t[1:] - begin) / 1e9, np.where(grown >= 0, grown, np.nan)


def _processes(system: SystemRun, begin: int) -> list[Curve]:
    """The CPU use of training processes and workers, those that used most."""
    table = system.process
    found: list[tuple[float, Curve]] = []
    for pid in np.unique(table["pid"]).tolist():
        rows = np.flatnonzero(table["pid"] == pid)
        own = Columns(
            {name: table[name][rows] for name in ("t_ns", "cpu_user_ns", "cpu_system_ns")},
            len(rows),
        )
        t, user = _rates(own, "cpu_user_ns", begin)
        _, kernel = _rates(own, "cpu_system_ns", begin)
        if not len(t) or len(user) != len(kernel) or not np.isfinite(user + kernel).any():
            continue
        cores = (user + kernel) / 1e9
        worker = int(table["worker"][rows[0]])
        is_worker = int(table["role"][rows[0]]) == 1
        name = f"worker {worker} ({pid})" if is_worker and worker >= 0 else f"process {pid}"
        found.append((0.0 if not is_worker else -float(np.nanmean(cores)), (name, t, cores)))
    found.sort(key=lambda item: item[0] if item[0] else -1e9)
    return [curve for _, curve in found[:MAX_PROCESSES]]


def _gpus(system: SystemRun, begin: int) -> tuple[list[Curve], list[Curve]]:
    table = system.gpu
    names = {info.index: info.name for info in system.gpus}
    util, used = [], []
    for index in np.unique(table["gpu"]).tolist()[:MAX_GPUS]:
        rows = np.flatnonzero(table["gpu"] == index)
        own = Columns(
            {name: table[name][rows] for name in ("t_ns", "util_pct", "mem_used_bytes")}, len(rows)
        )
        label = f"GPU {index} {plain(names.get(index, ''), 40)}".strip()
        util.append((label, _seconds(own, begin), own.floats("util_pct")))
        used.append((label, _seconds(own, begin), own.floats("mem_used_bytes") / 1e9))
    return util, used


def _thinned(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """At most POINTS points: the means of equal runs of samples."""
    if len(x) <= POINTS:
        return x, y
    starts = np.linspace(0, len(x), POINTS + 1).astype(np.int64)[:-1]
    counts = np.diff(np.append(starts, len(x)))
    return x[starts], np.add.reduceat(y, starts) / counts
