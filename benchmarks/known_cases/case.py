"""What a case of the known-answer benchmark is: a loop with one planted cause, the fix, and what
must not be said."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

ANY = "any advice at all"

WORKER_OPTIONS = ("prefetch_factor", "persistent_workers", "in_order")
# Advice about speed that is given by habit. Where it would not help, it must not be given.
HABITS = ("prefetch-factor", "pin-memory", "storage-format", "in-order", "page-cache")
# Without workers, or with long epochs; for short epochs of workers it is right, if seldom what
# matters most.
RESTARTS = ("persistent-workers",)


def ignore(batch: Any) -> None:
    """A training step that costs nothing."""


@dataclass
class Training:
    """A training loop. `block` yields the batches of one measured block; the time between two of
    them is the step's.

    `size` is the number of useful samples a batch: throughput is compared in samples, so that a fix
    may change the batch size or stop reading samples twice.
    """

    loader: Any
    step: Callable[[Any], Any] = ignore
    size: float = 1.0
    block: Callable[[Any], Iterator[Any]] | None = None
    epochs: int = 1
    begin_epoch: Callable[[int], None] | None = None
    _epoch: int = 0

    def batches(self) -> Iterator[Any]:
        if self.block is not None:
            yield from self.block(self.loader)
            return
        for _ in range(self.epochs):
            if self.begin_epoch is not None:
                self.begin_epoch(self._epoch)
            self._epoch += 1
            yield from self.loader


def new_iterator_each_step(steps: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The mistake `next(iter(loader))` in a loop."""

    def block(loader: Iterable[Any]) -> Iterator[Any]:
        for _ in range(steps):
            yield next(iter(loader))

    return block


@dataclass(frozen=True)
class Case:
    """One case. `build()` makes the loop as found, `build(**fix)` as a good engineer would leave
    it.

    `causes` are the rules one of which must be the first recommendation; none for a healthy loader,
    of which nothing may be said. `forbidden` are rules that must not recommend anything here (ANY:
    no rule may). `world` is the number of ranks; each does `least_blocks` blocks, while a single
    process goes on for `record_s` seconds. Where `measurable` is false, the fix changes what is
    learnt or what survives, not the speed. `line` is what the report must name before all else. A
    case that is `held_out` only judges: nothing is fitted on its report.
    """

    name: str
    about: str
    build: Callable[..., Training]
    causes: tuple[str, ...] = ()
    fix: Mapping[str, Any] = field(default_factory=dict)
    forbidden: tuple[str, ...] = ()
    quick: bool = False
    world: int = 1
    record_s: float = 2.0
    least_blocks: int = 2
    measurable: bool = True
    may_be_silent: bool = False  # the gain may be too small to be certain: silence is right as well
    needs: tuple[str, ...] = ()  # modules without which the case is left out
    line: str | None = None
    held_out: bool = False
    side: str = "known_answers_side.py"  # the script that records and measures it

    @property
    def healthy(self) -> bool:
        return not self.causes

    def accepts(self, params: Mapping[str, Any]) -> bool:
        """Whether the loop can be built with these DataLoader arguments instead of the engineer's
        fix."""
        told = inspect.signature(self.build).parameters
        open_ended = any(each.kind is each.VAR_KEYWORD for each in told.values())
        return bool(params) and all(
            name in told or (open_ended and name in WORKER_OPTIONS) for name in params
        )

    def allowed(self, rule: str) -> bool:
        return not (ANY in self.forbidden or rule in self.forbidden)
