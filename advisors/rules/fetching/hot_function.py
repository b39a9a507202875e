"""One function dominates fetching: which, called from where, and what to use instead.

What it looks for
    Fetching that is at least a fifth of all waiting (SEEN_PART), and in the stack samples of it a
    function known to be slow: picture decoders, parsers of text (CSV, JSON, PLY, XML, YAML),
    archives, pickle, rows of a DataFrame, an HDF5 file or a Hugging Face data set, tokenising,
    resampling, deep copies, locks, chains of element-wise operations. If no stacks were recorded,
    the source of `__getitem__` shows some of these, if fetching is the main part of waiting
    (MAIN_PART, 50 %). An unknown function is named from 40 % of fetch on (STANDS_OUT), with the
    most that a faster one could gain.

Why it matters
    The part of fetch that a function takes limits what replacing it can gain. So the prediction
    rests on the share of samples it was seen in, its 95 % interval, and what the alternative leaves
    of that part. `.iloc` makes a new Series for each row, parsers written in Python are tens of
    times slower than array readers (PLY: 0.79 s against 0.02 s a file), a compressed file is
    decompressed as a whole, an element of a torch tensor takes eight times as long to read as one
    of a NumPy array.

What to change
    Convert once, before training or in `__init__`, or call the faster function; the code shows it
    for this data set. If samples stay the same and memory holds them all, it stores whole samples
    and makes the loader that reads them; the prediction then covers all that goes away.

When not to
    If samples are random, only the part before the random step can be stored. Stored arrays are
    larger than compressed files: on a slow disk, or beyond the page cache, reading them may cost
    more than making them. A function that waits (for a server, for sleep) is no work: more workers
    overlap it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...case.advice import Advice, Outcomes, Unmeasured
from ...case.case import Case
from ...case.fetching import MAIN_PART, fetch_share, file_suffix, held, names_used, sample_time_us
from ...code.hot.element_code import elements_of
from ...code.hot.functions import FEW_SAMPLES, LEAST_SAMPLES, STANDS_OUT, known, unknown
from ...code.hot.in_source import called, in_source
from ...code.hot.kind import Hot
from ...code.hot.operation_chains import operation_chain
from ...code.layouts.stored import StoredForm, stored_form
from ...schema.evidence import Evidence, count, percent, size, times, us
from ...schema.gains import LEAST_GAIN
from ...schema.report_model import CodeStage
from ...stacks.code_summary import wilson

EFFORT = "a few lines"
NEEDS = "prediction waiting"

# Below this a sample is not made, only looked up: other rules speak of that.
LEAST_SAMPLE_US = 20.0
# With stacks, what takes the time is known, also of short samples and where fetching is not the
# main part.
LEAST_SEEN_US = 5.0
SEEN_PART = 0.2
# A known function with this part of fetch gets advice even if something else takes more.
KNOWN_FROM = 0.2
NOTHING = "# nothing to change\n"
NOT_MEASURED = "How much of fetch it takes was not measured: the range is wide."


def examine(case: Case) -> Outcomes:
    sample_us, part = sample_time_us(case), fetch_share(case)
    if sample_us is None:
        return
    stage = case.code_stage("fetch")
    samples = stage.samples if stage is not None else 0
    seen = (
        list(_seen(case, stage, sample_us))
        if stage is not None and sample_us >= LEAST_SEEN_US
        else []
    )
    least_us = LEAST_SAMPLE_US if samples < FEW_SAMPLES else LEAST_SEEN_US
    # A few samples that name nothing known do not refute what the source proves.
    if samples < LEAST_SAMPLES and sample_us >= least_us and not _advised(seen):
        proven = list(_by_source(case, sample_us))
        if not seen or _advised(proven):
            yield from (each for each in proven if part >= MAIN_PART or _gains(each))
            return
    for outcome in seen:
        # What is hardly waited for may still take the cores of what is. The prediction decides.
        if part >= SEEN_PART or _gains(outcome):
            yield outcome
        elif isinstance(outcome, Advice):
            why = f"{outcome.why} But fetching is only {percent(part)} of what the loop waits for."
            yield replace(outcome, why=why, code=NOTHING, rejected=True)
        elif case.predict(fetch=0.5).low > LEAST_GAIN:
            yield outcome


def _advised(outcomes: list[Advice | Unmeasured]) -> bool:
    return any(isinstance(each, Advice) for each in outcomes)


def _gains(outcome: Advice | Unmeasured) -> bool:
    return isinstance(outcome, Advice) and outcome.predicted.low > LEAST_GAIN


def _by_source(case: Case, sample_us: float) -> Outcomes:
    """What the recorded source proves, where stacks do not show it."""
    proven = list(in_source(case, sample_us))
    hot = called(case) if not _advised(proven) else None
    yield from proven if hot is None else [_known(case, None, hot, sample_us)]


def _seen(case: Case, stage: CodeStage, sample_us: float) -> Outcomes:
    """What stack samples show."""
    tensor, reads = held(case, "tensor") is not None, elements_of(case)
    found = known(
        stage, file_suffix(case), names_used(case), tensor, reads[1] if reads is not None else None
    )
    other = unknown(stage)
    stands_out = other is not None and other.share >= STANDS_OUT
    # A little waiting does not hide what computes.
    best = next((hot for hot in found if not hot.family.waits or hot.share >= KNOWN_FROM), None)
    if best is not None and best.family.waits:
        yield Unmeasured(
            f"{best.family.name} takes {percent(best.share)} of fetch{_from(best.place)}: that is "
            "waiting, which cannot be made faster, but which more workers, or threads inside "
            "__getitems__, can overlap"
        )
    elif best is not None and (best.share >= KNOWN_FROM or not stands_out):
        yield _known(case, stage, best, sample_us)
    elif (chained := next(_chained(case, stage), None)) is not None:
        yield chained
    elif other is not None and stands_out:
        bound = case.predict(fetch=1 - other.high)
        line = f", most of it at {other.place}" if other.own else _from(other.place)
        yield Unmeasured(
            f"{other.name} takes {percent(other.share)} of fetch "
            f"({_range(other.low, other.high)}){line}: no better alternative is known for it. If "
            f"it cost nothing, the loop would run {times(bound.mid)} as fast"
        )
    elif other is not None:
        yield Unmeasured(
            f"no function stands out inside fetch: the hottest, {other.name}, takes "
            f"{percent(other.share)} of it"
        )


def _known(case: Case, stage: CodeStage | None, hot: Hot, sample_us: float) -> Advice:
    kind = hot.family
    form = _whole_samples(case) if kind.once else None
    change = case.change(
        code=kind.code(case, hot) if form is None else form.code,
        fetch=hot.left(sample_us) if form is None else form.left(sample_us),
    )
    takes, caveat = "stands in the source of fetch", f"{NOT_MEASURED} {kind.caveat}"
    part: Evidence = {"part of fetch": "not measured: called in the source of the data set"}
    if stage is not None:
        takes, caveat = f"takes {percent(hot.share)} of fetch{_from(hot.place)}", kind.caveat
        part = _sampled(stage, hot.share, hot.low, hot.high)
    evidence: Evidence = {
        "fetch a sample": us(sample_us),
        "share of waiting": percent(fetch_share(case)),
        **part,
        "function": hot.function and f"{hot.function}, {us(hot.share * sample_us)} per sample",
        "called from": f"line {hot.place}" if hot.place is not None else None,
        "stored samples take": size(form.nbytes if form is not None else None),
    }
    why = f"{_capital(kind.name)} {takes}. "
    if change.predicted.high < LEAST_GAIN:
        free = case.predict(fetch=1 - hot.high)
        return replace(change, code=NOTHING).would_not_help(
            f"{why}Even if it cost nothing, the loop would run {times(free.mid)}.",
            evidence,
            title=f"{kind.title}: not worth it here",
        )
    return change.advise(
        kind.title,
        why + kind.why,
        evidence,
        caveat=caveat,
        effort=kind.effort,
    )


def _sampled(stage: CodeStage, share: float, low: float, high: float) -> Evidence:
    return {
        "part of fetch": percent(share, f"({_range(low, high)} with what goes with it)"),
        "seen in": count(stage.samples, "stack samples of fetch"),
    }


def _chained(case: Case, stage: CodeStage) -> Iterator[Advice]:
    """A chain of element-wise operations, where its lines take most of fetch."""
    for part in case.inspection.parts:
        chain = operation_chain(part.getitem)
        lines = chain.lines if chain is not None else ()
        share = min(1.0, sum(each.share for each in stage.lines if each.own and each.text in lines))
        if chain is None or share < STANDS_OUT:
            continue
        low, high = wilson(round(share * stage.samples), stage.samples)
        best, worst = chain.left
        yield case.change(
            code=chain.code(f"__getitem__ of {part.name}"),
            fetch=(1 - high * (1 - best), 1 - low * (1 - worst)),
        ).advise(
            "Put one fused operator in the place of a chain of them",
            f"{chain.operations} element-wise operations take {percent(share)} of fetch: each goes "
            "through memory, and makes a tensor of its own. Fused, they go through it once.",
            {
                **_sampled(stage, share, low, high),
                "share of waiting": percent(fetch_share(case)),
            },
            caveat="Results differ in the last bits. torch's operators use several threads in the "
            "training process.",
        )


def _whole_samples(case: Case) -> StoredForm | None:
    """Code that stores whole samples, and runs as it is pasted: if they stay the same and memory
    holds them."""
    form, free = stored_form(case), case.system.mem_available_min_bytes
    if isinstance(form, str) or free is None or form.nbytes > free:
        return None
    return form


def _range(low: float, high: float) -> str:
    return f"{low * 100:.0f} to {percent(high)}"


def _from(place: str | None) -> str:
    return f", called from {place}" if place is not None else ""


def _capital(name: str) -> str:
    if name.startswith(("ast.", "copy.", "numpy.", "pandas.", "torch")):
        return name
    return name[:1].upper() + name[1:]
