"""What a loader is, in words and numbers, found without running any code of the user's."""

from __future__ import annotations

from typing import Any

from ...guard.static_access import class_name, in_class, inherits, is_one_of, mro, qualified_name
from .lengths import known_length
from .loader_origin import made_by, takes_any_arguments
from .samplers import own_of, sampling_of

# Classes whose constructor takes what DataLoader takes.
CONSTRUCTORS = (
    "torch.utils.data.dataloader.DataLoader",
    "torchdata.stateful_dataloader.stateful_dataloader.StatefulDataLoader",
)

_PLAIN = (int, float, str, bool, type(None))


def describe_drawing(loader: Any) -> dict[str, Any]:
    """How samples are drawn and batched, and what else of the constructor's arguments tells how the
    loader was made."""
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
        "replica": drawn.replica,
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
    """The configuration of a DataLoader as JSON values. `dataset_len` is None where only `len()`
    could tell: torch may never ask for it."""
    from torch.utils.data import IterableDataset

    own = own_of(loader)
    dataset = own.get("dataset")
    iterable = inherits(type(dataset), IterableDataset)
    return {
        "loader": class_name(type(loader)),
        "dataset": _class_of(dataset),
        "dataset_kind": "iterable" if iterable else "map",
        "dataset_len": None if iterable else known_length(dataset),
        "getitems": in_class(type(dataset), "__getitems__") is not None,
        **describe_drawing(loader),
        "collate_fn": name_of(own.get("collate_fn")),
        "num_workers": plain(own.get("num_workers")),
        "prefetch_factor": plain(own.get("prefetch_factor")),
        "pin_memory": own.get("pin_memory") is True,
        "persistent_workers": own.get("persistent_workers") is True,
        "in_order": own.get("in_order", True) is True,
        "timeout": plain(own.get("timeout")),
        "start_method": _start_method(own.get("_DataLoader__multiprocessing_context")),
        "worker_init_fn": name_of(own.get("worker_init_fn")),
    }


def name_of(value: Any) -> str | None:
    """A readable name of a function, class or object: 'package.module.Class'."""
    return qualified_name(value) if value is not None else None


def plain(value: Any) -> Any:
    """The value where it is a plain one; the name of its class for an object that may have code of
    its own."""
    return value if is_one_of(type(value), _PLAIN) else class_name(type(value))


def _start_method(context: Any) -> str | None:
    import multiprocessing

    # The default is fixed by asking for it, so it is only asked for when it has been fixed already.
    if context is None:
        return multiprocessing.get_start_method(allow_none=True)
    known = inherits(type(context), multiprocessing.context.BaseContext)
    return context.get_start_method() if known else None
