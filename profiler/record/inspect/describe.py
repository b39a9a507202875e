"""Describes a loader in words and numbers, without running the user's code."""

from __future__ import annotations

from typing import Any

from ...guard.static_access import (
    PLAIN,
    class_name,
    in_class,
    inherits,
    is_one_of,
    mro,
    qualified_name,
)
from .lengths import known_length
from .loader_origin import made_by, takes_any_arguments
from .samplers import own_of, sampling_of

# Classes whose constructor takes DataLoader's arguments.
CONSTRUCTORS = (
    "torch.utils.data.dataloader.DataLoader",
    "torchdata.stateful_dataloader.stateful_dataloader.StatefulDataLoader",
)


def describe_loader(loader: Any) -> dict[str, Any]:
    """The configuration of a DataLoader as JSON values. `dataset_len` is None if only `len()` could
    tell, which torch may never call."""
    from torch.utils.data import DataLoader, IterableDataset

    own = own_of(loader)
    dataset = own.get("dataset")
    iterable = inherits(type(dataset), IterableDataset)
    drawn = sampling_of(own)
    usual = drawn.batching == "batch_size" and drawn.wrappers == ("BatchSampler",)
    context = own.get("_DataLoader__multiprocessing_context")
    bases = (cls for cls in mro(type(loader)) if class_name(cls) in CONSTRUCTORS)
    return {
        "loader": class_name(type(loader)),
        "dataset": _class_of(dataset),
        "dataset_kind": "iterable" if iterable else "map",
        "dataset_len": None if iterable else known_length(dataset),
        "getitems": in_class(type(dataset), "__getitems__") is not None,
        "batching": drawn.batching,
        "batch_size": drawn.batch_size,
        "drop_last": drawn.drop_last,
        "sampler": _class_of(drawn.sampler),
        "sampler_path": drawn.path,
        "sampler_wrappers": None if usual else ", ".join(drawn.wrappers) or None,
        "sampler_plain": drawn.plain,
        "shuffle": drawn.shuffle,
        "replicas": drawn.replicas,
        "replica": drawn.replica,
        "batch_sampler": _class_of(drawn.batch_sampler),
        "generator": own.get("generator") is not None,
        "multiprocessing_context": _context_of(context),
        "made_by": made_by(loader, own, drawn),
        "own_constructor": not takes_any_arguments(type(loader), next(bases, DataLoader)),
        "collate_fn": _name_of(own.get("collate_fn")),
        **{name: _plain(own.get(name)) for name in ("num_workers", "prefetch_factor", "timeout")},
        "pin_memory": own.get("pin_memory") is True,
        "persistent_workers": own.get("persistent_workers") is True,
        "in_order": own.get("in_order", True) is True,
        "start_method": _start_method(context),
        "worker_init_fn": _name_of(own.get("worker_init_fn")),
    }


def _class_of(value: Any) -> str | None:
    return class_name(type(value)) if value is not None else None


def _name_of(value: Any) -> str | None:
    return qualified_name(value) if value is not None else None


def _plain(value: Any) -> Any:
    """A plain value; of any other object the name of its class."""
    return value if is_one_of(type(value), PLAIN) else class_name(type(value))


def _context_of(context: Any) -> str | None:
    """'spawn' of a context for it, the class of another kind of context."""
    name = in_class(type(context), "_name")
    return name if type(name) is str else _class_of(context)


def _start_method(context: Any) -> str | None:
    import multiprocessing

    # Asking for the default fixes it, so it is only asked for if it is fixed already.
    if context is None:
        return multiprocessing.get_start_method(allow_none=True)
    known = inherits(type(context), multiprocessing.context.BaseContext)
    return context.get_start_method() if known else None
