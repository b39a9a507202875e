"""This process's part of a run: its folder, its budget, its sampler, and its end.

A session opens at the first batch loop, so a process that never loads data leaves no trace. A
forked child forgets its parent's session and opens its own in the same run.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base.atomic_write import write_atomically
from ...base.clock import now_ns
from ...base.ptrace import allow, pass_on
from ...base.schema import WORKER
from ...guard.error_origin import forgiving
from ...store.flushing import flush_with
from ...store.lanes.arena import Arena
from ...store.lanes.lane import Budget, Lane
from ...store.making import SOURCES
from ...store.rundir import FORMAT, command_line, exclusive_folder, runs_directory
from ..inspect.source_hashes import hashes_of_sources, module_run
from .begin_run import begin_run
from .process_facts import process_facts
from .ranks import GROUP, group_of_process, ranks
from .start_sampler import Started, start_sampler

if TYPE_CHECKING:
    from ..iterate.recorder import Recorder

RUN_VARIABLE = "LOADERSCOPE_RUN"  # the run that child processes join
LIMIT_VARIABLE = "LOADERSCOPE_MAX_MB"
# "0": no automatic bursts of stacks, and nobody may read this process's stacks. "eager", for short
# runs: one burst after 6 batches and 1 s regardless of the waiting, 3 s long and denser than usual.
STACKS_VARIABLE = "LOADERSCOPE_STACKS"
DEFAULT_LIMIT_MB = 256
SYSTEM_LIMIT_BYTES = 24_000_000  # of the limit, what the system sampler may use
SMALLEST_LIMIT_MB = 32
# The least share of a process: room for a segment and the next one's windows.
LEAST_SHARE_BYTES = 2_000_000
COUNT_NS = 1_000_000_000
INTERRUPTIONS = 5


class _Process:
    """What this process knows of its recording."""

    in_worker = False

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: Session | None = None
        self.failed = False  # no folder could be made
        self.run_directory: Path | None = None  # kept for forked children, who join the same run
        self.said: set[str] = set()
        self.no_stacks = False


_process = _Process()


def tell(message: str) -> None:
    """Print a line on standard error, once per process. A filter could turn a warning into an
    exception."""
    if message not in _process.said:
        _process.said.add(message)
        with forgiving():
            if sys.stderr is not None:  # `print` would use standard output instead
                print(f"loaderscope: {message}", file=sys.stderr)


class Session:
    """The open folder of this process."""

    def __init__(self, run_directory: Path) -> None:
        """Raises OSError if the folder cannot be made or written."""
        self.run_directory = run_directory
        self.directory = exclusive_folder(run_directory, f"p{os.getpid()}")
        self._processes, self._counted_ns = 1, -COUNT_NS
        self.budget = Budget(
            _limit_bytes() - SYSTEM_LIMIT_BYTES, self._recording_processes, LEAST_SHARE_BYTES
        )
        self.arena: Arena | None = None  # until the keeper is known
        self.workers = Lane(self.directory, "workers", WORKER, self.budget, tell)
        self.facts = process_facts()
        self.facts["stacks"] = _stacks_wanted()
        self.loaders = 0
        self.recorders: list[Recorder] = []
        self._sources: dict[str, str] = {}
        try:
            write_atomically(self.directory / "process.json", json.dumps(self.facts))
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def lane(self, name: str, schema: Any) -> Lane:
        return Lane(self.directory, name, schema, self.budget, tell, True, self.arena)

    def note_sources(self) -> None:
        """Record the user's source files that were imported since the last call."""
        found = hashes_of_sources(self.facts["create_time"], self._sources)
        if found:
            self._sources.update(found)
            with forgiving(OSError):
                about = {"cwd": os.getcwd(), "module": module_run()}
                self.write(SOURCES, {**about, "files": self._sources})

    def note_sampler(self, sampler: Started) -> None:
        """Record why there is no system lane, or allow the sampler to read this process's
        stacks."""
        if sampler.reason is not None:
            for about in ("system", "stacks"):
                self.note_reason(about, sampler.reason)
        if sampler.keeper is not None:
            self.arena = self.workers.arena = Arena(self.directory, sampler.keeper, sampler.pid)
        permitted = None if os.environ.get(STACKS_VARIABLE) == "0" else sampler.pid
        allow(permitted)
        pass_on(permitted)

    def note_reason(self, about: str, reason: str) -> None:
        """Record why something is not measured in this process."""
        self.update(reasons={**self.facts["reasons"], about: reason})

    def note_ranks(self) -> None:
        """Ask for this process's rank until torch.distributed knows it: its group is often made
        after the first loader."""
        if self.facts["rank_source"] != GROUP and (group := group_of_process()) is not None:
            self.update(**asdict(ranks(os.environ, group)))

    def flush(self) -> None:
        """Write everything recorded so far to the files, before the keeper does."""
        if self.arena is not None:
            self.arena.flush()

    def finish(self) -> None:
        """Mark this process as ended, so that the sampler ends too. Safe to call twice."""
        self.note_ranks()
        self.flush()
        if "ended_clock_ns" not in self.facts:
            self.update(ended_clock_ns=now_ns())

    def finish_at_exit(self) -> None:
        """`finish`, even if signal handlers raise: at exit their errors would only be printed."""
        for _ in range(INTERRUPTIONS):
            try:
                # The error that the interpreter has just printed; a shell goes on after one.
                printed = getattr(sys, "last_type", None)
                if printed is not None and not hasattr(sys, "ps1") and "IPython" not in sys.modules:
                    self.facts["ended_by"] = str(printed.__name__)[:200]
                self.finish()
                return
            except BaseException:
                continue

    def update(self, **facts: Any) -> None:
        """Record facts of this process that became known, or have changed."""
        if any(self.facts.get(name) != value for name, value in facts.items()):
            self.facts.update(facts)
            self.write("process.json", self.facts)

    def write(self, name: str, facts: dict[str, Any]) -> None:
        """Write a JSON file of this process."""
        text = json.dumps({"format": FORMAT, **facts}, default=str)
        with forgiving(OSError):
            write_atomically(self.directory / name, text)

    def _recording_processes(self) -> int:
        """Counted once a second at most, since there may be thousands of lanes."""
        now = now_ns()
        if now - self._counted_ns > COUNT_NS:
            self._counted_ns = now
            with forgiving(OSError):
                names = os.listdir(self.run_directory)
                self._processes = sum(name.startswith("p") for name in names)
        return self._processes


def current() -> Session | None:
    """The open session of this process."""
    return _process.session


def open_session() -> Session | None:
    """The session of this process, opened if necessary. None in a DataLoader worker, or if no
    folder can be made."""
    if _process.session is not None or not may_open():
        return _process.session
    with _process.lock:
        if _process.session is None and not _process.failed:
            session = _open_anywhere()
            if session is None:
                _process.failed = True
                return None
            _process.run_directory = session.run_directory
            _at_end(session)
            session.note_sampler(start_sampler(session.run_directory))
            _process.session = session
    return _process.session


def take_no_stacks() -> None:
    """No automatic bursts of stacks in this process until its recording ends."""
    _process.no_stacks = True
    if _process.session is not None:
        _process.session.update(stacks="off")


def flush(run_directory: Path | None = None) -> None:
    """Write what this process has recorded (into this run) to its files, for a reader."""
    session = _process.session
    if session is not None and run_directory in (None, session.run_directory):
        session.flush()


flush_with(flush)


def leave_worker_alone() -> None:
    """This process is a DataLoader worker: loaders used in it are not recorded."""
    _process.in_worker = True


def may_open() -> bool:
    """Whether this process may have a session."""
    return not (_process.in_worker or _process.failed)


def in_worker() -> bool:
    """Whether this process is a DataLoader worker."""
    return _process.in_worker


def _forget_after_fork() -> None:
    _process.lock = threading.Lock()
    session, _process.session = _process.session, None
    if session is not None:
        if session.arena is not None:
            session.arena.abandon()
        session.workers.abandon("forked")
        for recorder in session.recorders:
            recorder.abandon()
        atexit.unregister(session.finish_at_exit)


os.register_at_fork(after_in_child=_forget_after_fork)


def _at_end(session: Session) -> None:
    atexit.register(session.finish_at_exit)
    import multiprocessing
    from multiprocessing import util

    if multiprocessing.parent_process() is not None:
        # A forked multiprocessing child leaves by os._exit: its finalizers run, atexit does not.
        util.Finalize(None, session.finish_at_exit, exitpriority=0)


def _open_anywhere() -> Session | None:
    named = os.environ.get(RUN_VARIABLE)
    joined = _process.run_directory or (Path(named) if named else None)
    session, said = begin_run(runs_directory, command_line(), Session, joined)
    if said:
        tell(said)
    return session


def _stacks_wanted() -> str:
    chosen = os.environ.get(STACKS_VARIABLE, "").strip().lower()
    return "off" if _process.no_stacks or chosen == "0" else "eager" if chosen == "eager" else "on"


def _limit_bytes() -> int:
    text = os.environ.get(LIMIT_VARIABLE, "")
    try:
        wanted = int(text or DEFAULT_LIMIT_MB)
    except ValueError:
        tell(f"{LIMIT_VARIABLE}={text!r} is not a number; the limit is {DEFAULT_LIMIT_MB} MB")
        wanted = DEFAULT_LIMIT_MB
    return max(wanted, SMALLEST_LIMIT_MB) * 1_000_000
