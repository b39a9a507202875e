"""What a loader of the tuning benchmark is: a data set, what the user gave DataLoader(), and a
training step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch.utils.data import DataLoader

LENGTH = 100_000  # samples: epochs that do not end meanwhile
OF_WORKERS = ("prefetch_factor", "persistent_workers")


@dataclass(frozen=True)
class Loop:
    """The last part of a batch is the numbers of its samples, as labels are, so that order can be
    checked.

    `own` is what the user's code says of workers. `order` makes the arguments that say which
    samples come when; without it they are shuffled. `held_out` loops are judged, and nothing was
    chosen by them.
    """

    name: str
    about: str
    data: Callable[[], Any]
    step: Callable[[Any], Any]
    batch_size: int = 16
    own: Mapping[str, Any] = field(default_factory=lambda: {"num_workers": 0})
    order: Callable[[Any], dict[str, Any]] | None = None
    collate: Callable[[list[Any]], Any] | None = None
    healthy: bool = False
    held_out: bool = False
    quick: bool = False
    needs: tuple[str, ...] = ()

    def loader(self, settings: Mapping[str, Any] | None = None) -> DataLoader[Any]:
        """As in the user's code, or with other settings."""
        given = {**self.own, **(settings or {})}
        if not given["num_workers"]:
            given = {name: value for name, value in given.items() if name not in OF_WORKERS}
        data = self.data()
        order = {"shuffle": True} if self.order is None else self.order(data)
        size = (
            {} if "batch_sampler" in order else {"batch_size": self.batch_size, "drop_last": True}
        )
        return DataLoader(data, collate_fn=self.collate, **size, **order, **given)
