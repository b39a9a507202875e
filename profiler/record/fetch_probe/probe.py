"""Sampling of fetches, in the process that does them: which to sample, what is measured, where the
sums are kept.

A sample is the fetching of one whole batch. Only some of those batches are sampled that are
measured in detail anyway, and the probe's own cost is held to a thousandth of the time that goes by
(a hundredth where epochs are short). Nothing here raises an `Exception`: what fails ends the
sampling in this process, with a reason.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...base.atomic_write import write_atomically
from ...base.clock import now_ns
from ...guard.error_origin import forgiving, is_ours
from ...store.probe_totals import ProbeTotals, read_fetches
from ...store.sampled_fetches import MAX_EPOCHS, SampledFetches
from . import opens
from .chains import Chains
from .containers import held_containers, size_of
from .opened_paths import PathSums
from .positions import moved, positions
from .read_counters import Counters, Reading, between, counters

# The first batches of a loader, and of each later epoch or worker of it.
AT_FIRST, AT_FIRST_LATER = 6, 2
# Then one in so many of the batches measured in detail: all slow ones, and one in 64 of the quick
# ones.
EVERY = 16
# Where so many sampled fetches in a row saw neither reading nor a chain, there is little to find.
IDLE_AFTER, EVERY_IDLE = 4, 256
OWN_SHARE = 0.001
OWN_SHARE_EPOCHS = (
    0.01  # the first batches of an epoch show whether files are known to the page cache
)
# Descriptors and maps are searched at these sampled fetches of a process: that takes about a
# millisecond.
SCANS, SCANS_LATER = (2, 16, 128), (16, 128)
WRITE_EVERY_NS = 5_000_000_000
MAX_FAILED_WRITES = 3

NO_COUNTERS = "this platform does not count what a process reads"
NO_HOOK = "opens are not seen: another audit hook keeps ours out"
NO_COUNTERS_NO_HOOK = (
    "opens are not seen: without counters of reading, the training process is left without a hook"
)

# One fetch is sampled at a time in a process: a chain's list is replaced once, and opens are one
# thread's.
_turn = threading.Lock()
_at_work: FetchProbe | None = None


class FetchProbe:
    """What one process samples of one loader's fetches.

    For each batch measured in detail, ask `wants()`; then `begin`, the fetching, `end` (or
    `abandon`), and `settle` when the batch is on its way.
    """

    def __init__(self, file: Path, epoch: int = 0, in_worker: bool = False) -> None:
        """`file` takes the sums. A worker of a later epoch goes on from the file that is there."""
        self._file = file
        self.epoch = epoch
        self._in_worker = in_worker
        self._later = epoch > 0 and in_worker
        self._before: SampledFetches | None = None if self._later else SampledFetches()
        self.totals = ProbeTotals()
        self._run = str(file.parent.parent)
        self._paths = PathSums(self.totals, self._run)
        self._taken = 0
        self._left_at_first = AT_FIRST_LATER if self._later else AT_FIRST
        self._skip = 0
        self._idle = 0
        self._reading_batches = 0
        self._probed_in_epoch = epoch
        self._own_ns = 0
        self._born_ns = now_ns()
        self._written_ns = 0
        self._unwritten = 0
        self._failed_writes = 0
        self._off = False
        self._batch: _ProbedBatch | None = None
        self._seen: _Seen | None = None
        self.begin_ns = 0  # what beginning the sample under way took

    def wants(self) -> bool:
        """Whether to sample the fetch of this batch."""
        if self._left_at_first:
            return not self._off
        if self._off:
            return False
        if self.epoch != self._probed_in_epoch:
            self._probed_in_epoch = self.epoch
            affords = self._affords(OWN_SHARE_EPOCHS)
            if self._idle < IDLE_AFTER and (affords or self.epoch < MAX_EPOCHS):
                self._left_at_first = AT_FIRST_LATER if affords else 1
                return True
        if self._skip:
            self._skip -= 1
            return False
        if not self._affords(OWN_SHARE):
            self._skip = EVERY
            return False
        return True

    def _affords(self, share: float) -> bool:
        return self._own_ns <= (now_ns() - self._born_ns) * share

    def begin(self, chains: Chains, samples: int) -> bool:
        """The batch is about to be fetched; False where it cannot be sampled now. Only
        `BaseException`s of others come out of here: a Ctrl-C."""
        global _at_work
        start = now_ns()
        if samples <= 0 or not _turn.acquire(blocking=False):
            return False
        _at_work = self
        try:
            self._left_at_first = max(0, self._left_at_first - 1)
            self._skip = (EVERY if self._idle < IDLE_AFTER else EVERY_IDLE) - 1
            # Workers have their files to themselves, or are in trouble already. What is read ahead
            # moves no position.
            looks = not self._in_worker and (self._taken < AT_FIRST or self._taken + 1 in SCANS)
            self._batch = _ProbedBatch(chains, samples, self._in_worker, opens.installed(), looks)
        except BaseException as error:
            if not is_ours(error):
                self.abandon()
                raise
            self._give_up(error)
        self.begin_ns = now_ns() - start
        self._own_ns += self.begin_ns
        return self._batch is not None

    def end(self, fetch_ns: int, fetch_cpu_ns: int) -> None:
        """The batch was fetched in this time. Everything is as it was before."""
        start = now_ns()
        batch, self._batch = self._batch, None
        if batch is None:
            return
        try:
            self._seen = batch.end(fetch_ns, fetch_cpu_ns)
        except BaseException as error:
            batch.drop()
            if not is_ours(error):
                raise
            self._give_up(error)
        finally:
            _let_go()
        self._own_ns += now_ns() - start

    def abandon(self) -> None:
        """The batch was not fetched: what was seen of it is dropped, and everything as it was
        before."""
        batch = self._batch
        try:
            if batch is not None:
                batch.drop()
        except BaseException as error:
            if batch is not None:
                batch.drop()
            if not is_ours(error):
                raise
            self._give_up(error)
        finally:
            self._batch = None
            if _at_work is self:
                _let_go()

    def settle(self) -> None:
        """Sum up what the last sample saw, and write the sums if it is time."""
        seen, self._seen = self._seen, None
        if seen is None:
            return
        start = now_ns()
        try:
            self._add(seen)
            self._write_if_due()
        except Exception as error:
            if not is_ours(error):
                raise
            self._give_up(error)
        self._own_ns += now_ns() - start

    def pause(self) -> None:
        """Write what has not been written: an iteration has ended."""
        if self._unwritten:
            try:
                self._write()
            except Exception as error:
                if not is_ours(error):
                    raise

    def close(self) -> None:
        """No more fetches will be sampled."""
        self._off = True
        self.abandon()
        self.settle()
        self.pause()

    def _add(self, seen: _Seen) -> None:
        self._taken += 1
        reading = seen.reading
        totals = self.totals
        if self._taken in (SCANS_LATER if self._later else SCANS):
            for path, kind in held_containers(self._run).items():
                totals.add_container(path, kind, size_of(path, kind))
        totals.add_moved(path for path in seen.moved if not path.startswith(self._run))
        reads = reading.read_bytes > 0 or reading.major_faults > 0
        if reading.read_bytes < 0:
            totals.reasons["reading"] = NO_COUNTERS
        if not seen.hooked and self._install_hook(reads, reading.read_bytes >= 0):
            return  # one that missed the opens would spoil their number a sample
        own_seen = bool(seen.opened) or reading.read_bytes < 0
        if seen.hooked and not own_seen:
            totals.reasons["opens"] = NO_HOOK
        opened = self._paths.add(seen.opened, seen.samples) if seen.hooked else 0
        unknown = "opens" in totals.reasons
        values = [
            1,
            seen.samples,
            seen.fetch_ns,
            seen.fetch_cpu_ns,
            -1 if unknown else opened,
            reading.read_bytes,
            reading.read_calls,
            reading.disk_bytes,
            reading.major_faults,
        ]
        totals.batches += 1
        totals.samples += seen.samples
        totals.fetch_ns += seen.fetch_ns
        totals.add_epoch(self.epoch, values)
        if seen.timed:
            totals.chain_samples += seen.samples
            totals.chain_fetch_ns += seen.fetch_ns
            for step in seen.steps:
                totals.add_step(*step)
        self._idle = 0 if reads or opened or seen.timed or totals.containers else self._idle + 1
        self._unwritten += 1

    def _install_hook(self, reads: bool, counted: bool) -> bool:
        """Whether the sample is worth nothing, as no hook was there to see opens; the hook is added
        for the next."""
        if not counted and not self._in_worker:
            self.totals.reasons["opens"] = NO_COUNTERS_NO_HOOK
            return False
        if counted and not reads:
            return False
        self._reading_batches += 1
        # In the training process the hook would stay for good, and the first batch often reads
        # modules only.
        if self._in_worker or self._reading_batches > 1:
            opens.install()
        self._left_at_first += 1  # in place of the one just lost
        return True

    def _write_if_due(self) -> None:
        taken = self.totals.batches
        often = taken >= 4 or not self._later
        if (taken & (taken - 1) == 0 and often) or now_ns() - self._written_ns > WRITE_EVERY_NS:
            self._write()

    def _write(self) -> None:
        if self._failed_writes >= MAX_FAILED_WRITES:
            return
        if self._before is None:
            self._before = read_fetches(self._file)
        whole = ProbeTotals()
        whole.add(self._before)
        whole.add(self.totals.fetches())
        try:
            write_atomically(self._file, whole.to_json())
        except OSError as error:  # a full disk, a folder that is gone
            if not is_ours(error):
                raise
            self._failed_writes += 1
            with forgiving(OSError):
                self._file.with_name(f".{self._file.name}.{os.getpid()}").unlink()
            return
        self._unwritten = 0
        self._written_ns = now_ns()

    def _give_up(self, error: BaseException) -> None:
        self._off = True
        self.totals.reasons["looks"] = f"looking stopped: {type(error).__name__}: {error}"[:300]
        self._unwritten += 1
        if self._batch is not None:
            batch, self._batch = self._batch, None
            with forgiving(Exception):
                batch.drop()
        if _at_work is self:
            _let_go()


class _Seen:
    """What one sample showed. `opened` holds our own open of the counters too, which shows that the
    hook works."""

    __slots__ = (
        "fetch_cpu_ns",
        "fetch_ns",
        "hooked",
        "moved",
        "opened",
        "reading",
        "samples",
        "steps",
        "timed",
    )

    fetch_ns: int
    fetch_cpu_ns: int
    hooked: bool
    opened: list[Any]
    moved: set[str]
    reading: Reading
    samples: int
    steps: list[tuple[str, int, str, int, int]]
    timed: bool


class _ProbedBatch:
    """The batch whose fetch is being sampled: begun when made."""

    __slots__ = (
        "_chains",
        "_counters",
        "_hooked",
        "_positions",
        "_samples",
        "_timed",
        "_whole_process",
    )

    def __init__(
        self, chains: Chains, samples: int, whole_process: bool, hooked: bool, looks: bool
    ) -> None:
        self._chains = chains
        self._samples = samples
        self._whole_process = whole_process
        self._hooked = hooked
        self._positions = positions() if looks else None
        try:
            self._timed = chains.start()
            if hooked:
                opens.begin(whole_process)
            self._counters: Counters = counters(whole_process)
        except BaseException:
            self.drop()
            raise

    def end(self, fetch_ns: int, fetch_cpu_ns: int) -> _Seen:
        seen = _Seen()
        try:
            seen.opened = opens.end() if self._hooked else []
            seen.reading = between(self._counters, counters(self._whole_process))
        finally:
            seen.steps = self._chains.stop()
        seen.moved = moved(self._positions, positions()) if self._positions is not None else set()
        seen.timed = self._timed
        seen.hooked = self._hooked
        seen.samples = self._samples
        seen.fetch_ns, seen.fetch_cpu_ns = fetch_ns, fetch_cpu_ns
        return seen

    def drop(self) -> None:
        opens.end()
        self._chains.stop()


def _let_go() -> None:
    global _at_work
    _at_work = None
    with suppress(RuntimeError):  # another thread's failure let go before
        _turn.release()


def _forget_after_fork() -> None:
    """In a child forked while a fetch is being sampled, it is not."""
    global _turn, _at_work
    probe, _at_work = _at_work, None
    _turn = threading.Lock()
    if probe is not None:
        probe._off = True
        with forgiving(Exception):
            probe.abandon()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
