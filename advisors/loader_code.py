"""DataLoader calls as a person would write them."""

from __future__ import annotations

import keyword
from typing import Any

from ..profiler.inspection import Part
from .case import Case

# A call longer than this is written one argument a line.
LINE = 96

# Samplers torch itself makes: they are not written, or are written as `shuffle=True`.
_PLAIN_SAMPLERS = ("SequentialSampler", "_InfiniteConstantSampler")
_DEFAULT_COLLATE = ("default_collate", "default_convert")
_NEEDS_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout", "in_order")
_NOT_BESIDE_BATCH_SAMPLER = ("batch_size", "shuffle", "sampler", "drop_last")


class Source(str):
    """A value of `loader_call` that is code, such as the name of a function, and not a text."""

    __slots__ = ()


DROP = Source("")  # as a value of `loader_call`: leave this argument out


def identifier(text: str | None, fallback: str) -> str:
    """The last part of a qualified name if code may use it as a name, else `fallback`. Names in a run are untrusted."""
    name = (text or "").rpartition(".")[2]
    return name if name.isidentifier() and name.isascii() and not keyword.iskeyword(name) else fallback


def dataset_class(case: Case, fallback: str = "MyDataset") -> str:
    """The class name of this loader's data set, for code."""
    told = case.config.get("dataset")
    return identifier(case.dataset.name if case.dataset else told if isinstance(told, str) else None, fallback)


def loader_call(case: Case, **changes: Any) -> str:
    """`DataLoader(dataset, batch_size=…, …)` with this loader's arguments and the changes.

    A change is a plain value, `Source("name")` for code, or `DROP`. What does not go together is left out: options of
    workers without workers, and batch_size, shuffle, sampler and drop_last beside a batch sampler.
    """
    arguments = {**_arguments(case), **changes}
    if changes.get("sampler"):
        arguments.pop("shuffle", None)
    if arguments.get("batch_sampler"):
        for name in _NOT_BESIDE_BATCH_SAMPLER:
            arguments.pop(name, None)
    if not arguments.get("num_workers"):
        for name in _NEEDS_WORKERS:
            arguments.pop(name, None)
    dataset = arguments.pop("dataset")
    written = [f"{name}={_literal(value)}" for name, value in arguments.items() if value is not DROP]
    line = f"DataLoader({', '.join([dataset, *written])})"
    if len(line) <= LINE:
        return line
    return "DataLoader(\n" + "".join(f"    {item},\n" for item in [dataset, *written]) + ")"


def loader_code(case: Case, **changes: Any) -> str:
    """The same as a statement: `loader = DataLoader(…)`."""
    return f"loader = {loader_call(case, **changes)}"


def _arguments(case: Case) -> dict[str, Any]:
    """The arguments that differ from DataLoader's defaults, in the order in which people write them."""
    config = case.config
    found: dict[str, Any] = {"dataset": Source("dataset")}
    batch_sampler = config.get("batch_sampler")
    custom = isinstance(batch_sampler, str) and _last(batch_sampler) != "BatchSampler"
    if custom:
        found["batch_sampler"] = Source("batch_sampler")
    elif "batch_size" in config:
        found["batch_size"] = config["batch_size"]
    sampler = config.get("sampler")
    if not custom and isinstance(sampler, str):
        name = _last(sampler)
        if name == "RandomSampler":
            found["shuffle"] = True
        elif name not in _PLAIN_SAMPLERS:
            found["sampler"] = Source("sampler")
    if case.num_workers:
        found["num_workers"] = case.num_workers
    collate = config.get("collate_fn")
    if isinstance(collate, str) and _last(collate) not in _DEFAULT_COLLATE:
        found["collate_fn"] = Source(function_name(collate, case.inspection.collate, "collate_fn"))
    for name, default in (("pin_memory", False), ("drop_last", False), ("timeout", 0), ("in_order", True)):
        value = config.get(name)
        if isinstance(value, bool | int | float) and value != default:
            found[name] = value
    init = config.get("worker_init_fn")
    if isinstance(init, str):
        found["worker_init_fn"] = Source(function_name(init, case.inspection.worker_init, "worker_init_fn"))
    if config.get("prefetch_factor") not in (None, 2):
        found["prefetch_factor"] = config["prefetch_factor"]
    if config.get("persistent_workers") is True:
        found["persistent_workers"] = True
    return found


def function_name(told: str, part: Part | None, fallback: str) -> str:
    """How code calls a function of the run. An object with `__call__` is known by its class only, a method or a
    function inside a function by more than a name, so those get `fallback`."""
    name = identifier(part.name if part is not None else told, fallback)
    return name if name[:1].islower() or name[:1] == "_" else fallback


def _last(qualified: str) -> str:
    return qualified.rpartition(".")[2]


def _literal(value: Any) -> str:
    if isinstance(value, Source):
        return str.__str__(value)
    if isinstance(value, str | int | float | bool) or value is None:
        return repr(value)
    raise TypeError(f"{type(value).__name__} cannot be written as an argument: use Source")
