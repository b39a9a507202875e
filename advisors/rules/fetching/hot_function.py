"""One function dominates fetching: which, called from where, and what to use instead.

What it looks for
    Fetching that is at least a fifth of all waiting (SEEN_PART), and in the stack samples of it a
    function known to be slow: picture decoders, parsers of text (CSV, JSON, PLY, XML, YAML),
    archives, pickle, rows of a DataFrame, an HDF5 file or a Hugging Face data set, tokenising,
    resampling, deep copies, locks. Of an unknown function that takes 40 % of fetch (STANDS_OUT),
    the line that calls it is named, with what its source says: the same for every sample or for
    each value of an argument, a search through everything, one value after another, there and back
    again, made smaller afterwards, a copy of the rest, asked of another process, made in vain,
    computed in float64, or not needed at all; that it takes longer with each batch; or the library
    call that is faster (`code/better_calls.py`). Of the loop's own time, what goes by in methods of
    the loader's parts (LEAST_OF_ALL, 10 % of all time): a length counted at each step, a shuffle
    between epochs.

Why it matters
    The part of fetch that a function takes limits what replacing it can gain. So the prediction
    rests on the share of samples it was seen in, its 95 % interval, and what the alternative leaves
    of that part. `.iloc` makes a new Series for each row, parsers written in Python are tens of
    times slower than array readers (PLY: 0.79 s against 0.02 s a file), a compressed file is
    decompressed as a whole, an element of a torch tensor takes eight times as long to read as one
    of a NumPy array.

What to change
    Convert once, before training or in `__init__`, or call the faster function; the code shows it
    for this data set.

When not to
    If samples are random, only the part before the random step can be stored. Stored arrays are
    larger than compressed files: on a slow disk, or beyond the page cache, reading them may cost
    more than making them. A function that waits (for a server, for sleep) is no work: more workers
    overlap it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ....profiler.base.metadata import clean
from ...case.advice import Advice, Outcome, Outcomes, Unmeasured
from ...case.case import Case
from ...case.fetching import (
    MAIN_PART,
    fetch_idle_share,
    fetch_share,
    file_suffix,
    sample_time_us,
)
from ...code.better_calls import better_call
from ...code.by_hand import grows, line_costs, make_cheaper
from ...code.hot.functions import (
    LEAST_SAMPLES,
    STANDS_OUT,
    Unknown,
    known,
    own_called,
    unknown,
)
from ...code.hot.in_loop import InLoop, in_loop
from ...code.hot.kind import Hot
from ...code.hot.own_lines import OwnLine, own_lines
from ...code.layouts.container_access import findings
from ...code.layouts.kept import opener_of
from ...code.shape_code import kinds_of, shape_code
from ...code.shapes import ALL, CHANCE, FLOAT32, ONE_BY_ONE, Shape, same_each_time, shape_of
from ...schema.evidence import Evidence, count, percent, us
from ...schema.gains import LEAST_GAIN
from ...schema.report_model import CodeStage, Range
from ...stacks.source_lines import SourceLines
from ...stacks.stage_parts import LEAST_SHARE, Part, parts_of
from ...stage_model.verdict import LITTLE_TO_GAIN

NEEDS = "prediction"

# From here on, the time of a sample is worth a look, whatever takes it.
UNKNOWN_FROM_US = 200.0
# Stacks show what takes the time, also in short samples and where fetching is not the main part.
LEAST_SEEN_US = 5.0
SEEN_PART = 0.2
# A known function with this part of fetch gets advice even if something else takes more.
KNOWN_FROM = 0.2
# Fetching that waits for this part of its time is overlapped by workers, not made cheaper.
MOSTLY_WAITS = 0.5
# What of the loader's parts the loop runs need not be free.
OUT_SAVES = 0.5
# A line that takes this part of what its function takes is named in its place.
MOST_OF = 0.8
WAITS = " Fetching mostly waits: more workers, or threads inside __getitems__, overlap that."
# Of a label that pandas looks up, get_loc takes a tenth of the time of the row.
SEARCHED = (
    "Sort the index once, so that .loc finds rows instead of searching for them",
    "In an index that is not sorted, where labels occur more than once, .loc compares all of them.",
)

_Shaped = tuple[OwnLine, Shape]


def examine(case: Case) -> Outcomes:
    found = in_loop(case)
    if found is not None:
        yield _out_of_loop(case, found)
    sample_us, part, stage = sample_time_us(case), fetch_share(case), case.code_stage("fetch")
    if case.compute_bound or sample_us is None:
        return
    seen = _seen(case, stage, sample_us) if stage and sample_us >= LEAST_SEEN_US else ()
    outcomes = [*seen]
    samples, idle = stage.samples if stage is not None else 0, fetch_idle_share(case) or 0.0
    makes = part >= MAIN_PART and sample_us >= UNKNOWN_FROM_US and idle <= MOSTLY_WAITS
    if makes and not outcomes and samples < LEAST_SAMPLES:
        yield Unmeasured(_no_stacks(case, samples, sample_us))
    for outcome in outcomes:
        # What is hardly waited for may still take the cores of what is. The prediction decides.
        if part >= SEEN_PART or _gains(outcome):
            yield outcome


def _no_stacks(case: Case, samples: int, sample_us: float) -> str:
    if samples:
        of_fetch = "samples of fetch are" if samples > 1 else "sample of fetch is"
        return (
            f"{samples} stack {of_fetch} too few to tell what takes {us(sample_us)} a sample: "
            "record for longer, or run `loaderscope stacks` while it trains"
        )
    reason = case.report.code.reason if case.report.code is not None else None
    return (
        f"stacks were not recorded{f' ({reason})' if reason else ''}, so what takes the "
        f"{us(sample_us)} a sample inside fetch is not known: run `loaderscope stacks` while it "
        "trains, or record a run of a few seconds with LOADERSCOPE_STACKS=eager"
    )


def _gains(outcome: Outcome) -> bool:
    # The range of what is done by hand is wide.
    return isinstance(outcome, Advice) and (
        outcome.predicted.low > LEAST_GAIN
        or (outcome.by_hand and outcome.predicted.high > LITTLE_TO_GAIN)
    )


def _out_of_loop(case: Case, found: InLoop) -> Advice:
    """What the loop runs of the data set's own code, outside `next()`."""
    method, text, of_all = found.method, clean(found.text, 80), found.of_all.mid
    do = "call it less often, or make it cheaper."
    if method.name.endswith("__len__"):
        do = "ask for it once, before the loop; or count once, in __init__."
    elif CHANCE.search(found.text):
        do = "draw an array (np.random.permutation), or let shuffle=True draw."
    left = 1 - method.high, 1 - method.low * OUT_SAVES
    at = f" ({found.place})" if found.place is not None else ""
    return case.change(code=f"# By hand{at}: {do}\n#     {text}\n", compute=left).advise(
        f"Take this out of the loop: {text}",
        f"{method.name} takes {percent(of_all)} of all time, in the training process and outside "
        f"next(), called from {found.caller or 'the loop'}: `{text}`{at}. Workers do not take that "
        "over.",
        {"of all time": percent(of_all), "line": found.place},
        beside_loading=of_all,
    )


def _seen(case: Case, stage: CodeStage, sample_us: float) -> Outcomes:
    """What stack samples show."""
    found = known(stage, file_suffix(case))
    other = unknown(stage)
    line = _standing_out(stage, other)
    below = other.name if other is not None else ""
    lines = own_lines(stage, case.inspection.parts, SourceLines(case.process, case.loader))
    if any(_is_opener(case, each) for each in lines if _stands_out(each)):
        return  # the rule storage-format says what to do
    floats = {each.dtype for each in case.inspection.leaves if "float" in (each.dtype or "")}
    only = {"": FLOAT32} if floats == {FLOAT32} else {}
    shapes = [(each, shape) for each in lines if (shape := _shape(each, below, only)) is not None]
    shapes = [
        (each, shape)
        for each, shape in shapes
        # Not where an own function takes the time, except for each element of a table.
        if shape.waste or shape.key not in (ALL, ONE_BY_ONE) or not _calls_own(stage, each)
    ]
    shapes = [each for each in _together(shapes, lambda shape: shape.key) if _stands_out(each[0])]
    inner = [each for each in shapes if not _around_another(stage, each, shapes)]
    inner += _same(other, lines)
    worst = max(inner, key=lambda found: found[1].waste, default=None)
    if worst is not None and worst[1].waste:
        yield _shaped(case, stage, *worst)
        return
    # A little waiting does not hide what computes.
    best = next((hot for hot in found if not hot.family.waits or hot.share >= KNOWN_FROM), None)
    if best is not None and best.family.waits:
        yield Unmeasured(
            f"{best.family.name} takes {percent(best.share)} of fetch{_from(best.place)}: that is "
            "waiting, which cannot be made faster, but which more workers, or threads inside "
            "__getitems__, can overlap"
        )
    elif best is not None and best.share >= (KNOWN_FROM if line is not None else LEAST_SHARE):
        advice = _known(case, stage, best, sample_us)
        yield advice
        unsure = advice.predicted.low <= LEAST_GAIN
        if line is not None and unsure and best.share < MAIN_PART * line.share.mid:
            # Most of it is something else.
            yield make_cheaper(case, "fetch", line, _sampled(stage, line.share))
    elif line is not None and (grown := grows(case, "fetch")) is not None:
        yield make_cheaper(case, "fetch", line, _sampled(stage, line.share), grown)
    elif worst is not None:
        yield _shaped(case, stage, *worst)
    elif (line is None or (other is not None and line.text == other.name)) and (
        group := _better(stage, lines)
    ):
        yield make_cheaper(case, "fetch", group, _sampled(stage, group.share), grows(case, "fetch"))
    elif line is not None:
        advice = make_cheaper(case, "fetch", line, _sampled(stage, line.share))
        waits = (fetch_idle_share(case) or 0.0) > MOSTLY_WAITS
        yield Unmeasured(advice.why + WAITS) if advice.by_hand and waits else advice
    elif other is not None:
        yield Unmeasured(
            f"no function stands out inside fetch: the hottest, {other.name}, takes "
            f"{percent(other.share)} of it"
        )


def _same(other: Unknown | None, lines: list[OwnLine]) -> Iterator[_Shaped]:
    """The own function that takes most, if it gives the same for every sample."""
    if other is None or not other.own:
        return
    name, share = other.name.rpartition(".")[2], Range(other.low, other.share, other.high)
    for each in lines:
        if each.method.name == name and (shape := same_each_time(each.method, kinds_of(each.part))):
            yield each._replace(line=name, text=other.name, place=other.place, share=share), shape
            return


def _shape(line: OwnLine, below: str, more: dict[str, str]) -> Shape | None:
    return shape_of(line.method, line.line, f"{line.call} {below}", kinds_of(line.part) | more)


def _together(
    found: Iterable[tuple[OwnLine, Any]], key: Callable[[Any], str]
) -> Iterator[tuple[OwnLine, Any]]:
    """Lines of one method that say the same as one line, the first of them."""
    alike = defaultdict[tuple[int, str], list[tuple[OwnLine, Any]]](list)
    for line, said in found:
        alike[id(line.method), key(said)].append((line, said))
    for (line, said), *others in alike.values():
        yield line.with_others([each for each, _ in others]), said


def _stands_out(line: OwnLine) -> bool:
    return line.share.mid >= STANDS_OUT


def _better(stage: CodeStage, lines: list[OwnLine]) -> OwnLine | None:
    """Lines that only stand out together, for which the same call is better."""
    direct = (each for each in lines if not _calls_own(stage, each))
    rows = ((each, row) for each in direct if (row := better_call(each.text, each.call)))
    alike = _together(rows, lambda row: row.title)
    return next((line for line, _ in alike if _stands_out(line)), None)


def _calls_own(stage: CodeStage, line: OwnLine) -> bool:
    """Whether a line takes long for an own function that it calls."""
    return own_called(stage, line.place) >= MAIN_PART * line.share.mid


def _around_another(stage: CodeStage, found: _Shaped, shapes: list[_Shaped]) -> bool:
    """Whether this line calls an own function in which another of these lines takes most of its
    time."""
    line, shape = found
    least, most = MAIN_PART * line.share.mid, line.share.mid
    others = [each for each, _ in shapes if each.method is not line.method]
    within = any(least <= each.share.mid <= most for each in others)
    return within and not shape.waste and _calls_own(stage, line)


def _is_opener(case: Case, line: OwnLine) -> bool:
    """Whether it opens a container again for each sample, and advice about that is given."""
    opener, storage = opener_of(line.part, surely=False), case.report.storage
    if opener is None or not opener.used_by(line.text) or storage is None:
        return False
    # What is made of an open file in the same way each time is more than opening it.
    if f"{opener.text}(" not in line.text and _shape(line, "", {}) is not None:
        return False
    return fetch_share(case) >= MAIN_PART and any(findings(case, storage))


def _shaped(case: Case, stage: CodeStage, line: OwnLine, shape: Shape) -> Advice:
    """A line of which the source says what is wrong, and what is gained if that goes away."""
    text, share = clean(line.text, 80), line.share
    at = f" ({line.place})" if line.place is not None else ""
    alone = shape.waste or shape.left
    # Who does a line's work otherwise changes what stands around it too (see code/by_hand.py).
    least = 1 - share.high * (1 - shape.left) if alone else 0.0
    free = least, 1 - share.low * shape.saves
    return case.change(code=shape_code(line.line, shape, at), fetch=free).advise(
        f"{shape.title}: {text}",
        f"{line_costs('fetch', line)}{shape.why}.",
        {**_sampled(stage, share), "line": line.place},
        caveat=shape.caveat,
    )


def _known(case: Case, stage: CodeStage, hot: Hot, sample_us: float) -> Advice:
    kind = hot.family
    change = case.change(code=kind.code(case, hot), fetch=hot.left(sample_us))
    title, why = kind.title, kind.why
    searched = (
        each.function.endswith(".get_loc") and each.share >= MAIN_PART for each in stage.hot
    )
    if kind.key == "rows" and any(searched):
        title, why = SEARCHED
    return change.advise(
        title,
        f"{_capital(kind.name)} takes {percent(hot.share)} of fetch{_from(hot.place)}. {why}",
        {
            "fetch a sample": us(sample_us),
            "share of waiting": percent(fetch_share(case)),
            **_sampled(stage, Range(hot.low, hot.share, hot.high)),
            "function": hot.function and f"{hot.function}, {us(hot.share * sample_us)} per sample",
            "called from": f"line {hot.place}" if hot.place is not None else None,
        },
        caveat=kind.caveat,
        effort=kind.effort,
    )


def _standing_out(stage: CodeStage, other: Unknown | None) -> Part | None:
    """The line or function that takes most of fetch, if that is much."""
    if other is not None and other.share >= STANDS_OUT:
        return _line_of(stage, other)
    texts = {(each.text or "").strip() for each in stage.lines} - {""}
    lines = (each for each in parts_of(stage) if each.text in texts)
    most = max(lines, key=lambda each: each.share.mid, default=None)
    enough = stage.samples >= LEAST_SAMPLES
    return most if most is not None and enough and most.share.mid >= STANDS_OUT else None


def _line_of(stage: CodeStage, other: Unknown) -> Part:
    part = Part(other.name, other.place, None, Range(other.low, other.share, other.high))
    lines = {each.place: each for each in parts_of(stage)}
    if not other.own and other.place in lines:
        return lines[other.place]._replace(call=other.name)
    line = max(lines.values(), key=lambda each: each.share.mid, default=part)
    return line if line.share.mid >= MOST_OF * other.share else part


def _sampled(stage: CodeStage, share: Range) -> Evidence:
    of_all = f"({share.low * 100:.0f} to {percent(share.high)} with what goes with it)"
    return {
        "part of fetch": percent(share.mid, of_all),
        "seen in": count(stage.samples, "stack samples of fetch"),
    }


def _from(place: str | None) -> str:
    return f", called from {place}" if place is not None else ""


def _capital(name: str) -> str:
    if name.startswith(("ast.", "copy.", "numpy.", "pandas.", "torch")):
        return name
    return name[:1].upper() + name[1:]
