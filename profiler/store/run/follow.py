"""Following a live run in bounded memory.

    follower = Follower(path)
    follower.poll()                       # True if there is anything new
    run = follower.run(place)

The `Run` is like that of `open_run`, but has only the newest records of each lane, and batches of
the chosen loader alone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ...base.errors import RunUnreadable
from ...base.liveness import Liveness
from ...base.schema import Schema
from ..lanes.columns import Columns, LaneContent, read_lane
from .run import Run
from .run_finder import run_ids
from .run_reader import glance, read_run

# At least this many of the newest records of each lane are read.
NEWEST_ROWS = 4096

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

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = "unknown"
        self.seen: object = None  # other than before whenever there is something new
        self._liveness = Liveness()
        self._last: Run | None = None

    def poll(self) -> bool:
        """Look what is there; True if there is anything to show that was not there before."""
        before = self.seen
        self.state = state_of(self.path, self._liveness)
        self.seen = self.state, _files(self.path)
        return self.seen != before

    def run(self, place: Place | None) -> Run:
        """The run now; one whose directory has gone as it was last seen. Raises RunUnreadable."""

        def read(directory: Path, name: str, schema_: Schema) -> LaneContent:
            lane = directory.name, name.partition("x")[0]
            chosen = place and lane == (place.process, f"batches{place.loader}")
            if schema_.name == "batch" and not chosen:
                return LaneContent(Columns.empty(schema_))
            return read_lane(directory, name, schema_, NEWEST_ROWS)

        try:
            self._last = read_run(self.path, self._liveness, read)
        except RunUnreadable:
            if self._last is None:
                raise
        return self._last


def _files(path: Path) -> list[tuple[str, int, int]]:
    """Every description and segment of a lane, with size and time."""
    found: list[tuple[str, int, int]] = []
    for pattern in ("*.json", "*/*.json", "*/*.seg"):
        for file in path.glob(pattern):
            with suppress(OSError):
                status = file.stat()
                found.append((str(file), status.st_size, status.st_mtime_ns))
    return sorted(found)
