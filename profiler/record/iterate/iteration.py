"""One iterator's batch in hand: clock readings on their way into a record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base import batch_record
from ...base.clock import now_ns, thread_cpu_ns
from ...base.schema import BATCH
from ...native.form import BatchTimings
from ...native.layout import ALWAYS_AT_FIRST, ALWAYS_DETAILED_NS
from ...store.lanes.lane import Budget, Lane, Window
from ..session import session as sessions
from ..transit.fetchers import fetched_one_by_one, sample_times, with_stamps
from ..transit.measure import batch_size_of

if TYPE_CHECKING:
    from ..device.device_clock import DeviceClock
    from ..fetch_probe.probe import FetchProbe
    from .recorder import Recorder

EXHAUSTED, FAILED = 1, 3

_nothing = Lane(Path(), "none", BATCH, Budget(0), sessions.tell)
_nothing.stopped = "nothing is recorded"


class Iteration(BatchTimings):
    """The batch in hand of one iterator. The iterator owns it, and it owns a lane until the
    iteration ends or the iterator is dropped."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.lane = _nothing
        self.device: DeviceClock | None = None
        self.rows: Lane | None = None
        self.row_window: Window | None = None
        self.row = self.epoch = 0
        self.inside: FetchProbe | None = None  # while a fetch is sampled
        self._reset()

    def _reset(self) -> None:
        self.t_iter = now_ns()
        self.first_seq = 0
        self.alone = True  # the only iterator of its epoch, as always but under `tune`
        self.others = 0  # batches from other iterators of the epoch
        self.detailed = self.special = self.waiting_for_first = True
        self.t_index = self.taken = 0
        self.samples = -1
        self.indices = self.envelope = self.looks = None
        self.drawn: dict[int, tuple[int, int]] = {}

    def begin(self, num_workers: int) -> bool:
        """Begin an iteration. False if nothing can be recorded."""
        self.left()
        self._reset()
        self.recorder.note_use()
        return self.recorder.begin(self, num_workers)

    def attach(self, first: Iteration) -> bool:
        """Go on with the epoch that another iterator's step began. False if nothing can be
        recorded."""
        if not self.recorder.attach_iterator(self, first):
            return False
        self.t_iter, self.epoch = first.t_iter, first.epoch
        self.row, self.rows, self.row_window = first.row, first.rows, first.row_window
        self.waiting_for_first, self.alone = first.waiting_for_first, False
        return True

    def take(self, lane: Lane) -> None:
        self.lane = lane
        self.first_seq = lane.first + lane.count

    def left(self) -> None:
        """This iterator hands over no more batches in this epoch."""
        self._abandon_sample()
        lane, self.lane = self.lane, _nothing
        if lane is not _nothing:
            self.recorder.give_back(lane)

    def paused(self, t_ns: int) -> None:
        """Another iterator of the epoch goes on from here."""
        if self.lane is not _nothing:
            self._computed_until(t_ns)
            if self.device is not None:
                self.device.drain()

    def held_up(self, ns: int) -> None:
        """Starting other workers delayed the last batch by this much."""
        if last := self._last():
            window, at, _, wait = last
            window.patch([batch_record.WAIT.patch(at, wait + ns)])

    @property
    def batches(self) -> int:
        """Batches handed over in this iteration."""
        lane = self.lane
        return lane.first + lane.count - self.first_seq if lane.stopped is None else 0

    def ended(self, t_ns: int, how: int) -> None:
        """The iteration ended at `t_ns`. Raises no error of ours: the loop's own StopIteration or
        error must arrive."""
        try:
            if how == FAILED and self.inside is None:  # maybe while a sample was being begun
                self.inside = self.recorder.fetch_probe
            self._abandon_sample()
            self._end(t_ns, how)
        except BaseException as error:
            if not self.recorder.failed(error):
                raise

    def _end(self, t_ns: int, how: int) -> None:
        if self.lane is _nothing:
            return  # it had ended before
        batches = self.others + self.batches
        self._computed_until(t_ns)
        self._patch_row(
            (batch_record.END, t_ns), (batch_record.BATCHES, batches), (batch_record.HOW, how)
        )
        if self.device is not None:
            self.device.drain()
        if self.recorder.fetch_probe is not None:
            self.recorder.fetch_probe.pause()
        if how == EXHAUSTED:  # after an exception the iterator may go on
            self.left()

    def _computed_until(self, t_ns: int) -> None:
        """The compute time of the last batch is known now."""
        if last := self._last():
            window, at, t, wait = last
            window.patch([batch_record.COMPUTE.patch(at, t_ns - t - wait)])

    def _last(self) -> tuple[Window, int, int, int] | None:
        """The last record of this iterator: its window, offset, time and wait."""
        lane = self.lane
        if not self.batches or not lane.count or lane.window is None:
            return None
        at = lane.at(lane.count - 1)
        _, t, wait, *_ = batch_record.HEAD.get(lane.buf, at)
        return lane.window, at, t, wait

    def _patch_row(self, *known: tuple[batch_record.Part, int]) -> None:
        if self.row_window is not None:
            self.row_window.patch([part.patch(self.row, value) for part, value in known])

    # What only some batches need. The hooks call these.

    def finish(
        self, lane: Lane, n: int, batch: Any, t_handed: int, wait_ns: int, pinned: bool
    ) -> None:
        """Complete the record of a batch made here: the first, one with detail, a pinned one."""
        if pinned:
            batch_record.PIN.put(lane.buf, lane.at(n), t_handed - self.t_collated)
        self._look(lane, n, batch, t_handed)
        if self.detailed:
            self._detail(lane, n, batch, t_handed, wait_ns)
        self.special = pinned or self.detailed or self.looks is not None

    def finish_opened(self, lane: Lane, n: int, batch: Any, t_handed: int) -> None:
        """Complete the record of a batch from a worker."""
        self._look(lane, n, batch, t_handed)
        if self.device is None:
            self._look_for_device()
        self.special = self.looks is not None
        batch_record.OWN.put(lane.buf, lane.at(n), lane.cost_before(n) + now_ns() - t_handed)

    def _look(self, lane: Lane, n: int, batch: Any, t_handed: int) -> None:
        if self.waiting_for_first:
            self.waiting_for_first = False
            self._patch_row((batch_record.FIRST, t_handed))
        if self.looks is not None:
            self.looks = self.looks.recorded(lane, n, batch)

    def begin_detail(self, index: Any, iterator: Any) -> Any:
        """The next batch gets detail. Returns the indices to hand on."""
        if self.looks is not None:
            self.looks.drawn(index, iterator._num_yielded)
        probe = self.recorder.fetch_probe
        if probe is not None:
            self._abandon_sample()
            if probe.begin_fetch(iterator._dataset_fetcher, self.samples, index):
                self.inside = probe
        if fetched_one_by_one(iterator._dataset, iterator._auto_collation):
            index = self.indices = with_stamps(index)
        self.t_cpu_fetch = thread_cpu_ns()
        return index

    def _abandon_sample(self) -> None:
        inside, self.inside = self.inside, None
        if inside is not None:
            inside.abandon()

    def _end_probe(self, lane: Lane, n: int, fetch_cpu_ns: int) -> int:
        """End the sample of this batch's fetch. Returns what beginning it took, which is not part
        of drawing the indices."""
        inside, self.inside = self.inside, None
        if inside is None:
            return 0
        if self.t_collate < self.t_fetch:  # a fetcher that collates in its own way
            inside.abandon()
            return inside.begin_ns
        inside.end(self.t_collate - self.t_fetch, fetch_cpu_ns)
        inside.settle()
        batch_record.INDEX.put(
            lane.buf, lane.at(n), max(0, self.t_fetch - self.t_index - inside.begin_ns)
        )
        return inside.begin_ns

    def _detail(self, lane: Lane, n: int, batch: Any, t_handed: int, wait_ns: int) -> None:
        """Write CPU times, size, single samples and our own cost."""
        fetch_cpu = collate_cpu = -1
        if self.t_collate > 0:
            fetch_cpu = self.t_cpu_collate - self.t_cpu_fetch
            collate_cpu = max(0, thread_cpu_ns() - self.t_cpu_collate)
        own = lane.cost_before(n) + self._end_probe(lane, n, fetch_cpu)
        size, tensors = batch_size_of(batch)
        samples = sample_times(self.indices)
        self.indices = None
        slow = self.recorder.slow = wait_ns > ALWAYS_DETAILED_NS
        self.detailed = slow or (self.epoch == 0 and self.batches < ALWAYS_AT_FIRST)
        if self.device is None:
            self._look_for_device()
        own += now_ns() - t_handed
        batch_record.DETAIL.put(
            lane.buf, lane.at(n), fetch_cpu, collate_cpu, size, tensors, own, *samples
        )

    def _look_for_device(self) -> None:
        """Begin to time the device once the program has set one up."""
        from ..device.device_clock import device_clock

        self.device = device_clock(self)


def begun(step: Iteration, begin: Callable[[Iteration], bool]) -> Iteration | None:
    """The iteration, which `begin` has begun; None if nothing can be recorded. Raises no error of
    ours."""
    try:
        if begin(step):
            return step
    except BaseException as error:
        if not step.recorder.failed(error):
            raise
    return None
