"""Samples fetches, in the process that does them: which ones, and what is measured.

A sample is the fetching of one whole batch, out of those measured in detail. The probe's own cost
stays below a thousandth of the time (a hundredth with short epochs). A failure of ours ends the
sampling in this process, with a reason.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...base.atomic_write import write_atomically
from ...base.clock import now_ns
from ...guard.error_origin import forgiving, is_ours
from ...store.probe_totals import ProbeTotals, read_fetches
from ...store.sampled_fetches import MAX_EPOCHS, combined_fields
from ..inspect.digests import digest_of_batch, plain_indices
from ..inspect.inspect_samples import inspect_samples, tell_samples
from . import opens
from .containers import held_containers, size_of
from .opened_paths import PathSums
from .positions import moved, positions
from .read_counters import between, counters

# The first batches of a loader, and of each later worker of it or epoch, up to MAX_EPOCHS.
AT_FIRST, AT_FIRST_LATER = 6, 2
# Then one in so many of the batches with detail.
EVERY = 16
OWN_SHARE = 0.001
OWN_SHARE_EPOCHS = 0.01  # an epoch's first batches show whether files are in the page cache
# The sampled fetches whose samples are described, the samples of each that are compared with what
# their indices gave before, and how many of these are enough.
DESCRIBED, COMPARED, ENOUGH = 2, 4, 16
# The samples at which descriptors and maps are searched, which takes about a millisecond.
SCANS = (2, 16, 128)
WRITE_EVERY_NS = 5_000_000_000

NO_COUNTERS = "this platform does not count what a process reads"
NO_HOOK = "opens are not seen: another audit hook keeps ours out"
UNSEEN = "opens are not seen: that takes the compiled extension, and counters of what is read"

# A process samples one fetch at a time: there is one hook for what is opened.
_turn = threading.Lock()
_at_work: FetchProbe | None = None


class FetchProbe:
    """What one process samples of one loader's fetches.

    For each batch with detail: `begin_fetch`, the fetching, `end` (or `abandon`), and `settle` when
    the batch is on its way.
    """

    def __init__(self, file: Path, epoch: int = 0, in_worker: bool = False) -> None:
        """`file` takes the sums. A worker of a later epoch continues an existing file."""
        self._file = file
        self.epoch = epoch
        self._in_worker = in_worker
        self._later = epoch > 0 and in_worker
        self.totals = ProbeTotals()
        self.totals.add(read_fetches(file))
        self._run = str(file.parent.parent)
        self._paths = PathSums(self.totals, self._run)
        self._taken = 0
        self._remaining_at_first = AT_FIRST_LATER if self._later else AT_FIRST
        self._skip = 0
        self._reading_batches = 0
        self._probed_in_epoch = epoch
        self._own_ns = 0
        self._born_ns = now_ns()
        self._written_ns = 0
        self._unwritten = 0
        self._off = False
        self._sample: _Sample | None = None  # under way
        self._ended: _Sample | None = None
        self.begin_ns = 0  # the cost of beginning the last sample, and of looking at its samples

    def __enter__(self) -> None:
        """Work of the probe begins, whose time counts as its own. An error in it drops the sample
        under way; one of ours ends the sampling."""
        self._start = now_ns()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        self._own_ns += now_ns() - self._start
        if error is None:
            return False
        with forgiving():
            self._drop()
        ours = is_ours(error)
        if ours:
            self._off = True
            why = f"looking stopped: {type(error).__name__}: {error}"
            self.totals.reasons["looks"] = why[:300]
            self._unwritten += 1
        return ours

    def wants(self) -> bool:
        """Whether to sample the fetch of this batch."""
        if self._off or self._remaining_at_first:
            return not self._off
        if self._probed_in_epoch < self.epoch < MAX_EPOCHS:
            self._probed_in_epoch = self.epoch
            self._remaining_at_first = AT_FIRST_LATER if self._affords(OWN_SHARE_EPOCHS) else 1
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

    def begin_fetch(self, fetcher: Any, samples: int, drawn: Any) -> bool:
        """This fetcher is about to fetch a batch of so many samples, of these indices. Whether that
        is sampled."""
        if not (self.wants() or self._comes_again(drawn)) or not self.begin(samples):
            return False
        # Not where a profiler or tracer would list what describing calls.
        if not _traced():
            tell_samples(fetcher, self._describe)
        return True

    def _comes_again(self, drawn: Any) -> bool:
        """Whether it holds samples that are to be compared with what they were."""
        with self:
            if self.epoch and self.totals.again < ENOUGH and not self._off:
                return not self.totals.made.keys().isdisjoint(plain_indices(drawn) or ())
        return False

    def begin(self, samples: int) -> bool:
        """A batch is about to be fetched; False if it cannot be sampled now."""
        global _at_work
        if samples <= 0 or not _turn.acquire(blocking=False):
            return False
        before, _at_work = self._own_ns, self
        with self:
            self._remaining_at_first = max(0, self._remaining_at_first - 1)
            self._skip = EVERY - 1
            # In workers it is too late to look for shared positions.
            looks = not self._in_worker and (self._taken < AT_FIRST or self._taken + 1 in SCANS)
            self._sample = _Sample(samples, self._in_worker, looks)
        self.begin_ns = self._own_ns - before
        return self._sample is not None

    def end(self, fetch_ns: int, fetch_cpu_ns: int) -> None:
        """The batch was fetched in this time. Everything is as it was before."""
        sample = self._sample
        if sample is not None:
            with self:
                sample.end(fetch_ns, fetch_cpu_ns)
                self._ended = sample
                self._drop()

    def _describe(self, samples: Any, drawn: Any) -> None:
        """The samples of a batch, as they are before they are collated, and their indices. Some are
        compared with what these gave before."""
        before = self._own_ns
        with self:
            if self._taken < DESCRIBED and not self._later:
                self.totals.fields = combined_fields(self.totals.fields, inspect_samples(samples))
            if type(samples) is list:
                pairs = zip(plain_indices(drawn) or (), samples, strict=False)
                known = sorted(pairs, key=lambda pair: pair[0] not in self.totals.made)
                self.totals.add_made(
                    (index, digest_of_batch(sample, 3) >> 31) for index, sample in known[:COMPARED]
                )
        self.begin_ns += self._own_ns - before

    def abandon(self) -> None:
        """The batch was not fetched. Everything is as it was before."""
        with self:
            self._drop()

    def _drop(self) -> None:
        if self._sample is not None or _at_work is self:
            opens.end()
        self._sample = None
        if _at_work is self:
            _let_go()

    def settle(self) -> None:
        """Sum up the last sample, and write the sums if they are due."""
        sample, self._ended = self._ended, None
        if sample is not None:
            with self:
                self._add(sample)
                self._write_if_due()

    def pause(self) -> None:
        """An iteration has ended: write the sums."""
        if self._unwritten:
            with forgiving():
                self._write()

    def close(self) -> None:
        """Sample no more fetches."""
        self._off = True
        self.abandon()
        self.settle()
        self.pause()

    def _add(self, sample: _Sample) -> None:
        self._taken += 1
        reading = sample.reading
        totals = self.totals
        if self._taken in SCANS:
            for path, kind in held_containers(self._run).items():
                totals.add_container(path, kind, size_of(path, kind))
        totals.add_moved(path for path in sample.moved if not path.startswith(self._run))
        reads = reading.read_bytes > 0 or reading.major_faults > 0
        if reading.read_bytes < 0:
            totals.reasons["reading"] = NO_COUNTERS
        if not sample.hooked and self._install_hook(reads, reading.read_bytes >= 0):
            return  # one that missed the opens would spoil their number a sample
        own_seen = bool(sample.opened) or reading.read_bytes < 0
        if sample.hooked and not own_seen:
            totals.reasons["opens"] = NO_HOOK
        opened = self._paths.add(sample.opened, sample.samples) if sample.hooked else 0
        unknown = "opens" in totals.reasons
        values = [
            1,
            sample.samples,
            sample.fetch_ns,
            sample.fetch_cpu_ns,
            -1 if unknown else opened,
            reading.read_bytes,
            reading.read_calls,
            reading.disk_bytes,
            reading.major_faults,
        ]
        totals.batches += 1
        totals.samples += sample.samples
        totals.fetch_ns += sample.fetch_ns
        totals.add_epoch(self.epoch, values)
        self._unwritten += 1

    def _install_hook(self, reads: bool, counted: bool) -> bool:
        """Whether the sample is lost for want of a hook, which is then added for the next one."""
        if counted and not reads:
            return False
        if not counted or opens.native is None:
            self.totals.reasons["opens"] = UNSEEN
            return False
        self._reading_batches += 1
        # The hook cannot be removed, and in the training process the first batch often only reads
        # modules.
        if self._in_worker or self._reading_batches > 1:
            opens.install()
        self._remaining_at_first += 1  # for the lost one
        return True

    def _write_if_due(self) -> None:
        taken = self._taken
        often = taken >= 4 or not self._later
        if (taken & (taken - 1) == 0 and often) or now_ns() - self._written_ns > WRITE_EVERY_NS:
            self._write()

    def _write(self) -> None:
        self._written_ns = now_ns()
        with forgiving(OSError):  # a full disk, a folder that is gone
            write_atomically(self._file, self.totals.to_json())
            self._unwritten = 0


class _Sample:
    """One batch whose fetch is sampled, from its beginning on. `opened` includes our own open of
    the counters, which shows that the hook works."""

    def __init__(self, samples: int, whole_process: bool, looks: bool) -> None:
        self.samples = samples
        self.hooked = opens.installed()
        self._whole_process = whole_process
        self._positions = positions() if looks else None
        self.moved, self.opened = set[str](), list[Any]()
        if self.hooked:
            opens.begin(whole_process)
        self._counters = counters(whole_process)

    def end(self, fetch_ns: int, fetch_cpu_ns: int) -> None:
        self.fetch_ns, self.fetch_cpu_ns = fetch_ns, fetch_cpu_ns
        if self.hooked:
            self.opened = opens.end()
        self.reading = between(self._counters, counters(self._whole_process))
        if self._positions is not None:
            self.moved = moved(self._positions, positions())


def _let_go() -> None:
    global _at_work
    _at_work = None
    with suppress(RuntimeError):  # released by another thread's failure
        _turn.release()


def _forget_after_fork() -> None:
    """A child forked during a sample does not sample."""
    global _turn, _at_work
    probe, _at_work = _at_work, None
    _turn = threading.Lock()
    if probe is not None:
        probe._off = True
        with forgiving():
            probe.abandon()


os.register_at_fork(after_in_child=_forget_after_fork)


def _traced() -> bool:
    if sys.getprofile() is not None or sys.gettrace() is not None:
        return True
    monitoring = getattr(sys, "monitoring", None)  # cProfile's way since Python 3.12
    return monitoring is not None and any(monitoring.get_tool(tool) for tool in range(6))
