"""What the loop runs of the loader's own parts outside `next()`: a data set that it shuffles
between epochs, a length that is counted at each step."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from ....profiler.record.inspect.uses import place_of
from ....profiler.store.inspection import Part
from ...case.case import Case
from ...schema.report_model import FlameNode, Range
from ...stacks.code_summary import wilson
from ...stacks.source_lines import SourceLines
from .functions import Unknown, as_unknown, outermost, own_above

# Of all time of the loop's thread, what is worth naming.
LEAST_OF_ALL = 0.1


class InLoop(NamedTuple):
    """A method of a part: its line that takes most, the line that calls it, and its share of the
    loop's own time and of all."""

    method: Unknown
    text: str
    caller: str | None
    own: Range
    all: Range


def in_loop(case: Case) -> InLoop | None:
    """The method that takes most there; None where none takes much."""
    stage = case.code_stage("compute")
    if stage is None or case.report.code is None or not case.meets("DataLoader"):
        return None
    seen, sources = case.inspection, SourceLines(case.process, case.loader)
    every_part = (*seen.parts, seen.sampler, seen.batch_sampler, seen.collate)
    parts = [each for each in every_part if each is not None and not each.type.startswith("torch.")]
    head = seen.loop[:1]

    def belongs(node: FlameNode) -> bool:
        of = [each for each in parts if node.file and node.file in (each.file, each.module_file)]
        if not of:
            return False
        owner = node.function.rpartition(".")[0].rpartition(".")[2]
        around = sources.function(node.file or "", node.line or 0)
        # The method of a part may hold the loop itself.
        if around is not None and any((line.strip(),) == head for line in around[1]):
            return False
        if not owner:  # before Python 3.11 a frame does not name its class
            own = sources.part(node.file, node.line)
            owner = own.name if own is not None else ""
        return any(node.function == each.qualname or owner in _classes(each) for each in of)

    calls = Counter[tuple[str, str | None]]()
    nodes = {}
    for node in outermost(stage, belongs):
        if not node.function.endswith("__init__"):  # once, or loader-rebuilt says so
            calls[node.function, node.file] += node.samples
            nodes.setdefault((node.function, node.file), node)
    if not calls:
        return None
    ((most, samples),) = calls.most_common(1)
    method, caller = as_unknown(stage, nodes[most], samples), own_above(stage, nodes[most])
    stages = ("index", "wait", "compute") + ("fetch", "collate", "pin") * (not case.num_workers)
    known = case.report.code.stages
    every = sum(known[name].samples for name in stages if name in known)
    low, high = wilson(samples, every)
    if method is None or samples < LEAST_OF_ALL * every:
        return None
    texts = {place_of(each.file or "", each.line or 0): each.text for each in stage.lines}
    return InLoop(
        method,
        texts.get(method.place or "") or method.name,
        place_of(caller.file or "", caller.line or 0) if caller is not None else None,
        Range(method.low, method.share, method.high),
        Range(low, samples / every, high),
    )


def _classes(part: Part) -> set[str]:
    return {each.rpartition(".")[2] for each in part.bases} - {"function"}
