"""Who made a loader: the user, or a framework."""

from __future__ import annotations

import inspect
import types
from typing import Any

from ...guard.static_access import (
    class_name,
    in_class,
    inherits,
    instance_vars,
    loaded,
    mro,
    qualified_name,
)
from .samplers import LIGHTNING, Sampling

_FRAMEWORKS = ("accelerate", "transformers", "timm", "ultralytics")
_TRAINERS = ("lightning.pytorch", "pytorch_lightning")


def made_by(loader: Any, own: dict[str, Any], sampling: Sampling) -> str | None:
    """The framework that made this loader from the user's, or for them, e.g. "accelerate", or
    "transformers" (its Trainer). None for the user's own."""
    init, collate = own.get("worker_init_fn"), own.get("collate_fn")
    cls = framework_of(type(loader))
    if cls == "accelerate":
        trainers = any("transformers.trainer" in qualified_name(each) for each in (init, collate))
        return "transformers" if trainers else cls
    for maker in (cls, framework_of(init)):
        if maker in ("timm", "ultralytics"):
            return maker
    if any(name.startswith("BatchSamplerShard") for name in sampling.wrappers):
        return "accelerate"
    injected = sampling.batch_sampler if sampling.batch_sampler is not None else sampling.sampler
    parts = map(framework_of, (init, own.get("sampler"), injected))
    # In several processes Lightning makes the loader anew, with torch's own DistributedSampler.
    has_trainer = any(loaded(f"{name}.trainer.trainer") for name in _TRAINERS)
    shared = any("DistributedSampler" in class_name(base) for base in mro(type(sampling.sampler)))
    if "lightning" in parts or "__pl_saved_args" in own or (has_trainer and shared):
        return "lightning"
    return None


def framework_of(value: Any) -> str | None:
    """The framework that defines this function, class or object; None for all others."""
    root = qualified_name(value).removeprefix("partial(").partition(".")[0]
    if root in LIGHTNING:
        return "lightning"
    return root if root in _FRAMEWORKS else None


def same_data(one: Any, other: Any) -> bool:
    """Whether both are one object, or data sets of Hugging Face with the same fingerprint."""
    first, second = (instance_vars(each).get("_fingerprint") for each in (one, other))
    alike = type(one) is type(other) and type(first) is str and first == second
    return one is other or alike


def takes_any_arguments(cls: type, base: type) -> bool:
    """Whether this loader class takes exactly DataLoader's arguments: below `base` it has no
    constructor, or one that passes everything on."""
    init = in_class(cls, "__init__")
    if init is in_class(base, "__init__"):
        return True
    if not inherits(cls, base) or type(init) is not types.FunctionType:
        return False
    code, both = init.__code__, inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return code.co_argcount == 1 and not code.co_kwonlyargcount and code.co_flags & both == both
