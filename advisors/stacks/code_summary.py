"""The functions that take the time: stack samples merged by stage, and callables of transform
chains."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping
from heapq import nlargest

from ...profiler.record.inspect.uses import place_of
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ...profiler.store.stacks.stack_samples import STAGES, Frame, Wait
from ..schema.report_model import Code, CodeStage, Doing, FlameNode, HotSpot
from .code_samples import Frames, owner, samples_of
from .libraries import owner_of
from .source_lines import SourceLines

MAX_SPOTS = 40
# Nodes of a flame graph below this part of a stage are too thin to be seen.
LEAST_SHARE, MAX_NODES = 0.005, 600
# A peer or a file is named if it is this part of its kind; a kind, if it is this part of all.
MOSTLY, LEAST_DOING = 0.5, 0.03
_Z = 1.959964  # of the normal distribution, two-sided 95 %
_SHARED = (
    "several loaders of this process fetched while stacks were taken, and their data sets cannot "
    "be told apart: {part} of the samples may belong to another loader"
)

_Waits = Mapping[Frames, Counter[Wait]]
_Key = tuple[str, str | int]  # a file, and a function or a line


def code_of(run: Run, process: ProcessRun, loader: LoaderRun) -> Code | None:
    """What the bursts of this host show of the loader's processes, or the reason why nothing.

    None for a run of an older version, which neither recorded nor refused stacks.
    """
    lines = SourceLines(process, loader)
    found = samples_of(run, process, loader)
    if not found.stacks:
        reason = _why_none(run, process)
        return Code(0, 0, 0.0, None, {}, reason) if reason is not None else None
    stages = {}
    for name in STAGES:
        if name in found.stacks:
            counted, held = found.gil.get(name, (0.0, 0.0))
            gil = held / counted if counted else None
            stages[name] = _stage(found.stacks[name], found.waits[name], gil, lines)
    samples, reason = sum(each.samples for each in stages.values()), None
    if found.shared:
        fetched = sum(stages[name].samples for name in ("fetch", "collate") if name in stages)
        reason = _SHARED.format(part=f"{found.shared / fetched:.0%}".replace("%", " %"))
    return Code(
        bursts=len(found.bursts),
        samples=samples,
        seconds=sum(max(0, each.t_end_ns - each.t_begin_ns) / 1e9 for each in found.bursts),
        rate_hz=found.bursts[-1].rate_hz,
        stages=stages,
        reason=reason,
    )


def _why_none(run: Run, process: ProcessRun) -> str | None:
    systems = run.samplers_of(process)
    bursts = [burst for system in systems for burst in system.bursts]
    recorded = (process.reasons, *(system.reasons for system in systems))
    reasons = [*(burst.reason for burst in bursts), *(each.get("stacks") for each in recorded)]
    if bursts:
        reasons.append("no burst of stack samples was taken while this loader was in use")
    return next(filter(None, reasons), None)


def _stage(
    stacks: Mapping[Frames, int], waits: _Waits, gil_share: float | None, lines: SourceLines
) -> CodeStage:
    samples = sum(stacks.values())
    libraries: Counter[str] = Counter()
    for frames, count in stacks.items():
        if frames:
            libraries[owner(frames[-1]).library or ""] += count
    functions = _spots(stacks, samples, lines)
    return CodeStage(
        samples=samples,
        gil_share=gil_share,
        hot=tuple(sorted(functions, key=lambda spot: (-spot.share, -spot.total_share))),
        lines=_spots(stacks, samples, lines, waits),
        libraries={name: count / samples for name, count in libraries.most_common()},
        flame=flame_of(stacks),
        doing=doing_of(sum(waits.values(), Counter())),
    )


def _spots(
    stacks: Mapping[Frames, int], samples: int, lines: SourceLines, waits: _Waits | None = None
) -> tuple[HotSpot, ...]:
    """Functions by how often they were innermost, or (given `waits`) lines of the user's code by
    how often they were on the stack."""
    by_line = waits is not None
    did: dict[_Key, Counter[Wait]] = defaultdict(Counter)  # below a line, but no other own line
    inner: Counter[_Key] = Counter()
    total: Counter[_Key] = Counter()
    first: dict[_Key, Frame] = {}
    places: dict[_Key, Counter[int]] = defaultdict(Counter)
    callers: dict[_Key, Counter[str]] = defaultdict(Counter)
    for frames, count in stacks.items():
        seen: dict[_Key, str | None] = {}  # recursion counts once a stack
        caller = innermost = None
        for frame in frames:
            own, innermost = owner(frame).own, None
            if own or not by_line:
                key = frame.file, frame.line if by_line else frame.function
                first.setdefault(key, frame)
                seen.setdefault(key, caller)
                innermost = key, frame.line
            if own:
                caller = place_of(frame.file, frame.line)
        if waits and seen:
            did[list(seen)[-1]].update(waits[frames])
        for key, called_from in seen.items():
            total[key] += count
            if called_from is not None:
                callers[key][called_from] += count
        if innermost is not None:
            inner[innermost[0]] += count
            places[innermost[0]][innermost[1]] += count

    def spot(key: _Key) -> HotSpot:
        frame, whose = first[key], owner(first[key])
        line = places[key].most_common(1)[0][0] if places[key] else frame.line
        low, high = wilson(total[key], samples)
        return HotSpot(
            function=frame.function,
            file=frame.file or None,
            line=line or None,
            library=whose.library,
            own=whose.own,
            share=inner[key] / samples,
            total_share=total[key] / samples,
            low=low,
            high=high,
            called_from=callers[key].most_common(1)[0][0] if callers[key] else None,
            text=lines.text(frame.file, line) if whose.own else None,
            doing=doing_of(did[key]),
        )

    return tuple(spot(key) for key, _ in (total if by_line else inner).most_common(MAX_SPOTS))


def doing_of(waits: Mapping[Wait, int]) -> tuple[Doing, ...]:
    """What was done in these samples, by kind, the most frequent first. What a kind waits for is
    named where most of it is for the same."""
    kinds: dict[str, Counter[Wait]] = defaultdict(Counter)
    for wait, count in waits.items():
        kinds[wait.kind][wait] += count
    every = sum(waits.values())
    found = []
    for kind, each in kinds.items():
        (most, times), total = each.most_common(1)[0], sum(each.values())
        what = most.what if most.what and times >= MOSTLY * total else None
        processes = max(wait.processes for wait in each)
        if total >= LEAST_DOING * every:
            found.append(Doing(kind, what, processes, total / every))
    return tuple(sorted(found, key=lambda each: -each.share))


def wilson(count: int, samples: int) -> tuple[float, float]:
    """The 95 % interval of a share of which `count` of `samples` were seen.

    Wilson's score interval (J. Am. Stat. Assoc. 22, 1927): unlike count ± error it holds for shares
    near 0 and 1.
    """
    if samples <= 0:
        return 0.0, 1.0
    share, z2 = count / samples, _Z * _Z
    middle = (share + z2 / (2 * samples)) / (1 + z2 / samples)
    half = (
        _Z
        / (1 + z2 / samples)
        * math.sqrt(share * (1 - share) / samples + z2 / (4 * samples * samples))
    )
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def flame_of(stacks: Mapping[Frames, int]) -> tuple[FlameNode, ...]:
    """A stage's stacks as one tree: nodes of at least LEAST_SHARE of the samples, the MAX_NODES
    largest, each after its parent."""
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
