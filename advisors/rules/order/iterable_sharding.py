"""Every worker yields the whole stream: an iterable data set that is not divided.

What it looks for
    An iterable data set with 2 workers or more whose first two batches are the same in different
    workers, in every epoch that shows them. If they cannot be compared: a source without
    get_worker_info whose first epoch has several workers at the same files (shards behind a shuffle
    buffer, which gives each worker another order). A stream that goes through all samples
    of another data set or generator, or makes them, and keeps every N-th.

Why it matters
    Each worker holds a copy of the data set and iterates over all of it, so every sample is seen
    once per worker. Epochs are N times as long, and each batch is repeated N times in a row. What
    is divided after it was made costs as much: each worker makes all samples.

What to change
    Let each worker take its own part, by torch.utils.data.get_worker_info(): part of the files or
    items if there is a list of them, else every N-th sample.

When not to
    Endless random streams, of which each worker draws its own, never give equal batches: this rule
    is then silent. Several ranks need dividing as well.
"""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from ....profiler.base.metadata import clean
from ...case.advice import Outcomes
from ...case.case import Case
from ...case.code_text import Source
from ...case.fetching import fetch_share, names_used
from ...code.hot.functions import STANDS_OUT
from ...code.loader_code import dataset_class, loader_code
from ...code.method import Method, bound_by, called, calls_in, names_of, yields
from ...schema.evidence import Evidence, count, percent
from ...schema.report_model import Range
from ...stacks.source_lines import SourceLines

KIND = "correctness"
NEEDS = "DataLoader stream"

# Batches of each worker and epoch that carry a digest of their contents.
COMPARED = 2
_SHARDS = frozenset({"get_worker_info", "worker_info", "split_dataset_by_node", "split_by_worker"})
_RAW = """\
#     raw = raw[worker.id :: worker.num_workers]   # texts, paths or records
# in the __iter__ that makes the samples, with worker = torch.utils.data.get_worker_info().
"""


def examine(case: Case) -> Outcomes:
    workers = case.num_workers
    if workers < 2:
        yield from _divided_late(case)
        return
    alike, why = _alike(case), ""
    told: Evidence = {}
    repeats = min(alike, default=0)
    if alike:
        of_all = f"of {workers}, in {len(alike)} epochs"
        told = {"workers with the same first batches": count(repeats, of_all)}
    if repeats < 2 and (shards := _shared_shards(case)):
        # A shuffle buffer gives each worker another order of the same.
        repeats, told = workers, {"files read by several workers": count(shards)}
        files = "1 file was" if shards == 1 else f"{shards} files were"
        why = f"{files} read by several of the {workers} workers"
    if repeats < 2:
        yield from _divided_late(case)
        return
    factor = float(repeats)
    # If only every N-th sample is kept, each worker still makes all: as slow as now, but each
    # sample once.
    predicted = Range(1.0, factor, factor)
    yield case.change(code=_code(case), predicted=predicted).advise(
        "Split the stream among the workers",
        f"{why or f'{repeats} workers yield the same samples'}: an epoch holds everything "
        f"{repeats} times. The factor is in different samples per second.",
        {"workers": count(workers), **told},
        caveat="Epochs get shorter by that factor. With several ranks, divide by rank as well."
        + " Leave it where a function that __iter__ calls divides the samples." * bool(why),
    )


def _divided_late(case: Case) -> Outcomes:
    """Each worker or rank makes all samples, and throws away those of the others."""
    stage, sources = case.code_stage("fetch"), SourceLines(case.process, case.loader)
    spots = [each for each in stage.lines if each.own] if stage is not None else []
    parts = [*case.inspection.parts, *(sources.part(each.file, each.line) for each in spots)]
    sets = {
        each.name
        for part in case.inspection.parts
        for each in part.attributes
        if each.kind == "dataset"
    }
    methods = dict.fromkeys(each for part in parts if part for each in (part.iter, *part.helpers))
    for text, line in (found for each in methods for found in _of_others(Method(each))):
        late = clean(text, 80)
        seen = max((each.total_share for each in spots if each.text == line), default=0.0)
        nested = sets & {*re.findall(r"\bself\.(\w+)(?![\w.])", late)}
        if seen < STANDS_OUT and not nested:
            continue
        share = seen or 1.0
        part = 1 / max(2, max(1, case.num_workers) * (case.process.world_size or 1))
        code = f"# By hand: divide what `{late}` gives before samples are made of it:\n{_RAW}"
        yield case.change(code=code, fetch=(1 - share * (1 - part), 1 - share * part / 2)).advise(
            f"Split the stream before samples are made: {late}",
            f"Each worker and rank goes through all samples of `{late}` and keeps only its own. "
            "What it makes of the others is thrown away.",
            {
                "workers": count(case.num_workers),
                "fetching": percent(fetch_share(case), "of all waiting"),
                "of it": percent(share) if seen else None,
            },
            caveat="A stream that does other work than making these samples gains less.",
            kind="speed",
        )
        return


def _of_others(method: Method) -> Iterator[tuple[str, str]]:
    """What it goes through or makes before it keeps every N-th sample, and the line of that."""
    for node in ast.walk(method.function) if method.function is not None else ():
        match node:
            case ast.For(iter=over, body=body):
                for test in (each for each in body if isinstance(each, ast.If)):
                    skips = isinstance(test.body[-1], ast.Continue)
                    if "%" not in ast.unparse(test.test) or not (skips or yields(test)):
                        continue
                    for made in body[: body.index(test)] if skips else ():
                        if calls_in(made) and not bound_by(made) & names_of(test.test):
                            yield method.text(made), method.text(made)
                    yield ast.unparse(over), method.text(node)
            case ast.Call(args=[over, _, _, _]) if called(node) == "islice":
                yield ast.unparse(over), method.source[node.lineno - 1].strip()


def _alike(case: Case) -> list[int]:
    """By epoch that can be compared: how many workers have the same first batches."""
    batches = case.loader.batches
    rows = np.flatnonzero((batches["digest"] >= 0) & (batches["worker"] >= 0))
    digests: dict[tuple[int, int], list[int]] = defaultdict(list)
    columns = (batches[name][rows].tolist() for name in ("task", "epoch", "worker", "digest"))
    for _, epoch, worker, digest in sorted(zip(*columns, strict=True)):
        digests[epoch, worker].append(digest)
    counts: dict[int, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for (epoch, _), own in digests.items():
        # A stream that repeats itself would look alike in every worker, divided or not.
        if len(set(own[:COMPARED])) == COMPARED:
            counts[epoch][tuple(own[:COMPARED])] += 1
    return [max(each.values()) for each in counts.values() if each.total() >= 2]


def _shared_shards(case: Case) -> int:
    """Files that several workers had open in the only epoch, where nothing in the source or in the
    loader divides them."""
    names = names_used(case)
    divided = names & _SHARDS or case.config.get("worker_init_fn")
    return 0 if divided or not names or case.loader.epochs.rows > 1 else case.loader.looks.shared


def _code(case: Case) -> str:
    name = f"Sharded{dataset_class(case, 'Stream')}"
    return f'''\
from itertools import islice

from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class {name}(IterableDataset):
    """The same stream, of which each worker yields its own part."""

    def __init__(self, source):
        self.source = source

    def __iter__(self):
        worker = get_worker_info()
        if worker is None:
            return iter(self.source)
        # Faster, if the source goes through a list: give each worker its part of that list.
        return islice(self.source, worker.id, None, worker.num_workers)


{loader_code(case, dataset=Source(f"{name}(dataset)"))}
'''
