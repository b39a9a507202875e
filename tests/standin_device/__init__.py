"""A stand-in for an accelerator, in Python, whose times are given: docs/standin.md."""

from .backend import missing, switch_off, switch_on
from .clocks import OwnTime, SetClock
from .engine import Spec

__all__ = ["OwnTime", "SetClock", "Spec", "missing", "switch_off", "switch_on"]
