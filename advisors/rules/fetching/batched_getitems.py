"""Fetch whole batches at once if each sample is only looked up in memory.

What it looks for
    A map-style data set without `__getitems__` whose samples take less than 50 µs each (SAMPLE_US;
    200 µs if its source shows nothing but array lookups, LOOK_UP_US), fetched and collated one by
    one, if that causes at least half of all waiting (MAIN_PART). Of samples computed from arrays
    in many small steps, as stacks show, also up to 200 µs. The source of `__getitem__` is
    read, not run: every use of the index must be a lookup in a tensor, an array or a list that the
    data set holds.

Why it matters
    A batch of 100 samples costs 100 calls of `dataset[i]`, 100 small tensors, and a
    `default_collate` that stacks them; one lookup with 100 indices costs a few microseconds.
    Workers make it worse: each batch then has to be handed over as well. Reported gains are 3 to
    124 times.

What to change
    Let a sampler draw whole batches of indices and index the arrays with them (`batch_size=None`),
    with no workers. The code is written for this data set and gives the same batches, in the same
    order for the same seed. If the loader has a collate function of its own, a `__getitems__`
    that returns the list of samples is written instead. `loaderscope try` proves the gain.

When not to
    If a sample is decoded, parsed or read from a file, fetching many at once saves nothing: from
    500 µs per sample on (DECODING_US) the report says so. Transforms that work on one sample
    run once per sample, so nothing is said of data sets that call them.
"""

from typing import Any

from ....profiler.store.inspection import Part
from ...case.advice import Advice, Outcomes
from ...case.case import Case
from ...case.fetching import (
    FETCH_WAITS,
    MAIN_PART,
    fetch_idle_share,
    fetch_share,
    file_suffix,
    held,
    making_share,
    sample_time_us,
)
from ...code.batched.batch_access import in_subsets
from ...code.batched.batch_values import NotArrays
from ...code.batched.drawn import own_collate, whole_epochs
from ...code.batched.getitems_code import Batched, batched_form
from ...code.batched.hugging_face import hugging_face_code, is_hugging_face
from ...code.batched.look_up_cost import COLLATED_US, look_up_us
from ...code.hot.functions import LEAST_SAMPLES, STANDS_OUT
from ...code.loader_code import dataset_class
from ...code.loader_form import form_of
from ...schema.evidence import Evidence, count, percent, times, us
from ...schema.report_model import CodeStage

NEEDS = "DataLoader map prediction"

# docs/causes.md, "Sample by sample from memory".
SAMPLE_US = 50.0
# If the source proves that there is nothing but lookups, large rows may take longer.
LOOK_UP_US = 200.0
# From here on a sample is made, not looked up: the call itself costs a microsecond or two.
DECODING_US = 500.0
# The most that calling `dataset[i]` and stacking one more tensor costs per sample, µs.
CALL_US = 15.0

INDEX_US = (0.3, 3.0)
# What remains of fetching and collating where somebody writes the lookup of whole batches.
AT_ONCE = (0.02, 0.5)
# In own lines themselves, of what stacks of fetching show.
MOST_OWN = 0.7
TITLE = "Fetch the whole batch at once, not sample by sample"

_TABLES = ("dataframe", "hdf5", "arrow", "hf", "zarr", "lmdb")


def examine(case: Case) -> Outcomes:
    sample_us, share = sample_time_us(case), making_share(case)
    if not _fetched_one_by_one(case) or sample_us is None or share < MAIN_PART:
        return
    evidence: Evidence = {
        "fetch a sample": us(sample_us),
        "fetch a batch": us(case.mean_us("fetch")),
        "collate a batch": us(case.mean_us("collate")),
        "share of waiting": percent(share),
    }
    waits = (fetch_idle_share(case) or 0.0) > FETCH_WAITS
    if is_hugging_face(case):
        if not (own_collate(case) or form_of(case).by_hand or waits or sample_us >= DECODING_US):
            yield _hugging_face(case, sample_us, evidence)
        return
    if sample_us >= DECODING_US or (waits and file_suffix(case) is not None):
        # Decoded or read: at most the call itself would be saved. Tables are another matter: one
        # request for many rows is cheaper than many.
        if not case.compute_bound and sample_us > 2 * CALL_US and held(case, *_TABLES) is None:
            yield _rejected(case, sample_us, waits)
        return
    try:
        form = batched_form(case)
    except NotArrays as reason:
        # Rows of a DataFrame have a remedy of their own: see hot-function.
        stage, small = case.code_stage("fetch", LEAST_SAMPLES), sample_us < SAMPLE_US
        known = held(case, "dataframe") is not None and stage is not None
        main = fetch_share(case) >= MAIN_PART or not own_collate(case)
        looked_up = small and main and not known
        if looked_up or (sample_us < LOOK_UP_US and _small_steps(case, stage, small)):
            yield _by_hand(case, sample_us, evidence, reason)
        return
    if sample_us < LOOK_UP_US:
        yield _advice(case, form, sample_us, evidence)


def _fetched_one_by_one(case: Case) -> bool:
    config, dataset = case.config, case.dataset or Part()
    if config.get("batch_size") is None and config.get("batch_sampler") is None:
        return False  # the data set is asked for whole batches already
    if is_hugging_face(case):
        return True  # its __getitems__ gives rows
    inner, _ = in_subsets(dataset)  # the __getitems__ of a subset only asks the set inside
    return not inner.getitems and not (inner is dataset and config.get("getitems"))


def _small_steps(case: Case, stage: CodeStage | None, small: bool) -> bool:
    """Whether samples are computed from arrays in memory, in lines below which hardly anything but
    C code runs, and of which none stands out unless samples are `small`: what such lines cost is a
    call each."""
    if stage is None or held(case, "tensor", "ndarray") is None:
        return False
    own = [each.share for each in stage.lines if each.own]
    return (small or max(own, default=1.0) < STANDS_OUT) and sum(own) >= MOST_OWN


def _rows(case: Case) -> float:
    return (case.report.samples or 0) / max(1, case.report.batches)


def _advice(case: Case, form: Batched, sample_us: float, evidence: Evidence) -> Advice:
    access, getitems = form.access, not form.params
    # With __getitems__, a row is still an object each.
    lists = access.lists + access.leaves * getitems
    rows, nbytes = _rows(case), case.report.bytes_per_batch
    low, high = look_up_us(rows, access.leaves, nbytes, case.dataset_len, lists)
    left: dict[str, Any] = {"fetch_us": (low, high)}
    if not getitems:
        left["collate_us"] = COLLATED_US
        if whole_epochs(case):  # a sampler of the user's own goes on drawing as it does
            left["index_us"] = INDEX_US
    each, name = count(rows), dataset_class(case, "the data set")
    why = (
        f"{name} only looks its samples up in memory, {us(sample_us)} each, but a batch asks for "
        f"{each} of them one by one and then stacks {each} small tensors. One lookup with all "
        f"{each} indices gives the same batch."
    )
    caveat = "The batches are the same, and in the same order for the same seed."
    if "generator=generator" in form.code:
        caveat = (
            "The batches are the same; with the same generator, those of the first epoch come in "
            "the same order."
        )
    if getitems:
        caveat = (
            "Every loader over this class uses __getitems__ from then on; the samples are the same."
        )
    if case.num_workers and "num_workers" in form.params:
        why += " Workers only add the hand-over."
    return case.change(code=form.code, **form.params, **left).advise(
        TITLE,
        why,
        {**evidence, "a batch at once": us(low, "(estimated)", high=high)},
        caveat=caveat,
    )


def _by_hand(case: Case, sample_us: float, evidence: Evidence, reason: NotArrays) -> Advice:
    name = dataset_class(case, "the data set")
    code = (
        f"# By hand: give {name} a __getitem__ that takes a tensor of indices, and use\n"
        "# batch_size=None; or let collate_fn do for the batch what __getitem__ does for a sample\n"
    )
    left: dict[str, Any] = {} if own_collate(case) else {"collate": AT_ONCE}
    change = case.change(code=code, fetch=AT_ONCE, **left)
    return change.advise(
        f"{TITLE}, by hand",
        f"A sample of {name} takes only {us(sample_us)}, and a batch asks for "
        f"{count(_rows(case))} of them one by one. No code could be written: {reason}.",
        evidence,
    )


def _hugging_face(case: Case, sample_us: float, evidence: Evidence) -> Advice:
    # docs/causes.md, "Hugging Face formatting": gains reach a thousandfold, and depend on the
    # format already set.
    change = case.change(
        code=hugging_face_code(case), batch_size=None, fetch=(0.05, 0.9), collate=(0.02, 0.3)
    )
    return change.advise(
        "Read each batch as tensors straight from Arrow",
        f"Each of a batch's {count(_rows(case))} rows becomes Python objects ({us(sample_us)} per "
        "row), which are then stacked into tensors again. Indexed with a whole batch, the data set "
        "makes each column at once.",
        evidence,
        caveat="Numbers come as torch's default types (float32 where default_collate made "
        "float64).",
    )


def _rejected(case: Case, sample_us: float, waits: bool) -> Advice:
    rest = "waiting, for I/O, locks and the like" if waits else "decoding or computing it"
    saved = min(0.5, CALL_US / sample_us)
    code = f"# leave {dataset_class(case, 'the data set')}.__getitem__ as it is\n"
    change = case.change(code=code, fetch=(1 - saved, 1.0))
    return change.would_not_help(
        f"A sample takes {us(sample_us)}, of which asking for it one by one is at most "
        f"{us(CALL_US)}: the rest is {rest} ({times(change.predicted.mid)} if the call were free).",
        {"fetch a sample": us(sample_us), "a call of dataset[i], at most": us(CALL_US)},
        title="__getitems__ would not help",
    )
