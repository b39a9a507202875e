"""The changes a prediction can be asked for, checked, combined, and the plans they make of a
workload."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ...profiler.base.errors import UsageError
from ...profiler.base.torch_parts import DEFAULT_PREFETCH
from . import costs
from .workload import Plan, Workload

MOST = 1024  # workers, and batches ahead of each

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
# Factors on a stage's time. `transfer` is pack, hand-over and unpack together; `draw` is drawing
# once an epoch, and follows `index` unless it is given.
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

Pair = tuple[float, float]
# What each argument takes, as a type and in words; the others are true or false.
_TYPES: dict[str, tuple[Any, str]] = {
    "num_workers": (Annotated[int, Meta(ge=0, le=MOST)], f"a whole number from 0 to {MOST}"),
    "prefetch_factor": (
        Annotated[int, Meta(ge=1, le=MOST)] | None,
        f"a whole number from 1 to {MOST}",
    ),
    "multiprocessing_context": (costs.StartMethod, f"one of {', '.join(costs.START_METHODS)}"),
}


class Excluded(Exception):
    """Two changes cannot be made together; the text says what both of them change."""


@dataclass(frozen=True)
class Plans:
    """The best, middle and worst case of a change (the same if its own effect is certain), and the
    kinds of change (names of `accuracy.MODEL_ERROR`)."""

    best: Plan
    middle: Plan
    worst: Plan
    kinds: frozenset[str]


def plans(workload: Workload, changes: Mapping[str, Any], idle_kept: float = 1.0) -> Plans:
    """The plans for these changes. Raises UsageError for an unknown name or an invalid value.

    `idle_kept` is the share of idle time in fetch and collate that is not waiting for a core: new
    mean times do not include such waiting.
    """
    made = workload.plan
    factors: dict[str, Pair] = {}
    cpus = made.cpus, made.cpus
    for name, value in changes.items():
        stage = TIMES.get(name, name)
        if name not in NAMES:
            raise UsageError(f"predict() does not know {name!r}: it takes {', '.join(NAMES)}")
        if name in ARGUMENTS:
            argument: Any = _checked(name, value)
            if argument is None:
                argument = DEFAULT_PREFETCH
            elif name == "pin_memory":  # torch pins nothing where there is no device
                argument = argument and workload.device
            made = replace(made, **{name: argument})
        elif name in TOGETHER:
            made = _with_device(made, name, _checked(name, value))
        elif name == "cpus":
            cpus = _pair(name, value, least=0.01)
        else:
            low, high = _pair(name, value)
            mean = _mean_ns(workload, stage, idle_kept) / 1e3 if name in TIMES else 1.0
            if mean > 0:  # what takes no time cannot take less
                before = factors.get(stage, (1.0, 1.0))
                factors[stage] = (before[0] * low / mean, before[1] * high / mean)
    if made.together is not None and made.pin_memory != workload.plan.pin_memory:
        made = replace(made, together=made.together.pinned(made.pin_memory))
    if "draw" not in changes and "index" in changes:
        factors["draw"] = factors["index"]
    elif "draw" not in changes and "index_us" in changes:
        factors["draw"] = costs.DRAWN_AS_ARRAY
    kinds = _kinds(workload.plan, made)
    scaled = (stage for stage, pair in factors.items() if pair != (1.0, 1.0))
    if any(_takes_time(workload, made, stage) for stage in scaled):
        kinds.add("stage")
    if cpus != (made.cpus, made.cpus):
        kinds.add("cpus")
    best, middle, worst = (
        replace(
            made,
            cpus=cores,
            factors={stage: case(*pair) for stage, pair in factors.items()},
        )
        for case, cores in ((min, cpus[1]), (_middle, sum(cpus) / 2), (max, cpus[0]))
    )
    return Plans(best, middle, worst, frozenset(kinds))


def together(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both changes, as `WhatIf.predict` takes them.

    Factors on one stage multiply. A new time of a stage replaces all of its work, so it excludes
    other changes of that stage. Raises Excluded.
    """
    found = dict(first)
    for name, value in second.items():
        stage = TIMES.get(name, name)
        rivals = [other for other in first if TIMES.get(other, other) == stage]
        if not rivals:
            found[name] = value
        elif name in ARGUMENTS or name == "cpus":
            if first[name] != value:
                raise Excluded(f"both set {name}")
        elif name in TIMES or any(other in TIMES for other in rivals):
            if any(first[other] != value or other != name for other in rivals):
                raise Excluded(f"both take the place of the same {stage}")
        else:
            (low, high), (less, more) = _ends(first[name]), _ends(value)
            found[name] = (low * less, high * more)
    return found


def _ends(value: Any) -> Pair:
    """The lower and the upper end of a number or a pair, in any order."""
    low, high = value if isinstance(value, tuple | list) else (value, value)
    return float(min(low, high)), float(max(low, high))


def _middle(low: float, high: float) -> float:
    """The geometric mean of a range of times, as the gain is a ratio. The lower end counts as at
    least a tenth of the upper."""
    return math.sqrt(max(low, high / 10) * high)


def _with_device(plan: Plan, name: str, value: bool) -> Plan:
    if plan.together is None:
        return plan
    changed = {name: value}
    if name == "non_blocking":
        changed = dict.fromkeys(("blocking", "asked_blocking"), not value)
    return replace(plan, together=replace(plan.together, **changed))


def _kinds(base: Plan, made: Plan) -> set[str]:
    """Which arguments changed and have an effect with that many workers."""
    kinds = set()
    if made.num_workers != base.num_workers:
        fewest = min(made.num_workers, base.num_workers)
        kinds.add("num_workers" if fewest else "from_workers" if base.num_workers else "to_workers")
    if made.pin_memory != base.pin_memory:
        kinds.add("pin_memory" if base.together is None else "together")
    if made.together != base.together:
        kinds.add("together")
    if not made.num_workers or not base.num_workers:
        return kinds  # the other arguments have no effect without workers
    others = (name for name in ARGUMENTS if name not in ("num_workers", "pin_memory"))
    return kinds | {name for name in others if getattr(made, name) != getattr(base, name)}


def _takes_time(workload: Workload, made: Plan, stage: str) -> bool:
    """Whether a stage takes any time at all: what takes none cannot take less."""
    if stage in ("transfer", "unpack", "startup"):
        return bool(made.num_workers)
    return made.pin_memory if stage == "pin" else _mean_ns(workload, stage) > 0


def _mean_ns(workload: Workload, stage: str, idle_kept: float = 1.0) -> float:
    if stage in ("fetch", "collate"):
        cpu, idle = getattr(workload, f"{stage}_cpu_ns"), getattr(workload, f"{stage}_idle_ns")
        return float(cpu.mean() + idle.mean() * idle_kept)
    if stage == "draw":
        return workload.draw_ns
    return float(getattr(workload, f"{stage}_ns").mean())


def _checked(name: str, value: Any) -> Any:
    of, what = _TYPES.get(name, (bool, "True or False"))
    try:
        return msgspec.convert(value, of)
    except msgspec.ValidationError:
        raise UsageError(f"{name} must be {what}, not {_shown(value)}") from None


def _pair(name: str, value: Any, least: float = 0.0) -> Pair:
    values = value if isinstance(value, tuple | list) else (value, value)
    numbers = [isinstance(v, float | int) and not isinstance(v, bool) for v in values]
    if numbers != [True, True] or not all(least <= v <= sys.maxsize for v in values):
        meant = "a positive number" if least else "a number from 0"
        raise UsageError(
            f"{name} must be {meant}, or a pair (low, high) of such, not {_shown(value)}"
        )
    return _ends(values)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
