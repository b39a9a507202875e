"""Finds known slow functions in a stage's stacks, and what else stands out there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from ....profiler.base.metadata import clean
from ....profiler.record.inspect.uses import place_of
from ...schema.report_model import CodeStage, FlameNode, HotSpot
from ...stacks.code_summary import wilson
from ...stacks.libraries import owner_of
from .element_reads import ElementReads
from .function_kinds import FUNCTION_KINDS
from .kind import Hot, Kind, Pattern

# Fewer samples say too little: at 30, a half may be 33 to 67 %.
LEAST_SAMPLES = 30
# Of a run of a few seconds there are fewer: what takes at least this part for certain (95 %) may be
# named.
FEW_SAMPLES = 10
FOR_CERTAIN = 0.4
# A part below this is no reason for anything.
LEAST_SHARE = 0.02
# A thing that `needs` another is taken for seen from this part of the stage on.
NEEDED_SHARE = 0.003
# A function that nothing is known of is worth naming from here on.
STANDS_OUT = 0.4
# Elements read from a list instead, µs each: of a tensor 1.7 to 1.9, of an array 0.1 to 0.2, of a
# list 0.03, each with what the line does besides.
LIST_LEFT, ARRAY_LEFT = (0.03, 0.35), (0.1, 0.75)


@dataclass(frozen=True)
class Unknown:
    """The function that takes most of a stage and of which no alternative is known."""

    name: str
    share: float
    low: float
    high: float
    place: str | None
    own: bool


def known(
    stage: CodeStage,
    suffix: str | None,
    names: frozenset[str],
    tensor: bool,
    reads: ElementReads | None = None,
) -> list[Hot]:
    """The known functions of a stage, those with most to gain first. `suffix`: of the files;
    `names`: used by the source; `tensor`: whether the data set holds one; `reads`: how the source
    reads elements."""
    found = []
    for kind in FUNCTION_KINDS:
        if kind.tensor and not (tensor or reads):
            continue
        of_source = reads if kind.tensor else None
        family = kind if of_source is None else _of_source(kind, of_source)
        lines = frozenset() if of_source is None else of_source.lines
        hot = _find(stage, family, suffix, names, lines)
        if hot is not None and hot.share >= LEAST_SHARE:
            found.append(hot)
    less_exact = {key for hot in found for key in hot.family.instead_of}
    found = [hot for hot in found if hot.family.key not in less_exact]
    return sorted(found, key=lambda hot: -hot.weight)  # of equal ones the first of the table


def _of_source(family: Kind, reads: ElementReads) -> Kind:
    """Reading elements, of a tensor or an array, and what is left of it: a list takes the place of
    the array, and the loop stays, where code can be written; else it is for a person to find one
    operation on the whole."""
    if reads.attribute.kind != "tensor":
        family = replace(family, name="reading an array element by element", left=ARRAY_LEFT)
    elif reads.method is not None:
        family = replace(family, left=LIST_LEFT)
    family = replace(family, left_us=reads.left_us)
    return replace(family, whole=reads.method is None or reads.operations is not None)


def _find(
    stage: CodeStage, family: Kind, suffix: str | None, names: frozenset[str], reads: frozenset[str]
) -> Hot | None:
    if not _needed(stage, family, suffix):
        return None
    inside, callers, entries = _below(stage, family)
    lines = _lines(stage, family, names) or [line for line in stage.lines if line.text in reads]
    samples = inside + sum(line.share for line in lines) * stage.samples
    if not inside:  # what such a line calls besides, but for own code, are helpers of the same call
        samples = sum(line.total_share - _own_called(stage, line) for line in lines) * stage.samples
    if not samples:
        return None
    wide = samples
    if family.around is not None:
        wide = max(wide, _under(stage, family.around) + samples - inside)
    wide = max(wide, sum(line.total_share for line in lines) * stage.samples)
    functions = {(line.function, line.file) for line in lines} | set(callers)
    if family.is_stored or family.whole:
        rest = [
            line
            for line in stage.lines
            if (line.function, line.file) in functions and line not in lines
        ]
        wide += sum(line.share for line in rest) * stage.samples
        # Samples below which nothing is seen: what was made is freed when the own function returns.
        wide += stage.samples - sum(node.samples for node in stage.flame if node.parent < 0)
    low = wilson(_count(samples, stage), stage.samples)[0]
    if not _enough(stage, low):
        return None
    line = _line_of(stage, lines, functions)
    return Hot(
        family,
        share=min(1.0, samples / stage.samples),
        low=low,
        high=wilson(_count(wide, stage), stage.samples)[1],
        place=place_of(line.file, line.line) if line is not None else None,
        text=line.text if line is not None else None,
        function=entries.most_common(1)[0][0] if entries else None,
    )


def _enough(stage: CodeStage, low: float) -> bool:
    """Whether the stage has samples enough to name a part of it that is at least `low`."""
    return stage.samples >= LEAST_SAMPLES or (stage.samples >= FEW_SAMPLES and low >= FOR_CERTAIN)


def _count(samples: float, stage: CodeStage) -> int:
    return min(stage.samples, round(samples))


def _needed(stage: CodeStage, family: Kind, suffix: str | None) -> bool:
    known_by_suffix = suffix is not None and suffix in family.suffixes
    other = (
        suffix is not None and not known_by_suffix and bool(family.suffixes) and _is_picture(suffix)
    )
    if other:
        return False
    for number, pattern in enumerate(family.needs):
        if known_by_suffix and number == len(family.needs) - 1:
            continue
        if _under(stage, pattern) < NEEDED_SHARE * stage.samples:
            return False
    return True


def _is_picture(suffix: str) -> bool:
    return any(suffix in family.suffixes for family in FUNCTION_KINDS)


def _below(
    stage: CodeStage, family: Kind
) -> tuple[int, Counter[tuple[str, str | None]], Counter[str]]:
    """(samples in frames of this family or below, the own functions that called them, their
    outermost functions)."""
    callers: Counter[tuple[str, str | None]] = Counter()
    entries: Counter[str] = Counter()
    total = 0
    states: list[str] = []  # of each node: "" outside, "in", "other"
    for node in stage.flame:
        state = states[node.parent] if node.parent >= 0 else ""
        seen = (
            frozenset()
            if node.own
            else _families_of(_key(node.file or "", node.function, node.native))
        )
        if not state and family.key in seen:
            state = "in"
            total += node.samples
            caller = _own_above(stage.flame, node)
            entries[_entry(node)] += node.samples
            if caller is not None:
                callers[caller.function, caller.file] += node.samples
        elif not state and seen & _DIRECT:
            state = "other"
        elif state == "in" and family.wrapper and seen & _DIRECT:
            state = "other"
            total -= node.samples
        states.append(state)
    return total, callers, entries


# Whoever is called by these works for them.
_DIRECT = frozenset(
    family.key for family in FUNCTION_KINDS if not family.wrapper and not family.needs
)


@lru_cache(maxsize=8192)
def _families_of(key: str) -> frozenset[str]:
    return frozenset(
        f.key for f in FUNCTION_KINDS if f.frames is not None and f.frames.fullmatch(key)
    )


def _under(stage: CodeStage, pattern: Pattern) -> int:
    """Samples in frames of this pattern or below."""
    total = 0
    states: list[bool] = []
    for node in stage.flame:
        inside = node.parent >= 0 and states[node.parent]
        if (
            not inside
            and not node.own
            and pattern.fullmatch(_key(node.file or "", node.function, node.native))
        ):
            inside = True
            total += node.samples
        states.append(inside)
    return total


@lru_cache(maxsize=8192)
def _key(file: str, function: str, native: bool) -> str:
    return f"{owner_of(file, function, native).place}:{function.rpartition('.')[2]}"


def _entry(node: FlameNode) -> str:
    library = owner_of(node.file or "", node.function, node.native).library
    function = clean(node.function, 80)
    return f"{clean(library, 40)}'s {function}" if library else function


def _callers(flame: Sequence[FlameNode], node: FlameNode) -> Iterator[FlameNode]:
    """Who called it, the innermost first."""
    while node.parent >= 0:
        node = flame[node.parent]
        yield node


def _own_above(flame: Sequence[FlameNode], node: FlameNode) -> FlameNode | None:
    return next((each for each in _callers(flame, node) if each.own), None)


def _lines(stage: CodeStage, family: Kind, names: frozenset[str]) -> list[HotSpot]:
    """Own lines from which compiled code of this family runs."""
    if family.text is None:
        return []
    texts = [line for line in stage.lines if line.text is not None]
    if texts or not family.names or not names.issuperset(family.names):
        return [line for line in texts if line.text is not None and family.text.search(line.text)]
    # No line's text is known, but what the source uses: then it is the line where the time goes.
    hottest = max(stage.lines, key=lambda line: line.share, default=None)
    return [hottest] if hottest is not None and hottest.share >= STANDS_OUT else []


def _own_called(stage: CodeStage, line: HotSpot) -> float:
    """The part of the stage in own lines that this line calls."""
    place = place_of(line.file, line.line)
    return min(
        line.total_share - line.share,
        sum(each.total_share for each in stage.lines if each.called_from == place),
    )


def _line_of(
    stage: CodeStage, lines: list[HotSpot], functions: set[tuple[str, str | None]]
) -> HotSpot | None:
    """The own line that leads to most of it."""
    near = lines or [line for line in stage.lines if (line.function, line.file) in functions]
    return max(near, key=lambda line: line.total_share, default=None)


def unknown(stage: CodeStage) -> Unknown | None:
    """What takes most of a stage: a library's function as it is called from own code, or an own
    function.

    Of those that take STANDS_OUT, the one furthest in; else the largest. The outermost own
    function, in which everything happens, counts for what it does itself.
    """
    total: Counter[tuple[str, str | None]] = Counter()
    deepest: dict[tuple[str, str | None], tuple[int, FlameNode]] = {}
    depths: list[int] = []
    below: Counter[int] = Counter()
    for node in stage.flame:
        depths.append(depths[node.parent] + 1 if node.parent >= 0 else 0)
        below[node.parent] += node.samples
    for place, node in enumerate(stage.flame):
        called_by_own = node.parent < 0 or stage.flame[node.parent].own
        if not (node.own or called_by_own) or _above(stage.flame, node):
            continue
        key = node.function, node.file
        total[key] += node.samples if depths[place] else node.samples - below[place]
        if key not in deepest or depths[place] > deepest[key][0]:
            deepest[key] = depths[place], node
    if not total:
        return None
    standing = [key for key, samples in total.items() if samples >= STANDS_OUT * stage.samples]
    chosen = max(
        standing or total, key=lambda key: (deepest[key][0] if standing else 0, total[key])
    )
    node = deepest[chosen][1]
    low, high = wilson(total[chosen], stage.samples)
    if not _enough(stage, low):
        return None
    return Unknown(
        name=_entry(node),
        share=total[chosen] / stage.samples,
        low=low,
        high=high,
        place=_place(stage, node),
        own=node.own,
    )


def _above(flame: Sequence[FlameNode], node: FlameNode) -> bool:
    """Whether the same function is among the callers: recursion counts once."""
    return any(
        (each.function, each.file) == (node.function, node.file) for each in _callers(flame, node)
    )


def _place(stage: CodeStage, node: FlameNode) -> str | None:
    """The hottest own line of an own function, or the own line that calls a library's."""
    holder = node if node.own else _own_above(stage.flame, node)
    if holder is None:
        return None
    lines = [
        line for line in stage.lines if (line.function, line.file) == (holder.function, holder.file)
    ]
    hottest = max(
        lines, key=lambda line: line.share if node.own else line.total_share, default=None
    )
    return (
        place_of(hottest.file, hottest.line)
        if hottest is not None
        else place_of(holder.file, holder.line)
    )
