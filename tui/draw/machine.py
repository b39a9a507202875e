"""The fourth screen: the machine's meters, each with its limit, or why it is not measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from textual.content import Content

from ...advisors.stage_model.measured import peak
from ...advisors.stage_model.summary import stolen
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import SystemRun
from ...reports.words.units import percent, size
from ..snapshot import Snapshot
from .marks import BAD, DIM, EIGHTHS_UP, MARK, course, dim, heat, line, lines, text

STOLEN_SHOWN_FROM = 0.01  # most machines have nothing stolen: a line only where there is
THROTTLED_TOP = 0.25  # a quota that holds back this much of the time fills its meter
MAX_GPUS = 16
_COUNTERS = {
    "disk read": "disk_read_bytes",
    "disk write": "disk_write_bytes",
    "net in": "net_recv_bytes",
    "net out": "net_sent_bytes",
}

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Meter:
    """One line: `share` (of its limit) sets the colour; `history` has a value a sample, of a scale
    from 0 to `top`."""

    group: str
    name: str
    now: str | None = None
    share: float | None = None
    history: Floats | None = None
    top: float | None = None  # of the history; None: its own highest
    limit: str = ""
    reason: str | None = None


def cores(s: Snapshot, width: int, height: int) -> Content:
    """One mark a core, by how busy it is, as many lines as are needed."""
    if isinstance(s.system, str) or not len(s.system.core["busy_pct"]):
        return dim("cores were not measured")
    shares = (np.nan_to_num(s.system.core["busy_pct"][-1]).clip(0, 100) / 100).tolist()
    marks = ((EIGHTHS_UP[max(1, min(8, round(share * 8)))], heat(share)) for share in shares)
    return lines(Content.assemble(*marks).fold(max(1, width)))


def meters(s: Snapshot, width: int, height: int) -> Content:
    """A line a meter: value now, course, limit; groups under each other."""
    if isinstance(s.system, str):
        return dim(text(s.system))
    room = max(8, min(60, (width - 34) // 2))
    rows, group = [], ""
    for m in meters_of(s.system):
        head = (f"{m.group if m.group != group else '':<8}", "bold")
        group, name = m.group, f"{text(m.name, 13):<13}"
        if m.now is None or m.history is None:
            rows.append(line(head, (name, DIM), (f"   –  {text(m.reason)}", DIM)))
            continue
        alarm = m.share is not None and m.share >= 0.9
        drawn = course(m.history, room, 1, m.top)[0]
        value = (f"{m.now:>11} ", f"bold {BAD}" if alarm else "bold")
        style = heat(m.share) if m.share is not None else MARK
        rows.append(line(head, name, value, (drawn, style), (f"  {text(m.limit)}", DIM)))
    return lines(rows)


def meters_of(s: SystemRun) -> Iterator[Meter]:
    m = s.machine
    waiting, taken = _share(m, "cpu_iowait_pct"), stolen(m)
    busy = (1 - _share(m, "cpu_idle_pct") - np.nan_to_num(waiting)).clip(0, 1)
    allowed = [f"{s.cores_logical} cores"] if s.cores_logical else []
    if s.affinity and s.affinity != s.cores_logical:
        allowed.append(f"{s.affinity} usable")
    if s.cgroup_cpu_quota:
        allowed.append(f"quota {s.cgroup_cpu_quota:g}")
    shares = [
        ("busy", "cpu_idle_pct", busy, " · ".join(allowed)),
        ("I/O wait", "cpu_iowait_pct", waiting, "idle with I/O outstanding"),
    ]
    if np.nan_to_num(taken).max(initial=0.0) >= STOLEN_SHOWN_FROM:
        shares.append(("stolen", "cpu_user_pct", taken, "the hypervisor ran other machines"))
    for name, column, values, limit in shares:
        yield _meter(s, m, "CPU", name, column, values, percent, 1.0, limit)
    throttled, why = _growth(m, "cgroup_throttled_ns") / 1e9, "held back by the container's quota"
    yield _meter(
        s, m, "CPU", "throttled", "cgroup_throttled_ns", throttled, percent, THROTTLED_TOP, why
    )
    used = m.floats("mem_total_bytes") - m.floats("mem_available_bytes")
    total = peak(m["mem_total_bytes"]) or s.mem_total_bytes
    yield _meter(s, m, "memory", "machine", "mem_total_bytes", used, size, total)
    allowance = peak(m["cgroup_mem_limit_bytes"]) or s.cgroup_mem_limit_bytes
    yield _meter(s, m, "memory", "container", "cgroup_mem_bytes", None, size, allowance, "no limit")
    shared = peak(m["shm_total_bytes"]) or s.shm_total_bytes
    yield _meter(s, m, "memory", "/dev/shm", "shm_used_bytes", None, size, shared)
    yield _meter(s, m, "memory", "page cache", "page_cache_bytes", None, size)
    for name, column in _COUNTERS.items():
        yield _meter(s, m, "I/O", name, column, _growth(m, column), lambda n: f"{size(n)}/s")
    yield from _gpus(s)


def _gpus(s: SystemRun) -> Iterator[Meter]:
    names = {info.index: info.name for info in s.gpus}
    found = [index for index in np.unique(s.gpu["gpu"]).tolist() if index >= 0]
    if not found:
        yield Meter("GPU", "GPU", reason=_reason(s, "gpus") or "no GPU was found")
    for index in found[:MAX_GPUS]:
        rows = np.flatnonzero(s.gpu["gpu"] == index)
        own = Columns({name: s.gpu[name][rows] for name in s.gpu}, len(rows))
        util, top = _share(own, "util_pct"), peak(own["mem_total_bytes"])
        running = " · ".join(filter(None, ("any kernel running", names.get(index))))
        yield _meter(s, own, "GPU", f"GPU {index}", "util_pct", util, percent, 1.0, running)
        yield _meter(s, own, "GPU", "memory", "mem_used_bytes", None, size, top)
        yield _meter(s, own, "GPU", "power", "power_mw", None, lambda n: f"{n / 1000:.0f} W")
        yield _meter(s, own, "GPU", "clock", "sm_clock_mhz", None, lambda n: f"{n:.0f} MHz")


def _meter(
    s: SystemRun,
    samples: Columns,
    group: str,
    name: str,
    column: str,
    values: Floats | None,
    show: Callable[[float], str],
    top: float | None = None,
    limit: str = "",
) -> Meter:
    """A line of these values, one a sample (by default the column's); where none was measured, why
    the column was not."""
    values = samples.floats(column) if values is None else values
    known = values[np.isfinite(values)]
    if not len(known):
        why = "no second sample yet" if samples.rows < 2 else "not measured on this platform"
        return Meter(group, name, reason=_reason(s, column) or why)
    now = float(known[-1])
    if show is size and top:
        limit = f"of {size(top)}"
    return Meter(group, name, show(now), now / top if top else None, values, top, limit)


def _growth(columns: Columns, name: str) -> Floats:
    """A counter's growth a second since the sample before; NaN where that is not known."""
    seconds = np.diff(columns["t_ns"]).clip(1) / 1e9
    growth: Floats = np.diff(columns.floats(name)).clip(0) / seconds
    return growth


def _share(columns: Columns, name: str) -> Floats:
    share: Floats = columns.floats(name).clip(0, 100) / 100
    return share


def _reason(s: SystemRun, column: str) -> str | None:
    """Why a column was not measured, as the sampler said it."""
    group = column.partition("_")[0]
    of_cgroup = ("cgroup_mem", "cgroup_cpu") if group == "cgroup" else ()
    found = (s.reasons[key] for key in (column, group, *of_cgroup) if key in s.reasons)
    return next(found, "no CPU or memory limit of a container was found" if of_cgroup else None)
