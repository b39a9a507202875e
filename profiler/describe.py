"""What a loader is, in words and numbers, found without running the user's code more than it runs anyway."""

from __future__ import annotations

import functools
from typing import Any

from .loader_origin import made_by, takes_any_arguments
from .sampling import own_of, sampling_of
from .untouched import class_name, in_class, mro

# Classes whose constructor takes what DataLoader takes.
CONSTRUCTORS = (
    "torch.utils.data.dataloader.DataLoader",
    "torchdata.stateful_dataloader.stateful_dataloader.StatefulDataLoader",
)


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


def describe_drawing(loader: Any) -> dict[str, Any]:
    """How samples are drawn and batched, and what else of the constructor's arguments tells how the loader was made."""
    from torch.utils.data import DataLoader

    own = own_of(loader)
    drawn = sampling_of(own)
    usual = drawn.batching == "batch_size" and drawn.wrappers == ("BatchSampler",)
    context = own.get("_DataLoader__multiprocessing_context")
    bases = (cls for cls in mro(type(loader)) if class_name(cls) in CONSTRUCTORS)
    return {
        "batching": drawn.batching,
        "batch_size": drawn.batch_size,
        "drop_last": drawn.drop_last,
        "sampler": _class_of(drawn.sampler),
        "sampler_path": drawn.path,
        "sampler_wrappers": None if usual else ", ".join(drawn.wrappers) or None,
        "sampler_plain": drawn.plain,
        "shuffle": drawn.shuffle,
        "replicas": drawn.replicas,
        "batch_sampler": _class_of(drawn.batch_sampler),
        "generator": own.get("generator") is not None,
        "multiprocessing_context": _start_of(context) if context is not None else None,
        "made_by": made_by(loader, own, drawn),
        "own_constructor": not takes_any_arguments(type(loader), next(bases, DataLoader)),
    }


def _start_of(context: Any) -> str:
    """'spawn' of a context for it, the class of a context of another kind."""
    name = in_class(type(context), "_name")
    return name if type(name) is str else class_name(type(context))


def _class_of(value: Any) -> str | None:
    return class_name(type(value)) if value is not None else None


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
        **describe_drawing(loader),
        "collate_fn": name_of(loader.collate_fn),
        "num_workers": loader.num_workers,
        "prefetch_factor": loader.prefetch_factor,
        "pin_memory": bool(loader.pin_memory),
        "persistent_workers": bool(loader.persistent_workers),
        "in_order": bool(getattr(loader, "in_order", True)),
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
