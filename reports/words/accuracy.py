"""How good predictions were: those of each host and setting, against what tuning measured."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from ...advisors.whatif.past_trials import Outcome
from .units import plural

ALL = "all"


@dataclass(frozen=True)
class AccuracyRow:
    """The trials of one host that changed the same arguments; `changed` is "all" for those of a
    host together.

    `median_error` is of the predicted factor, whatever its sign; `median_bias` has it: 0.1 is a
    tenth too much. `inside_share` lay in the predicted range, which should be 0.8.
    """

    host: str | None
    changed: str
    trials: int
    median_error: float
    median_bias: float
    inside_share: float


def accuracy_rows(outcomes: Iterable[Outcome]) -> list[AccuracyRow]:
    """By host, and there by setting, the most tried first; then all of the host."""
    hosts: dict[str | None, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        hosts[each.host].append(each)
    rows = []
    for host in sorted(hosts, key=str):
        kinds: dict[str, list[Outcome]] = defaultdict(list)
        for each in hosts[host]:
            kinds[", ".join(each.changed)].append(each)
        rows += [
            _row(host, name, kinds[name])
            for name in sorted(kinds, key=lambda name: (-len(kinds[name]), name))
        ]
        rows.append(_row(host, ALL, hosts[host]))
    return rows


def _row(host: str | None, changed: str, found: Sequence[Outcome]) -> AccuracyRow:
    return AccuracyRow(
        host,
        changed,
        len(found),
        median(abs(each.error) for each in found),
        median(each.error for each in found),
        sum(each.inside for each in found) / len(found),
    )


def unsure_trials(number: int) -> str:
    """'2 trials with a prediction, too short to tell how good it was'."""
    return f"{plural(number, 'trial')} with a prediction, too short to tell how good it was"
