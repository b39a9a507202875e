"""Loops on the stand-in of docs/standin.md: each with one planted cause, or none."""

from __future__ import annotations

from known_cases.case import Case

from . import copying, healthy, sizes

CASES: dict[str, Case] = {case.name: case for module in (copying, sizes, healthy) for case in module.CASES}
