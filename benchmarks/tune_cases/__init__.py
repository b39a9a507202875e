"""The loaders of benchmarks/tune.py. Those of `unseen` were not looked at while tuning was made."""

from __future__ import annotations

from . import healthy, looked_at, unseen
from .loop import Loop

LOOPS: dict[str, Loop] = {
    loop.name: loop for module in (looked_at, unseen, healthy) for loop in module.LOOPS
}
