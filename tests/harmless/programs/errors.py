"""Tracebacks, warnings and stacks as they are printed: the user's lines and torch's, none of ours,
none missing."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, IterableDataset

from ..catalogue import Watch, program, say
from ..data import Rows, eat
from .table import BadCollate, Failing, caught


def loader_of(watch: Watch, dataset: Any, workers: int, **more: Any) -> Any:
    return watch(DataLoader(dataset, num_workers=workers, **{"batch_size": 4, **more}))


class Quoting(Rows):
    """An error that quotes a traceback through our files, as a bug report does."""

    def __getitem__(self, index: int) -> Any:
        import importlib.util

        ours = os.path.dirname(importlib.util.find_spec("loaderscope").origin)  # type: ignore[union-attr,arg-type,type-var]
        raise ValueError(
            f'yesterday:\n  File "{ours}/profiler/iterators.py", line 7, in step\n    data = '
            "base_call(self)\nits end"
        )


class Deep(Rows):
    """What its own stack looks like, from inside."""

    def __getitem__(self, index: int) -> Any:
        if index == 0:
            stack = traceback.extract_stack()
            say("stack", [[os.path.basename(frame.filename), frame.name] for frame in stack])
        return index


class Chained(Rows):
    def __getitem__(self, index: int) -> Any:
        try:
            raise KeyError("first")
        except KeyError as error:
            raise LookupError("second") from error


class Group(Rows):
    def __getitem__(self, index: int) -> Any:
        if sys.version_info >= (3, 11):
            raise ExceptionGroup("several", [ValueError("one"), TypeError("two")])  # noqa: F821
        raise ValueError("several")


class Picky(Exception):
    """Cannot be made from a text, so torch says so another way."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


class Raises(Rows):
    def __getitem__(self, index: int) -> Any:
        raise Picky(1, 2)


class BadIter(IterableDataset):
    def __iter__(self) -> Any:
        raise OSError(2, "no such stream")


class BadIterator(DataLoader):
    def _get_iterator(self) -> Any:
        raise RuntimeError("no iterator today")


class BadIndices:
    """Fails when it is asked, or after so many."""

    def __init__(self, given: int) -> None:
        self.given = given

    def __iter__(self) -> Any:
        if not self.given:
            raise LookupError("no indices")
        return self.drawn()

    def drawn(self) -> Any:
        yield from range(self.given)
        raise LookupError("no more indices")


class BadGetstate(Rows):
    def __getstate__(self) -> Any:
        raise TypeError("cannot be pickled")


class WrongLength(IterableDataset):
    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Any:
        return iter(range(8))


def bad_init(worker: int) -> None:
    raise OSError(f"worker {worker} has no disk")


def warning_collate(samples: Any) -> Any:
    warnings.warn("ragged", UserWarning, stacklevel=2)
    return samples


def _beyond(watch: Watch, workers: int) -> None:
    iterator = iter(loader_of(watch, Rows(8), workers))
    while True:
        next(iterator)


# The data set and further arguments of a loader, and whether batches are recorded.
LOADERS: dict[str, tuple[Any, dict[str, Any], bool]] = {
    "sample": (Failing, {}, True),
    "collate": (Rows, {"collate_fn": BadCollate}, True),
    "quoted-path": (Quoting, {}, False),
    "chained": (Chained, {}, False),
    "group": (Group, {}, False),
    "picky": (Raises, {}, False),
    "iter": (BadIter, {}, False),
    "single": (Failing, {"batch_size": lambda: None}, True),
    "sampler-at-once": (Rows, {"sampler": lambda: BadIndices(0)}, False),
    "sampler": (Rows, {"sampler": lambda: BadIndices(1)}, False),
    "sampler-later": (Rows, {"sampler": lambda: BadIndices(9)}, False),
}


def ends(watch: Watch, workers: int, dataset: Any, more: dict[str, Any]) -> None:
    eat(loader_of(watch, dataset(), workers, **{name: make() for name, make in more.items()}))


def bad_iterator(watch: Watch, workers: int) -> None:
    eat(watch(BadIterator(Rows(), num_workers=workers)))


CASES: dict[str, tuple[Any, bool]] = {
    **{
        name: (partial(ends, dataset=dataset, more=more), recorded)
        for name, (dataset, more, recorded) in LOADERS.items()
    },
    "iterator": (bad_iterator, False),
    "next-after-end": (_beyond, True),
}
for what, (case, recorded) in CASES.items():
    for workers in (0, 1):

        def run(watch: Watch, case: Any = case, workers: int = workers) -> None:
            caught(lambda: case(watch, workers))

        program(f"errors/{what}-{workers}", watched=("watch", "all-pure"), recorded=recorded)(run)


@program("errors/worker-init", recorded=False)
def worker_init_fails(watch: Watch) -> None:
    caught(lambda: eat(loader_of(watch, Rows(), 1, worker_init_fn=bad_init)))


@program("errors/bad-arguments", recorded=False)
def constructor_fails(watch: Watch) -> None:
    """The iterator's own: a data set that cannot be pickled for a spawned worker, a generator that
    is none."""
    caught(lambda: eat(loader_of(watch, BadGetstate(), 1, multiprocessing_context="spawn")))
    caught(lambda: eat(loader_of(watch, Rows(), 0, generator="none")))


@program("errors/stack-in-worker", watched=("watch", "all-pure"))
def a_stack_seen_in_a_worker(watch: Watch) -> None:
    eat(loader_of(watch, Deep(), 1))


@program("errors/stack-in-main", watched=("watch", "watch-pure"))
def a_stack_seen_in_main(watch: Watch) -> None:
    eat(loader_of(watch, Deep(), 0))


def warned_of_a_wrong_length(watch: Watch, workers: int) -> None:
    loader = loader_of(watch, WrongLength(), workers)
    say("length", len(loader))
    eat(loader)


@program("errors/too-many-workers")
def warned_of_many_workers(watch: Watch) -> None:
    eat(loader_of(watch, Rows(), 5))


@program("errors/warnings-are-errors")
def warnings_raise(watch: Watch) -> None:
    """`-W error`: whatever we do must warn of nothing."""
    warnings.simplefilter("error")
    caught(lambda: eat(loader_of(watch, Rows(), 0)))
    caught(lambda: eat(loader_of(watch, Rows(), 0, collate_fn=warning_collate)))


@program("errors/hooks")
def hooks_of_the_user(watch: Watch) -> None:
    """His excepthook and unraisablehook are called for his own errors only."""
    sys.excepthook = lambda kind, error, trace: say("except", kind.__name__)
    sys.unraisablehook = lambda raised: say("unraisable", repr(raised.exc_type))
    eat(loader_of(watch, Rows(), 0))
    raise ValueError("the end")


@program("errors/traced")
def traced(watch: Watch) -> None:
    """A profiler's hook sees calls of his own code as often as bare."""
    calls: dict[str, int] = {}

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.endswith(
            ("harmless/data.py", "programs/errors.py")
        ):
            calls[frame.f_code.co_name] = calls.get(frame.f_code.co_name, 0) + 1

    loader = loader_of(watch, Rows(), 0)
    sys.setprofile(profile)
    eat(loader)
    sys.setprofile(None)
    say("calls", calls)


def listed(watch: Watch, workers: int) -> None:
    """What a profiler lists, and what a tracer is told of, around whole loops."""
    import cProfile
    import importlib.util

    ours = os.path.dirname(importlib.util.find_spec("loaderscope").origin) + os.sep  # type: ignore[union-attr,arg-type,type-var]
    loader = loader_of(watch, Rows(), workers, shuffle=True)
    traced = set()

    def trace(frame: Any, event: str, argument: Any) -> None:
        traced.add((frame.f_code.co_filename, frame.f_code.co_name))

    profiler = cProfile.Profile()
    profiler.enable()
    eat(loader)
    profiler.disable()
    sys.settrace(trace)
    eat(loader)
    sys.settrace(None)
    entries = [entry.code for entry in profiler.getstats() if type(entry.code) is not str]
    for tool, told in (
        ("profiler", {(code.co_filename, code.co_name) for code in entries}),
        ("tracer", traced),
    ):
        found = {each for each in told if "_weakrefset" not in each[0]}  # as garbage goes
        own = sorted(
            f"{os.path.basename(file)} {name}" for file, name in found if file.startswith(ours)
        )
        say(f"{tool}: frames of ours", own)
        say(
            f"{tool}: others",
            sorted(f"{file} {name}" for file, name in found if not file.startswith(ours)),
        )


for workers in (0, 2):
    for name, function, ways in (
        ("listed", listed, ("watch", "all")),
        ("wrong-length", warned_of_a_wrong_length, ("watch", "all-pure")),
    ):

        def run(watch: Watch, function: Any = function, workers: int = workers) -> None:
            function(watch, workers)

        program(f"errors/{name}-{workers}", watched=ways)(run)


class Recursing(Rows):
    """How much deeper a sample may go, of a limit 60 above the loop."""

    def __getitem__(self, index: int) -> Any:
        def down(depth: int) -> int:
            try:
                return down(depth + 1)
            except RecursionError:
                return depth

        if index % 20 == 0:
            say("deeper", down(0))
        return index


@program("errors/recursion", watched=("watch", "all-pure"))
def near_the_limit_of_recursion(watch: Watch) -> None:
    loader = loader_of(watch, Recursing(), 0)
    before, depth = sys.getrecursionlimit(), len(traceback.extract_stack())
    sys.setrecursionlimit(depth + 60)
    try:
        for _ in loader:
            pass
    finally:
        sys.setrecursionlimit(before)


@program("errors/fatal", watched=("watch", "all"))
def killed_by_an_error_in_c(watch: Watch) -> None:
    """What faulthandler says of it."""
    import faulthandler

    faulthandler.enable()
    for number, _ in enumerate(loader_of(watch, Rows(), 0)):
        if number == 3:
            os.kill(os.getpid(), signal.SIGABRT)


@program("errors/anomaly")
def in_a_backward_pass(watch: Watch) -> None:
    """Training proper: a model, a loss, an optimiser; the weights are what they are bare."""
    torch.manual_seed(3)
    model = torch.nn.Linear(2, 1)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        for _, inputs, *_ in loader_of(watch, Rows(), 0, shuffle=True):
            optimiser.zero_grad()
            model(inputs).square().mean().backward()
            optimiser.step()
    say("weights", [parameter.tolist() for parameter in model.parameters()])
