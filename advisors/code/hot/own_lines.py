"""The lines of methods that give samples in which a stage goes by, with what they call."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ....profiler.record.inspect.uses import place_of
from ....profiler.store.inspection import Part
from ...schema.report_model import CodeStage, HotSpot, Range
from ...stacks.code_summary import wilson
from ...stacks.source_lines import SourceLines
from ..method import MAY_DRAW, Method, linked
from ..shapes import kinds_of, repeats
from .functions import STANDS_OUT

# Functions that only call others, one after another.
_CHAINS = re.compile(r"Compose|Sequential|RandomApply|call_impl")


class OwnLine(NamedTuple):
    """A line of this method of a part: of a loop, the one in it that takes most. `text` is the
    first line of its statement, `call` the library's function below it that takes most; `share` is
    that of the loop, else of the line; with those of `alike` more lines of the method. `epochs` is
    the method by what differs from one epoch to the next."""

    part: Part
    method: Method
    epochs: Method
    line: str
    text: str
    place: str | None
    call: str | None
    share: Range
    alike: int = 0

    @property
    def augments(self) -> bool:
        """Whether a random value goes into a call on it."""
        return self.method.augments(self.line)

    def repeats(self, text: str) -> bool:
        """Whether this line or function is known to give the same in every epoch."""
        # What an object changes that is made for each sample is gone with it.
        held = {} if "self" in self.method.varying else kinds_of(self.part)
        return any(repeats(self.epochs, of, held) for of in (text, text.rpartition(".")[2]))

    def with_others(self, others: Sequence[OwnLine]) -> OwnLine:
        """It and these lines of its method as one."""
        ranges = [each.share for each in (self, *others)]
        low, mid, high = (
            min(1.0, sum(getattr(each, end) for each in ranges)) for end in ("low", "mid", "high")
        )
        return self._replace(share=Range(low, mid, high), alike=len(others))


def own_lines(stage: CodeStage, parts: Iterable[Part], lines: SourceLines) -> list[OwnLine]:
    """Lines of the methods that give these parts' samples, and of functions that are called below
    them (`lines` finds what was not recorded), the largest share first."""
    parts = [*parts]
    owners = {"", *(each.name for each in parts)}
    sources = [(p, each) for p in parts for each in (p.getitem, p.getitems, p.iter, *p.helpers)]
    for spot in stage.lines:
        owner = spot.function.rpartition(".")[0]
        # A method of another class is recorded without the attributes of its object.
        if not spot.own or (
            owner in owners and any(_statement_of(spot, Method(source)) for _, source in sources)
        ):
            continue
        owners.add(owner)
        part = lines.part(spot.file, spot.line)
        if part is not None:
            sources = [each for each in sources if each[1] not in part.helpers]
            sources += [(part, each) for each in part.helpers]
    texts = [source for _, source in sources]
    drawn = any(MAY_DRAW.search(line) for text in texts for line in text)
    epochs = linked(texts, ("__getitem__", "__call__")[: 2 - drawn])
    pairs = zip(sources, linked(texts), epochs, strict=True)
    found = [line for (part, _), *methods in pairs for line in _of_method(stage, part, *methods)]
    return sorted(found, key=lambda line: -line.share.mid)


def _statement_of(spot: HotSpot, method: Method) -> ast.stmt | None:
    """The statement of this method that a line of the user's is of; None of another function."""
    function = spot.function.rpartition(".")[2]
    known = spot.own and function in (method.name, "<listcomp>", "<genexpr>")
    return method.at(spot.text or "") if known else None


def _of_method(stage: CodeStage, part: Part, method: Method, epochs: Method) -> Iterable[OwnLine]:
    seen = defaultdict[ast.stmt, list[tuple[HotSpot, ast.stmt]]](list)
    for spot in stage.lines:
        if (statement := _statement_of(spot, method)) is not None:
            seen[method.loops.get(statement, statement)].append((spot, statement))
    for found in seen.values():
        hottest, statement = max(found, key=lambda each: each[0].total_share)
        line, text = (hottest.text or "").strip(), method.text(statement)
        place = place_of(hottest.file, hottest.line)
        call, most = _below(stage, place)
        share = min(most, sum(spot.total_share for spot, _ in found))
        low, high = wilson(round(share * stage.samples), stage.samples)
        yield OwnLine(part, method, epochs, line, text, place, call, Range(low, share, high))


def _below(stage: CodeStage, place: str) -> tuple[str | None, float]:
    """The library's function that takes most there, and the most that the line may be said to take:
    what a step of a chain takes that stands out, else all."""
    calls = [spot for spot in stage.hot if not spot.own and spot.called_from == place]
    spot = max(calls, key=lambda spot: spot.total_share, default=None)
    if spot is None:
        return None, 1.0
    most = 1.0
    if _CHAINS.search(spot.function):
        steps = (each for each in calls if not _CHAINS.search(each.function))
        step = max(steps, key=lambda step: step.total_share, default=spot)
        if step.total_share >= STANDS_OUT:
            spot, most = step, step.total_share
    return f"{spot.library}'s {spot.function}" if spot.library else spot.function, most
