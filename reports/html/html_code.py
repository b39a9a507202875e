"""Where the time goes inside each stage, for the HTML report: a flame graph with a stage switch,
and tables."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...advisors.schema.report_model import Code, CodeStage, FlameNode
from ...profiler.base.metadata import clean
from ...profiler.record.inspect.uses import place_of
from ..words.inside import code_stages, function_name
from ..words.units import count, percent
from .html_plot import Figure, Trace, plain

MAX_NODES, MAX_STAGES = 200, 8  # of a stage, of a loader; a node takes up to 160 bytes of the page

_ROW_PX = 24
_PATHBAR_PX = 30


def flame_figure(key: str, code: Code | None) -> Iterator[Figure]:
    """A trace a stage; nothing where there is nothing to draw."""
    traces: list[Trace] = []
    said, deepest = [], 1
    for name, stage in code_stages(code)[:MAX_STAGES]:
        nodes = kept(stage.flame, MAX_NODES)
        if nodes:
            trace, depth = _trace(clean(name, 40), stage, nodes)
            deepest = max(deepest, depth)
            traces.append(trace)
            said += [
                f"{trace['name']}: {percent(spot.share)} in {function_name(spot)} itself"
                for spot in sorted(stage.hot, key=lambda spot: -spot.share)[:1]
            ]
    if not traces:
        return
    summary = (
        "Each box was called by the one above it; its width is the share of the stage’s samples. "
        f"{'; '.join(said)}. Click a box to look into it, the bar above to come back; the table "
        "below has the figures."
    )
    title, names = "Flame graph: what called what", tuple(trace["name"] for trace in traces)
    height = _PATHBAR_PX + 4 + _ROW_PX * min(deepest, 26)
    yield Figure(f"{key}-flame", title, summary, traces, {"height": height}, names)


def kept(nodes: Sequence[FlameNode], limit: int) -> list[FlameNode]:
    """The `limit` nodes with most samples, with parents renumbered; what hangs below nothing known
    is left out."""
    sound = [n for n, node in enumerate(nodes) if -1 <= node.parent < n and node.samples > 0]
    chosen = set(sorted(sound, key=lambda n: (-nodes[n].samples, n))[:limit])
    places: dict[int, int] = {-1: -1}
    found: list[FlameNode] = []
    for n in sorted(chosen):
        if nodes[n].parent in places:
            places[n] = len(found)
            found.append(replace(nodes[n], parent=places[nodes[n].parent]))
    return found


def _trace(name: str, stage: CodeStage, nodes: list[FlameNode]) -> tuple[Trace, int]:
    """The trace and its depth. Its outermost box, whose number is 0, is the stage itself, with all
    its samples."""
    whole = max(stage.samples, sum(node.samples for node in nodes if node.parent < 0))
    parents, depth = [-1], [1]
    facts = [("", percent(1.0), count(whole), "stage")]
    for node in nodes:
        parents.append(node.parent + 1)
        depth.append(1 + depth[node.parent + 1])
        kind = "yours" if node.own else "library"
        where = plain(place_of(node.file, node.line) if node.file else "")
        facts.append((where, percent(node.samples / whole), count(node.samples), kind))
    trace = {
        "name": name,
        "parents": parents,
        "labels": [name, *(plain(node.function) for node in nodes)],
        "values": [whole, *(node.samples for node in nodes)],
        "facts": facts,
    }
    return trace, max(depth)
