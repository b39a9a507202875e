"""The changes a prediction can be asked for, checked, and the plan of a loop they make of a
workload."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from ...profiler.base.errors import UsageError
from ...profiler.base.torch_parts import DEFAULT_PREFETCH
from . import costs
from .costs import START_METHODS, StartMethod
from .device_work import Together
from .workload import Workload

ARGUMENTS = (
    "num_workers",
    "prefetch_factor",
    "in_order",
    "pin_memory",
    "persistent_workers",
    "multiprocessing_context",
)
# How the program and the device work together.
TOGETHER = ("non_blocking", "synchronous", "copy_stream")
# Factors on a stage's time; `transfer` is pack, hand-over and unpack together, `draw` what is drawn
# once an epoch (as much as `index` where nothing is said of it).
STAGES = (
    "index",
    "draw",
    "fetch",
    "collate",
    "transfer",
    "unpack",
    "pin",
    "h2d",
    "compute",
    "startup",
)
# A stage's new mean time a batch, in µs.
TIMES = {"index_us": "index", "fetch_us": "fetch", "collate_us": "collate"}
NAMES = (*ARGUMENTS, *TOGETHER, *STAGES, *TIMES, "cpus")

MOST_WORKERS = 1024
MOST_PREFETCH = 1024

Pair = tuple[float, float]


@dataclass(frozen=True)
class Plan:
    """A loop to simulate: the DataLoader's arguments, a factor on each stage's time (1.0: as
    measured), and, for stages that took no time at all, a constant time in ns a batch."""

    num_workers: int
    prefetch_factor: int
    in_order: bool
    pin_memory: bool
    persistent_workers: bool
    start_method: StartMethod
    cpus: float
    together: Together | None = None  # None: no device that was timed
    factors: Mapping[str, float] = field(default_factory=dict)
    constants_ns: Mapping[str, float] = field(default_factory=dict)

    def factor(self, stage: str) -> float:
        return self.factors.get(stage, 1.0)

    def constant_ns(self, stage: str) -> float:
        return self.constants_ns.get(stage, 0.0)


@dataclass(frozen=True)
class Plans:
    """What a change may come to: its best, middle and worst case (all one where nothing is
    uncertain in itself), and which kinds of change were made (names of `accuracy.MODEL_ERROR`)."""

    best: Plan
    middle: Plan
    worst: Plan
    kinds: frozenset[str]


def as_measured(workload: Workload) -> Plan:
    """The plan that changes nothing."""
    return Plan(
        workload.num_workers,
        workload.prefetch_factor,
        workload.in_order,
        workload.pin_memory,
        workload.persistent_workers,
        workload.start_method,
        workload.cpus,
        workload.on_device.together if workload.on_device is not None else None,
    )


def plans(workload: Workload, changes: Mapping[str, Any], idle_kept: float = 1.0) -> Plans:
    """The plans for these changes. Raises UsageError for an unknown name or a value that cannot be
    meant.

    `idle_kept` is the share of idle time in fetch and collate that is no waiting for a core: new
    mean times are meant without such waiting.
    """
    base = as_measured(workload)
    made = base
    pairs: dict[str, Pair] = {}
    constants: dict[str, Pair] = {}
    cpus: Pair = (base.cpus, base.cpus)
    asked: dict[str, bool] = {}
    for name, value in changes.items():
        if name not in NAMES:
            raise UsageError(f"predict() does not know {name!r}: it takes {', '.join(NAMES)}")
        if name in ARGUMENTS:
            made = _with_argument(made, name, value, workload)
        elif name in TOGETHER:
            asked[name] = _truth(name, value)
        elif name == "cpus":
            low, high = _pair(name, value, least=0.01)
            cpus = (high, low)
        else:
            stage = TIMES.get(name, name)
            low, high = _pair(name, value)
            if name in TIMES:
                mean = _mean_ns(workload, stage, idle_kept)
                if mean <= 0:
                    constants[stage] = (low * 1e3, high * 1e3)
                    continue
                low, high = low * 1e3 / mean, high * 1e3 / mean
            before = pairs.get(stage, (1.0, 1.0))
            pairs[stage] = (before[0] * low, before[1] * high)
    if "draw" not in changes and "index" in changes:
        pairs["draw"] = pairs["index"]
    elif "draw" not in changes and "index_us" in changes:
        pairs["draw"] = costs.DRAWN_AS_ARRAY
    made = _with_device(base, made, asked)
    kinds = _kinds(base, made) | _stage_kinds(workload, made, pairs)
    if cpus != (base.cpus, base.cpus):
        kinds.add("cpus")
    if any(high > 0 for _, high in constants.values()):
        kinds.add("stage")

    def of(chosen: Mapping[str, Pair], which: int) -> dict[str, float]:
        return {
            stage: (low, _middle(low, high), high)[which] for stage, (low, high) in chosen.items()
        }

    best, middle, worst = (
        replace(made, factors=of(pairs, which), constants_ns=of(constants, which), cpus=cores)
        for which, cores in enumerate((cpus[0], (cpus[0] + cpus[1]) / 2, cpus[1]))
    )
    return Plans(best, middle, worst, frozenset(kinds))


def _middle(low: float, high: float) -> float:
    """The middle of a range of times: their geometric mean, as the gain is a ratio. Of a range that
    reaches down to next to nothing, a tenth of its upper end stands for the lower."""
    return math.sqrt(max(low, high / 10) * high)


def _with_argument(plan: Plan, name: str, value: Any, workload: Workload) -> Plan:
    if name == "num_workers":
        return replace(plan, num_workers=_whole(name, value, 0, MOST_WORKERS))
    if name == "prefetch_factor":
        ahead = DEFAULT_PREFETCH if value is None else _whole(name, value, 1, MOST_PREFETCH)
        return replace(plan, prefetch_factor=ahead)
    if name == "multiprocessing_context":
        if value not in START_METHODS:
            raise UsageError(
                f"multiprocessing_context must be one of {', '.join(START_METHODS)}, not "
                f"{_shown(value)}"
            )
        return replace(plan, start_method=cast("StartMethod", value))
    value = _truth(name, value)
    if name == "in_order":
        return replace(plan, in_order=value)
    if name == "persistent_workers":
        return replace(plan, persistent_workers=value)
    return replace(
        plan, pin_memory=value and workload.device
    )  # torch pins nothing where there is no device


def _with_device(base: Plan, made: Plan, asked: Mapping[str, bool]) -> Plan:
    together = base.together
    if together is None:
        return made
    if "non_blocking" in asked:
        blocking = not asked["non_blocking"]
        together = replace(together, blocking=blocking, asked_blocking=blocking)
    if made.pin_memory != base.pin_memory:
        together = together.pinned(made.pin_memory)
    together = replace(
        together,
        synchronous=asked.get("synchronous", together.synchronous),
        aside=asked.get("copy_stream", together.aside),
    )
    return replace(made, together=together)


def _truth(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be True or False, not {_shown(value)}")
    return value


def _kinds(base: Plan, made: Plan) -> set[str]:
    """Which arguments changed, as far as they mean anything with that many workers."""
    kinds = set()
    if made.num_workers != base.num_workers:
        away = (
            "to_workers"
            if not base.num_workers
            else "from_workers"
            if not made.num_workers
            else "num_workers"
        )
        kinds.add(away)
    if made.pin_memory != base.pin_memory:
        kinds.add("pin_memory" if base.together is None else "together")
    if made.together != base.together:
        kinds.add("together")
    if not made.num_workers or not base.num_workers:
        return kinds  # the other arguments mean nothing without workers
    for name in ("prefetch_factor", "in_order", "persistent_workers"):
        if getattr(made, name) != getattr(base, name):
            kinds.add(name)
    if made.start_method != base.start_method:
        kinds.add("multiprocessing_context")
    return kinds


def _stage_kinds(workload: Workload, made: Plan, pairs: Mapping[str, Pair]) -> set[str]:
    """ "stage" where a factor touches time that is there at all: what takes no time cannot take
    less."""
    for stage, pair in pairs.items():
        if pair == (1.0, 1.0):
            continue
        if stage in ("transfer", "unpack", "startup"):
            if made.num_workers:
                return {"stage"}
        elif stage == "pin":
            if made.pin_memory:
                return {"stage"}
        elif _mean_ns(workload, stage) > 0:
            return {"stage"}
    return set()


def _mean_ns(workload: Workload, stage: str, idle_kept: float = 1.0) -> float:
    if stage in ("fetch", "collate"):
        cpu, idle = getattr(workload, f"{stage}_cpu_ns"), getattr(workload, f"{stage}_idle_ns")
        return float(cpu.mean() + idle.mean() * idle_kept)
    if stage == "draw":
        return workload.draw_ns
    return float(getattr(workload, f"{stage}_ns").mean())


def _whole(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UsageError(
            f"{name} must be a whole number from {least} to {most}, not {_shown(value)}"
        )
    return value


def _pair(name: str, value: Any, least: float = 0.0) -> Pair:
    """A number, or (low, high): ordered here, so that rules need not know which end is the better
    one."""
    values = value if isinstance(value, tuple | list) else (value, value)
    if len(values) != 2 or not all(_number(v) and v >= least for v in values):
        meant = "a positive number" if least else "a number from 0"
        raise UsageError(
            f"{name} must be {meant}, or a pair (low, high) of such, not {_shown(value)}"
        )
    return float(min(values)), float(max(values))


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value <= sys.maxsize


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
