"""The first difference between the batches of two sides, in words."""

from collections.abc import Sequence
from typing import Any

from .fingerprint import INCOMPARABLE
from .result import Difference

Event = tuple[str, Any]


def batches_in(events: Sequence[Event]) -> int:
    return sum(what == "batch" for what, _ in events)


def first_difference(
    before: Sequence[Event], after: Sequence[Event], all_of_it: bool
) -> Difference | None:
    """None if the events are the same. `all_of_it`: one side has ended, so a longer other side is a
    difference too."""
    for at, (one, other) in enumerate(zip(before, after, strict=False)):
        if not _same(one, other):
            return _described(batches_in(before[:at]), one, other)
    if all_of_it and len(before) != len(after):
        few, now = batches_in(before), batches_in(after)
        return Difference(min(few, now), f"the script takes {few} batches, with the change {now}")
    return None


def incomparable(events: Sequence[Event]) -> str | None:
    """The first part that cannot be compared: '[2] holds a generator that cannot be compared'."""
    for kind, parts in events:
        for where, what, _ in parts if kind == "batch" else ():
            if INCOMPARABLE in what:
                return f"{where or 'a batch'} holds {what}"
    return None


def _same(one: Event, other: Event) -> bool:
    if one[0] != "begin" or other[0] != "begin":
        return one == other
    known = zip(one[1], other[1], strict=True)
    return all(a == b for a, b in known if a is not None and b is not None)


def _described(batch: int, one: Event, other: Event) -> Difference:
    kinds = one[0], other[0]
    if kinds == ("batch", "batch"):
        return Difference(batch, _parts(one[1], other[1]))
    if kinds == ("begin", "begin"):
        (batches, samples), (now, of) = one[1], other[1]
        if batches != now:
            return Difference(batch, f"an epoch of {batches} batches became one of {now}")
        return Difference(batch, f"an epoch of {samples} samples became one of {of}")
    return Difference(batch, f"{_named(*one)}; with the change {_named(*other)}")


def _named(what: str, said: Any) -> str:
    """What `next()` did, as a clause."""
    names = {"batch": "a batch came", "begin": "an epoch began", "end": "an epoch ended"}
    return names.get(what) or f"next() raised {said:.200}"


def _parts(before: list[list[str]], after: list[list[str]]) -> str:
    for one, other in zip(before, after, strict=False):
        if one == other:
            continue
        where = one[0] or "the batch"
        if one[0] != other[0]:
            return f"{where} became {other[0] or 'the batch'}"
        if one[1] != other[1]:
            return f"{where}: {one[1]} became {other[1]}"
        return f"other values in {where} ({one[1]})"
    return f"{len(before)} parts became {len(after)}"
