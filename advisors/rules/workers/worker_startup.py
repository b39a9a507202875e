"""Workers that start slowly, because the data set is pickled to each of them.

What it looks for
    Workers started by spawn or forkserver, at least 1 s from iter() to the first batch
    (SLOW_START_US) and more than 5 % of the time (START_SHARE), with arrays of 10 MB or lists of
    100,000 items in the data set (HEAVY_BYTES, LONG).

Why it matters
    A spawned worker is a new Python process. It imports everything again and gets the data set
    through a pipe, pickled once per worker, one worker after the other. Python 3.14 starts workers
    this way by default.

What to change
    Keep metadata in tensors, which cross in shared memory, or in one packed tensor. Open files and
    databases in the worker, at first use. Or ask for fork.

When not to
    fork copies a process that may hold locks of other threads or a CUDA context. A forked worker
    must not use CUDA, and now and then hangs if a library runs threads of its own. That is why it
    is no longer Python's default.
"""

from ....profiler.store.inspection import Attribute
from ...case.advice import Outcomes, Unmeasured
from ...case.case import Case
from ...case.workers import start_method
from ...code.inputs import Held, heavy_attributes
from ...code.loader_code import loader_code
from ...code.template import code_from
from ...schema.evidence import Figure, count, percent, size, us
from ...stage_model.measured import measured
from ...stage_model.stages import startup_ns

NEEDS = "prediction workers"

SLOW_START_US = 1e6
START_SHARE = 0.05
# What pickles in some 10 ms is not what makes a start slow.
HEAVY_BYTES = 10_000_000
LONG = 100_000
# Pickling is part of a start. Importing torch and the user's modules (1 to 2 s) stays.
LEFT = (0.2, 0.8)


def examine(case: Case) -> Outcomes:
    method = start_method(case)
    startup = measured(startup_ns(case.loader))
    if method == "fork" or not len(startup) or not case.report.wall_s:
        return
    mean_us = float(startup.mean()) / 1e3
    share = min(1.0, float(startup.sum()) / 1e9 / case.report.wall_s)
    if mean_us < SLOW_START_US or share <= START_SHARE:
        return
    if case.dataset is None:
        yield Unmeasured("workers start slowly, but what the data set holds was not recorded")
        return
    heavy = heavy_attributes(case.dataset, HEAVY_BYTES, LONG)
    if not heavy:
        return
    names = ", ".join(held.attribute.name for held in heavy)
    yield case.change(code=_code(case, heavy), startup=LEFT).advise(
        "Let the workers share the data set's metadata instead of unpickling it",
        f"Each of the {case.num_workers} workers is a new process that gets a pickled copy of the "
        f"data set ({names}): {us(mean_us)} until the first batch.",
        {
            "a start": us(mean_us),
            "starts": percent(share, "of all time"),
            "workers": count(case.num_workers, f"by {method}"),
            **{f"{held.owner}.{held.attribute.name}": _weight(held.attribute) for held in heavy},
        },
        caveat="What __getitem__ gets out of a tensor is a tensor: .item() makes a number of it. "
        "If nothing in the workers uses CUDA or threads, "
        'multiprocessing_context="fork" starts them without pickling anything.',
    )


def _weight(held: Attribute) -> Figure | None:
    if held.nbytes:
        return size(held.nbytes, f"({held.kind})")
    return count(held.length or 0, f"items ({held.kind})")


def _code(case: Case, heavy: list[Held]) -> str:
    forms = {
        "ndarray": "{0} = torch.from_numpy({0})",
        "numbers": "{0} = torch.tensor({0})",
        **dict.fromkeys(("texts", "paths", "list"), "{0} = PackedList({0})"),
    }
    lines = [
        forms.get(held.attribute.kind, "# {0}: open or read it in the worker, at first use").format(
            held.code
        )
        for held in heavy
    ]
    then = "\n".join([*lines, loader_code(case), ""])
    if "PackedList(" in then:
        return code_from("packed_list", "PackedList", then=then)
    return f"import torch\n\n{then}"
