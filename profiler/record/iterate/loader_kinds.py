"""The kinds of DataLoader whose insides are known, found by their features and not by version
numbers (`torch_parts`).

For each, torch's own `_get_iterator` is copied with the measuring iterator classes under the names
of the plain ones, and the multi-process iterator's own `__init__` with our worker target under the
name of torch's (see `fetchers.copied`). The code that runs is torch's, line by line; only
what those names mean differs, and only for watched loaders. Nothing global is patched, so threads
and unwatched loaders never notice.

Before its first use each part is checked. An iterator or a worker of which something is not where
it was stays torch's own, bare, and `gaps` says which figures that costs.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ...base import torch_parts
from ...base.torch_parts import Kind
from ...guard.error_origin import is_ours
from ...store.gaps import EVERYTHING, INSIDE_WORKERS, Gap, Place
from ..transit import fetchers
from ..transit.envelope import opening
from ..transit.worker_target import Target
from .iteration import Iteration
from .iterators import instrumented
from .running import is_measuring, remember

_handed = threading.local()


class WorkerTarget(Target):
    """It learns from the iterator being made where its fetch probe keeps its sums: forked, in the
    child; otherwise when it is pickled."""

    def place(self) -> Place:
        return getattr(_handed, "place", None)


class LoaderKind:
    """One kind of loader, and how its iterators and workers are made to measure."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.gaps: dict[str, Gap] = {}  # by what is bare: single, multi, worker
        self._makers: dict[bool, Callable[[Any], Any]] = {}

    def matches(self, owner: type, get_iterator: Any) -> bool:
        """Whether this is the class, and its `_get_iterator` its own."""
        named = owner.__module__ == self.kind.module and owner.__name__ == self.kind.loader
        return named and getattr(get_iterator, "__module__", None) == self.kind.module

    def prepare(self, get_iterator: Any) -> None:
        """Check the parts, and build the copies with those that are where they were. Never raises
        an `Exception`."""
        self.gaps = {}
        try:
            self._prepare(get_iterator)
        except Exception as error:
            if not is_ours(error):
                raise
            for part in ("single", "multi"):
                self._leave_bare(part, f"{type(error).__name__}: {error}")
            self._makers = dict.fromkeys((False, True), get_iterator)

    def _prepare(self, get_iterator: Any) -> None:
        module = sys.modules[self.kind.module]
        used = torch_parts.names_used([[get_iterator]])
        for part, name in (("single", self.kind.single), ("multi", self.kind.multi)):
            if name not in used or not isinstance(getattr(module, name, None), type):
                self._leave_bare(part, f"its loaders make no {name!r}")
            else:
                self._leave_bare(part, *torch_parts.missing_of_iterator(getattr(module, name)))
        if "multi" not in self.gaps:
            self._leave_bare("worker", *torch_parts.missing_of_worker(self.kind))
        for quiet in (False, True):
            classes = {}
            if "single" not in self.gaps:
                classes[self.kind.single] = _taking_its_step(
                    instrumented(getattr(module, self.kind.single), quiet)
                )
            if "multi" not in self.gaps:
                multi = instrumented(getattr(module, self.kind.multi), quiet)
                own = _with_torchs_workers if "worker" in self.gaps else self._with_worker
                classes[self.kind.multi] = _taking_its_step(own(multi))
            self._makers[quiet] = fetchers.copied(get_iterator, classes)

    def _leave_bare(self, part: str, *missing: str) -> None:
        if missing:
            where = "loaders without workers" if part == "single" else "loaders with workers"
            figures = INSIDE_WORKERS if part == "worker" else EVERYTHING
            self.gaps[part] = Gap(self.kind.package, where, missing, figures)

    def begin(self, loader: Any, step: Iteration) -> Callable[[Any], Any]:
        """What makes the next iterator of this loader, measuring; `made` is to be told. It raises
        what torch raises."""
        # torch warns about a wrong len() of an iterable dataset from `__next__`, see
        # `instrumented`.
        quiet = getattr(loader, "_IterableDataset_len_called", None) is not None
        # Workers of two pools at once would write to the same files.
        _handed.step, _handed.place = (
            step,
            step.recorder.place_of_probe(step.epoch) if step.alone else None,
        )
        return self._makers[quiet]

    def made(self, iterator: Any, step: Iteration) -> Any:
        """The iterator, measuring from its first batch on; None where torch raised."""
        _handed.step = _handed.place = None
        if iterator is not None:
            try:
                self._finish(iterator, step, getattr(iterator, "_num_workers", 0))
            except BaseException as error:  # torch's iterator is made, and must be had
                if not step.recorder.failed(error):
                    raise
                if is_measuring(iterator):
                    iterator._ls = None
        return iterator

    def _finish(self, iterator: Any, step: Iteration, num_workers: int) -> None:
        if is_measuring(iterator):
            finish(iterator, step)
            gap = self.gaps.get("worker") if num_workers else None
        else:
            made = f"its loaders make a {type(iterator).__name__!r}"
            gap = self.gaps.get("multi" if num_workers else "single")
            gap = gap or Gap(self.kind.package, "such loaders", (made,), EVERYTHING)
        if gap is not None:
            step.recorder.note_gap(gap)

    def when_imported(self, hook: Callable[[type], None]) -> Callable[[], None]:
        """Hook this family's loader class now, or as soon as its module is imported; returns what
        ends the waiting."""
        from .imports import after_import

        return after_import(
            self.kind.module, lambda: hook(getattr(sys.modules[self.kind.module], self.kind.loader))
        )

    def _with_worker(self, cls: type) -> type:
        base = cls.__mro__[1]
        held = sys.modules[self.kind.module]
        first, *inner = self.kind.worker_names
        replaced = _with_replaced(getattr(held, first), inner, WorkerTarget(self.kind))
        cls.__init__ = fetchers.copied(base.__init__, {first: replaced})  # type: ignore[misc]
        return cls


def _taking_its_step(cls: type) -> type:
    """The class, whose instances take the step handed to this thread."""

    def new(made: type, *args: Any, **kwargs: Any) -> Any:
        iterator: Any = object.__new__(made)
        # Set before `__init__`, which draws the first indices already; and without a frame of ours
        # around it, since torch warns from there with `stacklevel=2`.
        iterator._ls = getattr(_handed, "step", None)
        return iterator

    cls.__new__ = new  # type: ignore[method-assign, assignment]
    return cls


def _with_torchs_workers(cls: type) -> type:
    """The class as it was made: it may have been given our workers before."""
    if "__init__" in vars(cls):
        del cls.__init__  # type: ignore[misc]
    return cls


def _with_replaced(value: Any, names: list[str], replacement: Any) -> Any:
    """`value` with what these names lead to replaced; `replacement` itself where there are none."""
    if not names:
        return replacement
    first, *inner = names
    return _Instead(value, **{first: _with_replaced(getattr(value, first), inner, replacement)})


class _Instead(SimpleNamespace):
    """A module with some names replaced."""

    def __init__(self, module: Any, **replaced: Any) -> None:
        super().__init__(**replaced)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_module"), name)


def finish(iterator: Any, step: Iteration) -> None:
    """After construction: mark the fetcher, or note the workers."""
    if hasattr(iterator, "_dataset_fetcher"):
        iterator._dataset_fetcher = fetchers.mark_collate(
            iterator._dataset_fetcher, step, marks_end=True
        )
    workers = getattr(iterator, "_workers", None)
    if workers:
        queue = iterator._worker_result_queue
        if hasattr(queue, "_recv_bytes"):
            opening(queue, stateful=hasattr(iterator, "_snapshot_interval"))
        step.recorder.workers_started(step.epoch, [w.pid for w in workers])
    remember(iterator)


_FAMILIES = (LoaderKind(torch_parts.TORCH), LoaderKind(torch_parts.TORCHDATA))


def known_families() -> tuple[LoaderKind, ...]:
    return _FAMILIES


def family_of(owner: type, get_iterator: Any) -> LoaderKind | None:
    """The family that knows this class, ready for use; None where only waiting can be measured."""
    for family in _FAMILIES:
        if family.matches(owner, get_iterator):
            family.prepare(get_iterator)
            return family
    return None
