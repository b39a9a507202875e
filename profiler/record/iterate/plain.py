"""Any other iterable of batches: a stand-in that passes everything on and measures waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...base.batch_record import HEAD
from ...base.clock import now_ns
from ...native.layout import SAMPLE_EVERY
from ..device.device_clock import DeviceClock
from .recorder import EXHAUSTED, FAILED, Iteration, Recorder, failed


class WatchedIterable:
    """Stands for an iterable: attributes, length, items and type tests go to the original."""

    __slots__ = ("__weakref__", "_iterator", "_original", "_recorder")

    def __init__(self, original: Any, recorder: Recorder) -> None:
        object.__setattr__(self, "_original", original)
        object.__setattr__(self, "_recorder", recorder)
        object.__setattr__(self, "_iterator", None)

    def __iter__(self) -> Iterator[Any]:
        step = _begun(self._recorder)
        iterator = iter(self._original)
        return iterator if step is None else _WatchedIterator(iterator, step)

    def __next__(self) -> Any:
        if self._iterator is None:
            step = _begun(self._recorder)
            iterator = self._original if step is None else _WatchedIterator(self._original, step)
            object.__setattr__(self, "_iterator", iterator)
        return next(self._iterator)

    def __len__(self) -> int:
        return len(self._original)

    def __length_hint__(self) -> int:
        from operator import length_hint

        return length_hint(self._original)

    def __bool__(self) -> bool:
        return bool(self._original)

    def __getitem__(self, index: Any) -> Any:
        return self._original[index]

    def __contains__(self, item: object) -> bool:
        return item in self._original

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._original, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._original, name)

    def __repr__(self) -> str:
        return repr(self._original)

    def __reduce__(self) -> Any:
        # Copied or sent elsewhere, it is the plain iterable again.
        return _itself, (self._original,)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._original)

    def stop(self) -> None:
        """Measure no more."""
        self._recorder.enabled = False


def _itself(value: Any) -> Any:
    return value


def begin_iteration(recorder: Recorder) -> Callable[[Iterator[Any]], Iterator[Any]] | None:
    """An iteration of this recorder's iterable begins: what makes its iterator measure, None where
    nothing can be."""
    step = _begun(recorder)
    return None if step is None else lambda iterator: _WatchedIterator(iterator, step)


def _begun(recorder: Recorder) -> Iteration | None:
    try:
        step = Iteration(recorder)
        return step if step.begin(0) else None
    except BaseException as error:
        if not failed(error, recorder):
            raise
        return None


class _WatchedIterator:
    """One iteration over a plain iterable."""

    def __init__(self, iterator: Iterator[Any], step: Iteration) -> None:
        self._iterator = iterator
        self._step: Iteration | None = step

    def __iter__(self) -> _WatchedIterator:
        return self

    def __next__(self) -> Any:
        s = self._step
        if s is None:
            return next(self._iterator)
        t0 = now_ns()
        device: DeviceClock | None = s.device
        if device is not None:
            device.entered()
        try:
            data = next(self._iterator)
        except StopIteration:
            s.ended(t0, EXHAUSTED)
            raise
        except BaseException:
            s.ended(t0, FAILED)
            raise
        try:
            self._record(s, t0, now_ns(), data)
        except BaseException as error:
            if not failed(error, s.recorder):
                raise
            self._step = None
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._iterator, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        # Who saves a pipeline's state asks first whether this is an iterator of that pipeline.
        return type(self._iterator)

    @staticmethod
    def _record(s: Iteration, t0: int, t1: int, data: Any) -> None:
        lane = s.lane
        n = lane.count
        if n >= lane.capacity:
            n = lane.roll()
        HEAD.put(lane.buf, lane.at(n), lane.first + n, t0, t1 - t0, -1, -1, -1, -1, s.epoch)
        if s.special:
            s.finish(lane, n, data, t1, t1 - t0, False)
        if s.device is not None:
            s.device.handed_over(lane, n, data)
        n += 1
        lane.committed[0] = n
        lane.count = n
        if n % SAMPLE_EVERY == 0:
            s.special = s.detailed = True
