"""This process's part of a run: its folder, its budget, its helper process, and its end.

A session opens at the first batch loop, not at import and not at `watch`: a process that never
loads data leaves no trace. It belongs to one process; a forked child forgets its parent's and opens
its own in the same run.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from ...base.atomic_write import write_atomically
from ...base.clock import now_ns
from ...base.ptrace import allow, pass_on
from ...base.schema import WORKER
from ...guard.error_origin import forgiving, is_ours
from ...store.flushing import flush_with
from ...store.lanes.arena import Arena
from ...store.lanes.compaction import Compactor
from ...store.lanes.lane import Budget, Lane
from ...store.rundir import FORMAT, command_line, exclusive_folder, runs_directory
from ...store.summary import LEAST_RANKS, write_summary
from .begin_run import begin_run
from .process_facts import process_facts
from .ranks import GROUP, SAMPLER, group_of_process, ranks, share_of_sampler
from .start_sampler import Started, start_sampler

RUN_VARIABLE = "LOADERSCOPE_RUN"  # the run that child processes join
LIMIT_VARIABLE = "LOADERSCOPE_MAX_MB"
# "0": no bursts of stacks by themselves, and nobody is permitted to read this process's stacks.
# "eager", for short runs: one burst after 6 batches and 1 s whatever the waiting, 3 s long and
# denser than a long run should bear.
STACKS_VARIABLE = "LOADERSCOPE_STACKS"
DEFAULT_LIMIT_MB = 256
SYSTEM_LIMIT_BYTES = 24_000_000  # of the limit, what the system sampler may use
SMALLEST_LIMIT_MB = 32
# of each process, however many there are: room for a segment and the next one's windows
LEAST_SHARE_BYTES = 2_000_000
COUNT_NS = 1_000_000_000
INTERRUPTIONS = 5

_lock = threading.Lock()
_current: Session | None = None
_in_worker = False
_failed = False
_run_directory: Path | None = None  # kept for forked children, who join the same run
_told: set[str] = set()
_stacks_off = False


def tell(message: str) -> None:
    """One line on standard error, once a process. Not `warnings`: a filter there may turn it into
    an exception."""
    if message not in _told:
        _told.add(message)
        try:
            if sys.stderr is not None:  # `print` would take standard output in its place
                print(f"loaderscope: {message}", file=sys.stderr)
        except Exception as error:
            if not is_ours(error):
                raise


class Recording(Protocol):
    """What records a loader into a session. `index` is its number there, `begun` how often it was
    iterated over."""

    @property
    def index(self) -> int: ...

    @property
    def begun(self) -> int: ...

    def close(self) -> None:
        """The session ends."""

    def abandon(self) -> None:
        """This is a forked child now, and the session its parent's."""


class Session:
    """The open folder of this process. Attributes: `directory`, `run_directory`, `budget`,
    `workers` (lane)."""

    def __init__(self, run_directory: Path) -> None:
        """Raises OSError where the folder cannot be made, or nothing be written there."""
        self.run_directory = run_directory
        self.directory = exclusive_folder(run_directory, f"p{os.getpid()}")
        self._processes, self._counted_ns = 1, -COUNT_NS
        self.budget = Budget(
            _limit_bytes() - SYSTEM_LIMIT_BYTES, self._recording_processes, LEAST_SHARE_BYTES
        )
        self.arena: Arena | None = None  # once it is known who keeps it
        self.workers = Lane(self.directory, "workers", WORKER, self.budget, tell)
        self.facts = process_facts()
        self.facts["stacks"] = _stacks_wanted()
        self.loaders = 0
        self.recorders: list[Recording] = []
        try:
            self._replace_facts()
        except BaseException:
            shutil.rmtree(self.directory, ignore_errors=True)
            raise

    def lane(self, name: str, schema: Any) -> Lane:
        return Lane(
            self.directory,
            name,
            schema,
            self.budget,
            tell,
            fold=Compactor(self.directory, name),
            arena=self.arena,
        )

    def write_loader(self, index: int, facts: dict[str, Any]) -> None:
        with forgiving(OSError):
            write_atomically(
                self.directory / f"loader{index}.json",
                json.dumps({"format": FORMAT, **facts}, default=str),
            )

    def note_device(self, name: str) -> None:
        """The device became known after the session was opened."""
        if self.facts.get("device") != name:
            self.facts["device"] = name
            self._write_facts()

    def note_sampler(self, sampler: Started) -> None:
        """Say why there is no system lane; let the sampler that there is read the stacks of this
        process."""
        if sampler.reason is not None:
            self.facts["reasons"]["system"] = self.facts["reasons"]["stacks"] = sampler.reason
            self._write_facts()
        if sampler.keeper is not None:
            self.arena = self.workers.arena = Arena(self.directory, sampler.keeper, sampler.pid)
        permitted = None if os.environ.get(STACKS_VARIABLE) == "0" else sampler.pid
        allow(permitted)
        pass_on(permitted)

    def note_reason(self, about: str, reason: str) -> None:
        """Say why something is not measured in this process."""
        if self.facts["reasons"].get(about) != reason:
            self.facts["reasons"][about] = reason
            self._write_facts()

    def note_ranks(self, config: Mapping[str, Any] | None = None) -> None:
        """Ask again which rank this process is, until torch.distributed has said it: its group is
        often made after the first loader. `config` is of a loader that joins."""
        if self.facts["rank_source"] == GROUP:
            return
        group = group_of_process()
        sampler = share_of_sampler(config) if config is not None else None
        if group is None and (sampler is None or self.facts["rank_source"] == SAMPLER):
            return
        told = ranks(os.environ, group, sampler).facts()
        if any(self.facts[name] != value for name, value in told.items()):
            self.facts.update(told)
            self._write_facts()

    def note_no_stacks(self) -> None:
        """Bursts of stacks are not wanted after all."""
        if self.facts["stacks"] != "off":
            self.facts["stacks"] = "off"
            self._write_facts()

    def flush(self) -> None:
        """Bring everything recorded so far to the files, where the keeper will have it a moment
        later anyway."""
        if self.arena is not None:
            self.arena.flush()

    def finish(self) -> None:
        """Mark this process as ended; the sampler sees it and ends too. Safe to call twice."""
        self.note_ranks()
        self.flush()
        if "ended_clock_ns" not in self.facts:
            if (self.facts["world_size"] or 1) >= LEAST_RANKS:
                with forgiving(Exception):
                    write_summary(self.directory)
            self.facts["ended_clock_ns"] = now_ns()
            self.facts["ended_unix_ns"] = time.time_ns()
            self._write_facts()

    def finish_at_exit(self) -> None:
        """As `finish`. The program has ended: what a signal's handler raises now is not heard in a
        bare one either, but would be printed; the end is written all the same."""
        for _ in range(INTERRUPTIONS):
            try:
                if (
                    getattr(sys, "last_type", None) is KeyboardInterrupt
                ):  # what the interpreter has printed just now
                    self.facts["ended_by"] = KeyboardInterrupt.__name__
                self.finish()
                return
            except BaseException:
                continue

    def _write_facts(self) -> None:
        with forgiving(OSError):
            self._replace_facts()

    def _replace_facts(self) -> None:
        write_atomically(self.directory / "process.json", json.dumps(self.facts))

    def _recording_processes(self) -> int:
        """Counted anew once a second at most: there may be thousands of lanes."""
        now = now_ns()
        if now - self._counted_ns > COUNT_NS:
            self._counted_ns = now
            with forgiving(OSError):
                self._processes = sum(
                    1 for name in os.listdir(self.run_directory) if name.startswith("p")
                )
        return self._processes


def current() -> Session | None:
    """The open session of this process, if any."""
    return _current


def loaders() -> int:
    """How many loaders the open session has; 0 where none is open."""
    return _current.loaders if _current is not None else 0


def open_session() -> Session | None:
    """The session of this process, opened if need be; None in a DataLoader worker or where no
    folder can be made."""
    global _current, _failed, _run_directory
    if _current is not None or _in_worker or _failed:
        return _current
    with _lock:
        if _current is None and not _failed:
            session = _open_anywhere()
            if session is None:
                _failed = True
                return None
            _run_directory = session.run_directory
            _at_end(session)
            session.note_sampler(start_sampler(session.run_directory))
            _current = session
    return _current


def take_no_stacks() -> None:
    """No bursts of stacks of this process by themselves, from now on until its recording ends."""
    global _stacks_off
    _stacks_off = True
    if _current is not None:
        _current.note_no_stacks()


def close_session() -> None:
    """End this process's recording: the next loop opens a run of its own."""
    global _current, _run_directory, _stacks_off
    session, _current, _run_directory = _current, None, None
    _stacks_off = False
    if session is not None:
        for recorder in list(session.recorders):
            recorder.close()
        session.workers.close()
        session.finish()
        if session.arena is not None:
            session.arena.close()
        atexit.unregister(session.finish_at_exit)


def flush(run_directory: Path | None = None) -> None:
    """Bring what this process has recorded to its files, if it records (into this run): a reader
    comes."""
    session = _current
    if session is not None and run_directory in (None, session.run_directory):
        session.flush()


flush_with(flush)


def leave_worker_alone() -> None:
    """Called in a DataLoader worker: loaders used inside it are not recorded."""
    global _in_worker
    _in_worker = True


def may_open() -> bool:
    """Whether this process may have a session: it is no DataLoader worker, and a folder could be
    made."""
    return not (_in_worker or _failed)


def in_worker() -> bool:
    """Whether this process is a DataLoader worker."""
    return _in_worker


def _forget_after_fork() -> None:
    global _current, _lock
    _lock = threading.Lock()
    session, _current = _current, None
    if session is not None:
        if session.arena is not None:
            session.arena.abandon()
        session.workers.abandon("forked")
        for recorder in session.recorders:
            recorder.abandon()
        atexit.unregister(session.finish_at_exit)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)


def _at_end(session: Session) -> None:
    atexit.register(session.finish_at_exit)
    import multiprocessing
    from multiprocessing import util

    if multiprocessing.parent_process() is not None:
        # A forked multiprocessing child leaves through os._exit, past atexit; its finalizers do
        # run.
        util.Finalize(None, session.finish_at_exit, exitpriority=0)


def _open_anywhere() -> Session | None:
    named = os.environ.get(RUN_VARIABLE)
    joined = _run_directory or (Path(named) if named else None)
    session, said = begin_run(runs_directory, command_line(), Session, joined)
    if said:
        tell(said)
    return session


def _stacks_wanted() -> str:
    chosen = os.environ.get(STACKS_VARIABLE, "").strip().lower()
    return "off" if _stacks_off or chosen == "0" else "eager" if chosen == "eager" else "on"


def _limit_bytes() -> int:
    text = os.environ.get(LIMIT_VARIABLE, "")
    try:
        wanted = int(text or DEFAULT_LIMIT_MB)
    except ValueError:
        tell(f"{LIMIT_VARIABLE}={text!r} is not a number; the limit is {DEFAULT_LIMIT_MB} MB")
        wanted = DEFAULT_LIMIT_MB
    return max(wanted, SMALLEST_LIMIT_MB) * 1_000_000
