"""`watch`, `watch_all`, `unwatch`: which loaders are recorded, and the one hook that makes their
iterators measure.

The hook is `DataLoader._get_iterator`, the method by which a loader makes each of its iterators. It
stands on the class, looks up whether this very loader is watched, and if so runs torch's own code
with the measuring iterator classes in place of the plain ones. Nothing is stored on the loader: its
attributes, pickling and type stay what they were.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from ...base import torch_parts
from ...base.errors import UsageError
from ...guard.error_origin import is_ours, returning_errors
from ...guard.static_access import class_name, in_class, inherits, instance_vars, short_name
from ...native.form import hooks
from ..inspect.describe import describe_loader
from ..inspect.loader_origin import same_data
from ..inspect.samplers import own_of
from ..inspect.uses import Use, use_now
from ..session import session as sessions
from . import foreign
from .calibrate import overhead_of
from .loader_kinds import LoaderKind, family_of, known_families
from .plain import WatchedIterable
from .recorder import Iteration, Recorder, failed
from .running import instrument_all_running, instrument_running, release, release_all

T = TypeVar("T")


class _Watched:
    """A watched loader, held weakly, and what is recorded of it."""

    def __init__(self, loader: Any, recorder: Recorder, by_all: bool) -> None:
        key = id(loader)
        self.recorder = recorder
        self.by_all = by_all  # nobody asked for this one
        self.loader = weakref.ref(loader, lambda _: _gone(key))
        self.hand_out: Callable[[Any], Any] | None = (
            None  # what gives the loop its iterators in place of torch's own
        )


LATEST = 64  # loaders of which a new one may be another building

_watched: dict[int, _Watched] = {}
_retired: dict[str, Recorder] = {}
_hooked: dict[
    type, tuple[Any, LoaderKind | None]
] = {}  # the class's own `_get_iterator`, and its family
_all = False
_hand_out_each: Callable[[Any], Callable[[Any], Any] | None] | None = None
_waiting: list[Callable[[], None]] = []  # each ends the waiting for a kind of loader to be imported
_names: dict[str, int] = {}
_lock = threading.RLock()


def _renew_lock() -> None:
    """In a forked child: another thread may have held it."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def watch(loader: T, *, name: str | None = None, stacks: bool = True) -> T:
    """Record every batch of this loader from its next iteration on; returns the loader itself.

    Works on any `torch.utils.data.DataLoader`, which is instrumented in place, and on any other
    iterable of batches, for which a thin stand-in is returned (it passes everything on) and only
    wait and step are measured.

    `name` is how reports call the loader; without one it is named after its data set. Watching a
    watched loader again does nothing. Raises UsageError for something that cannot be iterated over.

    Once a run is steady and waits for its data, py-spy takes short bursts of stack samples of this
    process and its workers, without stopping them; `stacks=False` turns that off for the whole
    process.
    """
    from torch.utils.data import DataLoader

    if not stacks:
        sessions.take_no_stacks()
    if inherits(type(loader), DataLoader):
        with _lock:
            _hook(
                type(loader)
            )  # first: what comes next may be cut short by a signal's handler, and be tried again
            if recorder_of(loader) is None:
                recorder = _register(loader, name)
                for iterator in _live_iterators(loader):
                    instrument_running(iterator, Iteration(recorder))
        return loader
    if type(loader) is WatchedIterable:
        return loader
    if in_class(type(loader), "__iter__") is None and in_class(type(loader), "__next__") is None:
        raise UsageError(
            f"watch() takes a DataLoader or another iterable of batches, not {short_name(loader)!r}"
        )
    return WatchedIterable(loader, _plain_recorder(loader, name))  # type: ignore[return-value]


def watch_all(*, stacks: bool = True) -> None:
    """Record every DataLoader of this process, those that exist and those to come. Loops already
    under way are recorded from their next batch on, without what happens inside their workers.
    `stacks` as in `watch`."""
    global _all
    from torch.utils.data import DataLoader

    if not stacks:
        sessions.take_no_stacks()
    with _lock:
        if _all:
            return
        _all = True
        _hook(DataLoader)
        _waiting.extend([family.when_imported(_hook) for family in known_families()])
        foreign.hook_all(lambda loader: _plain_recorder(loader, None))
        instrument_all_running(lambda iterator: Iteration(_recorder_for_orphan(iterator)))


def unwatch(loader: Any = None) -> None:
    """Stop recording this loader and take the hooks away; without an argument, all loaders and
    `watch_all` itself.

    Workers that still run are left to finish as they are. Raises UsageError if the loader is not
    watched.
    """
    global _all, _hand_out_each
    with _lock:
        if loader is None:
            _all, _hand_out_each = False, None
            _await_no_more()
            for entry in list(_watched.values()):
                entry.recorder.enabled = False
            _watched.clear()
            _retired.clear()
            release_all()
        elif type(loader) is WatchedIterable:
            loader._recorder.enabled = False
        else:
            entry_ = _watched.pop(id(loader), None)
            if entry_ is None:
                raise UsageError("this loader is not watched")
            entry_.recorder.enabled = False
            release(entry_.recorder)
        if not _watched and not _all:
            _unhook()


def watch_all_for_now() -> Callable[[], None]:
    """As `watch_all`, until what is returned is called: loaders somebody asked for are recorded
    on."""
    already = _all
    watch_all()

    def end() -> None:
        global _all
        if already:
            return
        with _lock:
            _all = False
            for key in [key for key, entry in _watched.items() if entry.by_all]:
                recorder = _watched.pop(key).recorder
                recorder.enabled = False
                release(recorder)
            _retired.clear()
            _await_no_more()
            if not _watched:
                _unhook()

    return end


def loader_place(loader: Any) -> tuple[Path, int] | None:
    """(folder of this process in the run, number of the loader in it); None before its first
    batch."""
    recorder = loader._recorder if type(loader) is WatchedIterable else recorder_of(loader)
    if recorder is None or recorder.session is None:
        return None
    return recorder.session.directory, recorder.index


def live_loaders() -> dict[tuple[Path, int], Any]:
    """The DataLoaders being recorded that still exist, by their place."""
    found = {}
    for entry in list(_watched.values()):
        loader = entry.loader()
        place = loader_place(loader) if loader is not None else None
        if place is not None:
            found[place] = loader
    return found


def hand_out(loader: Any, make: Callable[[Any], Any]) -> None:
    """From its next iteration on, a watched loader hands out what `make(loader)` gives.

    `make` has torch's own iterators from `iterator_like`, and may raise what making one raises.
    Raises UsageError if the loader is not watched.
    """
    entry = _watched.get(id(loader))
    if entry is None or entry.loader() is not loader:
        raise UsageError("this loader is not watched")
    entry.hand_out = make


def hand_out_each(choose: Callable[[Any], Callable[[Any], Any] | None]) -> None:
    """As `hand_out`, for each DataLoader that `watch_all` comes to know from now on;
    `choose(loader)` may give None."""
    global _hand_out_each
    _hand_out_each = choose


def kind_of(loader: Any) -> LoaderKind | None:
    """The family of a watched loader, None where only waiting can be measured."""
    return next((_hooked[cls][1] for cls in type(loader).__mro__ if cls in _hooked), None)


def iterator_like(
    loader: Any, stand_in: Any, num_workers: int, first: Iteration | None = None
) -> Any:
    """An iterator of torch's own that measures as one of `loader` does, made of what `stand_in`
    says in the loader's place. With `first` it goes on with the epoch which that step began. Raises
    what torch raises."""
    original, family = next(_hooked[cls] for cls in type(loader).__mro__ if cls in _hooked)
    recorder, step = recorder_of(loader), None
    try:
        if recorder is not None:
            step = Iteration(recorder)
            if not (step.join(first) if first is not None else step.begin(num_workers)):
                step = None
    except BaseException as error:
        if recorder is None or not failed(error, recorder):
            raise
        step = None
    if step is None or family is None:
        return original(stand_in)
    try:
        made = family.begin(stand_in, step)(stand_in)
    except BaseException:
        family.made(None, step)
        raise
    return family.made(made, step)


def current_run_directory() -> Path | None:
    """The run this process records into; None before the first batch of a watched loader."""
    session = sessions.current()
    return session.run_directory if session is not None else None


# Registry.


def recorder_of(loader: Any) -> Recorder | None:
    entry = _watched.get(id(loader))
    return entry.recorder if entry is not None and entry.loader() is loader else None


def _register(loader: Any, name: str | None, iterating: bool = False) -> Recorder:
    reasons: dict[str, str] = {}
    config = _described(loader, reasons)
    facts: dict[str, Any] = {
        "kind": "dataloader",
        "config": config,
        "reasons": reasons,
        "notes": [],
    }
    if not config["num_workers"]:
        for metric in ("pack", "queued", "unpack"):
            reasons[metric] = "num_workers=0: batches do not cross a process border"
    reasons["h2d"] = reasons["stall"] = "no device in use"
    signature = repr((name, sorted(facts["config"].items(), key=str)))
    use = use_now(config.get("shuffle")) if iterating else None
    recorder = _retired_as(signature, use) or _built_before(loader, signature, use)
    if recorder is not None and recorder.enabled:
        recorder.instance += 1  # the same loader, built again
    else:
        recorder = Recorder(name or _fresh_name(loader), facts, overhead_of)
    recorder.signature = signature
    recorder.loader = weakref.ref(loader)
    _watched[id(loader)] = _Watched(loader, recorder, by_all=iterating)
    return recorder


def _retired_as(signature: str, use: Use | None) -> Recorder | None:
    """Of a loader made alike that is gone, unless the one was for training and this one is for
    evaluation, say."""
    recorder = _retired.get(signature)
    if recorder is None or (
        use is not None and recorder.use is not None and not recorder.use.same_phase(use)
    ):
        return None
    return _retired.pop(signature)


def _built_before(loader: Any, signature: str, use: Use | None) -> Recorder | None:
    """Of a loader that still exists but is done with, made alike of the same data, and iterated
    over at the place where this one is now: whoever builds a loader for each evaluation may hold on
    to the last one."""
    if use is None:
        return None
    for entry in list(islice(reversed(_watched.values()), LATEST)):
        recorder, older = entry.recorder, entry.loader()
        if (
            recorder.signature != signature
            or recorder.use is None
            or older is None
            or recorder.at_work
        ):
            continue
        same = recorder.use.key == use.key and recorder.use.same_phase(use)
        if same and same_data(own_of(older).get("dataset"), own_of(loader).get("dataset")):
            return recorder
    return None


def _described(loader: Any, reasons: dict[str, str]) -> dict[str, Any]:
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
        config = {"loader": class_name(type(loader)), "num_workers": _workers_of(loader)}
    return config


def _workers_of(loader: Any) -> int:
    """How many workers the loader has now."""
    value = None
    if in_class(type(loader), "num_workers") is None:
        try:
            value = object.__getattribute__(loader, "num_workers")
        except AttributeError:
            value = own_of(loader).get("num_workers")
    return value if type(value) is int else 0


def _gone(key: int) -> None:
    entry = _watched.pop(key, None)
    if entry is None or not entry.recorder.enabled:
        return
    newest = entry.recorder.loader
    if newest is None or newest() is None:  # else built again, and that one is still there
        _retired[entry.recorder.signature] = entry.recorder
        if len(_retired) > 256:
            del _retired[next(iter(_retired))]


def _fresh_name(loader: Any) -> str:
    name = short_name(own_of(loader).get("dataset", loader))
    count = _names[name] = _names.get(name, 0) + 1
    return name if count == 1 else f"{name} {count}"


def _plain_recorder(iterable: Any, name: str | None) -> Recorder:
    why = "not a torch DataLoader: only wait and step can be measured"
    stages = ("index", "fetch", "collate", "pack", "queued", "unpack", "pin", "h2d", "stall")
    facts = {
        "kind": "iterable",
        "config": {
            "loader": class_name(type(iterable)).rpartition(".")[2],
            "made_by": foreign.package_of(iterable),
        },
        "reasons": dict.fromkeys(stages, why),
        "notes": [],
    }
    return Recorder(name or _fresh_name(iterable), facts, overhead_of)


def _recorder_for_orphan(iterator: Any) -> Recorder:
    """For an iterator found at work, whose loader is not at hand."""
    facts = {
        "kind": "dataloader",
        "config": {"num_workers": iterator._num_workers},
        "reasons": {},
        "notes": [],
    }
    return Recorder(short_name(iterator._dataset), facts, overhead_of)


def _live_iterators(loader: Any) -> Iterator[Any]:
    """Iterators this loader keeps: persistent workers' own, and those that subclasses hold on
    to."""
    base = torch_parts.iterator_base()
    for value in instance_vars(loader).values():
        if inherits(type(value), base):
            yield value


# The hook.


def _hook(cls: type) -> None:
    """Hook the `_get_iterator` that loaders of this class use."""
    for owner in cls.__mro__:
        if "_get_iterator" in vars(owner):
            break
    else:
        return
    with _lock:
        if owner in _hooked:
            return
        original = vars(owner)["_get_iterator"]
        family = family_of(owner, original)
        _hooked[owner] = original, family
        owner._get_iterator = _hooked_get_iterator(original, family)  # type: ignore[attr-defined]


def _await_no_more() -> None:
    """What `watch_all` waits for need not be hooked when it comes; loaders that are none of torch's
    are let go."""
    while _waiting:
        _waiting.pop()()
    foreign.unhook_all()


def _unhook() -> None:
    for owner, (original, _) in list(_hooked.items()):
        owner._get_iterator = original  # type: ignore[attr-defined]
        del _hooked[owner]
    from ..device.copies import uninstall

    uninstall()


def _hooked_get_iterator(original: Any, family: LoaderKind | None) -> Any:
    def begin(loader: Any) -> tuple[Any, Iteration | None] | None:
        """What makes the iterator, and the step it takes; None for a loader that is not watched."""
        if (
            _hand_out_each is not None
            and _all
            and not sessions.in_worker()
            and recorder_of(loader) is None
        ):
            _hand_out_as_chosen(loader)
        entry = _watched.get(id(loader))
        if (
            entry is not None
            and entry.hand_out is not None
            and entry.loader() is loader
            and not sessions.in_worker()
        ):
            return entry.hand_out, None
        step = _step_for(loader)
        if step is None:
            return None
        return (original if family is None else family.begin(loader, step)), step

    def made(iterator: Any, step: Iteration | None) -> Any:
        if step is None:
            return iterator
        if family is not None:
            return family.made(iterator, step)
        return instrument_running(iterator, step) if iterator is not None else None

    return hooks.making(original, returning_errors(begin), returning_errors(made))


def _hand_out_as_chosen(loader: Any) -> None:
    """Register a new loader and ask what it hands out. Raises no error of ours."""
    try:
        with _lock:
            _register(loader, None, iterating=True)
        make = _hand_out_each(loader) if _hand_out_each is not None else None
        if make is not None:
            hand_out(loader, make)
    except BaseException as error:
        if not is_ours(error):
            raise


def _step_for(loader: Any) -> Iteration | None:
    """A step that has begun, for a watched loader; None for any other. Raises no error of ours."""
    recorder = None
    try:
        recorder = recorder_of(loader)
        if recorder is None and _all and not sessions.in_worker():
            with _lock:
                recorder = _register(loader, None, iterating=True)
        if recorder is None:
            return None
        step = Iteration(recorder)
        return step if step.begin(_workers_of(loader)) else None
    except BaseException as error:
        if not (failed(error, recorder) if recorder is not None else is_ours(error)):
            raise
        return None
