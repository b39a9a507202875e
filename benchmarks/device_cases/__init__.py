"""Loops on the stand-in of docs/standin.md: each with one planted cause, or none."""

from __future__ import annotations

from . import copying, healthy, sizes, waiting
from .case import OnDevice

CASES: dict[str, OnDevice] = {
    case.name: case for module in (copying, waiting, sizes, healthy) for case in module.CASES
}
