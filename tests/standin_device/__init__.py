"""A stand-in for an accelerator: a PrivateUse1 backend of torch, in Python, whose times are given.
See docs/standin.md.

    import standin_device as standin
    standin.switch_on(standin.Spec(link_gb_s=12.0))
    x = batch.to("standin", non_blocking=True)

`engine` says when copies and kernels take place, `kernels` computes their results, `module` is
`torch.standin`.
"""

from __future__ import annotations

from .backend import missing, switch_off, switch_on
from .clocks import Clock, OwnTime, WallClock
from .engine import Engine, Spec, Work

__all__ = [
    "Clock",
    "Engine",
    "OwnTime",
    "Spec",
    "WallClock",
    "Work",
    "missing",
    "switch_off",
    "switch_on",
]
