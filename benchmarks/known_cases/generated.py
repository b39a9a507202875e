"""Cases that nobody chose: causes × sizes × steps × settings, drawn from a seed. No constant may be
fitted on them.

The same seed and number give the same case in every process: its name ("generated-7-12") is all
that is handed over.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from torch.utils.data import DataLoader

from .case import ANY, Case, Training, ignore
from .generated_data import (
    ELEMENT_FORMS,
    ROW_FORMS,
    Batches,
    Computing,
    Elements,
    Frame,
    Large,
    Lists,
    OwnOrder,
    Rows,
    Waiting,
    joined_slowly,
    many_fields,
)
from .materials import BatchIndices, as_is, matmuls, takes, whole_batches

PREFIX = "generated-"
# Seeds that judge, each once: nothing is looked at before, nothing is learnt from them. 20261201 to
# 20261208 have, on 2026-11-23; widths have been learnt since from all but the first, which judge
# nothing any more.
JUDGES = frozenset({20261201, *range(20261209, 20261301)})
Drawn = Callable[[random.Random], dict[str, Any]]


def around(rng: random.Random, low: float, high: float) -> float:
    """Of sizes and times: every power of ten is as likely as the next."""
    return float(low * (high / low) ** rng.random())


def whole(rng: random.Random, low: int, high: int) -> int:
    return round(around(rng, low, high))


def step(rng: random.Random, most_ms: float = 2.0) -> Callable[[Any], Any]:
    """The training step: nothing, waiting for a device, or computing on this CPU."""
    kind, milliseconds = rng.choice(("none", "device", "cpu")), around(rng, 0.05, most_ms)
    return {
        "none": ignore,
        "device": takes(milliseconds),
        "cpu": matmuls(max(1, round(milliseconds)), 128),
    }[kind]


def loader(dataset: Any, size: int, **arguments: Any) -> DataLoader:
    workers = (
        {}
        if arguments.get("num_workers")
        else {"prefetch_factor": None, "persistent_workers": False}
    )
    return DataLoader(dataset, batch_size=size, shuffle=True, **{**arguments, **workers})


def settings(rng: random.Random, workers: tuple[int, ...]) -> dict[str, Any]:
    return {
        "num_workers": rng.choice(workers),
        "prefetch_factor": rng.choice((2, 2, 4)),
        "persistent_workers": rng.random() < 0.7,
    }


def beside_workers(given: dict[str, Any], cause: str) -> tuple[str, ...]:
    """The planted cause, or what workers cost beside it: which gains more, sizes decide."""
    if not given["num_workers"]:
        return (cause,)
    return (
        (cause, "num-workers")
        if given["persistent_workers"]
        else (cause, "num-workers", "persistent-workers")
    )


def rows(rng: random.Random) -> dict[str, Any]:
    """Rows in memory, one by one, with or without workers."""
    length, width, size = whole(rng, 4_000, 60_000), whole(rng, 4, 200), whole(rng, 16, 512)
    does, given = step(rng, 1.0), settings(rng, (0, 0, 1, 2))

    def build(fast: bool = False) -> Training:
        data = Rows(length, width)
        return Training(
            whole_batches(data, size) if fast else loader(data, size, **given), does, size
        )

    return {"build": build, "causes": beside_workers(given, "batched-getitems")}


def elements(rng: random.Random) -> dict[str, Any]:
    """A tensor or an array read element by element, in one of the forms in which people write
    it."""
    form, numpy = rng.choice(sorted(ELEMENT_FORMS)), rng.random() < 0.25
    width, size = whole(rng, 20, 400), whole(rng, 4, 32)
    does, given = step(rng), settings(rng, (0, 0, 1))

    def build(fast: bool = False) -> Training:
        return Training(
            loader(Elements(600, width, "whole" if fast else form, numpy), size, **given),
            does,
            size,
        )

    # Short rows may be kept, all of them, as well.
    causes = (*beside_workers(given, "hot-function"), "batched-getitems")
    return {"build": build, "causes": causes, "record_s": 8.0}


def frame(rng: random.Random) -> dict[str, Any]:
    """Rows of a DataFrame."""
    form, columns, texts = rng.choice(sorted(ROW_FORMS)), whole(rng, 3, 60), rng.random() < 0.4
    size, does, given = whole(rng, 8, 128), step(rng), settings(rng, (0, 0, 1, 2))

    def build(fast: bool = False) -> Training:
        return Training(
            loader(Frame(4_000, columns, texts, None if fast else form), size, **given), does, size
        )

    return {
        "build": build,
        "causes": beside_workers(given, "hot-function"),
        "record_s": 8.0,
        "needs": ("pandas",),
    }


def computing(rng: random.Random) -> dict[str, Any]:
    """Samples that are computed, without workers, beside a step that waits."""
    kilobytes, size = whole(rng, 30, 400), whole(rng, 4, 16)
    making_ms = 0.004 * kilobytes * size
    does = takes(making_ms * around(rng, 0.5, 2.0))

    def build(num_workers: int = 0, **more: Any) -> Training:
        data = Computing(max(400, 60 * size), kilobytes)
        return Training(
            loader(data, size, num_workers=num_workers, persistent_workers=num_workers > 0),
            does,
            size,
        )

    return {"build": build, "causes": ("num-workers",), "fix": {"num_workers": 1}}


def waiting(rng: random.Random) -> dict[str, Any]:
    """Samples that are waited for."""
    milliseconds, size, now = around(rng, 0.5, 6.0), whole(rng, 4, 16), rng.choice((0, 0, 1, 2))
    does = takes(milliseconds * size * around(rng, 0.05, 0.3))

    def build(num_workers: int = now, **more: Any) -> Training:
        data = Waiting(60 * size, milliseconds)
        return Training(
            loader(data, size, num_workers=num_workers, persistent_workers=num_workers > 0),
            does,
            size,
        )

    return {"build": build, "causes": ("num-workers",), "fix": {"num_workers": 8}}


def collating(rng: random.Random) -> dict[str, Any]:
    """A tensor made of a list of arrays."""
    width, size, does = whole(rng, 200, 4_000), whole(rng, 8, 64), step(rng)

    def build(fast: bool = False) -> Training:
        own = {} if fast else {"collate_fn": joined_slowly}
        return Training(loader(Lists(40 * size, width), size, **own), does, size)

    return {"build": build, "causes": ("collate",)}


def handing_over(rng: random.Random) -> dict[str, Any]:
    """Batches made in a moment and handed over at length: many small tensors, or many bytes of an
    array."""
    if rng.random() < 0.5:
        fields, size = whole(rng, 20, 200), 16

        def data() -> Any:
            return Batches(60 * size, fields)

        collate: Any = many_fields
    else:
        megabytes, size = around(rng, 1.0, 16.0), 8

        def data() -> Any:
            return Large(40 * size, megabytes)

        collate = as_is
    given = settings(rng, (1, 2))

    def build(num_workers: int = given["num_workers"], **more: Any) -> Training:
        made = {**given, "num_workers": num_workers}
        return Training(loader(data(), size, collate_fn=collate, **made), ignore, size)

    return {
        "build": build,
        "causes": ("num-workers", "worker-transfer", "batched-getitems"),
        "fix": {"num_workers": 0},
    }


def restarting(rng: random.Random) -> dict[str, Any]:
    """Short epochs, each of which starts its workers anew."""
    kilobytes, size, workers = whole(rng, 50, 200), whole(rng, 4, 16), rng.choice((1, 2))
    length = size * whole(rng, 10, 30)

    def build(persistent_workers: bool = False, **more: Any) -> Training:
        own = {"num_workers": workers, "persistent_workers": persistent_workers}
        return Training(
            loader(Computing(length, kilobytes), size, **own), takes(1.0), size, epochs=6
        )

    causes = ("persistent-workers", "num-workers", "loader-rebuilt", "worker-startup")
    return {"build": build, "causes": causes, "fix": {"persistent_workers": True}}


def drawing(rng: random.Random) -> dict[str, Any]:
    """An order drawn in Python number by number, or a permutation of very many once an epoch."""
    size, many = whole(rng, 256, 4_096), rng.random() < 0.5
    length = size * whole(rng, 400, 900) if many else size * 60
    own = None if many else OwnOrder(length, whole(rng, 2, 20))

    def build(fast: bool = False) -> Training:
        data = Batches(length, 0)
        if fast:
            order = BatchIndices(length, size)
            return Training(
                DataLoader(data, batch_size=None, sampler=order, collate_fn=as_is), ignore, size
            )
        drawn = {"shuffle": True} if own is None else {"sampler": own}
        return Training(DataLoader(data, batch_size=size, collate_fn=as_is, **drawn), ignore, size)

    return {"build": build, "causes": ("sampler", "batched-getitems")}


def healthy(rng: random.Random) -> dict[str, Any]:
    """Whatever loading takes, the step takes far longer."""
    size = whole(rng, 8, 64)
    kind = rng.choice(("rows", "batched"))

    def build() -> Training:
        if kind == "rows":
            return Training(loader(Rows(50 * size, 16), size), takes(size * 0.4), size)
        return Training(whole_batches(Rows(200 * size, 32), size), takes(2.0), size)

    return {"build": build, "forbidden": (ANY,)}


GRAMMAR: tuple[Drawn, ...] = (
    rows,
    elements,
    frame,
    computing,
    waiting,
    collating,
    handing_over,
    restarting,
    drawing,
    healthy,
)


def generated(seed: int, number: int) -> Case:
    """Case `number` of this seed: causes take turns, all else is drawn."""
    cause = GRAMMAR[number % len(GRAMMAR)]
    drawn = {"fix": {"fast": True}, **cause(random.Random(f"{seed}-{number}"))}
    if not drawn.get("causes"):
        drawn["fix"] = {}
    about = f"{(cause.__doc__ or '').partition('.')[0]} ({cause.__name__})"
    return Case(f"{PREFIX}{seed}-{number}", about, **drawn)


def held_out(seed: int, count: int) -> dict[str, Case]:
    """`count` cases by name."""
    return {case.name: case for case in (generated(seed, number) for number in range(count))}


def named(name: str) -> Case | None:
    """The case of such a name; None for any other."""
    if not name.startswith(PREFIX):
        return None
    seed, _, number = name.removeprefix(PREFIX).rpartition("-")
    return generated(int(seed), int(number))
