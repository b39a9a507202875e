"""The rules, one file each, in rooms by where the cause lies. A rule module holds

    EFFORT = "one argument"    or "a conversion": what the advice takes, if not a few lines
    KIND = "correctness"       or "safety", if not about speed: those speak whatever the verdict
    NEEDS = "prediction"       what it cannot do without, if anything (words of case.NEEDS)
    def examine(case: Case) -> Outcomes

and a docstring that `loaderscope rules NAME` prints: what it looks for, why it matters, what to
change, when not to. `examine` is a pure function of the case. It yields nothing if the rule has
nothing to say.
"""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..case.advice import Kind, Outcomes
from ..case.case import Case
from ..schema.report_model import Effort

# Rule → its room. In the order in which rules of equal gain are listed.
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


@dataclass(frozen=True)
class Rule:
    """One rule: its public id, its kind, what it takes to follow it, and its documentation."""

    name: str
    kind: Kind
    effort: Effort
    doc: str
    judge: Callable[[Case], Outcomes]
    needs: str = ""

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return self.doc.partition("\n")[0]

    def examine(self, case: Case) -> Outcomes:
        """What it says of this case; nothing where that lacks what the rule needs."""
        if case.meets(self.needs):
            yield from self.judge(case)


def rule(name: str) -> Rule:
    """The rule of this public id. KeyError for an unknown one."""
    module = importlib.import_module(f".{_ROOMS[name]}.{name.replace('-', '_')}", __name__)
    said: dict[str, Any] = {"KIND": "speed", "EFFORT": "a few lines", "NEEDS": "", **vars(module)}
    doc = inspect.cleandoc(module.__doc__ or "")
    return Rule(name, said["KIND"], said["EFFORT"], doc, said["examine"], said["NEEDS"])


def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of NAMES."""
    return tuple(map(rule, NAMES))
