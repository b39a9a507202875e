"""Combines two changes, unless they exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .changes import ARGUMENTS, TIMES, ends


class Excluded(Exception):
    """Two changes cannot be made together; the text says what both of them change."""


def together(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Both changes, as `WhatIf.predict` takes them.

    Factors on one stage multiply. A new time of a stage replaces all of its work, so it excludes
    other changes of that stage. Raises Excluded.
    """
    found = dict(first)
    for name, value in second.items():
        stage = TIMES.get(name, name)
        rivals = [other for other in first if TIMES.get(other, other) == stage]
        if not rivals:
            found[name] = value
        elif name in ARGUMENTS or name == "cpus":
            if first[name] != value:
                raise Excluded(f"both set {name}")
        elif name in TIMES or any(other in TIMES for other in rivals):
            if any(first[other] != value or other != name for other in rivals):
                raise Excluded(f"both take the place of the same {stage}")
        else:
            (low, high), (less, more) = ends(first[name]), ends(value)
            found[name] = (low * less, high * more)
    return found
