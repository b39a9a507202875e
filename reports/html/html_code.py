"""Where the time goes inside each stage, for the HTML report: a flame graph with a stage switch,
and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...advisors.schema.report_model import Code, CodeStage, FlameNode
from ...profiler.base.metadata import clean
from ...profiler.record.inspect.uses import place_of
from ..words.inside import code_stages, function_name
from ..words.units import count, percent
from .html_plot import Figure, plain

# A node takes up to 160 bytes of the page, so that pages of many loaders have room for fewer.
MAX_NODES = 400  # a stage
PAGE_NODES, LEAST_PAGE_NODES, NODES_LESS_A_LOADER = 2_000, 250, 110
MAX_STAGES = 8

# Node kind → (colour, pattern, its colour): they differ in shape too. style.css has the same for
# the legend. A pattern keeps 4.5:1 to the text over it.
_KINDS = {
    "yours": ("#e8ab4a", "/", "#c98a24"),
    "library": ("#8fb4e3", "", "#8fb4e3"),
    "compiled": ("#c3cad1", ".", "#8b949d"),
}
_STAGE = ("#d4d9df", "", "#d4d9df")
_ROW_PX = 24
_PATHBAR_PX = 30


class Room:
    """Nodes that the page has still room for."""

    def __init__(self, loaders: int = 1) -> None:
        self.nodes = max(LEAST_PAGE_NODES, PAGE_NODES - NODES_LESS_A_LOADER * loaders)

    def take(self, wanted: int) -> int:
        given = min(wanted, self.nodes)
        self.nodes -= given
        return given


def flame_figure(key: str, code: Code, room: Room) -> Figure | None:
    """A trace a stage, of which the first is shown; None where there is nothing to draw, or no room
    left."""
    traces: list[dict[str, Any]] = []
    said, labels, deepest = [], [], 1
    for name, stage in code_stages(code)[:MAX_STAGES]:
        nodes = kept(stage.flame, room.take(min(len(stage.flame), MAX_NODES)))
        if nodes:
            trace, depth = _trace(name, stage, nodes, visible=not traces)
            deepest = max(deepest, depth)
            traces.append(trace)
            labels.append(clean(name, 40))
            said += [
                f"{labels[-1]}: {percent(spot.share)} in {function_name(spot)} itself"
                for spot in sorted(stage.hot, key=lambda spot: -spot.share)[:1]
            ]
    if not traces:
        return None
    height = _PATHBAR_PX + 4 + _ROW_PX * min(deepest, 26)
    summary = (
        "Each box was called by the one above it; its width is the share of the stage’s samples. "
        f"{'; '.join(said)}. Click a box to look into it, the bar above to come back; the table "
        "below has the figures."
    )
    title = "Flame graph: what called what"
    margin = {"l": 4, "r": 4, "t": _PATHBAR_PX, "b": 4}
    made = {"height": height, "margin": margin}
    return Figure(f"{key}-flame", title, summary, traces, made, tuple(labels))


def kept(nodes: Sequence[FlameNode], limit: int) -> list[FlameNode]:
    """The `limit` nodes with most samples, with parents renumbered; what hangs below nothing known
    is left out.

    A node never has fewer samples than those below it together: they would not fit in.
    """
    sound = [n for n, node in enumerate(nodes) if -1 <= node.parent < n and node.samples > 0]
    chosen = set(sorted(sound, key=lambda n: (-nodes[n].samples, n))[:limit])
    places: dict[int, int] = {-1: -1}
    found: list[FlameNode] = []
    for n in sorted(chosen):
        if nodes[n].parent in places:
            places[n] = len(found)
            found.append(replace(nodes[n], parent=places[nodes[n].parent]))
    below = [0] * len(found)
    for n in range(len(found) - 1, -1, -1):
        samples = max(found[n].samples, below[n])
        found[n] = replace(found[n], samples=samples)
        if found[n].parent >= 0:
            below[found[n].parent] += samples
    return found


def _trace(
    name: str, stage: CodeStage, nodes: list[FlameNode], visible: bool
) -> tuple[dict[str, Any], int]:
    """The trace and its depth. Its outermost box is the stage itself, with all its samples."""
    whole = max(stage.samples, sum(node.samples for node in nodes if node.parent < 0))
    depth = [1] * len(nodes)
    for n, node in enumerate(nodes):
        depth[n] = 1 + (depth[node.parent] if node.parent >= 0 else 1)
    kinds = ["yours" if node.own else "compiled" if node.native else "library" for node in nodes]
    about = [
        [_where(node), percent(node.samples / whole), count(node.samples), kind]
        for node, kind in zip(nodes, kinds, strict=True)
    ]
    colors, shapes, inks = zip(_STAGE, *(_KINDS[kind] for kind in kinds), strict=True)
    trace = {
        "type": "icicle",
        "name": plain(name),
        "visible": visible,
        "ids": ["r", *map(str, range(len(nodes)))],
        "parents": ["", *("r" if node.parent < 0 else str(node.parent) for node in nodes)],
        "labels": [plain(name), *(plain(node.function) for node in nodes)],
        "values": [whole, *(node.samples for node in nodes)],
        "customdata": [["", percent(1.0), count(whole), "stage"], *about],
        "marker": {
            "colors": colors,
            "pattern": {"shape": shapes, "fgcolor": inks, "bgcolor": colors},
        },
    }
    return trace, max(depth, default=1)


def _where(node: FlameNode) -> str:
    return plain(place_of(node.file, node.line) if node.file else "")
