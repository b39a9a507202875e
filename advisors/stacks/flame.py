"""The flame graph of a stage: its stacks as one tree, without nodes too thin to be seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest

from ..schema.report_model import FlameNode
from .code_samples import Frames
from .libraries import owner_of

LEAST_SHARE = 0.005
MAX_NODES = 600


@dataclass
class _Node:
    depth: int
    samples: int = 0
    lines: Counter[int] = field(default_factory=Counter)
    children: dict[tuple[str, str, bool], _Node] = field(default_factory=dict)


def flame_of(stacks: Mapping[Frames, int]) -> tuple[FlameNode, ...]:
    """Nodes of at least LEAST_SHARE of the samples, the MAX_NODES largest, each after its
    parent."""
    root = _Node(0)
    tree: list[_Node] = []
    for frames, count in stacks.items():
        node = root
        node.samples += count
        for frame in frames:
            key = frame.function, frame.file, frame.native
            if key not in node.children:
                node.children[key] = _Node(node.depth + 1)
                tree.append(node.children[key])
            node = node.children[key]
            node.samples += count
            node.lines[frame.line] += count
    wide = [node for node in tree if node.samples >= LEAST_SHARE * root.samples]
    # Of equal nodes the outer, so that no node loses its parent.
    kept = {id(n) for n in nlargest(MAX_NODES, wide, key=lambda n: (n.samples, -n.depth))}
    nodes: list[FlameNode] = []
    waiting = [(key, child, -1) for key, child in _by_size(root)]
    while waiting:  # no recursion: stacks may be as deep as Python allows
        (function, file, native), node, parent = waiting.pop()
        if id(node) not in kept:
            continue
        waiting += [(key, child, len(nodes)) for key, child in _by_size(node)]
        line = node.lines.most_common(1)[0][0]
        own = owner_of(file, function, native).own
        nodes.append(
            FlameNode(function, file or None, line or None, own, native, parent, node.samples)
        )
    return tuple(nodes)


def _by_size(node: _Node) -> list[tuple[tuple[str, str, bool], _Node]]:
    """Children, the largest last: it is taken first."""
    return sorted(node.children.items(), key=lambda item: item[1].samples)
