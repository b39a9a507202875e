"""The kinds of DataLoader whose insides are known, found by their features and not by version
numbers (`torch_parts`).

For each kind, torch's `_get_iterator` is copied with the measuring iterator classes under the names
of the plain ones, and the multi-process iterator's `__init__` with our worker target under the name
of torch's (see `fetchers.copied`). So torch's code runs line by line, and only for watched loaders.
Nothing global is patched.

Each part is checked before its first use. If something is not where it was, the iterator or worker
stays bare, and `gaps` says which figures that costs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from ...base import torch_parts
from ...base.torch_parts import Kind
from ...guard.error_origin import is_ours
from ...store.gaps import EVERYTHING, INSIDE_WORKERS, Gap
from ..transit import fetchers
from ..transit.envelope import opening
from ..transit.worker_target import Target, handed
from .imports import after_import
from .iteration import Iteration
from .iterators import instrumented, is_measuring, is_quiet, mark_parts, measured


class LoaderKind:
    """One kind of loader, and how its iterators and workers are made to measure."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.gaps: dict[str, Gap] = {}  # by bare part: single, multi, worker
        self._makers: dict[bool, Callable[[Any], Any]] = {}

    def prepare(self, get_iterator: Any) -> None:
        """Check the parts, and build copies with those that are where they were."""
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
        used = torch_parts.names_used(get_iterator)
        names = {"single": self.kind.single, "multi": self.kind.multi}
        for part, name in names.items():
            base = getattr(module, name, None)
            if name not in used or not isinstance(base, type):
                self._leave_bare(part, f"its loaders make no {name!r}")
            else:
                self._leave_bare(part, *torch_parts.missing_of_iterator(base))
        if "multi" not in self.gaps:
            self._leave_bare("worker", *torch_parts.missing_of_worker(self.kind))
        for quiet in (False, True):
            classes: dict[str, Any] = {}
            for part, name in names.items():
                if part not in self.gaps:
                    cls = classes[name] = instrumented(getattr(module, name), quiet)
                    cls.__new__ = new  # type: ignore[method-assign, assignment]
            if self.kind.multi in classes:
                self._set_workers(classes[self.kind.multi])
            self._makers[quiet] = fetchers.copied(get_iterator, classes)

    def _leave_bare(self, part: str, *missing: str) -> None:
        if missing:
            where = "loaders without workers" if part == "single" else "loaders with workers"
            figures = INSIDE_WORKERS if part == "worker" else EVERYTHING
            self.gaps[part] = Gap(self.kind.package, where, missing, figures)

    def _set_workers(self, cls: Any) -> None:
        """Let iterators of this class start our workers, or torch's if those stay bare."""
        cls.__init__ = cls.__mro__[1].__init__
        if "worker" not in self.gaps:
            first, *inner = self.kind.worker_names
            held = getattr(sys.modules[self.kind.module], first)
            replaced = _with_replaced(held, inner, Target(self.kind))
            cls.__init__ = fetchers.copied(cls.__init__, {first: replaced})

    def begin(self, loader: Any, step: Iteration) -> Callable[[Any], Any]:
        """The function that makes the loader's next, measuring iterator, which goes to `made`."""
        # Workers of two pools at once would write to the same files.
        handed.place = step.recorder.place_of_probe(step.epoch) if step.alone else None
        handed.step = step
        return self._makers[is_quiet(loader)]

    def made(self, iterator: Any, step: Iteration) -> Any:
        """The iterator, which measures from its first batch on; None if torch raised."""
        handed.step = handed.place = None
        return measured(iterator, step, self._finish) if iterator is not None else None

    def _finish(self, iterator: Any, step: Iteration) -> None:
        num_workers = getattr(iterator, "_num_workers", 0)
        if is_measuring(iterator):
            if mark_parts(iterator, step):
                queue = iterator._worker_result_queue
                if hasattr(queue, "_recv_bytes"):
                    opening(queue, stateful=hasattr(iterator, "_snapshot_interval"))
            gap = self.gaps.get("worker") if num_workers else None
        else:
            made = f"its loaders make a {type(iterator).__name__!r}"
            gap = self.gaps.get("multi" if num_workers else "single")
            gap = gap or Gap(self.kind.package, "such loaders", (made,), EVERYTHING)
        if gap is not None:
            step.recorder.note_gap(gap)

    def when_imported(self, hook: Callable[[type], None]) -> Callable[[], None]:
        """Hook the loader class now, or once its module is imported. Returns what ends the
        waiting."""
        module, name = self.kind.module, self.kind.loader
        return after_import(module, lambda: hook(getattr(sys.modules[module], name)))


def new(made: type, *args: Any, **kwargs: Any) -> Any:
    """`__new__` of iterators that take the step handed to this thread."""
    iterator: Any = object.__new__(made)
    # Before `__init__`, which draws the first indices, and without a frame of ours around that,
    # where torch warns with `stacklevel=2`.
    iterator._ls = getattr(handed, "step", None)
    return iterator


def _with_replaced(value: Any, names: list[str], replacement: Any) -> Any:
    """`value` with the attribute at this path replaced."""
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


KINDS = (LoaderKind(torch_parts.TORCH), LoaderKind(torch_parts.TORCHDATA))


def kind_that_makes(owner: type, get_iterator: Any) -> LoaderKind | None:
    """The kind of this class with this own `_get_iterator`, prepared for use. None if only waiting
    can be measured."""
    module = owner.__module__
    for known in KINDS:
        is_own = getattr(get_iterator, "__module__", None) == module == known.kind.module
        if is_own and owner.__name__ == known.kind.loader:
            known.prepare(get_iterator)
            return known
    return None
