"""What a loader is, in words and numbers, found without running the user's code more than it runs anyway."""

from __future__ import annotations

import functools
from typing import Any


def name_of(value: Any) -> str | None:
    """A readable name of a function, class or object: 'package.module.Class'."""
    if value is None:
        return None
    if isinstance(value, functools.partial):
        return f"partial({name_of(value.func)})"
    target = value if hasattr(value, "__qualname__") else type(value)
    module = getattr(target, "__module__", None)
    qualname = getattr(target, "__qualname__", repr(type(value)))
    return qualname if module in (None, "builtins", "__main__") else f"{module}.{qualname}"


def describe_loader(loader: Any) -> dict[str, Any]:
    """The configuration of a DataLoader as JSON values. `len()` is asked of map-style data sets only: asking an
    iterable one changes torch's own warnings."""
    from torch.utils.data import IterableDataset

    dataset = loader.dataset
    iterable = isinstance(dataset, IterableDataset)
    context = getattr(loader, "multiprocessing_context", None)
    return {
        "loader": name_of(type(loader)),
        "dataset": name_of(type(dataset)),
        "dataset_kind": "iterable" if iterable else "map",
        "dataset_len": None if iterable else _len(dataset),
        "getitems": bool(getattr(type(dataset), "__getitems__", None)),
        "sampler": name_of(type(loader.sampler)),
        "batch_sampler": name_of(type(loader.batch_sampler)) if loader.batch_sampler is not None else None,
        "collate_fn": name_of(loader.collate_fn),
        "batch_size": loader.batch_size,
        "num_workers": loader.num_workers,
        "prefetch_factor": loader.prefetch_factor,
        "pin_memory": bool(loader.pin_memory),
        "persistent_workers": bool(loader.persistent_workers),
        "in_order": bool(getattr(loader, "in_order", True)),
        "drop_last": bool(loader.drop_last),
        "timeout": loader.timeout,
        "start_method": context.get_start_method() if context is not None else _default_start_method(),
        "worker_init_fn": name_of(loader.worker_init_fn),
    }


def _len(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except Exception:
        return None


def _default_start_method() -> str | None:
    import multiprocessing

    # The default is fixed by asking for it, so it is only asked for when it has been fixed already.
    return multiprocessing.get_start_method(allow_none=True)
