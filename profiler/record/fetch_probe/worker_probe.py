"""The probe of a worker process."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...base import torch_parts
from .chains import Chains
from .probe import FetchProbe


class WorkerProbe(FetchProbe):
    """Samples this worker's fetches."""

    def __init__(self, place: tuple[str, int, int], worker: int) -> None:
        folder, loader, epoch = place
        super().__init__(Path(folder) / f"looks-{loader}-w{worker}.json", epoch, in_worker=True)
        self._chains = Chains(self._dataset)
        self.fetcher: Callable[[], Any] | None = None

    def epoch_begins(self, fetcher: Any) -> None:
        """A fetcher is made, for the worker's first epoch or for a later one."""
        self.epoch += self.fetcher is not None
        self.fetcher = weakref.ref(fetcher)

    def _dataset(self) -> Any:
        fetcher = self.fetcher() if self.fetcher is not None else None
        return torch_parts.dataset_of(fetcher)[0] if fetcher is not None else None

    def begin_fetch(self, samples: int) -> None:
        """A batch of so many samples is about to be fetched, with detail."""
        self.abandon()
        if self.wants():
            self.begin(self._chains, samples)
