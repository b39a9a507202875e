"""What the loop runs of the loader's own parts outside `next()`: a data set that it shuffles
between epochs, a length that is counted at each step."""

from typing import NamedTuple

from ....profiler.record.inspect.uses import place_of
from ...case.case import Case
from ...schema.report_model import FlameNode, Range
from ...stacks.code_summary import wilson
from ...stacks.libraries import owner_of
from ...stacks.source_lines import SourceLines
from .functions import Unknown, as_unknown, outermost, own_above

# Of all time of the loop's thread, what is worth naming.
LEAST_OF_ALL = 0.1


class InLoop(NamedTuple):
    """A method of a part, its share of the time outside `next()` and `of_all`; its line that takes
    most, and where that is; the line that calls it. Of a library's method no lines are known."""

    method: Unknown
    of_all: Range
    text: str
    place: str | None
    caller: str | None


def in_loop(case: Case) -> InLoop | None:
    """The method that takes most there; None where none takes much."""
    stage = case.code_stage("compute")
    if stage is None or not case.meets("DataLoader"):
        return None
    seen, sources = case.inspection, SourceLines(case.process, case.loader)
    parts = [*seen.parts, seen.sampler, seen.batch_sampler, seen.collate]

    def belongs(node: FlameNode) -> bool:
        file, owner = node.file or "", node.function.rpartition(".")[0].rpartition(".")[2]
        own = [each for each in parts if each is not None and file in (each.file, each.module_file)]
        if not own or owner_of(file).library == "torch":
            return False
        # The method of a part may hold the loop itself.
        first, lines = sources.function(file, node.line or 0) or (0, ())
        if case.config.get("place") in [place_of(file, first + n) for n in range(len(lines))]:
            return False
        if not owner:  # before Python 3.11 a frame does not name its class
            part = sources.part(file, node.line)
            owner = part.name if part is not None else ""
        return any(
            node.function == each.qualname or owner in [name.split(".")[-1] for name in each.bases]
            for each in own
        )

    # What makes a data set runs once, or another rule says so.
    methods = [each for each in outermost(stage, belongs) if not each.function.endswith("__init__")]
    most = max(methods, key=lambda node: node.samples, default=None)
    method = as_unknown(stage, most, most.samples) if most is not None else None
    if most is None or method is None or case.report.code is None:
        return None
    of_main = ("index", "wait", "compute") + ("fetch", "collate", "pin") * (not case.num_workers)
    known = case.report.code.stages
    every = sum(known[name].samples for name in of_main if name in known)
    if most.samples < LEAST_OF_ALL * every:
        return None
    file, above = most.file, own_above(stage, most)
    low, high = wilson(most.samples, every)
    of_all = Range(low, most.samples / every, high)
    lines = [each for each in stage.lines if (each.function, each.file) == (most.function, file)]
    line = max(lines, key=lambda each: each.total_share, default=None)
    if line is None:
        return InLoop(method, of_all, method.name, None, above.function if above else None)
    place = place_of(line.file or "", line.line or 0)
    return InLoop(method, of_all, line.text or method.name, place, line.called_from)
