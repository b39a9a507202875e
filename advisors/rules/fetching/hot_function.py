"""One function dominates fetching: which, called from where, and what to use instead.

What it looks for
    Fetching that is at least a fifth of all waiting (SEEN_PART), and in the stack samples of it a
    function known to be slow: picture decoders, parsers of text (CSV, JSON, PLY, XML, YAML),
    archives, pickle, rows of a DataFrame, an HDF5 file or a Hugging Face data set, tokenising,
    resampling, deep copies, locks. Of an unknown function that takes 40 % of fetch (STANDS_OUT),
    the line that calls it is named, with what its source says: the same for every sample, a
    search through everything, one value after another, made smaller afterwards, asked of another
    process, the same in each round of a loop, or not needed at all; that it takes longer with each
    batch; that it is a random change; that each epoch makes the same of it, by its source or as all
    samples that were made again were the same; or the library call that is faster
    (`code/better_calls.py`).
    Where no function stands out, the line that takes most itself is named. Of the loop's own time,
    what goes by in methods of the loader's parts (LEAST_OF_ALL, 10 % of all time): a length counted
    at each step, a shuffle between epochs.

Why it matters
    The part of fetch that a function takes limits what replacing it can gain. So the prediction
    rests on the share of samples it was seen in, its 95 % interval, and what the alternative leaves
    of that part. `.iloc` makes a new Series for each row, parsers written in Python are tens of
    times slower than array readers (PLY: 0.79 s against 0.02 s a file), a compressed file is
    decompressed as a whole, an element of a torch tensor takes eight times as long to read as one
    of a NumPy array.

What to change
    Convert once, before training or in `__init__`, or call the faster function; the code shows it
    for this data set. Samples that each epoch makes again are kept in memory, where they fit.

When not to
    If samples are random, only the part before the random step can be stored. Stored arrays are
    larger than compressed files: on a slow disk, or beyond the page cache, reading them may cost
    more than making them. A function that waits (for a server, for sleep) is no work: more workers
    overlap it.
"""

from ....profiler.base.metadata import clean
from ...case.advice import Advice, Outcome, Outcomes, Unmeasured
from ...case.case import Case
from ...case.fetching import (
    MAIN_PART,
    fetch_idle_share,
    fetch_share,
    file_suffix,
    handed_over,
    makes_the_same,
    read_for_a_part,
    sample_time_us,
)
from ...code.better_calls import Better, better_call
from ...code.by_hand import at, grows, kept_samples, known_call, line_costs, make_cheaper, shaped
from ...code.hot.functions import (
    LEAST_SAMPLES,
    STANDS_OUT,
    Unknown,
    known,
    outermost,
    unknown,
)
from ...code.hot.in_loop import InLoop, in_loop
from ...code.hot.kind import Hot
from ...code.hot.own_lines import OwnLine, own_lines
from ...code.hot.shaped_lines import (
    better_lines,
    calls_own,
    most_itself,
    own_shape,
    stands_out,
    worst_shape,
)
from ...code.layouts.container_access import findings
from ...code.layouts.kept import opener_of
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
# Known functions that make what one sample is, and nothing that others share.
MADE = ("jpeg", "jpeg-small", "png", "picture", "resize", "tokens", "sound")
# What of the loader's parts the loop runs need not be free.
OUT_SAVES = 0.5
# A line that takes this part of what its function takes is named in its place.
MOST_OF = 0.8
WAITS = " Fetching mostly waits: more workers, or threads inside __getitems__, overlap that."
CONSTRUCTED = Better(
    "",
    "Make the library's object once, and keep it",
    "in each worker, at first use (a dict of them, if they differ), and call its methods.",
    (0.02, 0.5),
)
AUGMENTS = Better(
    "",
    "Make this random change cheaper",
    "use a faster library, or a few settings whose filters are kept; change whole batches on the "
    "device, or fewer samples. Its result differs each time, so it cannot be stored.",
    (0.02, 0.5),
)

A_PART = """\
# By hand: read the part alone (seek, frame_offset=, np.load(path, mmap_mode="r")[part]); or store
# once, before training, what samples use, a file or a row of an array each.
"""


def examine(case: Case) -> Outcomes:
    found = in_loop(case)
    if found:
        yield _out_of_loop(case, found)
    sample_us, part, stage = sample_time_us(case), fetch_share(case), case.code_stage("fetch")
    if case.compute_bound or not sample_us:
        return
    seen = _seen(case, stage, sample_us) if stage and sample_us >= LEAST_SEEN_US else ()
    outcomes = [*seen]
    samples, idle = stage.samples if stage else 0, fetch_idle_share(case) or 0.0
    makes = part >= MAIN_PART and sample_us >= UNKNOWN_FROM_US and idle <= MOSTLY_WAITS
    if makes and not outcomes and samples < LEAST_SAMPLES:
        few = f"{samples} stack samples of fetch are too few to"
        yield Unmeasured(
            f"{few if samples else 'stacks were not recorded, which would'} tell what takes "
            f"{us(sample_us)} a sample: record for longer, or a run of a few seconds with "
            "LOADERSCOPE_STACKS=eager, or run `loaderscope stacks` while it trains"
        )
    for outcome in outcomes:
        # What is hardly waited for may still take the cores of what is. The prediction decides.
        if part >= SEEN_PART or _gains(outcome):
            yield outcome


def _gains(outcome: Outcome) -> bool:
    # The range of what is done by hand is wide.
    return isinstance(outcome, Advice) and (
        outcome.predicted.low > LEAST_GAIN
        or (outcome.by_hand and outcome.predicted.high > LITTLE_TO_GAIN)
    )


def _out_of_loop(case: Case, found: InLoop) -> Advice:
    """What the loop runs of the data set's own code, outside `next()`."""
    method, text, of_all = found.method, clean(found.text, 80), found.of_all.mid
    do = "call it less often, or make it cheaper; draw an order as an array."
    if method.name.endswith("__len__"):
        do = "ask for it once, before the loop; or count once, in __init__."
    left = 1 - method.high, 1 - method.low * OUT_SAVES
    where = at(found.place)
    return case.change(code=f"# By hand{where}: {do}\n#     {text}\n", compute=left).advise(
        f"Take this out of the loop: {text}",
        f"{method.name} takes {percent(of_all)} of all time, in the training process and outside "
        f"next(), called from {found.caller or 'the loop'}: `{text}`{where}. Workers do not take "
        "that over.",
        {"of all time": percent(of_all), "line": found.place},
        beside_loading=of_all,
    )


def _seen(case: Case, stage: CodeStage, sample_us: float) -> Outcomes:
    """What stack samples show."""
    other = unknown(stage)
    lines = own_lines(stage, case.inspection.parts, SourceLines(case.process, case.loader))
    inner = most_itself(stage, lines)
    line: Part | OwnLine | None = inner
    if other and other.share >= STANDS_OUT:
        line = _line_of(stage, other)
    if any(_is_opener(case, each) for each in lines if stands_out(each)):
        return  # the rule storage-format says what to do
    again = makes_the_same(case) or any(each.repeats(line.text or "") for each in lines if line)
    # To make own functions cheaper that share the time says nothing.
    named = line if line and (again or not calls_own(stage, line)) else inner
    worst = worst_shape(stage, lines, other)
    if worst and worst[1].waste:
        yield shaped(case, "fetch", *worst, _sampled(stage, worst[0].share))
        return
    group = better_lines(stage, lines)
    # A little waiting does not hide what computes.
    seen = known(stage, file_suffix(case))
    best = next((hot for hot in seen if not hot.family.waits or hot.share >= KNOWN_FROM), None)
    if best and best.family.waits:
        yield Unmeasured(
            f"{best.family.name} takes {percent(best.share)} of fetch{best.called_from}: that is "
            "waiting, which cannot be made faster, but which more workers, or threads inside "
            "__getitems__, can overlap"
        )
    elif (
        best
        and best.share >= (KNOWN_FROM if line else LEAST_SHARE)
        and (worst is None or best.share >= MAIN_PART * worst[0].share.mid)
    ):
        advice = _known(case, stage, best, sample_us, lines)
        yield advice
        unsure = advice.predicted.low <= LEAST_GAIN
        if named and unsure and best.share < MAIN_PART * named.share.mid:
            # Most of it is something else.
            yield _named(case, stage, named, lines, again)
    elif line and (grown := grows(case, "fetch")):
        yield make_cheaper(case, "fetch", line, _sampled(stage, line.share), grown)
    elif worst and not (
        group
        and group.method is not worst[0].method
        and group.share.mid >= MAIN_PART * worst[0].share.mid
    ):
        yield shaped(case, "fetch", *worst, _sampled(stage, worst[0].share))
    elif group and (worst or not line or (other and line.text == other.name)):
        share, grown = _sampled(stage, group.share), grows(case, "fetch")
        yield make_cheaper(case, "fetch", group, share, grown, again=again)
    elif named:
        yield _named(case, stage, named, lines, again)
    elif other:
        yield Unmeasured(
            f"no line stands out inside fetch: the hottest function, {other.name}, takes "
            f"{percent(other.share)} of it"
        )


def _named(
    case: Case, stage: CodeStage, named: Part | OwnLine, lines: list[OwnLine], again: bool
) -> Outcome:
    """To make a line or a function cheaper."""
    there = _there(named.place, lines)
    most = there and there.share.mid >= MAIN_PART * named.share.mid
    if there and most and not again and better_call(there.text, there.call):
        named = there  # not its function
    random = AUGMENTS if there and there.augments else None
    better = better_call(named.text, named.call) or _constructs(stage, named) or random
    share = _sampled(stage, named.share)
    advice = make_cheaper(case, "fetch", named, share, better=better, again=again)
    if advice.by_hand and (read := read_for_a_part(case)):
        return case.change(code=A_PART, fetch=(0.02, 0.6)).advise(
            "Read only the part of each file that is used, or store what is used alone",
            f"{read}. {line_costs('fetch', named)}.",
            advice.evidence,
        )
    waits = (fetch_idle_share(case) or 0.0) - handed_over(case) > MOSTLY_WAITS
    return Unmeasured(advice.why + WAITS) if advice.by_hand and waits else advice


def _there(place: str | None, lines: list[OwnLine]) -> OwnLine | None:
    return next((each for each in lines if each.place == place), None)


def _constructs(stage: CodeStage, line: Part | OwnLine) -> Better | None:
    """Whether it goes by in making an object of a library's."""
    made = outermost(stage, lambda node: not node.own and node.function.endswith("__init__"))
    samples = sum(node.samples for node in made)
    return CONSTRUCTED if samples >= MOST_OF * line.share.mid * stage.samples else None


def _is_opener(case: Case, line: OwnLine) -> bool:
    """Whether it opens a container again for each sample, and advice about that is given."""
    opener, storage = opener_of(line.part, surely=False), case.report.storage
    if not opener or not opener.used_by(line.text) or not storage:
        return False
    # What is made of an open file in the same way each time is more than opening it.
    if f"{opener.text}(" not in line.text and own_shape(line, ""):
        return False
    return fetch_share(case) >= MAIN_PART and any(findings(case, storage))


def _known(
    case: Case, stage: CodeStage, hot: Hot, sample_us: float, lines: list[OwnLine]
) -> Advice:
    drawn = _there(hot.place, lines)
    if hot.family.once and drawn and drawn.augments:
        return make_cheaper(case, "fetch", drawn, _sampled(stage, drawn.share), better=AUGMENTS)
    share = _sampled(stage, Range(hot.low, hot.share, hot.high))
    if hot.family.key in MADE:
        why = f"{percent(hot.share)} of fetch goes into {hot.family.name}{hot.called_from}"
        kept = kept_samples(case, why, share, clean(hot.text or hot.family.name, 80))
        if kept:
            return kept
    return known_call(case, "fetch", hot, sample_us, share)


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
