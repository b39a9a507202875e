"""Every worker yields the whole stream: an iterable data set that does not share it out.

What it looks for
    An iterable data set with 2 workers or more whose first two batches are the same in different
    workers, in every epoch that shows them. Where they could not be compared: a source without
    get_worker_info whose epochs give exactly as many samples as workers times the length of what it
    iterates over.

Why it matters
    Each worker holds a copy of the data set and iterates over all of it, so every sample is seen
    once for each worker: epochs are N times as long, and samples of the same batch are repeated N
    times in a row.

What to change
    Let each worker take its own part, by torch.utils.data.get_worker_info(): part of the files or
    items where there is a list of them, else every N-th sample.

When not to
    Streams that are random without end (each worker draws its own): these never give equal batches,
    and this rule is silent. Several ranks need sharing out as well.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from ....profiler.store.inspection import Attribute
from ...case.advice import Outcome
from ...case.case import Case
from ...case.code_text import Source, identifier
from ...case.fetching import names_used
from ...code.batched.drawn import samples_an_epoch
from ...code.loader_code import dataset_class, loader_code
from ...schema.figures import count
from ...schema.report_model import Range

NAME = "iterable-sharding"
KIND = "correctness"
EFFORT = "a few lines"

# Batches of each worker and epoch that carry a digest of their contents.
COMPARED = 2
_SHARDS = ("get_worker_info", "worker_info", "split_dataset_by_node", "split_by_worker")
_LISTS = ("paths", "texts", "list", "numbers")


def examine(case: Case) -> Iterator[Outcome]:
    workers = case.num_workers
    if (
        case.loader.kind != "dataloader"
        or case.config.get("dataset_kind") != "iterable"
        or workers < 2
    ):
        return
    alike, epochs, told = _alike(case)
    repeats = alike
    evidence = {"workers": str(workers)}
    if alike >= 2:
        evidence["workers with the same first batches"] = (
            f"{alike} of {workers}, in {epochs} epochs"
        )
    elif not told:
        length = _repeated_length(case)
        if length is None:
            return
        repeats = workers
        evidence["samples an epoch"] = f"{count(length * workers)}, {workers} times {count(length)}"
    else:
        return
    lists = _shared_list(case)
    factor = float(repeats)
    # Where only every N-th sample is kept, each worker still makes all: as slow as now, but each
    # sample once.
    predicted = Range(factor if lists is not None else 1.0, factor, factor)
    yield case.change(code=_code(case, lists), predicted=predicted).advise(
        title="Share the stream out among the workers",
        why=(
            f"{repeats} workers yield the same samples: an epoch holds everything {repeats} times. "
            "The factor is in different samples a second."
        ),
        evidence=evidence,
        caveat="Epochs get shorter by that factor. With several ranks, share out by rank as well.",
    )


def _alike(case: Case) -> tuple[int, int, bool]:
    """(workers whose first batches are the same in all epochs that can be compared, those epochs,
    could it be told)."""
    batches = case.loader.batches
    rows = np.flatnonzero((batches["digest"] >= 0) & (batches["worker"] >= 0))
    first: dict[int, dict[int, list[tuple[int, int]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows.tolist():
        own = first[int(batches["epoch"][row])][int(batches["worker"][row])]
        own.append((int(batches["task"][row]), int(batches["digest"][row])))
    counts = []
    for workers in first.values():
        groups: dict[tuple[int, ...], int] = defaultdict(int)
        complete = 0
        for found in workers.values():
            digests = tuple(digest for _, digest in sorted(found)[:COMPARED])
            # A stream that repeats itself would look alike in every worker, shared out or not.
            if len(digests) == COMPARED and len(set(digests)) == COMPARED:
                groups[digests] += 1
                complete += 1
        if complete >= 2:
            counts.append(max(groups.values()))
    return (min(counts), len(counts), True) if counts else (0, 0, False)


def _repeated_length(case: Case) -> int | None:
    """The length of a list the data set holds, if an epoch gives each of its items once a
    worker."""
    names = names_used(case)
    drawn = samples_an_epoch(case)
    if not names or names & set(_SHARDS) or drawn is None:
        return None
    for part in case.inspection.parts:
        for attribute in part.attributes:
            length = (
                attribute.length
                if attribute.length is not None
                else (attribute.shape or (None,))[0]
            )
            if (
                length
                and length > 1
                and attribute.name in part.names
                and drawn == length * case.num_workers
            ):
                return length
    return None


def _shared_list(case: Case) -> Attribute | None:
    """The one list its `__iter__` goes through; None where there is none, or more than one."""
    part = case.dataset
    if part is None:
        return None
    found = [
        a
        for a in part.attributes
        if a.kind in _LISTS and a.name in part.names and a.name.isidentifier()
    ]
    return found[0] if len(found) == 1 and identifier(found[0].name, "") else None


def _code(case: Case, shared: Attribute | None) -> str:
    name = f"Sharded{dataset_class(case, 'Stream')}"
    lines = ["import copy"] if shared is not None else ["from itertools import islice"]
    lines += [
        "",
        "from torch.utils.data import DataLoader, IterableDataset, get_worker_info",
        "",
        "",
        f"class {name}(IterableDataset):",
        '    """The same stream, of which each worker yields its own part."""',
        "",
        "    def __init__(self, source):",
        "        self.source = source",
        "",
        "    def __iter__(self):",
        "        worker = get_worker_info()",
        "        if worker is None:",
        "            return iter(self.source)",
    ]
    if shared is not None:
        lines += [
            "        mine = copy.copy(self.source)",
            f"        mine.{shared.name} = self.source.{shared.name}[worker.id :: "
            "worker.num_workers]",
            "        return iter(mine)",
        ]
    else:
        lines.append("        return islice(self.source, worker.id, None, worker.num_workers)")
    return "\n".join([*lines, "", "", loader_code(case, dataset=Source(f"{name}(dataset)"))]) + "\n"
