"""Tries the batched form of a live loader: does it give the same batches, and how much faster?

The data set's own code runs, as the loader would run it, and so does the code that advice gives for
it, written from the live class: never what a run directory holds. Nothing is written anywhere, the
random state does not change, and nothing raises.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any

from ...profiler.store.inspection import read_inspection
from ..case.probe_result import GETITEMS, NOW, SAMPLER, ProbeResult
from ..code.batched.batch_access import Access, batch_access
from ..code.batched.batch_values import NotArrays

# Random batches on which every value must be the same.
CHECKED_BATCHES = 6
ROUNDS = (5, 400)
# Warm-up rounds that do not count: first touches of memory, torch's own caches.
WARM_UP = 2
# A slow data set may take this much longer than asked for to reach its first counted rounds.
GRACE_S = 3.0


def probe_loader(loader: Any, seconds: float = 2.0) -> ProbeResult:
    """Try this DataLoader's batched form for about `seconds`, after a comparison on CHECKED_BATCHES
    random batches.

    A single slow batch is waited for. Never raises: `reason` says what stood in the way.
    """
    try:
        with _same_random_state():
            trial = _trial(loader, seconds)
            return ProbeResult(None, trial) if isinstance(trial, str) else trial.run()
    except NotArrays as error:
        return ProbeResult(None, f"there is no batched form of this data set: {error}")
    except Exception as error:
        return ProbeResult(None, f"trying it failed: {type(error).__name__}: {error}")


def _trial(loader: Any, seconds: float) -> _Trial | str:
    """The trial of this loader, or why there can be none."""
    from torch.utils.data import DataLoader, IterableDataset, default_collate

    from ...profiler.record.inspect.inspect_loader import inspect_loader
    from ...profiler.record.inspect.samplers import own_of, sampling_of

    if not isinstance(loader, DataLoader) or isinstance(loader.dataset, IterableDataset):
        return "only a DataLoader over a map-style data set can be probed"
    if loader.batch_sampler is None:
        return "the data set is already asked for whole batches"
    if loader.collate_fn is not default_collate:
        return "the loader has a collate function of its own: its batches cannot be predicted"
    part = read_inspection({"inspection": inspect_loader(loader)}).dataset
    if part is None:
        return "the data set could not be looked at"
    dataset: Any = loader.dataset
    size = min(max(1, sampling_of(own_of(loader)).batch_size or 1), len(dataset))
    if not size:
        return "the data set is empty"
    return _Trial(dataset, batch_access(part), size, time.monotonic() + seconds)


class _Trial:
    """One data set, the ways to get a batch of it, and the time that is left."""

    def __init__(self, dataset: Any, access: Access, size: int, deadline: float) -> None:
        import torch

        self.dataset, self.size, self.deadline = dataset, size, deadline
        self.batches = access.batches(dataset)
        self.generator = torch.Generator().manual_seed(0)
        self.checked = 0

    def run(self) -> ProbeResult:
        equal, why = self.compare()
        forms = {name: median(each) / 1e3 for name, each in self.measure().items()} if equal else {}
        return ProbeResult(equal, why, self.checked, forms)

    def rows(self) -> Any:
        """Indices of a random batch."""
        import torch

        return torch.randint(len(self.dataset), (self.size,), generator=self.generator)

    def compare(self) -> tuple[bool | None, str | None]:
        """Whether the batched form gives the same values (None: it cannot be compared), and why."""
        while self.checked < CHECKED_BATCHES and (
            not self.checked or time.monotonic() < self.deadline
        ):
            rows = self.rows()
            expected = fetched(self.dataset, rows.tolist())
            if not same_batch(expected, self.batches[rows]):
                if same_batch(expected, fetched(self.dataset, rows.tolist())):
                    return False, "the batched form gave other values"
                return None, (
                    "the data set gives other values each time it is asked: the forms cannot be "
                    "compared"
                )
            self.checked += 1
        return True, None

    def measure(self) -> dict[str, list[int]]:
        """Times of each form in ns, one per round; the forms take turns, so that all see the same
        machine."""
        import torch

        forms: dict[str, Callable[[Any, list[int]], Any]] = {
            NOW: lambda rows, indices: fetched(self.dataset, indices),
            GETITEMS: lambda rows, indices: self.batches[torch.as_tensor(indices)],
            SAMPLER: lambda rows, indices: self.batches[rows],
        }
        times: dict[str, list[int]] = {name: [] for name in forms}
        for number in range(ROUNDS[1]):
            late_s = time.monotonic() - self.deadline
            if late_s > (0.0 if number >= ROUNDS[0] else GRACE_S) and number > WARM_UP:
                break
            rows = self.rows()
            indices = rows.tolist()
            for name, form in forms.items():
                begun = time.perf_counter_ns()
                form(rows, indices)
                if number >= WARM_UP:
                    times[name].append(time.perf_counter_ns() - begun)
        return times


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
