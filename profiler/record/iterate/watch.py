"""`watch`, `watch_all`, `unwatch`, and the hook that makes loaders' iterators measure.

The hook replaces `DataLoader._get_iterator`, which makes each of a loader's iterators. For a
watched loader it runs torch's own code with measuring iterator classes. Nothing is stored on the
loader: its attributes, pickling and type stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ...base import torch_parts
from ...base.errors import UsageError
from ...guard.error_origin import forgiving, returning_errors
from ...guard.static_access import in_class, inherits, instance_vars, short_name
from ...native.form import hooks
from ..inspect.making_place import note_makings
from ..session import session as sessions
from . import foreign
from .iteration import Iteration, begun
from .iterators import instrument_all_running, instrument_running, release
from .loader_kinds import KINDS, LoaderKind, kind_that_makes
from .plain import WatchedIterable
from .recorder import Recorder
from .registry import Make, Watched, registry, workers_of

T = TypeVar("T")

# By class: its own `_get_iterator`, and its kind.
_hooked: dict[type, tuple[Any, LoaderKind | None]] = {}


def watch(loader: T, *, name: str | None = None, stacks: bool = True) -> T:
    """Record every batch of this loader from its next iteration on; returns the loader itself.

    A `torch.utils.data.DataLoader` is instrumented in place. For any other iterable of batches a
    thin stand-in is returned, which passes everything on, and only wait and step are measured.

    `name` is the loader's name in reports, by default that of its data set. Watching a watched
    loader again does nothing. Raises UsageError for an object that cannot be iterated over.

    Once a run is steady and waits for data, py-spy takes short bursts of stack samples of this
    process and its workers, without stopping them. `stacks=False` turns that off for the process.
    """
    from torch.utils.data import DataLoader

    if not stacks:
        sessions.take_no_stacks()
    kind = type(loader)
    if inherits(kind, DataLoader):
        with registry.lock:
            _hook(kind)  # first, so that a call cut short by a signal handler can be repeated
            if registry.entry(loader) is None:
                recorder = registry.watch(loader, name).recorder
                for held in instance_vars(loader).values():
                    if inherits(type(held), torch_parts.iterator_base()):  # persistent workers'
                        instrument_running(held, Iteration(recorder))
        return loader
    if kind is WatchedIterable:
        return loader
    if in_class(kind, "__iter__") is None and in_class(kind, "__next__") is None:
        raise UsageError(
            f"watch() takes a DataLoader or another iterable of batches, not {short_name(loader)!r}"
        )
    recorder = registry.watch_iterable(loader, name, foreign.package_of(loader))
    return WatchedIterable(loader, recorder)  # type: ignore[return-value]


def watch_all(*, stacks: bool = True) -> None:
    """Record every DataLoader of this process, present and future. Loops that already run are
    recorded from their next batch on, without the inside of their workers. `stacks` as in
    `watch`."""
    from torch.utils.data import DataLoader

    if not stacks:
        sessions.take_no_stacks()
    with registry.lock:
        if registry.all:
            return
        registry.all = True
        _hook(DataLoader)
        registry.waiting.append(note_makings())
        registry.waiting.extend([kind.when_imported(_hook) for kind in KINDS])
        registry.waiting.extend(foreign.hook_all())
        instrument_all_running(lambda iterator: Iteration(_orphans_recorder(iterator)))


def unwatch(loader: Any = None) -> None:
    """Stop recording this loader and remove the hooks; without an argument, stop all loaders and
    `watch_all`.

    Running workers finish as they are. Raises UsageError if the loader is not watched.
    """
    with registry.lock:
        if loader is None:
            registry.stop_all()
            registry.forget(lambda entry: True)
            release()
        elif type(loader) is WatchedIterable:
            loader._recorder.enabled = False
        else:
            entry = _entry_of(loader)
            release(registry.forget(lambda each: each is entry))
        _unhook_if_idle()


def watch_all_for_now() -> Callable[[], None]:
    """Like `watch_all`, until the returned function is called. Loaders watched by `watch` stay
    watched."""
    already = registry.all
    watch_all()

    def end() -> None:
        if already:
            return
        with registry.lock:
            registry.stop_all()
            release(registry.forget(lambda entry: entry.by_all))
            _unhook_if_idle()

    return end


def recorder_of(loader: Any) -> Recorder | None:
    """The recorder of a watched loader."""
    entry = registry.entry(loader)
    return entry.recorder if entry is not None else None


def loader_place(loader: Any) -> tuple[Path, int] | None:
    """(folder of this process in the run, the loader's number), None before its first batch."""
    recorder = loader._recorder if type(loader) is WatchedIterable else recorder_of(loader)
    if recorder is None or recorder.session is None:
        return None
    return recorder.session.directory, recorder.index


def current_run_directory() -> Path | None:
    """The run this process records into, None before the first batch of a watched loader."""
    session = sessions.current()
    return session.run_directory if session is not None else None


def hand_out(loader: Any, make: Make) -> None:
    """From its next iteration on, a watched loader's iterators are made by `make(loader)`.

    `make` gets torch's own iterators from `iterator_like`, and may raise what making one raises.
    Raises UsageError if the loader is not watched.
    """
    _entry_of(loader).hand_out = make


def hand_out_each(choose: Callable[[Any], Make | None]) -> None:
    """`hand_out` for each DataLoader that `watch_all` registers from now on. `choose(loader)` may
    return None."""
    registry.choose = choose


def kind_of(loader: Any) -> LoaderKind | None:
    """The kind of a watched loader, None if only waiting can be measured."""
    return _hook_of(loader)[1]


def iterator_like(
    loader: Any, stand_in: Any, num_workers: int, first: Iteration | None = None
) -> Any:
    """An iterator of torch's own that measures like one of `loader`, made of `stand_in`'s settings.
    With `first` it goes on with the epoch of that step. Raises what torch raises."""
    original, kind = _hook_of(loader)
    recorder, step = recorder_of(loader), None
    if recorder is not None:
        step = begun(
            Iteration(recorder),
            lambda step: step.begin(num_workers) if first is None else step.attach(first),
        )
    if step is None or kind is None:
        return original(stand_in)
    try:
        made = kind.begin(stand_in, step)(stand_in)
    except BaseException:
        kind.made(None, step)
        raise
    return kind.made(made, step)


def _entry_of(loader: Any) -> Watched:
    entry = registry.entry(loader)
    if entry is None:
        raise UsageError("this loader is not watched")
    return entry


def _orphans_recorder(iterator: Any) -> Recorder:
    """For a running iterator whose loader is unknown."""
    config = {"num_workers": iterator._num_workers}
    return Recorder(short_name(iterator._dataset), "dataloader", config, {})


# The hook.


def _hook(cls: type) -> None:
    """Hook the `_get_iterator` that loaders of this class use."""
    owner = next((base for base in cls.__mro__ if "_get_iterator" in vars(base)), None)
    with registry.lock:
        if owner is None or owner in _hooked:
            return
        original = vars(owner)["_get_iterator"]
        _hooked[owner] = original, kind_that_makes(owner, original)
        owner._get_iterator = _hooked_get_iterator(*_hooked[owner])  # type: ignore[attr-defined]


def _hook_of(loader: Any) -> tuple[Any, LoaderKind | None]:
    return next((_hooked[cls] for cls in type(loader).__mro__ if cls in _hooked), (None, None))


def _unhook_if_idle() -> None:
    if registry.watched or registry.all:
        return
    while _hooked:
        owner, (original, _) = _hooked.popitem()
        owner._get_iterator = original  # type: ignore[attr-defined]
    from ..device.copies import uninstall

    uninstall()


def _hooked_get_iterator(original: Any, kind: LoaderKind | None) -> Any:
    def begin(loader: Any) -> tuple[Any, Iteration | None] | None:
        """(what makes the iterator, its step), None for a loader that is not watched."""
        if sessions.in_worker():
            return None
        entry = registry.entry(loader) or _new_entry(loader)
        if entry is None:
            return None
        if entry.hand_out is not None:
            return entry.hand_out, None
        step = begun(Iteration(entry.recorder), lambda step: step.begin(workers_of(loader)))
        if step is None:
            return None
        return (original if kind is None else kind.begin(loader, step)), step

    def made(iterator: Any, step: Iteration | None) -> Any:
        if step is None:
            return iterator
        if kind is not None:
            return kind.made(iterator, step)
        return instrument_running(iterator, step) if iterator is not None else None

    return hooks.making(original, returning_errors(begin), returning_errors(made))


def _new_entry(loader: Any) -> Watched | None:
    """The entry of a loader that `watch_all` meets now. Raises no error of ours."""
    if not registry.all:
        return None
    with forgiving(BaseException):
        with registry.lock:
            entry = registry.watch(loader, None, iterating=True)
        with forgiving(BaseException):
            if registry.choose is not None:
                entry.hand_out = registry.choose(loader)
        return entry
    return None
