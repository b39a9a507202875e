"""Fetch whole batches at once where each sample is only looked up in memory.

What it looks for
    A map-style data set without `__getitems__` whose samples take less than 50 µs each (SAMPLE_US;
    200 µs where its source shows nothing but array look-ups, LOOK_UP_US), fetched and collated one
    by one, and at least half of all waiting due to that (MAIN_PART). The source of `__getitem__` is
    read, not run: every use of the index must be a look-up in a tensor, an array or a list that the
    data set holds. What is small and cheap but cannot be read so may be made once and kept.

Why it matters
    A batch of 100 samples costs 100 calls of `dataset[i]`, 100 small tensors, and a
    `default_collate` that stacks them; one look-up with 100 indices costs a few microseconds.
    Workers make it worse: each batch then has to be handed over as well. Reported gains are from 3
    to 124 times.

What to change
    Let a sampler draw whole batches of indices and index the arrays with them (`batch_size=None`),
    with no workers. The code is written for this data set and gives the same batches, in the same
    order for the same seed. Where the loader has a collate function of its own, a `__getitems__`
    that returns the list of samples is written instead. `loaderscope tune` tries it while training
    goes on, and what it has proven is advised whatever the waiting. `report(loader, probe=True)`
    compares both ways on the data itself and times them.

When not to
    Where a sample is decoded, parsed or read from a file, fetching many at once saves nothing: from
    500 µs a sample on (DECODING_US) that is said. Transforms that work on one sample stay calls a
    sample, so little is gained beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...case.advice import Advice, Outcome, Unmeasured
from ...case.case import Case
from ...case.fetching import (
    FETCH_WAITS,
    MAIN_PART,
    fetch_idle_share,
    file_suffix,
    held,
    making_share,
    sample_time_us,
)
from ...case.probe_result import GETITEMS, SAMPLER
from ...code.batched.batch_values import NotArrays
from ...code.batched.drawn import own_collate
from ...code.batched.getitems_code import Batched, batched_form
from ...code.batched.held_code import HeldForm, held_form
from ...code.batched.hugging_face import hugging_face_code, is_hugging_face
from ...code.batched.look_up_cost import COLLATED_US, look_up_us
from ...code.loader_code import dataset_class
from ...code.loader_form import form_of
from ...schema.figures import count, percent, size, times, us

NAME = "batched-getitems"
KIND = "speed"
EFFORT = "a few lines"

# docs/causes.md, "Sample by sample from memory".
SAMPLE_US = 50.0
# Where the source proves that there is nothing but look-ups, large rows may take longer.
LOOK_UP_US = 200.0
# From here on a sample is made, not looked up: the call itself costs a microsecond or two.
DECODING_US = 500.0
# The most that calling `dataset[i]` and stacking one more tensor costs a sample, µs.
CALL_US = 15.0

# Kept samples are indexed with [], which costs more a leaf than index_select.
HELD_LEAF_US = (1.0, 5.0)
INDEX_US = (0.3, 3.0)
# The probe's medians are of a quiet moment between two steps: training itself disturbs caches and
# cores.
PROBE_SPREAD = (0.8, 1.6)


def examine(case: Case) -> Iterator[Outcome]:
    if not _fetched_one_by_one(case) or case.whatif is None:
        return
    sample_us, share = sample_time_us(case), making_share(case)
    proven = _proven(case)
    if sample_us is None or (share < MAIN_PART and not proven):
        return
    if is_hugging_face(case):
        yield from _hugging_face(case, sample_us, share)
        return
    if not proven and (_reads_files(case) or sample_us >= DECODING_US):
        yield from _rejected(case, sample_us)
        return
    probe = case.probe
    if probe is not None and probe.equal is False:
        yield Unmeasured(f"the batched form was tried and is not advised: {probe.reason}")
        return
    try:
        form = batched_form(case)
    except NotArrays as reason:
        # Rows of a DataFrame have a remedy of their own: see hot-function.
        if sample_us < SAMPLE_US and held(case, "dataframe") is None:
            yield _held_or_why_not(case, sample_us, share, reason)
        return
    if sample_us < LOOK_UP_US or proven:
        yield _advice(case, form, sample_us, share)


def _proven(case: Case) -> bool:
    """Whether it was tried while the loop ran, and was faster: waiting says less than that."""
    tuned = case.loader.tuning
    trials = tuned.trials if tuned is not None else ()
    return any(each.outcome == "proven" and each.settings.get("batched") is True for each in trials)


def _fetched_one_by_one(case: Case) -> bool:
    config = case.config
    if case.loader.kind != "dataloader" or config.get("dataset_kind") != "map":
        return False
    if config.get("batch_size") is None and config.get("batch_sampler") is None:
        return False  # the data set is asked for whole batches already
    if is_hugging_face(case):
        return True  # its __getitems__ gives rows
    dataset = case.dataset
    while dataset is not None and dataset.type.endswith("data.dataset.Subset") and dataset.children:
        dataset = dataset.children[0]  # its own __getitems__ only asks the set inside
    if dataset is case.dataset and config.get("getitems"):
        return False
    return dataset is None or not dataset.getitems


def _reads_files(case: Case) -> bool:
    return file_suffix(case) is not None and (fetch_idle_share(case) or 0.0) > FETCH_WAITS


def batch_cost_us(case: Case, rows: float, leaves: int, lists: int = 0) -> tuple[float, float]:
    """(low, high) µs of looking up a batch at once, from its rows, leaves and bytes."""
    length = case.config.get("dataset_len")
    return look_up_us(
        rows,
        leaves,
        case.report.bytes_per_batch,
        length if isinstance(length, int) else None,
        lists,
    )


def _rows(case: Case) -> float:
    return (case.report.samples or 0) / max(1, case.report.batches)


def _left(case: Case, form: Batched) -> tuple[dict[str, Any], dict[str, str]]:
    """(what is left of a batch's stages, evidence on the batched form)."""
    rows, leaves = _rows(case), form.access.leaves
    lists = form.access.lists
    if form.access.loops:
        return {"fetch": (0.4, 1.0)}, {}
    probe = case.probe
    if form.form == "getitems":
        low, high = batch_cost_us(
            case, rows, leaves, lists + leaves
        )  # a row is still an object each
        return {"fetch_us": (low, high)}, {
            "a batch at once": f"{us(low)} to {us(high)} (estimated)"
        }
    if probe is not None and probe.equal and SAMPLER in probe.forms:
        tried = probe.forms[SAMPLER]
        cost = (tried * PROBE_SPREAD[0], tried * PROBE_SPREAD[1])
        told = {"a batch at once": f"{us(tried)} (measured by the probe)"}
        if probe.factor is not None:
            told["the probe"] = (
                f"{times(probe.factor)} on fetch and collate, {us(probe.forms[GETITEMS])} with "
                f"__getitems__, equal on {count(probe.checked_batches)} batches"
            )
    else:
        cost = batch_cost_us(case, rows, leaves, lists)
        told = {"a batch at once": f"{us(cost[0])} to {us(cost[1])} (estimated)"}
    return {"fetch_us": cost, "collate_us": COLLATED_US, "index_us": INDEX_US}, told


def _evidence(case: Case, sample_us: float, share: float) -> dict[str, str]:
    found = {"fetch a sample": us(sample_us), "fetch a batch": us(case.mean_us("fetch") or 0.0)}
    collate = case.mean_us("collate")
    if collate is not None:
        found["collate a batch"] = us(collate)
    return {**found, "share of waiting": percent(share)}


def _advice(case: Case, form: Batched, sample_us: float, share: float) -> Advice:
    left, told = _left(case, form)
    rows, name = count(_rows(case)), dataset_class(case, "the data set")
    why = (
        f"{name} only looks its samples up in memory, {us(sample_us)} each, but a batch asks for "
        f"{rows} of them one by one and then stacks {rows} small tensors. One look-up with all "
        f"{rows} indices gives the same batch."
    )
    caveat = "The batches are the same, and in the same order for the same seed."
    if "generator=generator" in form.code:
        caveat = (
            "The batches are the same; with the same generator, those of the first epoch come in "
            "the same order."
        )
    if form.form == "getitems":
        caveat = (
            "Every loader over this class uses __getitems__ from then on; the samples are the same."
        )
    if form.access.loops:
        why += (
            f" What {', '.join(form.access.loops)} does stays a call a sample, so this gains "
            "little beside it."
        )
        caveat = "Where several transforms draw random numbers, they draw them in another order."
    elif case.num_workers and not form.workers_kept:
        why += " Workers only add the hand-over."
    return case.change(code=form.code, **form.params, **left).advise(
        title="Fetch each batch with one look-up, not sample by sample",
        why=why,
        evidence={**_evidence(case, sample_us, share), **told},
        caveat=caveat,
    )


def _held_or_why_not(case: Case, sample_us: float, share: float, reason: NotArrays) -> Outcome:
    """Where the source is more than look-ups: keep the samples if that is safe, else say what
    stands in the way."""
    name = dataset_class(case, "the data set")
    try:
        kept = held_form(case)
    except NotArrays as other:
        return Unmeasured(
            f"a sample of {name} takes only {us(sample_us)}, so fetching whole batches would pay, "
            f"but no code could be written: {reason}, and {other}. Write a __getitem__ that takes "
            "a tensor of indices, with batch_size=None"
        )
    return _held_advice(case, kept, sample_us, share, str(reason))


def _held_advice(case: Case, kept: HeldForm, sample_us: float, share: float, reason: str) -> Advice:
    cost = batch_cost_us(case, _rows(case), kept.leaves)
    cost = (cost[0] + kept.leaves * HELD_LEAF_US[0], cost[1] + kept.leaves * HELD_LEAF_US[1])
    name, length = dataset_class(case, "the data set"), case.config.get("dataset_len")
    left: dict[str, Any] = {"fetch_us": cost, "collate_us": COLLATED_US, "index_us": INDEX_US}
    return case.change(code=kept.code, batch_size=None, num_workers=0, **left).advise(
        title="Make all samples once, and fetch whole batches of them",
        why=(
            f"A sample of {name} takes only {us(sample_us)}, but is asked for one by one in every "
            f"epoch. All {count(float(length or 0))} take {size(kept.nbytes)}: kept as tensors, a "
            f"batch is one look-up. (Its __getitem__ could not be turned into one: {reason}.)"
        ),
        evidence={
            **_evidence(case, sample_us, share),
            "memory to keep them": size(kept.nbytes),
            "a batch at once": f"{us(cost[0])} to {us(cost[1])} (estimated)",
        },
        caveat="Every epoch then sees the same values: not where samples change from epoch to "
        "epoch.",
    )


def _hugging_face(case: Case, sample_us: float, share: float) -> Iterator[Outcome]:
    if (
        own_collate(case)
        or form_of(case).by_hand
        or sample_us >= DECODING_US
        or (fetch_idle_share(case) or 0.0) > FETCH_WAITS
    ):
        return
    # docs/causes.md, "Hugging Face formatting": gains reach a thousandfold, and depend on the
    # format already set.
    change = case.change(
        code=hugging_face_code(case), batch_size=None, fetch=(0.05, 0.9), collate=(0.02, 0.3)
    )
    yield change.advise(
        title="Read each batch as tensors straight from Arrow",
        why=(
            f"Each of a batch's {count(_rows(case))} rows becomes Python objects ({us(sample_us)} "
            "a row), which are then stacked into tensors again. Indexed with a whole batch, the "
            "data set makes each column at once."
        ),
        evidence=_evidence(case, sample_us, share),
        caveat="Numbers come as torch's default types (float32 where default_collate made "
        "float64).",
    )


def _rest(case: Case) -> str:
    """What a sample that takes long is made of."""
    if (fetch_idle_share(case) or 0.0) <= FETCH_WAITS:
        return "decoding or computing it"
    storage = case.report.storage
    seen = storage.reading_share if storage is not None else None
    reads = seen >= FETCH_WAITS if seen is not None else file_suffix(case) is not None
    return "reading it" if reads else "waiting, for I/O, locks and the like"


def _rejected(case: Case, sample_us: float) -> Iterator[Outcome]:
    """Where a sample is decoded or read: at most the call itself would be saved."""
    if case.report.verdict == "compute-bound" or sample_us <= 2 * CALL_US:
        return
    saved = min(0.5, CALL_US / sample_us)
    code = f"# leave {dataset_class(case, 'the data set')}.__getitem__ as it is\n"
    change = case.change(code=code, fetch=(1 - saved, 1.0))
    yield change.would_not_help(
        title="__getitems__ would not help",
        why=(
            f"A sample takes {us(sample_us)}, of which asking for it one by one is at most "
            f"{us(CALL_US)}: the rest is {_rest(case)} ({times(change.predicted.mid)} if the call "
            "were free)."
        ),
        evidence={
            "fetch a sample": us(sample_us),
            "a call of dataset[i]": f"at most {us(CALL_US)}",
        },
    )
