"""The settings of a DataLoader that can change in mid-epoch, and which loaders allow it."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from ...profiler.base import torch_parts
from ...profiler.base.torch_parts import DEFAULT_PREFETCH, TORCH
from ...profiler.record.iterate.watch import kind_of
from ...profiler.store.run.tuning import changed


class Settings(msgspec.Struct, frozen=True):
    """How batches are made; not which batches, nor their order."""

    num_workers: int
    prefetch_factor: int = DEFAULT_PREFETCH
    pin_memory: bool = False
    persistent_workers: bool = False  # only with workers

    def arguments(self) -> dict[str, Any]:
        """As written in a call of DataLoader(): without workers, most of them must be left out."""
        found: dict[str, Any] = {"num_workers": self.num_workers, "pin_memory": self.pin_memory}
        if self.num_workers:
            found |= {
                "prefetch_factor": self.prefetch_factor,
                "persistent_workers": self.persistent_workers,
            }
        return found

    def with_workers(self, number: int) -> Settings:
        """The same with so many workers; without any, settings of workers have their defaults."""
        kept = replace(self, num_workers=number)
        return (
            kept
            if number
            else replace(kept, prefetch_factor=DEFAULT_PREFETCH, persistent_workers=False)
        )

    @property
    def ahead(self) -> int:
        """The most batches made before the loop asks for them."""
        return self.num_workers * self.prefetch_factor

    def changed_from(self, other: Settings) -> dict[str, Any]:
        """The arguments to write in place of those of `other`."""
        return changed(other.arguments(), self.arguments())


def settings_of(loader: Any) -> Settings:
    """The settings in the user's code."""
    workers = int(loader.num_workers)
    return Settings(
        num_workers=workers,
        prefetch_factor=loader.prefetch_factor or DEFAULT_PREFETCH,
        pin_memory=bool(loader.pin_memory),
        persistent_workers=bool(workers and loader.persistent_workers),
    )


def why_fixed(loader: Any) -> str | None:
    """Why this watched loader's settings cannot change in mid-epoch; None if they can."""
    from torch.utils.data import DataLoader, IterableDataset, MapDataPipe

    if not isinstance(loader, DataLoader):
        return "it is no DataLoader"
    if isinstance(loader.dataset, IterableDataset):
        return "its data set is iterable: only its workers know how far they have read"
    if not getattr(loader, "in_order", True):
        return "it has in_order=False, so its batches come in another order each time"
    if isinstance(loader.dataset, MapDataPipe):
        return "its data set is a data pipe, which is divided among the workers when they start"
    family = kind_of(loader)
    if family is None:
        return "its class makes its own iterators"
    if family.kind is not TORCH:
        return f"the saved state of a {family.kind.loader} depends on its workers"
    missing = torch_parts.missing_of_switch()
    return f"this version of torch is not supported: {missing[0]}" if missing else None


def why_refused(loader: Any, own: Settings, other: Settings) -> str | None:
    """Why this loader cannot have these settings; None if it can."""
    if not other.num_workers and own.num_workers:
        if loader.worker_init_fn is not None:
            return "worker_init_fn needs workers"
        if loader.timeout:
            return "timeout needs workers"
    return None
