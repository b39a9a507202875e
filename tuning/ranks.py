"""The ranks of one host decide together: rank 0 leads the trials, the others follow, through small
files in the run directory.

Each rank writes one file; that of rank 0 says whose turn it is. No rank waits for another: a window
counts once all ranks have come to its turn, and ends once all have given their rate. A rank that is
silent for long, in time and in steps, is out; then all ranks go back to their own settings.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ..profiler.base.atomic_write import write_atomically
from ..profiler.base.errors import RunUnreadable
from ..profiler.base.host import boot_id, usable_cores
from ..profiler.base.tolerant import read_as
from ..profiler.record.iterate.watch import recorder_of
from ..profiler.record.session.ranks import Ranks
from ..profiler.store.run.tuning import Tried
from .evidence.settings import Settings
from .window import Window, left_out

SIGN_NS = 1_000_000_000  # between a rank's signs of life
LOOK_NS = 20_000_000  # between looks for those of others
LATE_NS, LATE_STEPS = 10_000_000_000, 20  # ranks that train in step answer within a step or two


def meet(loader: Any, told: Ranks, since_ns: int, now: int) -> Leading | Following | str:
    """This rank's part in tuning its loader; or why there is none. Files from before `since_ns` are
    of another try."""
    world = told.world_size or 1
    if world == 1:
        return Leading(Path(), 0, 1, since_ns, now)
    recorder = recorder_of(loader)
    session = recorder.session if recorder is not None else None
    if recorder is None or session is None:
        return f"{world} ranks train together, and this one is not recorded"
    if told.rank is None:
        return "several ranks train together, and the launcher does not say which this one is"
    if told.local_world_size not in (None, world):
        return f"{world} ranks train together on several hosts, and hosts do not decide together"
    name = f"{boot_id()} {recorder.name} {world}"
    digest = hashlib.sha256(name.encode(errors="replace")).hexdigest()[:16]
    part = Following if told.rank else Leading
    return part(session.run_directory / f"ranks-{digest}", told.rank, world, since_ns, now)


class Word(msgspec.Struct, frozen=True):
    """What a rank says. `settings`, `kept`, `said` and `trials` are rank 0's; `rate`, `failed` and
    `left` are the others'."""

    t_ns: int = 0
    cpus: tuple[int, ...] = ()
    turn: int = 0
    settings: Settings | None = None
    kept: tuple[Settings, ...] = ()
    said: str | None = None
    trials: tuple[Tried, ...] = ()
    rate: float | None = None
    failed: str | None = None
    left: str | None = None


class _Member:
    """Signs of life, given and heard. Files that cannot be written are ignored."""

    def __init__(self, folder: Path, rank: int, world: int, since_ns: int, now: int) -> None:
        self.world, self.steps, self.turn = world, 0, 0
        self.heard: dict[int, Word] = {}
        self.word = Word(cpus=tuple(_cpus()))
        self._folder, self._rank, self._since_ns = folder, rank, since_ns
        self._look_ns = 0
        others = [0] if rank else range(1, world)
        # When, by clock and by steps, there was anything new of each.
        self._last = dict.fromkeys(others, (now, 0))
        self.tell(now)

    def tell(self, now: int, **said: Any) -> None:
        self.word = msgspec.structs.replace(self.word, t_ns=now, **said)
        if self.world > 1:
            with suppress(OSError):
                self._folder.mkdir(mode=0o700, exist_ok=True)
                text = msgspec.json.encode(self.word).decode()
                write_atomically(self._folder / f"{self._rank}.json", text)

    def listen(self, now: int) -> str | None:
        """A step has passed. Why the ranks cannot go on together; None if they can."""
        self.steps += 1
        if now - self._look_ns < LOOK_NS:
            return None
        self._look_ns = now
        if now - self.word.t_ns >= SIGN_NS:
            self.tell(now)
        for rank, (when, step) in self._last.items():
            found = self._read(rank)
            if found is not None and found != self.heard.get(rank):
                self.heard[rank] = found
                self._last[rank] = now, self.steps
            elif now - when > LATE_NS and self.steps - step > LATE_STEPS:
                return self._missing(rank)
            if found is not None and found.left is not None:
                return f"rank {rank} has left: {found.left[:300]}"
        return None

    def _read(self, rank: int) -> Word | None:
        with suppress(RunUnreadable):
            found = read_as(Word, self._folder / f"{rank}.json")
            return found if found.t_ns >= self._since_ns else None
        return None

    def _missing(self, rank: int) -> str:
        if rank in self.heard:
            return f"rank {rank} has stopped or fallen behind: all ranks have their own settings"
        return (
            f"of {self.world} ranks, rank {rank} has not come to decide together: it records into "
            "another run (`loaderscope tune torchrun …` makes it one), or does not iterate over "
            "this loader"
        )


class Leading(_Member):
    """Rank 0, or a training without ranks: gives turns, and judges by the slowest rank."""

    @property
    def met(self) -> bool:
        return len(self.heard) == self.world - 1

    @property
    def cores(self) -> int:
        """One rank's part of the cores that any rank may use."""
        shared = {*_cpus()}.union(*(each.cpus for each in self.heard.values()))
        mine = len(shared) // self.world if shared else usable_cores()
        return max(1, min(usable_cores(), mine))

    def take_turn(self, now: int, settings: Settings, kept: Iterable[Settings], **end: Any) -> None:
        """`end`: everything is decided, and these settings stay."""
        self.turn += 1
        self.tell(now, turn=self.turn, settings=settings, kept=tuple(kept), **end)

    @property
    def _at_turn(self) -> list[Word]:
        return [each for each in self.heard.values() if each.turn == self.turn]

    @property
    def all_at_turn(self) -> bool:
        return len(self._at_turn) == self.world - 1

    @property
    def rates(self) -> list[float] | None:
        """Of the other ranks in this turn; None until all have given theirs."""
        rates = [each.rate for each in self._at_turn if each.rate]
        return rates if len(rates) == self.world - 1 else None

    @property
    def failure(self) -> str | None:
        """Why this turn's settings failed in another rank."""
        return next((each.failed[:300] for each in self._at_turn if each.failed), None)


class Following(_Member):
    """Any other rank: uses the settings of the turn, and gives its rate."""

    settings: Settings | None = None  # None: the loader's own
    window: Window | None = None  # of the turn, once its batches are handed over
    leader = Word()

    def follow(self, now: int) -> str | None:
        """As `listen`, and use what rank 0 says now."""
        why = self.listen(now)
        word = self.heard.get(0, self.leader)
        if word.turn != self.turn and word.settings is not None:
            self.leader, self.turn = word, word.turn
            self.settings, self.window = word.settings, None
        return why

    def handed(
        self, now: int, wait_ns: int | None, held_ns: int, epoch_batches: int | None
    ) -> None:
        """Count a batch of the turn's settings."""
        if self.settings is None:
            return
        if self.window is None:
            out = left_out(self.settings, epoch_batches)
            self.window = Window(self.settings, out, epoch_batches=epoch_batches)
            self.tell(now, turn=self.turn, rate=None, failed=None)
        elif self.window.handed(now, wait_ns, held_ns) and self.word.rate is None:
            self.tell(now, rate=self.window.rate)

    def fail(self, now: int, why: str) -> None:
        """The turn's settings do not work here: use the loader's own until the next turn."""
        self.settings = None
        self.tell(now, turn=self.turn, rate=None, failed=why)


def _cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
