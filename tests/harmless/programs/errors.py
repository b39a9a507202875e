"""Tracebacks, warnings and stacks as printed: the user's lines and torch's, none of ours."""

from __future__ import annotations

import cProfile
import faulthandler
import importlib.util
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


def our_folder() -> str:
    """Without an import of it: bare, it is not imported."""
    return os.path.dirname(importlib.util.find_spec("loaderscope").origin)  # type: ignore[union-attr,arg-type,type-var]


class Raises(Rows):
    """Each sample raises what `fail` does."""

    def __init__(self, fail: Any) -> None:
        super().__init__()
        self.fail = fail

    def __getitem__(self, index: int) -> Any:
        self.fail()


def quoting() -> None:
    """An error that quotes a traceback through our files, as a bug report does."""
    line = f'  File "{our_folder()}/profiler/iterators.py", line 7, in step'
    raise ValueError(f"yesterday:\n{line}\n    data = base_call(self)\nits end")


class Deep(Rows):
    """What its own stack looks like, from inside."""

    def __getitem__(self, index: int) -> Any:
        if index == 0:
            stack = traceback.extract_stack()
            say("stack", [[os.path.basename(frame.filename), frame.name] for frame in stack])
        return index


def chained() -> None:
    try:
        raise KeyError("first")
    except KeyError as error:
        raise LookupError("second") from error


def group() -> None:
    if sys.version_info >= (3, 11):
        raise ExceptionGroup("several", [ValueError("one"), TypeError("two")])  # noqa: F821
    raise ValueError("several")


class Picky(Exception):
    """Cannot be made from a text, so torch says so another way."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one, two)


def picky() -> None:
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


def beyond(watch: Watch, workers: int) -> None:
    iterator = iter(loader_of(watch, Rows(8), workers))
    while True:
        next(iterator)


def ends(dataset: Any, **more: Any) -> Any:
    """Eats a loader over it, of which all is made anew."""

    def run(watch: Watch, workers: int) -> None:
        eat(loader_of(watch, dataset(), workers, **{name: make() for name, make in more.items()}))

    return run


# What fails, and whether batches are recorded.
CASES: dict[str, tuple[Any, bool]] = {
    "sample": (ends(Failing), True),
    "collate": (ends(Rows, collate_fn=BadCollate), True),
    "quoted-path": (ends(partial(Raises, quoting)), False),
    "chained": (ends(partial(Raises, chained)), False),
    "group": (ends(partial(Raises, group)), False),
    "picky": (ends(partial(Raises, picky)), False),
    "iter": (ends(BadIter), False),
    "single": (ends(Failing, batch_size=lambda: None), True),
    "sampler-at-once": (ends(Rows, sampler=lambda: BadIndices(0)), False),
    "sampler": (ends(Rows, sampler=lambda: BadIndices(1)), False),
    "sampler-later": (ends(Rows, sampler=lambda: BadIndices(9)), False),
    "iterator": (lambda watch, n: eat(watch(BadIterator(Rows(), num_workers=n))), False),
    "next-after-end": (beyond, True),
}


def for_each(name: str, workers: tuple[int, ...], case: Any, **how: Any) -> None:
    """The program for each number of workers; what it raises is said."""
    for number in workers:

        def run(watch: Watch, number: int = number) -> None:
            caught(lambda: case(watch, number))

        program(f"errors/{name}-{number}", **how)(run)


for what, (case, recorded) in CASES.items():
    for_each(what, (0, 1), case, watched=("watch", "all-pure"), recorded=recorded)


@program("errors/bad-arguments", recorded=False)
def workers_or_the_constructor_fail(watch: Watch) -> None:
    """A worker that cannot begin, data that cannot be pickled for one, a generator that is none."""
    caught(lambda: eat(loader_of(watch, Rows(), 1, worker_init_fn=bad_init)))
    caught(lambda: eat(loader_of(watch, BadGetstate(), 1, multiprocessing_context="spawn")))
    caught(lambda: eat(loader_of(watch, Rows(), 0, generator="none")))


def stack_in(workers: int) -> Any:
    return lambda watch: eat(loader_of(watch, Deep(), workers))


program("errors/stack-in-worker", watched=("watch", "all-pure"))(stack_in(1))
program("errors/stack-in-main", watched=("watch", "watch-pure"))(stack_in(0))
program("errors/too-many-workers")(lambda watch: eat(loader_of(watch, Rows(), 5)))


def warned_of_a_wrong_length(watch: Watch, workers: int) -> None:
    loader = loader_of(watch, WrongLength(), workers)
    say("length", len(loader))
    eat(loader)


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
    own = ("harmless/data.py", "programs/errors.py")

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_filename.endswith(own):
            calls[frame.f_code.co_name] = calls.get(frame.f_code.co_name, 0) + 1

    loader = loader_of(watch, Rows(), 0)
    sys.setprofile(profile)
    eat(loader)
    sys.setprofile(None)
    say("calls", calls)


def listed(watch: Watch, workers: int) -> None:
    """What a profiler lists, and what a tracer is told of, around whole loops."""
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
    codes = [entry.code for entry in profiler.getstats() if type(entry.code) is not str]
    listed = {(code.co_filename, code.co_name) for code in codes}
    for tool, told in (("profiler", listed), ("tracer", traced)):
        found = {each for each in told if "_weakrefset" not in each[0]}  # as garbage goes
        ours = {each for each in found if each[0].startswith(our_folder() + os.sep)}
        own = sorted(f"{os.path.basename(file)} {name}" for file, name in ours)
        say(f"{tool}: frames of ours", own)
        say(f"{tool}: others", sorted(f"{file} {name}" for file, name in found - ours))


for_each("listed", (0, 2), listed, watched=("watch", "all"))
for_each("wrong-length", (0, 2), warned_of_a_wrong_length, watched=("watch", "all-pure"))


class Recursing(Rows):
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
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(traceback.extract_stack()) + 60)
    try:
        for _ in loader:
            pass
    finally:
        sys.setrecursionlimit(before)


@program("errors/fatal", watched=("watch", "all"))
def killed_by_an_error_in_c(watch: Watch) -> None:
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
