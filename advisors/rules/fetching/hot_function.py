"""One function dominates fetching: which, called from where, and what to use instead.

What it looks for
    Fetching that is at least a fifth of all waiting (SEEN_PART), and in the stack samples of it a
    function known to be slow: picture decoders, parsers of text (CSV, JSON, PLY, XML, YAML),
    archives, pickle, rows of a DataFrame, an HDF5 file or a Hugging Face data set, tokenising,
    resampling, deep copies, locks, chains of element-wise operations. Where no stacks were
    recorded, the source of `__getitem__` shows some of these, if fetching is the main part of
    waiting (MAIN_PART, 50 %). A function that nothing is known of is named from 40 % of fetch on
    (STANDS_OUT), with the most that a faster one could gain.

Why it matters
    The part of fetch that a function takes bounds what replacing it can gain, so the prediction
    rests on the share of samples it was seen in, its 95 % interval, and what the alternative leaves
    of that part. `.iloc` makes a new Series for each row, parsers written in Python are tens of
    times slower than array readers (PLY: 0.79 s against 0.02 s a file), a compressed file is
    decompressed as a whole, an element of a torch tensor takes eight times as long to read as one
    of a NumPy array.

What to change
    Convert once, before training or in `__init__`, or call the faster function; the code shows it
    for this data set. Where samples stay the same and memory holds them all, it stores whole
    samples and makes the loader that reads them; the prediction is then of all that goes away.

When not to
    Where what is made is random, only the part before the random step can be stored. Stored arrays
    are larger than compressed files: on a slow disk, or beyond the page cache, reading them may
    cost more than making them. A function that waits (for a server, for sleep) is no work: more
    workers overlap it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...case.advice import Advice, Outcome, Unmeasured
from ...case.case import Case
from ...case.fetching import MAIN_PART, fetch_share, file_suffix, held, names_used, sample_time_us
from ...code.hot.element_code import elements_of
from ...code.hot.functions import FEW_SAMPLES, LEAST_SAMPLES, STANDS_OUT, known, unknown
from ...code.hot.in_source import called, in_source
from ...code.hot.kind import Hot
from ...code.hot.operation_chains import operation_chain
from ...code.layouts.stored import StoredForm, stored_form
from ...schema.figures import count, percent, size, times, us
from ...schema.gains import LEAST_GAIN
from ...schema.report_model import CodeStage
from ...stacks.code_summary import wilson

NAME = "hot-function"
KIND = "speed"
EFFORT = "a few lines"

# Below this a sample is not made, only looked up: other rules speak of that.
LEAST_SAMPLE_US = 20.0
# With stacks, what takes the time is known, also of short samples and where fetching is not the
# main part.
LEAST_SEEN_US = 5.0
SEEN_PART = 0.2
# A known function with this part of fetch is advised on, whatever else takes more: what to do about
# it is known.
KNOWN_FROM = 0.2
NOTHING = "# nothing to change\n"
NOT_MEASURED = "How much of fetch it takes was not measured: the range is wide."


def examine(case: Case) -> Iterator[Outcome]:
    sample_us, part = sample_time_us(case), fetch_share(case)
    if sample_us is None or case.whatif is None or case.report.verdict == "compute-bound":
        return
    stage = case.report.code.stages.get("fetch") if case.report.code is not None else None
    seen = (
        list(_seen(case, stage, sample_us))
        if stage is not None and sample_us >= LEAST_SEEN_US
        else []
    )
    few = stage is None or stage.samples < LEAST_SAMPLES
    least_us = LEAST_SAMPLE_US if stage is None or stage.samples < FEW_SAMPLES else LEAST_SEEN_US
    # A few samples that name nothing known do not refute what the source proves.
    if few and sample_us >= least_us and not any(isinstance(each, Advice) for each in seen):
        proven = list(_by_source(case, sample_us))
        if not seen or any(isinstance(each, Advice) for each in proven):
            for outcome in proven:
                if part >= MAIN_PART or (
                    isinstance(outcome, Advice) and outcome.predicted.low > LEAST_GAIN
                ):
                    yield outcome
            return
    for outcome in seen:
        if part >= SEEN_PART:
            yield outcome
        # What is hardly waited for may still take the cores of what is: then the prediction speaks
        # for it.
        elif isinstance(outcome, Advice):
            yield (
                outcome if outcome.predicted.low > LEAST_GAIN else _hardly_waited_for(outcome, part)
            )
        elif case.predict(fetch=0.5).low > LEAST_GAIN:
            yield outcome


def _by_source(case: Case, sample_us: float) -> Iterator[Outcome]:
    """What the recorded source proves, where stacks do not show it."""
    proven = list(in_source(case, sample_us))
    hot = called(case) if not any(isinstance(each, Advice) for each in proven) else None
    if hot is not None:
        yield _known(case, None, hot, sample_us)
    else:
        yield from proven


def _seen(case: Case, stage: CodeStage, sample_us: float) -> Iterator[Outcome]:
    """What stack samples show."""
    tensor = held(case, "tensor") is not None
    reads = elements_of(case)
    found = known(
        stage, file_suffix(case), names_used(case), tensor, reads[1] if reads is not None else None
    )
    other = unknown(stage)
    # A little waiting does not hide what computes.
    best = next((hot for hot in found if not hot.family.waits or hot.share >= KNOWN_FROM), None)
    if best is not None and best.family.waits:
        yield Unmeasured(
            f"{best.family.name} takes {_part(best)} of fetch{_from(best.place)}: that is no work "
            "to be made faster, but time that more workers, or threads inside __getitems__, can "
            "overlap"
        )
    elif best is not None and (
        best.share >= KNOWN_FROM or other is None or other.share < STANDS_OUT
    ):
        yield _known(case, stage, best, sample_us)
    elif (chained := _chained(case, stage)) is not None:
        yield chained
    elif other is not None and other.share >= STANDS_OUT:
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
    evidence = {"fetch a sample": us(sample_us), "share of waiting": percent(fetch_share(case))}
    if stage is not None:
        evidence |= {
            "part of fetch": f"{percent(hot.share)} ({_range(hot.low, hot.high)} with what goes "
            "with it)",
            "seen in": f"{count(stage.samples)} stack samples of fetch",
        }
    else:
        evidence["part of fetch"] = "not measured: called in the source of the data set"
    if hot.function is not None:
        evidence["function"] = f"{hot.function}, {us(hot.share * sample_us)} a sample"
    if hot.place is not None:
        evidence["called from"] = f"line {hot.place}"
    takes = (
        f"takes {_part(hot)} of fetch{_from(hot.place)}"
        if stage is not None
        else "stands in the source of fetch"
    )
    why = f"{_capital(hot.family.name)} {takes}. "
    if change.predicted.high < LEAST_GAIN:
        free = case.predict(fetch=1 - hot.high)
        return replace(change, code=NOTHING).would_not_help(
            title=f"{kind.title}: not worth it here",
            why=f"{why}Even if it cost nothing, the loop would run {times(free.mid)}.",
            evidence=evidence,
        )
    if form is not None:
        evidence["stored samples take"] = size(form.nbytes)
    return change.advise(
        title=kind.title,
        why=why + kind.why,
        evidence=evidence,
        caveat=kind.caveat if stage is not None else f"{NOT_MEASURED} {kind.caveat}",
        effort=kind.effort,
    )


def _chained(case: Case, stage: CodeStage) -> Advice | None:
    """A chain of element-wise operations, where its lines take most of fetch."""
    for part in case.inspection.parts:
        chain = operation_chain(part.getitem)
        if chain is None:
            continue
        share = min(
            1.0, sum(line.share for line in stage.lines if line.own and line.text in chain.lines)
        )
        if share < STANDS_OUT:
            continue
        low, high = wilson(round(share * stage.samples), stage.samples)
        best, worst = chain.left
        change = case.change(
            code=chain.code(f"__getitem__ of {part.name}"),
            fetch=(1 - high * (1 - best), 1 - low * (1 - worst)),
        )
        return change.advise(
            title="Put one fused operator in the place of a chain of them",
            why=f"{chain.operations} element-wise operations take {percent(share)} of fetch: each "
            "goes through memory, and makes a tensor of its own. Fused, they go through it once.",
            evidence={
                "part of fetch": f"{percent(share)} ({_range(low, high)})",
                "seen in": f"{count(stage.samples)} stack samples of fetch",
                "share of waiting": percent(fetch_share(case)),
            },
            caveat="Results differ in the last bits. torch's operators use several threads in the "
            "training process.",
        )
    return None


def _whole_samples(case: Case) -> StoredForm | None:
    """Code that stores whole samples, and runs as it is pasted: where they stay the same and memory
    holds them."""
    form, free = stored_form(case), case.system.mem_available_min_bytes
    if isinstance(form, str) or free is None or form.nbytes > free:
        return None
    return form


def _hardly_waited_for(found: Advice, part: float) -> Advice:
    why = f"{found.why} But fetching is only {percent(part)} of what the loop waits for."
    return replace(found, why=why, code=NOTHING, rejected=True)


def _part(hot: Hot) -> str:
    return percent(hot.share)


def _range(low: float, high: float) -> str:
    return f"{low * 100:.0f} to {percent(high)}"


def _from(place: str | None) -> str:
    return f", called from {place}" if place is not None else ""


def _capital(name: str) -> str:
    return (
        name
        if name.startswith(("ast.", "copy.", "numpy.", "pandas.", "torch"))
        else name[:1].upper() + name[1:]
    )
