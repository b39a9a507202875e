"""The machine as meters: each with its value now, its course, its limit, or why it cannot be
measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...advisors.stage_model.summary import stolen
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import ProcessRun, Run, SystemRun
from ...reports.words.units import percent, size
from .flow import means

POINTS = 160
STOLEN_SHOWN_FROM = 0.01  # most machines have nothing stolen: a line only where there is

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Meter:
    """One line: `share` (of its limit) sets the colour and the bar, `history` is in the same scale,
    0 to `top`."""

    group: str
    name: str
    now: str | None = None
    share: float | None = None
    history: tuple[float, ...] = ()
    top: float | None = None  # of the history; None: its own highest
    limit: str = ""
    reason: str | None = None


@dataclass(frozen=True)
class Machine:
    """The host of the chosen loader. `cores` are busy shares of the last sample."""

    host: str | None
    meters: tuple[Meter, ...]
    cores: tuple[float, ...]
    samples: int


def machine(run: Run, process: ProcessRun | None) -> Machine:
    """What the sampler of this process's host saw; of the first host where that one was not
    sampled."""
    system = (run.host_of(process) if process is not None else None) or run.first_host
    if system is None or not system.machine.rows:
        said = next((p.reasons["system"] for p in run.processes if "system" in p.reasons), None)
        why = said or "the system sampler has recorded nothing yet"
        host = process.host if process is not None else run.host
        return Machine(host, (Meter("host", "system", reason=why),), (), 0)
    busy = system.core["busy_pct"]
    last = busy[-1] if len(busy) else np.empty(0)
    cores = tuple(float(value) / 100 if value >= 0 else 0.0 for value in np.atleast_1d(last))
    return Machine(system.host, tuple(_meters(system)), cores, system.machine.rows)


def _meters(s: SystemRun) -> Iterator[Meter]:
    m = s.machine
    idle, waiting = m.floats("cpu_idle_pct"), np.nan_to_num(m.floats("cpu_iowait_pct"))
    busy = np.clip(100 - idle - waiting, 0, 100) / 100
    allowed = [f"{s.cores_logical} cores" if s.cores_logical else ""]
    if s.affinity and s.affinity != s.cores_logical:
        allowed.append(f"{s.affinity} usable")
    if s.cgroup_cpu_quota:
        allowed.append(f"quota {s.cgroup_cpu_quota:g}")
    yield _share(
        s, "CPU", "busy", "cpu_idle_pct", m["t_ns"], busy, " · ".join(filter(None, allowed))
    )
    wait = np.where(
        m["cpu_iowait_pct"] >= 0, np.clip(m.floats("cpu_iowait_pct"), 0, 100) / 100, np.nan
    )
    yield _share(
        s, "CPU", "I/O wait", "cpu_iowait_pct", m["t_ns"], wait, "idle with I/O outstanding"
    )
    taken = stolen(m)
    if np.nan_to_num(taken).max(initial=0.0) >= STOLEN_SHOWN_FROM:
        yield _share(
            s,
            "CPU",
            "stolen",
            "cpu_user_pct",
            m["t_ns"],
            taken,
            "the hypervisor ran other machines",
        )
    yield _rate(
        s,
        "CPU",
        "throttled",
        "cgroup_throttled_ns",
        "container's quota holding it back",
        scale=1e-9,
    )
    yield _level(
        s,
        "memory",
        "machine",
        _used(m),
        _peak(m, "mem_total_bytes") or s.mem_total_bytes,
        "mem_total_bytes",
    )
    limit = _peak(m, "cgroup_mem_limit_bytes") or s.cgroup_mem_limit_bytes
    yield _level(s, "memory", "container", m.floats("cgroup_mem_bytes"), limit, "cgroup_mem_bytes")
    shm = _peak(m, "shm_total_bytes") or s.shm_total_bytes
    yield _level(s, "memory", "/dev/shm", m.floats("shm_used_bytes"), shm, "shm_used_bytes")
    yield _level(s, "memory", "page cache", m.floats("page_cache_bytes"), None, "page_cache_bytes")
    for name, column in (
        ("disk read", "disk_read_bytes"),
        ("disk write", "disk_write_bytes"),
        ("net in", "net_recv_bytes"),
        ("net out", "net_sent_bytes"),
    ):
        yield _rate(s, "I/O", name, column, "")
    yield from _gpus(s)


def _gpus(s: SystemRun) -> Iterator[Meter]:
    names = {info.index: info.name for info in s.gpus}
    found = [index for index in np.unique(s.gpu["gpu"]).tolist() if index >= 0]
    if not found:
        yield Meter("GPU", "GPU", reason=_reason(s, "gpus") or "no GPU was found")
    for index in found[:16]:
        rows = np.flatnonzero(s.gpu["gpu"] == index)
        own = Columns({name: s.gpu[name][rows] for name in s.gpu}, len(rows))
        util = np.clip(own.floats("util_pct"), 0, 100) / 100
        name = names.get(index, "")
        yield _share(
            s,
            "GPU",
            f"GPU {index}",
            "util_pct",
            own["t_ns"],
            util,
            f"any kernel running · {name}".strip(" ·"),
        )
        total = _peak(own, "mem_total_bytes")
        used = own.floats("mem_used_bytes")
        yield _level(s, "GPU", "memory", used, total, "mem_used_bytes", own["t_ns"])
        watts, clock = _last(own.floats("power_mw")), _last(own.floats("sm_clock_mhz"))
        told = [
            f"{watts / 1000:.0f} W" if watts is not None else "",
            f"{clock:.0f} MHz" if clock is not None else "",
        ]
        history = means(own["t_ns"], own.floats("power_mw") / 1000, POINTS)
        if any(told):
            yield Meter("GPU", "power, clock", " · ".join(filter(None, told)), None, history)
        else:
            yield Meter("GPU", "power, clock", reason=_reason(s, "power_mw") or "not measured")


def _share(
    s: SystemRun,
    group: str,
    name: str,
    column: str,
    t: npt.NDArray[np.int64],
    values: Floats,
    limit: str,
) -> Meter:
    now = _last(values)
    reason = (_reason(s, column) or "not measured on this platform") if now is None else None
    shown = percent(now) if now is not None else None
    return Meter(group, name, shown, now, means(t, values, POINTS), 1.0, limit, reason)


def _level(
    s: SystemRun,
    group: str,
    name: str,
    values: Floats,
    top: int | None,
    column: str,
    t: npt.NDArray[np.int64] | None = None,
) -> Meter:
    now = _last(values)
    if now is None:
        return Meter(group, name, reason=_reason(s, column) or "not measured on this platform")
    share = now / top if top else None
    limit = f"of {size(top)}" if top else "no limit" if name == "container" else ""
    history = means(s.machine["t_ns"] if t is None else t, values, POINTS)
    return Meter(group, name, size(now), share, history, float(top) if top else None, limit)


def _rate(
    s: SystemRun, group: str, name: str, column: str, gloss: str, scale: float = 1.0
) -> Meter:
    """A counter's growth; a share of the time where it counts time."""
    values = s.machine.floats(column)
    known = np.flatnonzero(np.isfinite(values))
    t = s.machine["t_ns"][known]
    if len(known) < 2:
        few = (
            "no second sample yet"
            if len(known)
            else _reason(s, column) or "not measured on this platform"
        )
        return Meter(group, name, reason=few)
    seconds = np.maximum(np.diff(t), 1) / 1e9
    rates = np.maximum(0.0, np.diff(values[known])) * scale / seconds
    now = float(rates[-1])
    history = means(t[1:], rates, POINTS)
    if scale != 1.0:
        return Meter(group, name, percent(now), min(1.0, now * 4), history, None, gloss)
    return Meter(group, name, f"{size(now)}/s", None, history, None, gloss)


def _reason(s: SystemRun, column: str) -> str | None:
    """Why a column was not measured, as the sampler said it."""
    if column in s.reasons:
        return s.reasons[column]
    if column.startswith("cgroup"):
        return next(
            (s.reasons[k] for k in ("cgroup", "cgroup_mem", "cgroup_cpu") if k in s.reasons), None
        ) or ("no CPU or memory limit of a container was found")
    return s.reasons.get(column.partition("_")[0])


def _used(m: Columns) -> Floats:
    used: Floats = m.floats("mem_total_bytes") - m.floats("mem_available_bytes")
    return used


def _last(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known[-1]) if len(known) else None


def _peak(columns: Columns, name: str) -> int | None:
    values = columns[name]
    top = int(values.max()) if len(values) else -1
    return top if top > 0 else None
