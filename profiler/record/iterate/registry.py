"""Which loaders of this process are watched, and the recorder of each."""

from __future__ import annotations

import os
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ...guard.error_origin import is_ours
from ...guard.static_access import class_name, short_name
from ..inspect.describe import describe_loader, same_data
from ..inspect.making_place import made_here, making_of
from ..inspect.samplers import own_of
from ..inspect.uses import Use, use_now
from .recorder import Recorder

_SUBSET, MAX_WRAPPERS = "torch.utils.data.dataset.Subset", 4  # which says nothing by itself
LATEST = 64  # watched loaders of which a new one may be a copy
MAX_RETIRED = 256

Make = Callable[[Any], Any]


@dataclass
class Watched:
    """A watched loader, held weakly."""

    loader: weakref.ref[Any]
    recorder: Recorder
    by_all: bool  # nobody asked for this one
    hand_out: Make | None = None  # makes the iterators in place of torch's own


class Registry:
    """All of this process's watched loaders."""

    def __init__(self) -> None:
        self.watched: dict[int, Watched] = {}
        self.all = False  # under `watch_all`
        self.choose: Callable[[Any], Make | None] | None = None  # see `hand_out_each`
        self.waiting: list[Callable[[], None]] = []  # each ends waiting for a module's import
        self.names: Counter[str] = Counter()
        self.lock = threading.RLock()
        self._retired: dict[str, Recorder] = {}

    def renew_lock(self) -> None:
        """In a forked child: another thread may have held the lock."""
        self.lock = threading.RLock()

    def entry(self, loader: Any) -> Watched | None:
        """This loader's entry, None if it is not watched."""
        entry = self.watched.get(id(loader))
        return entry if entry is not None and entry.loader() is loader else None

    def watch(self, loader: Any, name: str | None, iterating: bool = False) -> Watched:
        """Register a DataLoader. `iterating`: at its `iter()`, under `watch_all`."""
        config, reasons = _described(loader)
        signature = repr((name, sorted(config.items(), key=str)))
        use = use_now(config.get("shuffle")) if iterating else None
        recorder = self._retired_as(signature, use) or self._built_before(loader, signature, use)
        if recorder is not None and recorder.enabled:
            recorder.instance += 1  # the same loader, built again
        else:
            name = name or self._fresh_name(loader)
            recorder = Recorder(name, "dataloader", config, reasons)
            recorder.facts["made"] = making_of(loader) or {
                **(made_here() if not iterating else {}),
                "watched": not iterating,
            }
        recorder.signature = signature
        recorder.loader = weakref.ref(loader)
        return self.add(loader, recorder, by_all=iterating)

    def add(self, loader: Any, recorder: Recorder, by_all: bool) -> Watched:
        """Register any loader with its recorder."""
        key = id(loader)
        held = weakref.ref(loader, lambda _: self._gone(key))
        entry = self.watched[key] = Watched(held, recorder, by_all)
        return entry

    def watch_iterable(self, iterable: Any, name: str | None, package: str | None) -> Recorder:
        """A recorder for an iterable that is no DataLoader."""
        why = "not a torch DataLoader: only wait and step can be measured"
        stages = ("index", "fetch", "collate", "pack", "queued", "unpack", "pin", "h2d", "stall")
        kind = class_name(type(iterable)).rpartition(".")[2]
        config = {"loader": kind, "made_by": package}
        name = name or self._fresh_name(iterable)
        return Recorder(name, "iterable", config, dict.fromkeys(stages, why))

    def forget(self, chosen: Callable[[Watched], bool]) -> list[Recorder]:
        """Stop recording these loaders; returns their recorders."""
        entries = [
            self.watched.pop(key) for key, each in list(self.watched.items()) if chosen(each)
        ]
        for entry in entries:
            entry.recorder.enabled = False
        return [entry.recorder for entry in entries]

    def stop_all(self) -> None:
        """End `watch_all`."""
        self.all, self.choose = False, None
        self._retired.clear()
        while self.waiting:
            self.waiting.pop()()

    def _retired_as(self, signature: str, use: Use | None) -> Recorder | None:
        """The recorder of a loader made alike that is gone, unless its phase was another one."""
        recorder = self._retired.get(signature)
        if recorder is None or (use and recorder.use and not recorder.use.same_phase(use)):
            return None
        return self._retired.pop(signature)

    def _built_before(self, loader: Any, signature: str, use: Use | None) -> Recorder | None:
        """The recorder of an idle loader made alike, of the same data, and iterated over at this
        very place: a program that builds a loader for each evaluation may keep the last one."""
        for entry in islice(reversed(list(self.watched.values())), LATEST):
            recorder, older = entry.recorder, entry.loader()
            before = recorder.use
            if (
                recorder.signature == signature
                and not (use is None or before is None or older is None)
                and before.key == use.key
                and before.same_phase(use)
                and not recorder.at_work
                and same_data(own_of(older).get("dataset"), own_of(loader).get("dataset"))
            ):
                return recorder
        return None

    def _gone(self, key: int) -> None:
        """A watched loader was deleted."""
        entry = self.watched.pop(key, None)
        if entry is None or not entry.recorder.enabled:
            return
        if entry.recorder.loader() is None:  # else it was built again, and that one exists
            self._retired[entry.recorder.signature] = entry.recorder
            if len(self._retired) > MAX_RETIRED:
                del self._retired[next(iter(self._retired))]

    def _fresh_name(self, loader: Any) -> str:
        dataset = own_of(loader).get("dataset", loader)
        name = short_name(dataset)
        for _ in range(MAX_WRAPPERS):
            inner = own_of(dataset).get("dataset")
            if inner is None or class_name(type(dataset)) != _SUBSET:
                break
            dataset, name = inner, f"{name} of {short_name(inner)}"
        self.names[name] += 1
        count = self.names[name]
        return name if count == 1 else f"{name} {count}"


def _described(loader: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """(configuration, reasons) of a DataLoader."""
    reasons = {"h2d": "no device in use", "stall": "no device in use"}
    try:
        config = describe_loader(loader)
        if config["dataset"] is None:
            reasons["config"] = (
                "this loader keeps its attributes where only its own code finds them"
            )
    except Exception as error:
        if not is_ours(error):
            raise
        reasons["config"] = f"it could not be looked at: {type(error).__name__}"
        config = {"loader": class_name(type(loader)), "num_workers": workers_of(loader)}
    if not config["num_workers"]:
        local = "num_workers=0: batches do not cross a process border"
        reasons.update(dict.fromkeys(("pack", "queued", "unpack"), local))
    return config, reasons


def workers_of(loader: Any) -> int:
    """The loader's present number of workers."""
    value = own_of(loader).get("num_workers")
    return value if type(value) is int else 0


registry = Registry()
os.register_at_fork(after_in_child=registry.renew_lock)
