"""The flame graph of a stage: its stacks as one tree, without what is too thin to be seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

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
    for frames, count in stacks.items():
        node = root
        node.samples += count
        for frame in frames:
            key = frame.function, frame.file, frame.native
            if key not in node.children:
                node.children[key] = _Node(node.depth + 1)
            node = node.children[key]
            node.samples += count
            node.lines[frame.line] += count
    least = _least(root)
    nodes: list[FlameNode] = []
    waiting = [(key, child, -1) for key, child in _by_size(root)]
    while waiting:  # no recursion: stacks may be as deep as Python allows
        (function, file, native), node, parent = waiting.pop()
        if (node.samples, -node.depth) < least:
            continue
        waiting += [(key, child, len(nodes)) for key, child in _by_size(node)]
        line = node.lines.most_common(1)[0][0]
        own = owner_of(file, function, native).own
        nodes.append(
            FlameNode(function, file or None, line or None, own, native, parent, node.samples)
        )
        if len(nodes) >= MAX_NODES:
            break
    return tuple(nodes)


def _by_size(node: _Node) -> list[tuple[tuple[str, str, bool], _Node]]:
    """Children, the largest last: it is taken first."""
    return sorted(node.children.items(), key=lambda item: item[1].samples)


def _least(root: _Node) -> tuple[float, int]:
    """(samples, -depth) of the smallest node to keep: of equal ones the outer, so that no node
    loses its parent."""
    sizes: list[tuple[float, int]] = []
    waiting = [root]
    least = LEAST_SHARE * root.samples
    while waiting:
        node = waiting.pop()
        for child in node.children.values():
            if child.samples >= least:
                sizes.append((child.samples, -child.depth))
                waiting.append(child)
    sizes.sort(reverse=True)
    return (least, -len(sizes) - 1) if len(sizes) <= MAX_NODES else sizes[MAX_NODES - 1]
