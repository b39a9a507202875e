"""Which functions the time goes to: stack samples merged by stage, and the callables of transform
chains."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from ...profiler.record.inspect.uses import place_of
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ...profiler.store.stacks.stack_samples import STAGES, Frame
from ..schema.report_model import Code, CodeStage, HotSpot, Stage, TransformTime
from .code_samples import Frames, samples_of
from .flame import flame_of
from .libraries import owner_of
from .source_lines import SourceLines

MAX_SPOTS = 40
_Z = 1.959964  # of the normal distribution, two-sided 95 %
_SHARED = (
    "several loaders of this process fetched in it while it was looked at, and nothing tells their "
    "data sets apart: "
    "{part} of the samples may be another's"
)

_Function = tuple[str, str, bool]  # file, name, whether compiled


def code_of(
    run: Run, process: ProcessRun, loader: LoaderRun, here: str | None = None
) -> Code | None:
    """What the bursts of this host show of this loader's processes; with a reason where they show
    nothing.

    None for a run in which stacks were neither recorded nor refused: one of an older version.
    `here` is this machine's name, for the text of lines (default: its own).
    """
    found = samples_of(run, process, loader)
    if not found.stacks:
        reason = _why_none(run, process)
        return Code(0, 0, 0.0, None, False, {}, reason) if reason is not None else None
    lines = SourceLines(process, loader, here)
    stages = {}
    for name in STAGES:
        if name in found.stacks:
            counted, held = found.gil.get(name, (0.0, 0.0))
            stages[name] = _stage(found.stacks[name], held / counted if counted else None, lines)
    samples = sum(each.samples for each in stages.values())
    fetched = sum(stages[name].samples for name in ("fetch", "collate") if name in stages)
    reason = (
        _SHARED.format(part=f"{found.shared / fetched:.0%}".replace("%", " %"))
        if found.shared
        else None
    )
    return Code(found.bursts, samples, found.seconds, found.rate_hz, found.native, stages, reason)


def _why_none(run: Run, process: ProcessRun) -> str | None:
    systems = run.samplers_of(process)
    bursts = [burst for system in systems for burst in system.bursts]
    told = [burst.reason for burst in bursts if burst.reason]
    told += [
        text
        for reasons in (process.reasons, *(s.reasons for s in systems))
        if (text := reasons.get("stacks"))
    ]
    if told:
        return told[0]
    return "no burst of stack samples was taken while this loader was in use" if bursts else None


def _stage(stacks: Mapping[Frames, int], gil_share: float | None, lines: SourceLines) -> CodeStage:
    samples = sum(stacks.values())
    libraries: Counter[str] = Counter()
    for frames, count in stacks.items():
        if frames:
            libraries[owner_of(*_function(frames[-1])).library or ""] += count
    return CodeStage(
        samples=samples,
        gil_share=gil_share,
        hot=_functions(stacks, samples, lines),
        lines=_own_lines(stacks, samples, lines),
        libraries={name: count / samples for name, count in libraries.most_common()}
        if samples
        else {},
        flame=flame_of(stacks),
    )


def _functions(
    stacks: Mapping[Frames, int], samples: int, lines: SourceLines
) -> tuple[HotSpot, ...]:
    """Every function that was innermost, by the share of that."""
    inner: Counter[_Function] = Counter()
    places: dict[_Function, Counter[int]] = {}
    for frames, count in stacks.items():
        if frames:
            function = _function(frames[-1])
            inner[function] += count
            places.setdefault(function, Counter())[frames[-1].line] += count
    chosen = dict(inner.most_common(MAX_SPOTS))
    total: Counter[_Function] = Counter()
    callers: dict[_Function, Counter[str]] = {}
    for frames, count in stacks.items():
        seen: set[_Function] = set()  # recursion counts once a stack
        caller = None
        for frame in frames:
            function = _function(frame)
            if function in chosen and function not in seen:
                seen.add(function)
                total[function] += count
                if caller is not None:
                    callers.setdefault(function, Counter())[caller] += count
            if owner_of(*_function(frame)).own:
                caller = place_of(frame.file, frame.line)
    found = []
    for function, count in chosen.items():
        file, name, native = function
        owner = owner_of(*function)
        line = places[function].most_common(1)[0][0]
        low, high = wilson(total[function], samples)
        found.append(
            HotSpot(
                function=name,
                file=file or None,
                line=line or None,
                library=owner.library,
                own=owner.own,
                native=native,
                share=count / samples,
                total_share=total[function] / samples,
                low=low,
                high=high,
                called_from=_commonest(callers.get(function)),
                text=lines.text(file, line) if owner.own else None,
            )
        )
    return tuple(sorted(found, key=lambda spot: (-spot.share, -spot.total_share)))


def _own_lines(
    stacks: Mapping[Frames, int], samples: int, lines: SourceLines
) -> tuple[HotSpot, ...]:
    total: Counter[tuple[str, int]] = Counter()
    inner: Counter[tuple[str, int]] = Counter()
    functions: dict[tuple[str, int], str] = {}
    callers: dict[tuple[str, int], Counter[str]] = {}
    for frames, count in stacks.items():
        seen: dict[tuple[str, int], str | None] = {}
        last = caller = None
        for frame in frames:
            if frame.native:
                continue  # a part of the line that calls it
            last = None
            if owner_of(*_function(frame)).own:
                last = (frame.file, frame.line)
                functions.setdefault(last, frame.function)
                seen.setdefault(last, caller)
                caller = place_of(frame.file, frame.line)
        for line, called_from in seen.items():
            total[line] += count
            if called_from is not None:
                callers.setdefault(line, Counter())[called_from] += count
        if last is not None:
            inner[last] += count
    found = []
    for (file, number), count in total.most_common(MAX_SPOTS):
        low, high = wilson(count, samples)
        found.append(
            HotSpot(
                function=functions[file, number],
                file=file or None,
                line=number or None,
                library=None,
                own=True,
                native=False,
                share=inner[file, number] / samples,
                total_share=count / samples,
                low=low,
                high=high,
                called_from=_commonest(callers.get((file, number))),
                text=lines.text(file, number),
            )
        )
    return tuple(found)


def _function(frame: Frame) -> _Function:
    return frame.file, frame.function, frame.native


def _commonest(counted: Counter[str] | None) -> str | None:
    return counted.most_common(1)[0][0] if counted else None


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


def transforms_of(loader: LoaderRun, stages: Mapping[str, Stage]) -> tuple[TransformTime, ...]:
    """The callables of the loader's transform chains, in their order. Shares are of the fetching
    they were timed in."""
    looks = loader.looks
    whole = looks.chain_fetch_ns
    return tuple(
        TransformTime(
            chain=each.chain,
            position=each.position,
            name=each.name,
            calls=each.calls,
            mean_us=each.total_ns / each.calls / 1e3,
            share=min(1.0, each.total_ns / whole) if whole > 0 else None,
        )
        for each in sorted(looks.chains, key=lambda each: (each.chain, each.position))
        if each.calls > 0
    )
