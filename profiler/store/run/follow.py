"""Following a live run in bounded memory.

    follower = Follower(path)
    follower.poll()                       # True if there is anything new
    run = follower.run(place)

The `Run` is like that of `open_run`, but has in detail only the newest records of each lane. Older
batches of the chosen loader are in its totals; other loaders have no batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import RunUnreadable
from ...base.liveness import Liveness
from ...base.schema import Schema
from ..lanes.columns import Columns, LaneContent
from ..lanes.lane_window import LaneWindow
from .run import Run
from .run_finder import run_ids
from .run_reader import glance, read_run

# At least this many of the newest records are in memory, by schema.
BATCH_ROWS = 8192
ROWS = {
    "batch": BATCH_ROWS,
    "epoch": 1024,
    "worker": 4096,
    "machine": 1024,
    "gpu": 4096,
    "process": 8192,
}

# How often to look for new processes, loaders and hosts, and whether processes live.
LOOK_NS = 1_000_000_000

ASKED_RUNS = 50  # of the newest: searched for a live one


@dataclass(frozen=True)
class Place:
    """A loader of a run: the name of its process's folder, and its number there."""

    process: str
    loader: int


def newest_run(runs: Path) -> Path | None:
    """The newest run that is live, else the newest; None where there is none."""
    newest = [runs / name for name in run_ids(runs)[::-1]]
    live = (path for path in newest[:ASKED_RUNS] if state_of(path, Liveness()) == "live")
    return next(live, newest[0] if newest else None)


def state_of(path: Path, liveness: Liveness) -> str:
    """The state of a run, from its descriptions alone: live, finished, crashed or unknown; removed;
    unreadable."""
    try:
        return glance(path, liveness)[1]
    except RunUnreadable:
        return "unreadable" if path.is_dir() else "removed"


class Follower:
    """One run directory, followed. Not for two threads at a time."""

    def __init__(self, path: Path, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.path = path
        self.state = "unknown"
        self.version = 0
        self._liveness = Liveness()
        self._clock = clock
        self._look_due_ns = 0
        self._seen: object = None
        self._windows: dict[tuple[Path, str], LaneWindow] = {}
        self._chosen: Place | None = None
        self._last: Run | None = None

    def poll(self) -> bool:
        """Read what is new; True if there is anything to show that was not there before."""
        fresh = self._look()
        for window in self._windows.values():
            fresh = window.poll() or fresh
        if fresh:
            self.version += 1
        return fresh

    def catch_up(self, seconds: float) -> bool:
        """Add older batches of the chosen loader to its totals, for about this long; False when
        none are left."""
        until = self._clock() + int(seconds * 1e9)
        more = False
        for window in self._windows.values():
            while window.catch_up():
                more = True
                if self._clock() >= until:
                    self.version += 1
                    return True
        return more

    def caught_up(self) -> float:
        """Share of the chosen loader's batches that its figures rest on."""
        windows = [window for window in self._windows.values() if window.totals]
        total = sum(window.newest_seq for window in windows)
        return 1 - sum(window.pending for window in windows) / total if total else 1.0

    def run(self, place: Place | None) -> Run:
        """The run now; one whose directory has gone as it was last seen. Raises RunUnreadable."""
        self._choose(place)

        def read(directory: Path, name: str, schema_: Schema) -> LaneContent:
            lane = directory.name, name.partition("x")[0]
            chosen = place and lane == (place.process, f"batches{place.loader}")
            if schema_.name == "batch" and not chosen:
                return LaneContent(Columns.empty(schema_))
            return self._window(directory, name, schema_).content()

        try:
            self._last = read_run(self.path, self._liveness, read)
        except RunUnreadable:
            if self._last is None:
                raise
        return self._last

    def _look(self) -> bool:
        """Whether processes, loaders or the state changed; looked at once a second."""
        now = self._clock()
        if now < self._look_due_ns:
            return False
        self._look_due_ns = now + LOOK_NS
        state = state_of(self.path, self._liveness)
        seen = (state, _descriptions(self.path))
        if seen == self._seen:
            return False
        self._seen, self.state = seen, state
        return True

    def _choose(self, place: Place | None) -> None:
        """Choose another loader, and drop the batches of the one before."""
        if place == self._chosen:
            return
        self._chosen = place
        self._windows = {k: w for k, w in self._windows.items() if w.schema.name != "batch"}

    def _window(self, directory: Path, name: str, schema_: Schema) -> LaneWindow:
        window = self._windows.get((directory, name))
        if window is None:
            rows, totals = ROWS[schema_.name], schema_.name == "batch"
            window = LaneWindow(directory, name, schema_, rows, totals)
            self._windows[directory, name] = window
            window.poll()
        return window


def _descriptions(path: Path) -> list[tuple[str, int, int]]:
    """Every JSON file and first segment of a lane, with size and time: it changes when anything
    joins or is described."""
    found: list[tuple[str, int, int]] = []
    for pattern in ("*.json", "*/*.json", "*/*-000000.seg"):
        for file in path.glob(pattern):
            with suppress(OSError):
                status = file.stat()
                changed_ns = status.st_mtime_ns if file.suffix == ".json" else 0
                found.append((str(file), status.st_size, changed_ns))
    return sorted(found)
