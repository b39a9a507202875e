"""Where the time goes inside each stage, for the HTML report: a flame graph with a stage switch,
and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...advisors.schema.report_model import Code, CodeStage, FlameNode
from ...profiler.base.metadata import clean
from ...profiler.record.inspect.uses import place_of
from ..words.inside import (
    code_stages,
    hot_row,
)
from ..words.units import count, percent
from .html_plot import Figure, layout, plain

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
_WHOLE = "#d4d9df"
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
    told, labels, deepest = [], [], 1
    for name, stage in code_stages(code)[:MAX_STAGES]:
        nodes = kept(stage.flame, room.take(min(len(stage.flame), MAX_NODES)))
        if not nodes:
            continue
        trace, depth = _trace(name, stage, nodes, visible=not traces)
        deepest = max(deepest, depth)
        traces.append(trace)
        labels.append(clean(name, 40))
        hottest = max(stage.hot, key=lambda spot: spot.share, default=None)
        if hottest is not None:
            told.append(
                f"{clean(name, 40)}: {percent(hottest.share)} in {hot_row(hottest).name} itself"
            )
    if not traces:
        return None
    made = layout(
        _PATHBAR_PX + 4 + _ROW_PX * min(deepest, 26),
        "",
        "",
        margin={"l": 4, "r": 4, "t": _PATHBAR_PX, "b": 4},
    )
    del made["xaxis"], made["yaxis"], made["legend"]
    summary = (
        "Each box was called by the one above it; its width is the share of the stage’s samples. "
        f"{'; '.join(told)}. Click a box to look into it, the bar above to come back; the table "
        "below has the figures."
    )
    return Figure(
        f"{key}-flame", "Flame graph: what called what", summary, traces, made, switch=tuple(labels)
    )


def kept(nodes: Sequence[FlameNode], limit: int) -> list[FlameNode]:
    """The `limit` nodes with most samples, with parents renumbered; what hangs below nothing known
    is left out.

    A node never has fewer samples than those below it together: plotly would draw nothing at all.
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
    kinds = ["yours" if node.own else "compiled" if node.native else "library" for node in nodes]
    for n, node in enumerate(nodes):
        depth[n] = 1 + (depth[node.parent] if node.parent >= 0 else 1)
    told = [
        [_where(node), percent(node.samples / whole), count(node.samples), kind]
        for node, kind in zip(nodes, kinds, strict=True)
    ]
    colors = [_WHOLE, *(_KINDS[kind][0] for kind in kinds)]
    trace = {
        "type": "icicle",
        "name": plain(name),
        "visible": visible,
        "branchvalues": "total",
        "ids": ["r", *(str(n) for n in range(len(nodes)))],
        "parents": ["", *("r" if node.parent < 0 else str(node.parent) for node in nodes)],
        "labels": [plain(name), *(plain(node.function) for node in nodes)],
        "values": [whole, *(node.samples for node in nodes)],
        "customdata": [["", percent(1.0), count(whole), "stage"], *told],
        "marker": {
            "colors": colors,
            "line": {"width": 1, "color": "#ffffff"},
            "pattern": {
                "shape": ["", *(_KINDS[kind][1] for kind in kinds)],
                "size": 7,
                "solidity": 0.25,
                "fgcolor": [_WHOLE, *(_KINDS[kind][2] for kind in kinds)],
                "bgcolor": colors,
                "fillmode": "replace",
            },
        },
        "leaf": {"opacity": 1},
        "tiling": {"orientation": "v", "pad": 0},
        "pathbar": {"thickness": _PATHBAR_PX - 8, "side": "top"},
        "sort": False,
        "textposition": "middle left",
        "textinfo": "label",
        "insidetextfont": {"color": "#14171b"},
        "outsidetextfont": {"color": "#14171b"},
        "hovertemplate": "%{label}<br>%{customdata[0]}<br>%{customdata[1]} of the stage, "
        "%{customdata[2]} samples"
        "<br>%{customdata[3]}<extra></extra>",
    }
    return trace, max(depth, default=1)


def _where(node: FlameNode) -> str:
    return plain(place_of(node.file, node.line) if node.file else "")
