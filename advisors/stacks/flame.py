"""The flame graph of a stage: its stacks as one tree, without nodes too thin to be seen."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from heapq import nlargest

from ..schema.report_model import FlameNode
from .code_samples import Frames
from .libraries import owner_of

LEAST_SHARE = 0.005
MAX_NODES = 600


def flame_of(stacks: Mapping[Frames, int]) -> tuple[FlameNode, ...]:
    """Nodes of at least LEAST_SHARE of the samples, the MAX_NODES largest, each after its
    parent."""
    tree: dict[tuple[int, str, str], int] = {}  # parent, function → node, parents first
    samples: Counter[int] = Counter()
    lines: dict[int, Counter[int]] = defaultdict(Counter)
    for frames, count in stacks.items():
        node = -1
        for frame in frames:
            key = node, frame.function, frame.file
            node = tree.setdefault(key, len(tree))
            samples[node] += count
            lines[node][frame.line] += count
    least = LEAST_SHARE * sum(stacks.values())
    # Of equal nodes those made first, so that no node loses its parent.
    kept = nlargest(
        MAX_NODES, (n for n in tree.values() if samples[n] >= least), samples.__getitem__
    )
    keys, below = list(tree), defaultdict[int, list[int]](list)
    for node in sorted(kept, key=lambda node: (samples[node], node)):
        below[keys[node][0]].append(node)
    nodes: list[FlameNode] = []
    waiting = [(node, -1) for node in below[-1]]
    while waiting:  # the largest first; no recursion: stacks may be as deep as Python allows
        node, parent = waiting.pop()
        waiting += [(child, len(nodes)) for child in below[node]]
        _, function, file = keys[node]
        line = lines[node].most_common(1)[0][0]
        own = owner_of(file, function).own
        nodes.append(FlameNode(function, file or None, line or None, own, parent, samples[node]))
    return tuple(nodes)
