"""Loaders of other libraries, which `watch_all` records as iterables. Their classes' `__iter__` is
hooked as soon as their module is imported.

A loader that is its own iterator (`__iter__` returns the object itself) is left alone. The run then
names it, so that a report does not say there was no loader.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from ...guard.error_origin import forgiving
from ...guard.static_access import in_class, mro
from ...store.gaps import OTHER_LOADER
from ..session import session as sessions
from .imports import after_import
from .plain import begin_iteration
from .registry import registry

# By module: the classes that a training loop iterates over.
KNOWN = {
    "fastai.data.load": ("DataLoader",),
    "torchdata.nodes.loader": ("Loader",),
    "grain._src.python.data_loader": ("DataLoader",),
    "grain._src.python.dataset.dataset": ("MapDataset",),
    "spdl.dataloader._dataloader": ("DataLoader",),
    "spdl.dataloader._pytorch_dataloader": ("PyTorchDataLoader",),
    "spdl.pipeline._pipeline": ("Pipeline",),
    "nvidia.dali.plugin.base_iterator": ("_DaliBaseIterator",),
    "tensorflow.python.data.ops.dataset_ops": ("DatasetV2",),
}
_hooked: dict[type, Any] = {}
_inside = threading.local()


def hook_all() -> list[Callable[[], None]]:
    """Hook the known classes, now or when their modules are imported. Returns what undoes it."""
    return [_unhook, *(after_import(each, partial(_hook, each, KNOWN[each])) for each in KNOWN)]


def _unhook() -> None:
    while _hooked:
        cls, original = _hooked.popitem()
        cls.__iter__ = original  # type: ignore[attr-defined]


def package_of(iterable: Any) -> str | None:
    """The package of a known loader, None for any other iterable."""
    modules = (cls.__module__ for cls in mro(type(iterable)))
    return next((name.partition(".")[0] for name in modules if name in KNOWN), None)


def _hook(module: str, names: tuple[str, ...]) -> None:
    held = vars(sys.modules[module])
    for name in names:
        cls = held.get(name)
        if isinstance(cls, type) and "__iter__" in vars(cls):
            original = _hooked[cls] = vars(cls)["__iter__"]
            cls.__iter__ = _measuring(original)  # type: ignore[attr-defined]


def _measuring(original: Any) -> Any:
    def __iter__(self: Any) -> Any:
        if getattr(_inside, "one", False) or sessions.in_worker():
            return original(self)  # in a worker, or a part of a loader
        _inside.one = True
        try:
            measured, iterator = _begun(self), original(self)
        finally:
            _inside.one = False
        return iterator if measured is None or iterator is self else measured(iterator)

    __iter__.__wrapped__ = original  # type: ignore[attr-defined]
    __iter__.__qualname__ = original.__qualname__
    __iter__.__module__ = original.__module__
    return __iter__


def _begun(loader: Any) -> Callable[[Any], Any] | None:
    """The function that makes its iterator measure."""
    with forgiving():
        if in_class(type(loader), "__next__") is None:
            entry = registry.entry(loader)
            if entry is None:
                recorder = registry.watch_iterable(loader, None, package_of(loader))
                entry = registry.add(loader, recorder, by_all=True)
            return begin_iteration(entry.recorder)
        _name(loader)
    return None


def _name(loader: Any) -> None:
    cls = type(loader)
    name, package = cls.__qualname__, cls.__module__.partition(".")[0]
    session = sessions.open_session()
    if session is not None:
        session.note_reason(
            OTHER_LOADER + name,
            f"this script iterates over {package}'s {name}, which is an iterator of its own: hand "
            "loaderscope.watch(loader) to the loop to see its waiting",
        )
