"""The rules, one file each, in rooms by where the cause lies. A rule module holds

    NAME = "num-workers"            its public id
    KIND = "speed"                  or "correctness", "safety": then it speaks whatever the verdict
    EFFORT = "one argument"         or "a few lines", "a conversion": what following its advice
    takes def examine(case: Case) -> Iterator[Advice | Unmeasured]

and a docstring that `loaderscope rules NAME` prints: what it looks for, why it matters, what to
change, when not to. `examine` is a pure function of the case. It yields nothing where the rule has
nothing to say.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from ..case.advice import Kind, Outcome
from ..case.case import Case
from ..schema.report_model import Effort

# Rule → the room it lies in. In the order in which rules of equal gain are listed.
_ROOMS = {
    "iterable-sharding": "order",
    "distributed-sampler": "order",
    "loader-rebuilt": "workers",
    "batched-getitems": "fetching",
    "num-workers": "workers",
    "cpu-budget": "workers",
    "thread-oversubscription": "workers",
    "hot-function": "fetching",
    "storage-format": "fetching",
    "page-cache": "fetching",
    "collate": "fetching",
    "worker-transfer": "workers",
    "sampler": "order",
    "persistent-workers": "workers",
    "worker-startup": "workers",
    "in-order": "workers",
    "prefetch-factor": "workers",
    "pin-memory": "device",
    "h2d-copies": "device",
    "h2d-dtype": "device",
    "host-sync": "device",
    "batch-size": "device",
    "drop-last": "order",
    "rank-imbalance": "order",
    "dispatch-batches": "order",
    "worker-memory": "workers",
    "shared-memory": "workers",
}
NAMES = tuple(_ROOMS)


class _Examine(Protocol):
    def __call__(self, case: Case) -> Iterator[Outcome]: ...


@dataclass(frozen=True)
class Rule:
    """One rule: its public id, its kind, what following it takes, its documentation, and what
    applies it."""

    name: str
    kind: Kind
    effort: Effort
    doc: str
    examine: _Examine

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return self.doc.partition("\n")[0]


def rule(name: str) -> Rule:
    """The rule of this public id. KeyError for an unknown one."""
    if name not in NAMES:
        raise KeyError(name)
    module = importlib.import_module(f".{_ROOMS[name]}.{name.replace('-', '_')}", __name__)
    if name != module.NAME:
        raise AssertionError(f"{module.__name__} calls itself {module.NAME}")
    return Rule(
        name, module.KIND, module.EFFORT, inspect.cleandoc(module.__doc__ or ""), module.examine
    )


def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of NAMES."""
    return tuple(rule(name) for name in NAMES)
