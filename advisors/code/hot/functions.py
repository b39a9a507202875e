"""Finds known slow functions in the stacks of a stage, and what else stands out there."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ....profiler.base.metadata import clean
from ....profiler.record.inspect.uses import place_of
from ...schema.report_model import CodeStage, FlameNode, HotSpot
from ...stacks.code_summary import wilson
from ...stacks.libraries import owner_of
from .function_kinds import FUNCTION_KINDS
from .kind import Hot, Kind

# Fewer samples say too little: of 30, a half may be 33 to 67 %.
LEAST_SAMPLES = 30
# A run of a few seconds has fewer: they may name what takes at least this part for certain (95 %).
FEW_SAMPLES = 10
FOR_CERTAIN = 0.4
# A part below this is no reason for anything.
LEAST_SHARE = 0.02
# From this part of the stage on, something that another `needs` counts as seen: a kind of files; or
# what each worker may do once.
NEEDED_SHARE, NEEDED_EACH_TIME = 0.003, 0.1
# Functions that make samples.
SAMPLES_MADE = ("__getitem__", "__getitems__")
# From here on, an unknown function is worth naming.
STANDS_OUT = 0.4


@dataclass(frozen=True)
class Unknown:
    """The function that takes most of a stage, without a known alternative."""

    name: str
    share: float
    low: float
    high: float
    place: str | None
    own: bool


_Function = tuple[str, str | None]  # its name and its file


def known(stage: CodeStage, suffix: str | None) -> list[Hot]:
    """The known functions of a stage, those with most to gain first; `suffix`: of the files."""
    some = (_find(stage, kind, suffix) for kind in FUNCTION_KINDS)
    found = [hot for hot in some if hot is not None and hot.share >= LEAST_SHARE]
    less_exact = {key for hot in found for key in hot.family.instead_of}
    found = [hot for hot in found if hot.family.key not in less_exact]
    return sorted(found, key=lambda hot: -hot.weight)  # of equal ones the first of the table


def _find(stage: CodeStage, kind: Kind, suffix: str | None) -> Hot | None:
    if not _needed(stage, kind, suffix):
        return None
    tops = [
        node for node in _tops(stage, f"{kind.frames}|{_DIRECT}") if _matches(kind.frames, node)
    ]
    inside = _samples(tops)
    if kind.wrapper:
        inside -= _samples(
            node
            for node in _tops(stage, _DIRECT)
            if any(each is top for each in _callers(stage, node) for top in tops)
        )
    lines = _lines(stage, kind)
    samples = inside + sum(line.share for line in lines) * stage.samples
    all_of_lines = sum(line.total_share for line in lines) * stage.samples
    if not inside:  # except for own code, what such a line calls are helpers of the same call
        samples = stage.samples * sum(
            max(line.share, line.total_share - own_called(stage, place_of(line.file, line.line)))
            for line in lines
        )
    if not samples:
        return None
    around = _samples(_tops(stage, kind.around))
    wide = max(samples, all_of_lines, around + samples - inside)
    callers = [own for node in tops if (own := own_above(stage, node)) is not None]
    functions = {(each.function, each.file) for each in callers}
    functions |= {(each.function, each.file) for each in lines}
    within = _within(stage, functions)
    if kind.stored:
        wide += sum(line.share for line in within if line not in lines) * stage.samples
        # Samples with nothing below: what was made is freed when the own function returns.
        wide += stage.samples - _samples(node for node in stage.flame if node.parent < 0)
    low, _ = _interval(stage, samples)
    if not _enough(stage, low):
        return None
    named = within if inside else lines or within  # a text may name what frames show elsewhere
    line = max(named, key=lambda line: line.total_share, default=None)
    if line is not None and kind.unless and re.search(kind.unless, line.text or ""):
        return None
    return Hot(
        kind,
        share=min(1.0, samples / stage.samples),
        low=low,
        high=_interval(stage, wide)[1],
        place=place_of(line.file, line.line) if line is not None else None,
        text=line.text if line is not None else None,
    )


def _interval(stage: CodeStage, samples: float) -> tuple[float, float]:
    return wilson(min(stage.samples, round(samples)), stage.samples)


def _enough(stage: CodeStage, low: float) -> bool:
    """Whether there are samples enough to name a part of the stage that is at least `low`."""
    return stage.samples >= LEAST_SAMPLES or (stage.samples >= FEW_SAMPLES and low >= FOR_CERTAIN)


def _needed(stage: CodeStage, kind: Kind, suffix: str | None) -> bool:
    by_suffix = suffix in kind.suffixes
    if kind.suffixes and not by_suffix and any(suffix in each.suffixes for each in FUNCTION_KINDS):
        return False  # the files are known to be others
    needs = kind.needs[:-1] if by_suffix else kind.needs
    least = (NEEDED_SHARE if kind.suffixes else NEEDED_EACH_TIME) * stage.samples
    return all(_samples(_tops(stage, each)) >= least for each in needs)


# A function that one of these calls counts for it.
_DIRECT = "|".join(
    kind.frames for kind in FUNCTION_KINDS if kind.frames and not kind.wrapper and not kind.needs
)


def _tops(stage: CodeStage, pattern: str) -> Iterator[FlameNode]:
    """Frames that are not the user's and match, the outermost of each stack."""
    return outermost(stage, lambda node: not node.own and _matches(pattern, node))


def outermost(stage: CodeStage, chosen: Callable[[FlameNode], bool]) -> Iterator[FlameNode]:
    """Those of these frames that no other of them called."""
    inside: list[bool] = []
    for node in stage.flame:
        above = node.parent >= 0 and inside[node.parent]
        inside.append(above or chosen(node))
        if inside[-1] and not above:
            yield node


def _samples(nodes: Iterable[FlameNode]) -> int:
    return sum(node.samples for node in nodes)


@lru_cache(maxsize=1 << 16)
def _matches(pattern: str, node: FlameNode) -> bool:
    place = owner_of(node.file or "", node.function).place
    return bool(re.fullmatch(pattern, f"{place}:{node.function.rpartition('.')[2]}"))


def _entry(node: FlameNode) -> str:
    library = owner_of(node.file or "", node.function).library
    function = clean(node.function, 80)
    return f"{clean(library, 40)}'s {function}" if library else function


def _callers(stage: CodeStage, node: FlameNode) -> Iterator[FlameNode]:
    """Who called it, the innermost first."""
    while node.parent >= 0:
        node = stage.flame[node.parent]
        yield node


def own_above(stage: CodeStage, node: FlameNode) -> FlameNode | None:
    return next((each for each in _callers(stage, node) if each.own), None)


def _within(stage: CodeStage, functions: set[_Function]) -> list[HotSpot]:
    """The own lines of these functions."""
    return [line for line in stage.lines if (line.function, line.file) in functions]


def _lines(stage: CodeStage, kind: Kind) -> list[HotSpot]:
    """Own lines from which compiled code of this kind runs."""
    if not kind.text:
        return []
    return [line for line in stage.lines if re.search(kind.text, line.text or "")]


def own_called(stage: CodeStage, place: str | None) -> float:
    """The part of the stage in own lines that are called from this place."""
    return sum(each.total_share for each in stage.lines if each.called_from == place)


def unknown(stage: CodeStage) -> Unknown | None:
    """What takes most of a stage: a library's function that own code calls, or an own function.

    Of those that take STANDS_OUT, the innermost; else the largest. An outermost own function, in
    which everything happens, counts for what it does itself.
    """
    total: Counter[_Function] = Counter()
    deepest: dict[_Function, tuple[int, FlameNode]] = {}
    for place, node in enumerate(stage.flame):
        above = list(_callers(stage, node))
        key = node.function, node.file
        # Recursion counts once.
        if any((each.function, each.file) == key for each in above) or not (
            node.own or not above or above[0].own
        ):
            continue
        called = _samples(each for each in stage.flame if each.parent == place) if not above else 0
        total[key] += node.samples - called
        deepest[key] = max(deepest.get(key, (-1, node)), (len(above), node), key=lambda at: at[0])
    if not total:
        return None
    standing = [key for key, samples in total.items() if samples >= STANDS_OUT * stage.samples]
    chosen = max(
        standing or total, key=lambda key: (deepest[key][0] if standing else 0, total[key])
    )
    return as_unknown(stage, deepest[chosen][1], total[chosen])


def as_unknown(stage: CodeStage, node: FlameNode, samples: int) -> Unknown | None:
    """This function, which takes so many samples of the stage; None where these are too few."""
    low, high = _interval(stage, samples)
    if not _enough(stage, low):
        return None
    share = samples / stage.samples
    return Unknown(_entry(node), share, low, high, _place(stage, node), node.own)


def _place(stage: CodeStage, node: FlameNode) -> str | None:
    """The hottest own line of an own function, or the own line that calls a library's."""
    holder = node if node.own else own_above(stage, node)
    if holder is None:
        return None
    hottest = max(
        _within(stage, {(holder.function, holder.file)}),
        key=lambda line: line.share if node.own else line.total_share,
        default=holder,
    )
    return place_of(hottest.file, hottest.line)
