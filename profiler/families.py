"""The kinds of DataLoader whose insides are known, found by their features and not by version numbers.

For each, torch's own `_get_iterator` is copied with the measuring iterator classes under the names of the plain ones,
and the multi-process iterator's own `__init__` with our worker target under the name of torch's (see
`iterators.with_globals`). The code that runs is torch's, line by line; only what those names mean differs, and only
for watched loaders. Nothing global is patched, so threads and unwatched loaders never notice.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from . import fetchers
from .adopt import remember
from .envelope import opening
from .iterators import instrumented, with_globals
from .recorder import Step, failed
from .worker import run_torch_worker, run_torchdata_worker

_handed = threading.local()


class WorkerTarget:
    """What a worker process runs. It learns from the iterator being made where to keep what its looks see: forked, in
    the child; otherwise when it is pickled."""

    def __init__(self, run: Callable[..., None]) -> None:
        self._run = run

    def __call__(self, *args: Any) -> None:
        self._run(getattr(_handed, "place", None), *args)

    def __reduce__(self) -> Any:
        return functools.partial, (self._run, getattr(_handed, "place", None))


class Family:
    """One kind of loader: where its iterator classes live, and how its workers are started."""

    def __init__(
        self, module: str, owner: str, single: str, multi: str, worker_global: str, worker: Callable[..., None]
    ) -> None:
        self.module = module
        self.owner = owner
        self.single = single
        self.multi = multi
        self.worker_global = worker_global
        self.worker = worker
        self._makers: dict[bool, Callable[[Any], Any]] = {}

    def matches(self, owner: type, get_iterator: Any) -> bool:
        """Whether `_get_iterator` of this class is the one this family knows."""
        names = getattr(getattr(get_iterator, "__code__", None), "co_names", ())
        return (
            owner.__module__ == self.module
            and owner.__name__ == self.owner
            and self.single in names
            and self.multi in names
        )

    def prepare(self, get_iterator: Any) -> None:
        """Build the copies; raises KeyError or AttributeError where this torch is unlike those we know."""
        for quiet in (False, True):
            single = instrumented(getattr(sys.modules[self.module], self.single), quiet)
            multi = instrumented(getattr(sys.modules[self.module], self.multi), quiet)
            classes = {self.single: _taking_its_step(single), self.multi: _taking_its_step(self._with_worker(multi))}
            self._makers[quiet] = with_globals(get_iterator, classes)

    def begin(self, loader: Any, step: Step) -> Callable[[Any], Any]:
        """What makes the next iterator of this loader, measuring; `made` is to be told. It raises what torch raises."""
        # torch warns about a wrong len() of an iterable dataset from `__next__`, see `instrumented`.
        quiet = getattr(loader, "_IterableDataset_len_called", None) is not None
        _handed.step, _handed.place = step, step.recorder.place_of_looks(step.epoch)
        return self._makers[quiet]

    def made(self, iterator: Any, step: Step) -> Any:
        """The iterator, measuring from its first batch on; None where torch raised."""
        _handed.step = _handed.place = None
        if iterator is not None:
            try:
                finish(iterator, step)
            except BaseException as error:  # torch's iterator is made, and must be had
                if not failed(error, step.recorder):
                    raise
                iterator._ls = None
        return iterator

    def when_imported(self, hook: Callable[[type], None]) -> None:
        """Hook this family's loader class now, or as soon as its module is imported."""
        from .imports import after_import

        after_import(self.module, lambda: hook(getattr(sys.modules[self.module], self.owner)))

    def _with_worker(self, cls: type) -> type:
        base = cls.__mro__[1]
        module = sys.modules[self.module]
        substitute: Any = WorkerTarget(self.worker)
        if self.worker_global == "_utils":
            utils = module._utils
            substitute = _Instead(utils, worker=_Instead(utils.worker, _worker_loop=substitute))
        cls.__init__ = with_globals(base.__init__, {self.worker_global: substitute})  # type: ignore[misc]
        return cls


def _taking_its_step(cls: type) -> type:
    """The class, whose instances take the step handed to this thread."""

    def new(made: type, *args: Any, **kwargs: Any) -> Any:
        iterator: Any = object.__new__(made)
        # Set before `__init__`, which draws the first indices already; and without a frame of ours around it, since
        # torch warns from there with `stacklevel=2`.
        iterator._ls = getattr(_handed, "step", None)
        return iterator

    cls.__new__ = new  # type: ignore[method-assign, assignment]
    return cls


class _Instead(SimpleNamespace):
    """A module with some names replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        super().__init__(**replaced)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_module"), name)


def finish(iterator: Any, step: Step) -> None:
    """After construction: mark the fetcher, or note the workers."""
    if hasattr(iterator, "_dataset_fetcher"):
        iterator._dataset_fetcher = fetchers.mark_collate(iterator._dataset_fetcher, step, marks_end=True)
    workers = getattr(iterator, "_workers", None)
    if workers:
        queue = iterator._worker_result_queue
        if hasattr(queue, "_recv_bytes"):
            opening(queue, stateful=hasattr(iterator, "_snapshot_interval"))
        step.recorder.workers_started(step.epoch, [w.pid for w in workers])
    remember(iterator)


_FAMILIES = (
    Family(
        "torch.utils.data.dataloader",
        "DataLoader",
        "_SingleProcessDataLoaderIter",
        "_MultiProcessingDataLoaderIter",
        "_utils",
        run_torch_worker,
    ),
    Family(
        "torchdata.stateful_dataloader.stateful_dataloader",
        "StatefulDataLoader",
        "_StatefulSingleProcessDataLoaderIter",
        "_StatefulMultiProcessingDataLoaderIter",
        "_worker_loop",
        run_torchdata_worker,
    ),
)


def known_families() -> tuple[Family, ...]:
    return _FAMILIES


def family_of(owner: type, get_iterator: Any) -> Family | None:
    """The family that knows this class, ready for use; None where only waiting can be measured."""
    for family in _FAMILIES:
        if family.matches(owner, get_iterator):
            try:
                family.prepare(get_iterator)
            except (KeyError, AttributeError, TypeError):
                return None
            return family
    return None
