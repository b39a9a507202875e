"""Workers that start slowly, because the data set is pickled to each of them.

What it looks for
    Workers started by spawn or forkserver, at least 1 s from iter() to the first batch
    (SLOW_START_US) and more than 5 % of the time (START_SHARE), with arrays of 10 MB or lists of
    100,000 items in the data set (HEAVY_BYTES, LONG).

Why it matters
    A spawned worker is a new Python: it imports everything again and gets the data set through a
    pipe, pickled once a worker and one worker after the other. Python 3.14 starts workers this way
    by default.

What to change
    Keep metadata in tensors, which cross in shared memory, or in one packed tensor; open files and
    data bases in the worker, at first use. Or ask for fork.

When not to
    fork copies a process that may hold locks of other threads or a CUDA context: a forked worker
    must not use CUDA, and hangs now and then beside libraries with threads of their own. That is
    why it is no longer Python's default.
"""

from __future__ import annotations

from collections.abc import Iterator

from ....profiler.store.inspection import Attribute
from ...case.advice import Outcome, Unmeasured
from ...case.case import Case
from ...case.evidence import start_method
from ...code.inputs import Held, heavy_attributes
from ...code.loader_code import loader_code
from ...code.template import code_from
from ...schema.figures import count, percent, size, us
from ...stage_model.measured import measured
from ...stage_model.stages import startup_ns

NAME = "worker-startup"
KIND = "speed"
EFFORT = "a few lines"

SLOW_START_US = 1e6
START_SHARE = 0.05
# What pickles in some 10 ms is not what makes a start slow.
HEAVY_BYTES = 10_000_000
LONG = 100_000
# Pickling is part of a start, importing torch and the user's modules another (1 to 2 s) that stays.
LEFT = (0.2, 0.8)


def examine(case: Case) -> Iterator[Outcome]:
    method = start_method(case)
    if not case.num_workers or method == "fork" or case.whatif is None:
        return
    startup = measured(startup_ns(case.loader))
    wall_s = case.report.wall_s
    if not len(startup) or not wall_s:
        return
    mean_us, share = float(startup.mean()) / 1e3, min(1.0, float(startup.sum()) / 1e9 / wall_s)
    if mean_us < SLOW_START_US or share <= START_SHARE:
        return
    if case.dataset is None:
        yield Unmeasured("workers start slowly, but what the data set holds was not recorded")
        return
    heavy = heavy_attributes(case.dataset, HEAVY_BYTES, LONG)
    evidence = {
        "a start": us(mean_us),
        "starts": f"{percent(share)} of all time",
        "workers": f"{case.num_workers}, by {method}",
    }
    if not heavy:
        return
    for held in heavy:
        evidence[f"{held.owner}.{held.attribute.name}"] = _weight(held.attribute)
    names = ", ".join(held.attribute.name for held in heavy)
    yield case.change(code=_code(case, heavy), startup=LEFT).advise(
        title="Let the workers share the data set's metadata instead of unpickling it",
        why=f"Each of the {case.num_workers} workers is a new process that gets a pickled copy of "
        f"the data set ({names}): {us(mean_us)} until the first batch.",
        evidence=evidence,
        caveat="What __getitem__ gets out of a tensor is a tensor: .item() makes a number of it. "
        "Where nothing in the "
        'workers uses CUDA or threads, multiprocessing_context="fork" starts them without pickling '
        "anything.",
    )


def _weight(attribute: Attribute) -> str:
    if attribute.nbytes:
        return f"{size(attribute.nbytes)} ({attribute.kind})"
    return f"{count(attribute.length or 0)} items ({attribute.kind})"


def _code(case: Case, heavy: list[Held]) -> str:
    lines, packed = [], False
    for held in heavy:
        kind = held.attribute.kind
        if kind == "ndarray":
            lines.append(f"{held.code} = torch.from_numpy({held.code})")
        elif kind == "numbers":
            lines.append(f"{held.code} = torch.tensor({held.code})")
        elif kind in ("texts", "paths", "list"):
            packed = True
            lines.append(f"{held.code} = PackedList({held.code})")
        else:
            lines.append(f"# {held.code}: open or read it in the worker, at first use")
    then = "\n".join([*lines, loader_code(case), ""])
    return (
        code_from("packed_list", "PackedList", then=then) if packed else f"import torch\n\n{then}"
    )
