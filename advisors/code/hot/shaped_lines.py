"""Lines of the user's of which their source says what is wrong, or for which a better call is
known."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...case.fetching import MAIN_PART
from ...schema.report_model import CodeStage, Range
from ...stacks.stage_parts import Part
from ..better_calls import better_call
from ..shapes import ALL, ONE_BY_ONE, Shape, kinds_of, same_each_time, shape_of
from .functions import STANDS_OUT, Unknown, own_called
from .own_lines import OwnLine

_Shaped = tuple[OwnLine, Shape]
ITSELF = 0.2  # a line that takes less itself is made cheaper only by what it calls


def worst_shape(stage: CodeStage, lines: list[OwnLine], other: Unknown | None) -> _Shaped | None:
    """The line that takes most of those that stand out and have a shape, waste first. `other` is
    the function that takes most of the stage."""
    below = other.name if other else ""
    shapes = [
        (each, shape)
        for each in lines
        if (shape := own_shape(each, below)) is not None
        # Not where an own function takes the time, except for each element of a table.
        and (shape.waste or shape.key not in (ALL, ONE_BY_ONE) or not calls_own(stage, each))
    ]
    shapes = [each for each in _together(shapes, lambda shape: shape.key) if stands_out(each[0])]
    inner = [each for each in shapes if not _around_another(stage, each, shapes)]
    inner += _same(other, lines)
    return max(inner, key=lambda found: found[1].waste, default=None)


def _same(other: Unknown | None, lines: list[OwnLine]) -> Iterator[_Shaped]:
    """The own function that takes most, if it gives the same for every sample."""
    if other is None or not other.own:
        return
    name, share = other.name.rpartition(".")[2], Range(other.low, other.share, other.high)
    for each in lines:
        if each.method.name == name and (shape := same_each_time(each.method, kinds_of(each.part))):
            yield each._replace(line=name, text=other.name, place=other.place, share=share), shape
            return


def own_shape(line: OwnLine, below: str) -> Shape | None:
    return shape_of(line.method, line.line, f"{line.call} {below}", kinds_of(line.part))


def _together(
    found: Iterable[tuple[OwnLine, Any]], key: Callable[[Any], str]
) -> Iterator[tuple[OwnLine, Any]]:
    """Lines of one method that say the same as one line, the first of them."""
    alike = defaultdict[tuple[int, str], list[tuple[OwnLine, Any]]](list)
    for line, said in found:
        alike[id(line.method), key(said)].append((line, said))
    for (line, said), *others in alike.values():
        yield line.with_others([each for each, _ in others]), said


def stands_out(line: OwnLine) -> bool:
    return line.share.mid >= STANDS_OUT


def better_lines(stage: CodeStage, lines: list[OwnLine]) -> OwnLine | None:
    """Lines that only stand out together, for which the same call is better."""
    rows = (
        (each, row)
        for each in lines
        if not calls_own(stage, each) and (row := better_call(each.text, each.call))
    )
    alike = _together(rows, lambda row: row.title)
    return next((line for line, _ in alike if stands_out(line)), None)


def most_itself(stage: CodeStage, lines: list[OwnLine]) -> OwnLine | None:
    """Of those that stand out, the one that takes most without the user's code that it calls."""
    alone = [(each.share.mid - own_called(stage, each.place), each) for each in lines]
    among = [found for found in alone if stands_out(found[1]) and found[0] >= ITSELF]
    return max(among, key=lambda found: found[0], default=(0, None))[1]


def calls_own(stage: CodeStage, line: Part | OwnLine) -> bool:
    """Whether it takes long for own functions that it calls."""
    return own_called(stage, line.place) >= MAIN_PART * line.share.mid


def _around_another(stage: CodeStage, found: _Shaped, shapes: list[_Shaped]) -> bool:
    """Whether this line calls an own function in which another of these lines takes most of its
    time."""
    line, shape = found
    least, most = MAIN_PART * line.share.mid, line.share.mid
    others = [each for each, _ in shapes if each.method is not line.method]
    within = any(least <= each.share.mid <= most for each in others)
    return within and not shape.waste and calls_own(stage, line)
