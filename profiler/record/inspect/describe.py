"""Describes a loader in words and numbers, without running the user's code, and tells who made it:
the user, or a framework."""

from __future__ import annotations

import inspect
import types
from typing import Any

from ...base.metadata import Facts
from ...guard.static_access import (
    PLAIN,
    class_name,
    in_class,
    inherits,
    instance_vars,
    is_one_of,
    loaded,
    mro,
    qualified_name,
)
from .lengths import known_length
from .samplers import Sampling, own_of, sampling_of
from .uses import library_of

# Classes whose constructor takes DataLoader's arguments.
CONSTRUCTORS = (
    "torch.utils.data.dataloader.DataLoader",
    "torchdata.stateful_dataloader.stateful_dataloader.StatefulDataLoader",
)

_TRAINERS = ("lightning.pytorch", "pytorch_lightning")


def describe_loader(loader: Any) -> Facts:
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
        "batch_sampler": _class_of(drawn.batch_sampler),
        "generator": own.get("generator") is not None,
        "multiprocessing_context": _context_of(context),
        "made_by": _made_by(loader, own, drawn),
        "own_constructor": not _takes_any_arguments(type(loader), next(bases, DataLoader)),
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


def _made_by(loader: Any, own: Facts, sampling: Sampling) -> str | None:
    """The framework that made this loader from the user's, or for them, e.g. "accelerate", or
    "transformers" (its Trainer). None for the user's own."""
    init, collate = own.get("worker_init_fn"), own.get("collate_fn")
    cls = _library(type(loader))
    if cls == "accelerate":
        trainers = any("transformers.trainer" in qualified_name(each) for each in (init, collate))
        return "transformers" if trainers else cls
    for maker in (cls, _library(init)):
        if maker in ("timm", "ultralytics"):
            return maker
    if any(name.startswith("BatchSamplerShard") for name in sampling.wrappers):
        return "accelerate"
    injected = sampling.batch_sampler if sampling.batch_sampler is not None else sampling.sampler
    parts = map(_library, (init, own.get("sampler"), injected))
    # In several processes Lightning makes the loader anew, with torch's own DistributedSampler.
    has_trainer = any(loaded(f"{name}.trainer.trainer") for name in _TRAINERS)
    shared = any("DistributedSampler" in class_name(base) for base in mro(type(sampling.sampler)))
    if "lightning" in parts or "__pl_saved_args" in own or (has_trainer and shared):
        return "lightning"
    return None


def _library(value: Any) -> str | None:
    """The framework that defines this function, class or object."""
    return library_of(qualified_name(value).removeprefix("partial("))


def same_data(one: Any, other: Any) -> bool:
    """Whether both are one object, or data sets of Hugging Face with the same fingerprint."""
    first, second = (instance_vars(each).get("_fingerprint") for each in (one, other))
    alike = type(one) is type(other) and type(first) is str and first == second
    return one is other or alike


def _takes_any_arguments(cls: type, base: type) -> bool:
    """Whether this loader class takes exactly DataLoader's arguments: below `base` it has no
    constructor, or one that passes everything on."""
    init = in_class(cls, "__init__")
    if init is in_class(base, "__init__"):
        return True
    if not inherits(cls, base) or type(init) is not types.FunctionType:
        return False
    code, both = init.__code__, inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return code.co_argcount == 1 and not code.co_kwonlyargcount and code.co_flags & both == both
