"""What a loader is, in words and numbers, found without running any code of the user's."""

from __future__ import annotations

from typing import Any

from .lengths import known_length
from .untouched import class_name, in_class, inherits, is_one_of, loader_vars, qualified_name

_PLAIN = (int, float, str, bool, type(None))


def describe_loader(loader: Any) -> dict[str, Any]:
    """The configuration of a DataLoader as JSON values. `dataset_len` is None where only `len()` could tell: torch may
    never ask for it."""
    from torch.utils.data import IterableDataset

    own = loader_vars(loader)
    dataset = own.get("dataset")
    iterable = inherits(type(dataset), IterableDataset)
    return {
        "loader": class_name(type(loader)),
        "dataset": _class_of(dataset),
        "dataset_kind": "iterable" if iterable else "map",
        "dataset_len": None if iterable else known_length(dataset),
        "getitems": in_class(type(dataset), "__getitems__") is not None,
        "sampler": _class_of(own.get("sampler")),
        "batch_sampler": _class_of(own.get("batch_sampler")),
        "collate_fn": name_of(own.get("collate_fn")),
        "batch_size": plain(own.get("batch_size")),
        "num_workers": plain(own.get("num_workers")),
        "prefetch_factor": plain(own.get("prefetch_factor")),
        "pin_memory": own.get("pin_memory") is True,
        "persistent_workers": own.get("persistent_workers") is True,
        "in_order": own.get("in_order", True) is True,
        "drop_last": own.get("drop_last") is True,
        "timeout": plain(own.get("timeout")),
        "start_method": _start_method(own.get("_DataLoader__multiprocessing_context")),
        "worker_init_fn": name_of(own.get("worker_init_fn")),
    }


def _class_of(value: Any) -> str | None:
    return class_name(type(value)) if value is not None else None


def name_of(value: Any) -> str | None:
    return qualified_name(value) if value is not None else None


def plain(value: Any) -> Any:
    """The value where it is a plain one; the name of its class for an object that may have code of its own."""
    return value if is_one_of(type(value), _PLAIN) else class_name(type(value))


def _start_method(context: Any) -> str | None:
    import multiprocessing

    # The default is fixed by asking for it, so it is only asked for when it has been fixed already.
    if context is None:
        return multiprocessing.get_start_method(allow_none=True)
    known = inherits(type(context), multiprocessing.context.BaseContext)
    return context.get_start_method() if known else None
