"""Tries the batched form of a live loader: does it give the same batches, and how much faster?

The data set's own code runs, as the loader would run it, and so does the code that advice gives for
it, written from the live class: never what a run directory holds. Nothing is written anywhere, the
random state does not change, and nothing raises.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

from ...profiler.base.errors import UsageError
from ...profiler.store.inspection import read_inspection
from ..case.probe_result import GETITEMS, NOW, SAMPLER, ProbeResult
from ..code.batched.batch_access import batch_access
from ..code.batched.batch_values import NotArrays

# Random batches on which every value must be the same.
CHECKED_BATCHES = 6
LEAST_ROUNDS, MOST_ROUNDS = 5, 400
# Warm-up rounds that do not count: first touches of memory, torch's own caches.
WARM_UP = 2
# A slow data set may take this much longer than asked for to reach its first counted rounds.
GRACE_S = 3.0

Form = Callable[[Any, list[int]], Any]


def probe_loader(loader: Any, seconds: float = 2.0) -> ProbeResult:
    """Try this DataLoader's batched form for about `seconds`, after a comparison on CHECKED_BATCHES
    random batches.

    A single slow batch is waited for. Never raises: `reason` says what stood in the way.
    """
    try:
        with _same_random_state():
            return _tried(loader, time.monotonic() + seconds)
    except UsageError as error:
        reason = str(error)
    except NotArrays as error:
        reason = f"there is no batched form of this data set: {error}"
    except Exception as error:
        reason = f"trying it failed: {type(error).__name__}: {error}"
    return ProbeResult(None, reason)


def _tried(loader: Any, deadline: float) -> ProbeResult:
    """Raises UsageError for a loader that cannot be probed."""
    import torch
    from torch.utils.data import DataLoader, IterableDataset, default_collate

    from ...profiler.record.inspect.inspect_loader import inspect_loader
    from ...profiler.record.inspect.samplers import own_of, sampling_of

    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        raise UsageError("only a DataLoader over a map-style data set can be probed")
    if loader.batch_sampler is None:
        raise UsageError("the data set is already asked for whole batches")
    if loader.collate_fn is not default_collate:
        raise UsageError("the loader has a collate function of its own, which is not known")
    part = read_inspection({"inspection": inspect_loader(loader)}).dataset
    if part is None:
        raise UsageError("the data set could not be inspected")
    dataset: Any = loader.dataset
    size = min(max(1, sampling_of(own_of(loader)).batch_size or 1), len(dataset))
    if not size:
        raise UsageError("the data set is empty")
    batches, generator = batch_access(part).batches(dataset), torch.Generator().manual_seed(0)

    def random_rows() -> torch.Tensor:
        return torch.randint(len(dataset), (size,), generator=generator)

    checked = 0
    while checked < CHECKED_BATCHES and (not checked or time.monotonic() < deadline):
        rows = random_rows()
        expected = fetched(dataset, rows.tolist())
        if not same_batch(expected, batches[rows]):
            if same_batch(expected, fetched(dataset, rows.tolist())):
                return ProbeResult(False, "the batched form gave other values", checked)
            raise UsageError(
                "the data set gives other values each time it is asked: the forms cannot be "
                "compared"
            )
        checked += 1
    forms: dict[str, Form] = {
        NOW: lambda rows, indices: fetched(dataset, indices),
        GETITEMS: lambda rows, indices: batches[torch.as_tensor(indices)],
        SAMPLER: lambda rows, indices: batches[rows],
    }
    medians = {name: median(times) / 1e3 for name, times in _timed(forms, random_rows, deadline)}
    return ProbeResult(True, None, checked, medians)


def _timed(
    forms: Mapping[str, Form], random_rows: Callable[[], Any], deadline: float
) -> Iterable[tuple[str, list[int]]]:
    """Times of each form in ns, one a round; they take turns, so that all see the same machine."""
    times: dict[str, list[int]] = {name: [] for name in forms}
    for number in range(-WARM_UP, MOST_ROUNDS):
        late_s = time.monotonic() - deadline
        if number > 0 and late_s > (GRACE_S if number < LEAST_ROUNDS else 0.0):
            break
        rows = random_rows()
        indices = rows.tolist()
        for name, form in forms.items():
            begun = time.perf_counter_ns()
            form(rows, indices)
            if number >= 0:
                times[name].append(time.perf_counter_ns() - begun)
    return times.items()


def fetched(dataset: Any, indices: list[int]) -> Any:
    """A batch as torch's own fetcher makes it."""
    from torch.utils.data import default_collate

    at_once = getattr(dataset, "__getitems__", None)
    return default_collate(at_once(indices) if at_once else [dataset[index] for index in indices])


def same_batch(a: Any, b: Any) -> bool:
    """Whether two batches are alike: structure, types, dtypes, devices, and every value (NaN equals
    NaN)."""
    import torch

    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        if a.dtype != b.dtype or a.shape != b.shape or a.device != b.device:
            return False
        return bool(((a == b) | (a != a) & (b != b)).all())  # NaN differs from itself
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(same_batch(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same_batch, a, b))
    return bool(a == b)


@contextmanager
def _same_random_state() -> Iterator[None]:
    """Random states after the block are those before it: Python's, NumPy's, torch's, and CUDA's
    if it is in use."""
    import torch

    numpy = sys.modules.get("numpy")
    python_state = random.getstate()
    numpy_state = numpy.random.get_state() if numpy is not None else None
    devices = range(torch.cuda.device_count() if torch.cuda.is_initialized() else 0)
    with torch.random.fork_rng(devices):
        try:
            yield
        finally:
            random.setstate(python_state)
            if numpy is not None:
                numpy.random.set_state(numpy_state)
