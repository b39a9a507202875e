"""Who made a loader: the user's own call, or a framework that made it anew or for them."""

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

_FRAMEWORKS = ("accelerate", "transformers", "timm", "ultralytics", *LIGHTNING)


def made_by(loader: Any, own: dict[str, Any], sampling: Sampling) -> str | None:
    """The framework that made this loader out of the user's, or for them: "accelerate",
    "transformers" (its Trainer), "lightning", "timm" or "ultralytics"; None where it is the user's
    own."""
    init, collate = own.get("worker_init_fn"), own.get("collate_fn")
    if framework_of(type(loader)) == "accelerate":
        trainers = any(
            "transformers.trainer" in qualified_name(each)
            for each in (init, collate)
            if each is not None
        )
        return "transformers" if trainers else "accelerate"
    makers = [framework_of(each) for each in (type(loader), init) if each is not None]
    maker = next((each for each in makers if each in ("timm", "ultralytics")), None)
    if maker is not None:
        return maker
    if any(name.startswith("BatchSamplerShard") for name in sampling.wrappers):
        return "accelerate"
    injected = sampling.batch_sampler if sampling.batch_sampler is not None else sampling.sampler
    parts = [init, own.get("sampler"), injected]
    if (
        any(each is not None and framework_of(each) == "lightning" for each in parts)
        or "__pl_saved_args" in own
    ):
        return "lightning"
    # In several processes Lightning makes the loader anew, with torch's own DistributedSampler.
    trainer = loaded("lightning.pytorch.trainer.trainer") or loaded(
        "pytorch_lightning.trainer.trainer"
    )
    if trainer and any(
        "DistributedSampler" in class_name(base) for base in mro(type(sampling.sampler))
    ):
        return "lightning"
    return None


def framework_of(value: Any) -> str | None:
    """The framework whose code this function, class or object is of; None for all others."""
    name = qualified_name(value)
    root = name.removeprefix("partial(").partition(".")[0]
    if root not in _FRAMEWORKS:
        return None
    return "lightning" if root in LIGHTNING else root


def same_data(one: Any, other: Any) -> bool:
    """Whether this is one data set: one object, or two of Hugging Face's made alike of the same
    table."""
    if one is other:
        return True
    prints = [instance_vars(each).get("_fingerprint") for each in (one, other)]
    return type(one) is type(other) and type(prints[0]) is str and prints[0] == prints[1]


def takes_any_arguments(cls: type, base: type) -> bool:
    """Whether this loader class takes just what DataLoader takes: it has no constructor of its own
    below `base`, or one that hands everything on."""
    init = in_class(cls, "__init__")
    if init is in_class(base, "__init__"):
        return True
    if not inherits(cls, base) or type(init) is not types.FunctionType:
        return False
    code, both = init.__code__, inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    return code.co_argcount == 1 and not code.co_kwonlyargcount and code.co_flags & both == both
