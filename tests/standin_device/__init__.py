"""A stand-in for an accelerator, in Python, whose times are given: docs/standin.md."""

from __future__ import annotations

from .backend import missing, switch_off, switch_on
from .clocks import Clock, OwnTime, SetClock, WallClock
from .engine import Engine, Spec, Work

__all__ = [
    "Clock",
    "Engine",
    "OwnTime",
    "SetClock",
    "Spec",
    "WallClock",
    "Work",
    "missing",
    "switch_off",
    "switch_on",
]
