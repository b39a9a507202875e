"""The ranks of one host decide together: rank 0 leads the trials, the others follow, through small
files in the run directory.

Each rank writes one file, that of rank 0 says whose turn it is. Nobody waits for anybody: a window
is counted once all have come to its turn, and ends once all have told their rate; until then
batches are handed over as ever. A rank of which nothing is heard for long, in time and in steps of
one's own, is out, and then all have their own settings again.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..profiler.base.atomic_write import write_atomically
from ..profiler.base.errors import RunUnreadable
from ..profiler.base.host import boot_id, usable_cores
from ..profiler.base.metadata import clean, integer, number, read_object, text
from ..profiler.record.iterate.watch import recorder_of
from ..profiler.record.session.ranks import Ranks
from .settings import Settings
from .window import Window, left_out

SIGN_NS, LOOK_NS = (
    1_000_000_000,
    20_000_000,
)  # how often a rank gives a sign of life, and looks for those of others
LATE_NS, LATE_STEPS = (
    10_000_000_000,
    20,
)  # ranks that train in step give theirs within a step or two
MAX_BYTES = 1 << 18


def meet(loader: Any, told: Ranks, since_ns: int, now: int) -> Leading | Following | str:
    """This rank's part in tuning its loader; or why there is none. Files from before `since_ns` are
    of another try."""
    recorder = recorder_of(loader)
    session = recorder.session if recorder is not None else None
    if recorder is None or session is None:
        return f"{told.world_size} ranks train together, and this one is not recorded"
    if told.rank is None or told.world_size is None:
        return "several ranks train together, and which of them this one is, nobody tells"
    if told.local_world_size not in (None, told.world_size):
        return (
            f"{told.world_size} ranks train together on several hosts, and hosts do not decide "
            "together"
        )
    name = f"{boot_id()} {recorder.name} {told.world_size}"
    folder = (
        session.run_directory
        / f"ranks-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:16]}"
    )
    board = Board(folder, told.rank, told.world_size, since_ns)
    return Following(board, now) if told.rank else Leading(board, now)


class Board:
    """The files of all ranks. Nothing here raises an OSError: what cannot be written is not
    heard."""

    def __init__(self, folder: Path, rank: int, world: int, since_ns: int) -> None:
        self.folder, self.rank, self.world, self._since_ns = folder, rank, world, since_ns

    def write(self, now: int, facts: dict[str, Any]) -> None:
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            write_atomically(self.folder / f"{self.rank}.json", json.dumps({"t_ns": now, **facts}))

    def read(self, rank: int) -> dict[str, Any] | None:
        with suppress(RunUnreadable):
            found = read_object(self.folder / f"{rank}.json", MAX_BYTES)
            return found if (integer(found, "t_ns") or 0) >= self._since_ns else None
        return None


class _Member:
    """What leading and following have in common: signs of life, given and heard."""

    def __init__(self, board: Board, others: list[int], now: int) -> None:
        self.board = board
        self.steps = 0
        self.turn = 0
        self.heard: dict[int, dict[str, Any]] = {}
        self._facts: dict[str, Any] = {"cpus": _cpus()}
        self._sign_ns = self._look_ns = 0
        self._last = dict.fromkeys(
            others, (now, 0)
        )  # when, by clock and by steps, there was anything new of each

    def tell(self, now: int, **facts: Any) -> None:
        self._facts |= facts
        self._sign_ns = now
        self.board.write(now, self._facts)

    def listen(self, now: int) -> str | None:
        """A step has passed. Why it cannot go on together; None while it can."""
        self.steps += 1
        if now - self._look_ns < LOOK_NS:
            return None
        self._look_ns = now
        if now - self._sign_ns >= SIGN_NS:
            self.tell(now)
        for rank, (when, step) in self._last.items():
            found = self.board.read(rank)
            if found is not None and found != self.heard.get(rank):
                self.heard[rank] = found
                self._last[rank] = now, self.steps
            elif now - when > LATE_NS and self.steps - step > LATE_STEPS:
                return self._missing(rank)
            if found is not None and (why := text(found, "left")) is not None:
                return f"rank {rank} has left: {clean(why, 300)}"
        return None

    def _missing(self, rank: int) -> str:
        if rank in self.heard:
            return f"rank {rank} has stopped or fallen behind: all ranks have their own settings"
        return (
            f"of {self.board.world} ranks, rank {rank} has not come to decide together: it records "
            "into another run (`loaderscope tune torchrun …` makes it one), or does not iterate "
            "over this loader"
        )


class Leading(_Member):
    """Of rank 0: says whose turn it is, and judges by the slowest."""

    def __init__(self, board: Board, now: int) -> None:
        super().__init__(board, list(range(1, board.world)), now)

    @property
    def met(self) -> bool:
        return len(self.heard) == self.board.world - 1

    @property
    def cores(self) -> int:
        """Of one rank, where all share those that any of them may run on."""
        shared = set(_cpus()).union(*(_numbers(each.get("cpus")) for each in self.heard.values()))
        return max(
            1, min(usable_cores(), len(shared) // self.board.world if shared else usable_cores())
        )

    def take_turn(self, now: int, settings: Settings, kept: tuple[Settings, ...]) -> None:
        self.turn += 1
        self.tell(
            now, turn=self.turn, settings=asdict(settings), kept=[asdict(each) for each in kept]
        )

    def end(self, now: int, settings: Settings, said: str, trials: list[dict[str, Any]]) -> None:
        """All is decided: these stay."""
        self.turn += 1
        kept = [asdict(settings)]
        self.tell(now, turn=self.turn, settings=kept[0], kept=kept, said=said, trials=trials)

    @property
    def _at_turn(self) -> list[dict[str, Any]]:
        return [each for each in self.heard.values() if integer(each, "turn") == self.turn]

    @property
    def all_at_turn(self) -> bool:
        return len(self._at_turn) == self.board.world - 1

    @property
    def rates(self) -> list[float] | None:
        """In this turn; None until all have told."""
        told = [rate for each in self._at_turn if (rate := number(each, "rate"))]
        return told if len(told) == self.board.world - 1 else None

    @property
    def failure(self) -> str | None:
        """Of the settings whose turn it is, in another rank."""
        return next(
            (clean(why, 300) for each in self._at_turn if (why := text(each, "failed"))), None
        )


class Following(_Member):
    """Of any other rank: has the settings whose turn it is, and tells its rate."""

    def __init__(self, board: Board, now: int) -> None:
        super().__init__(board, [0], now)
        self.settings: Settings | None = None  # None: the loader's own
        self.kept: tuple[Settings, ...] = ()
        self.window: Window | None = None  # of the turn, once its batches are handed over
        self.said: str | None = None  # how it ended
        self.trials: list[dict[str, Any]] = []
        self.tell(now, turn=0)

    def follow(self, now: int) -> str | None:
        """As `listen`; what rank 0 says now counts from here on."""
        why = self.listen(now)
        word = self.heard.get(0, {})
        turn = integer(word, "turn") or 0
        settings = _settings(word.get("settings"))
        if turn != self.turn and settings is not None:
            kept = word.get("kept")
            self.turn, self.settings, self.window = turn, settings, None
            self.kept = tuple(filter(None, map(_settings, kept if isinstance(kept, list) else ())))
            self.said = text(word, "said")
            self.trials = (
                word["trials"]
                if self.said is not None and isinstance(word.get("trials"), list)
                else []
            )
        return why

    def handed(
        self, now: int, wait_ns: int | None, held_ns: int, epoch_batches: int | None
    ) -> None:
        """A batch of the turn's settings was handed over."""
        if self.settings is None:
            return
        if self.window is None:
            out = left_out(self.settings, epoch_batches)
            self.window = Window(self.settings, out, epoch_batches=epoch_batches)
            self.tell(now, turn=self.turn, rate=None, failed=None)
        elif self.window.handed(now, wait_ns, held_ns) and self._facts["rate"] is None:
            self.tell(now, rate=self.window.rate)

    def fail(self, now: int, why: str) -> None:
        """The turn's settings do not work here: the loader's own until the next turn."""
        self.settings = None
        self.tell(now, turn=self.turn, rate=None, failed=why)

    def leave(self, now: int, why: str) -> None:
        self.tell(now, left=why)


def _cpus() -> list[int]:
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _numbers(value: Any) -> list[int]:
    return [each for each in value if type(each) is int] if isinstance(value, list) else []


def _settings(value: Any) -> Settings | None:
    try:
        return Settings(**value)
    except TypeError:
        return None
