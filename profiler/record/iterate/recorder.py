"""From clock readings to records: one `Recorder` a watched loader, one `Iteration` an iterator of
it."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...base import batch_record
from ...base.clock import now_ns, thread_cpu_ns
from ...base.schema import BATCH, EPOCH
from ...guard.error_origin import is_ours
from ...guard.helper_thread import in_helper_thread
from ...native.form import BatchTimings
from ...native.layout import ALWAYS_AT_FIRST, ALWAYS_DETAILED_NS
from ...store.gaps import Gap
from ...store.lanes.lane import Budget, Lane, Window
from ..inspect.uses import Use, joined, library_of, use_now
from ..session import session as sessions
from ..transit.fetchers import fetched_one_by_one, sample_times, with_stamps
from ..transit.measure import batch_size_of
from .first_looks import FirstLooks, first_looks, look_at_parts

if TYPE_CHECKING:
    from ..device.device_clock import DeviceClock
    from ..fetch_probe.chains import Chains
    from ..fetch_probe.probe import FetchProbe

EXHAUSTED, FAILED = 1, 3

# Whether epochs repeat the same order, or workers the same stream, shows in the first of them.
LOOKED_AT_EPOCHS = 16

PROBE_VARIABLE = "LOADERSCOPE_LOOKS"  # 0: look at nothing that fetching does
PROBE_TURNED_OFF = f"not looked at: {PROBE_VARIABLE}=0"

# So many different loaders of a process are looked at in detail (some 3 ms each); of further ones
# only times are taken. A program that makes thousands makes them small, and nobody reads a thousand
# reports.
LOOKED_AT_LOADERS = 64
TOO_MANY = f"not looked at: more than {LOOKED_AT_LOADERS} different loaders in this process"


class Recorder:
    """What is recorded of one loader. Beginning an iteration is thread-safe; a `Iteration` is one
    thread's."""

    def __init__(
        self,
        name: str,
        facts: dict[str, Any],
        overhead_of: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        """`facts` goes into the loader's JSON: kind, config, reasons, notes. `overhead_of` gives
        what recording a loader of such a config costs, see `calibrate`."""
        self.name = name
        self._overhead_of = overhead_of
        self.facts = facts
        self.instance = 0
        self.enabled = True
        self.signature = ""
        self.use: Use | None = None  # of the latest iteration that was looked at
        self._phases: list[str] = []
        self.loader: Callable[[], Any] | None = (
            None  # a weak reference: recording keeps no loader alive
        )
        self._lock = threading.Lock()
        self._session: sessions.Session | None = None
        self._index = -1
        self._epochs: Lane | None = None
        self._epoch = 0
        self._lanes: list[Lane] = []
        self._free: list[Lane] = []
        self._lent: dict[Lane, _Lent] = {}
        self._returned: list[_Lent] = []
        self.slow = True  # the last batch looked at took long enough for looking at all of them
        self.fetch_probe: FetchProbe | None = None  # of the batches made in this process
        self._probes_fetching = False
        self._looked_at = True

    def begin(self, step: Iteration, num_workers: int) -> bool:
        """Start an iteration: gives `step` its epoch and its row. False where nothing can be
        recorded."""
        if not self.enabled or not sessions.may_open():
            return False
        session = self._session
        if (
            session is None
            or session is not sessions.current()
            or (not num_workers and self._wants_probe())
        ):
            # Interrupted, the little that is done for the many can be begun again.
            many = session is None and sessions.loaders() >= LOOKED_AT_LOADERS
            session = (
                self._ready(num_workers)
                if many
                else in_helper_thread(lambda: self._ready(num_workers))
            )
        if session is None:
            return False
        with self._lock:
            epochs = self._epochs
            if epochs is None or session is not self._session:
                return False  # closed by another thread
            if session.arena is not None:
                session.arena.kept()  # hands over what the keeper could not take until now
            session.note_ranks()
            self._take_back()
            step.t_iter = now_ns()  # opening the session is our time, not the loader's
            step.epoch = self._epoch
            self._epoch += 1
            row = epochs.append(step.t_iter, -1, -1, 0, step.epoch, self.instance, num_workers, -1)
            step.row, step.rows, step.row_window = row, epochs, epochs.window
            looked_at = self._looked_at and step.epoch < LOOKED_AT_EPOCHS
            step.looks = first_looks(self, num_workers) if looked_at else None
            if self.fetch_probe is not None:
                self.fetch_probe.epoch = step.epoch
            # A first batch as any other, once a loader is known: iterations may be short and many.
            step.detailed = step.looks is not None or self.slow
            self._lend(session, step)
        return True

    def join(self, step: Iteration, first: Iteration) -> bool:
        """`step` is of a further iterator of the epoch that `first` began: it has a lane of its
        own, and no row. False where nothing can be recorded."""
        if not self.enabled or first.rows is None:
            return False
        with self._lock:
            session = self._session
            if session is None or first.rows is not self._epochs:
                return False  # closed since, or another process's
            self._take_back()
            self._lend(session, step)
        return True

    def _lend(self, session: sessions.Session, step: Iteration) -> None:
        lane = self._free.pop() if self._free else self._new_lane(session)
        lent = self._lent[lane] = _Lent(step, self._returned.append)
        lent.lane = lane
        step.take(lane)

    def _ready(self, num_workers: int) -> sessions.Session | None:
        """The session, with all that this loader needs of it."""
        with self._lock:
            session = sessions.open_session()
            if session is None:
                return None
            if session is not self._session:
                self._join(session)
            if not num_workers and self._wants_probe():
                from ..fetch_probe.probe import FetchProbe

                self.fetch_probe = FetchProbe(session.directory / f"looks-{self._index}-m.json")
            return session

    def _wants_probe(self) -> bool:
        return self.fetch_probe is None and self._probes_fetching

    def _join(self, session: sessions.Session) -> None:
        # All that is needed later is imported here: a handler's error may leave an import half
        # done.
        from ..device import device_clock as device  # noqa: F401

        self._index = session.loaders
        session.loaders += 1
        self._epochs = session.lane(f"epochs{self._index}", EPOCH)
        self._epoch = 0
        self._lanes, self._free, self._lent, self._returned = [], [], {}, []
        if self._overhead_of is not None:
            self.facts["overhead"] = self._overhead_of(self.facts.get("config", {}))
        self._looked_at = self._index < LOOKED_AT_LOADERS
        if self._looked_at:
            look_at_parts(self)
        else:
            self.facts.setdefault("reasons", {})["inspection"] = TOO_MANY
        self._probes_fetching = self._may_probe()
        session.note_ranks(self.facts.get("config"))
        session.recorders.append(self)
        self._session = session
        self.write()

    def place_of_probe(self, epoch: int) -> tuple[str, int, int] | None:
        """(session's folder, loader, epoch) for workers that sample their fetches; None where they
        may not."""
        session = self._session
        if session is None or not self._probes_fetching:
            return None
        return str(session.directory), self._index, epoch

    def _may_probe(self) -> bool:
        if self.facts.get("kind") != "dataloader":
            return False
        if os.environ.get(PROBE_VARIABLE, "").strip() == "0":
            self.facts.setdefault("reasons", {})["looks"] = PROBE_TURNED_OFF
            return False
        if not self._looked_at:
            self.facts.setdefault("reasons", {})["looks"] = TOO_MANY
            return False
        from ..fetch_probe import probe  # noqa: F401  # once here, and not in each worker forked from here

        return True

    def write(self) -> None:
        """Bring the loader's facts to the run directory."""
        if self._session is not None:
            self._session.write_loader(
                self._index, {"index": self._index, "name": self.name, **self.facts}
            )

    def note_use(self) -> None:
        """Say what this loader is iterated over for, and where first."""
        if self._epoch >= LOOKED_AT_EPOCHS:
            return
        config = self.facts.setdefault("config", {})
        use = self.use = use_now(config.get("shuffle"))
        if use.phase is not None and use.phase not in self._phases:
            self._phases.append(use.phase)
        told: dict[str, Any] = {
            "phase": joined(self._phases),
            **({"dispatched": True} if use.dispatched else {}),
        }
        for name, value in (
            ("place", use.place),
            ("framework", use.framework or library_of(config.get("loader"))),
        ):
            told[name] = config.get(name) or value
        if any(config.get(name) != value for name, value in told.items()):
            config.update(told)
            self.write()

    @property
    def at_work(self) -> bool:
        """Whether an iteration is under way that has not ended, as far as that is known."""
        with self._lock:
            self._take_back()
            return bool(self._lent)

    def note(self, metric: str, reason: str) -> None:
        """Say why a metric is not measured."""
        reasons = self.facts.setdefault("reasons", {})
        if reasons.get(metric) != reason:
            reasons[metric] = reason
            self.write()

    def note_gap(self, gap: Gap) -> None:
        """Write down what torch's shape keeps from being measured: once a loader, and once a
        process."""
        reasons = self.facts.setdefault("reasons", {})
        if any(reasons.get(figure) != gap.reason for figure in gap.figures):
            reasons.update(dict.fromkeys(gap.figures, gap.reason))
            self.write()
        if self.session is not None:
            self.session.note_reason(gap.key, gap.sentence)

    def _new_lane(self, session: sessions.Session) -> Lane:
        # One for each iterator that is at work at the same time; most loaders need one in all.
        lane = session.lane(f"batches{self._index}x{len(self._lanes)}", BATCH)
        self._lanes.append(lane)
        return lane

    def give_back(self, lane: Lane) -> None:
        """An iterator has ended; its lane may serve the next one."""
        if self._lent.pop(lane, None) is not None and lane.stopped is None:
            self._free.append(lane)

    def _take_back(self) -> None:
        """The lanes of iterators that have gone away."""
        while self._returned:
            self.give_back(self._returned.pop().lane)

    def workers_started(self, epoch: int, pids: list[int]) -> None:
        """Note the pids of an iteration's workers."""
        session = self._session
        if session is not None:
            with self._lock:
                for worker, pid in enumerate(pids):
                    session.workers.append(now_ns(), self._index, epoch, worker, pid)

    def abandon(self) -> None:
        """In a forked child: touch nothing of the parent's; the next iteration joins the child's
        own session."""
        self._lock = threading.Lock()
        for lane in [*self._lanes, *([self._epochs] if self._epochs else [])]:
            lane.abandon("forked")
        self.fetch_probe = None
        self._session, self._lanes, self._free, self._epochs = None, [], [], None
        self._lent, self._returned = {}, []

    def close(self) -> None:
        """Record no more into this session."""
        from ..device.step_log import read_logs

        read_logs(closing=self)
        with self._lock:
            for lane in [*self._lanes, *([self._epochs] if self._epochs else [])]:
                lane.close()
            if self.fetch_probe is not None:
                self.fetch_probe.close()
            self.fetch_probe = None
            self._session, self._lanes, self._free, self._epochs = None, [], [], None
            self._lent, self._returned = {}, []

    @property
    def index(self) -> int:
        """Number of the loader in its session."""
        return self._index

    @property
    def begun(self) -> int:
        """How many iterations have begun in its session."""
        return self._epoch

    @property
    def session(self) -> sessions.Session | None:
        return self._session


class _Lent(weakref.ref["Iteration"]):
    """A lane's way back: when its iterator goes away, this is put among the returned. Python runs
    no code of ours then, in which a signal's handler could raise what would be lost: errors in a
    `__del__` are."""

    __slots__ = ("lane",)
    lane: Lane


class Iteration(BatchTimings):
    """The batch in hand of one iterator: clock readings on their way into a record.

    An iterator owns its step, and the step a lane, until the iteration ends or the iterator is
    dropped.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder
        self.lane = _nothing
        self.device: DeviceClock | None = None
        self.rows: Lane | None = None
        self.row_window: Window | None = None
        self.row = self.epoch = 0
        self.chains: Chains | None = None
        self.inside: FetchProbe | None = None  # while a fetch is being sampled
        self._reset()

    def _reset(self) -> None:
        self.t_iter = now_ns()
        self.first_seq = 0
        self.alone = True  # the only iterator of its epoch, as always but under `tune`
        self.others = 0  # batches that further iterators of the epoch have handed over
        self.detailed = self.special = self.waiting_for_first = True
        self.t_index = 0
        self.samples = -1
        self.indices: Any = None
        self.envelope: Any = None
        self.looks: FirstLooks | None = None
        self.drawn: dict[int, tuple[int, int]] = {}
        self.taken = 0

    def begin(self, num_workers: int) -> bool:
        """An iteration begins now. False where nothing can be recorded."""
        self._give_back()
        self._reset()
        self.recorder.note_use()
        return self.recorder.begin(self, num_workers)

    def join(self, first: Iteration) -> bool:
        """Go on with the epoch that another iterator's step began. False where nothing can be
        recorded."""
        if not self.recorder.join(self, first):
            return False
        self.t_iter, self.epoch = first.t_iter, first.epoch
        self.row, self.rows, self.row_window = first.row, first.rows, first.row_window
        self.waiting_for_first, self.alone = first.waiting_for_first, False
        return True

    def paused(self, t_ns: int) -> None:
        """Another iterator of the epoch goes on from here; the last batch's compute time is known
        now."""
        if self.lane is not _nothing:
            self._computed_until(t_ns)
            if self.device is not None:
                self.device.drain()

    def held_up(self, ns: int) -> None:
        """The batch handed over last reached the loop so much later: other workers were started
        meanwhile."""
        if last := self._last():
            window, at, _, wait = last
            window.patch([batch_record.WAIT.patch(at, wait + ns)])

    def last_wait_ns(self) -> int | None:
        """How long the loop waited for the batch handed over last; None where that was not
        recorded."""
        last = self._last()
        return int(last[3]) if last is not None else None

    def left(self) -> None:
        """This iterator hands over no more; the epoch is another's."""
        self._give_back()

    def take(self, lane: Lane) -> None:
        self.lane = lane
        self.first_seq = lane.first + lane.count

    def _give_back(self) -> None:
        inside, self.inside = self.inside, None
        if inside is not None:
            inside.abandon()
        lane, self.lane = self.lane, _nothing
        if lane is not _nothing:
            self.recorder.give_back(lane)

    @property
    def batches(self) -> int:
        """Batches handed over in this iteration."""
        return (
            self.lane.first + self.lane.count - self.first_seq if self.lane.stopped is None else 0
        )

    def ended(self, t_ns: int, how: int) -> None:
        """The iteration ended at `t_ns`; the last batch's compute time is known now. Raises no
        error of ours: it is called on the way of the loop's own StopIteration or error, which must
        arrive."""
        try:
            inside, self.inside = self.inside, None
            if how == FAILED:  # maybe while a sample was being begun
                inside = inside or self.recorder.fetch_probe
            if inside is not None:
                inside.abandon()
            self._end(t_ns, how)
        except BaseException as error:
            if not failed(error, self.recorder):
                raise

    def _end(self, t_ns: int, how: int) -> None:
        lane = self.lane
        if lane is _nothing:
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
        if how == EXHAUSTED:  # after an exception the iterator may still go on
            self._give_back()

    def _computed_until(self, t_ns: int) -> None:
        if last := self._last():
            window, at, t, wait = last
            window.patch([batch_record.COMPUTE.patch(at, t_ns - t - wait)])

    def _last(self) -> tuple[Window, int, int, int] | None:
        """Where the record of the last batch of this iterator is, its time and its wait."""
        lane = self.lane
        if not self.batches or not lane.count or lane.window is None:
            return None
        at = lane.at(lane.count - 1)
        _, t, wait, *_ = batch_record.HEAD.get(lane.buf, at)
        return lane.window, at, t, wait

    def _patch_row(self, *known: tuple[batch_record.Part, int]) -> None:
        if self.row_window is not None:
            self.row_window.patch([part.patch(self.row, value) for part, value in known])

    def finish(
        self, lane: Lane, n: int, batch: Any, t_handed: int, wait_ns: int, pinned: bool
    ) -> None:
        """What only some batches need: the first of an iteration, those looked at in detail, pinned
        ones."""
        if pinned:
            batch_record.PIN.put(lane.buf, lane.at(n), t_handed - self.t_collated)
        if self.waiting_for_first:
            self.waiting_for_first = False
            self._patch_row((batch_record.FIRST, t_handed))
        if self.looks is not None:
            self.looks = self.looks.recorded(lane, n, batch)
        if self.detailed:
            self._detail(lane, n, batch, t_handed, wait_ns)
        self.special = pinned or self.detailed or self.looks is not None

    def begin_detail(self, index: Any, iterator: Any) -> Any:
        """The batch about to be fetched will be looked at in detail; returns the indices to hand
        on."""
        if self.looks is not None:
            self.looks.drawn(index, iterator._num_yielded)
        probe = self.recorder.fetch_probe
        if probe is not None and probe.wants():
            self._probe_fetch(probe, iterator)
        if fetched_one_by_one(iterator._dataset, iterator._auto_collation):
            index = self.indices = with_stamps(index)
        self.t_cpu_fetch = thread_cpu_ns()
        return index

    def _probe_fetch(self, probe: FetchProbe, iterator: Any) -> None:
        from ..fetch_probe.chains import Chains

        if self.inside is not None:
            self.inside.abandon()
        if self.chains is None:
            held = weakref.ref(iterator)
            self.chains = Chains(lambda: getattr(held(), "_dataset", None))
        self.inside = probe if probe.begin(self.chains, self.samples) else None

    def _end_probe(self, lane: Lane, n: int, fetch_cpu_ns: int) -> int:
        """This batch's fetch was sampled; returns what beginning that took, which is no part of
        drawing the indices."""
        inside, self.inside = self.inside, None
        if inside is None:
            return 0
        if self.t_collate < self.t_fetch:  # a fetcher that collates in a way of its own
            inside.abandon()
            return inside.begin_ns
        inside.end(self.t_collate - self.t_fetch, fetch_cpu_ns)
        inside.settle()
        batch_record.INDEX.put(
            lane.buf, lane.at(n), max(0, self.t_fetch - self.t_index - inside.begin_ns)
        )
        return inside.begin_ns

    def _detail(self, lane: Lane, n: int, batch: Any, t_handed: int, wait_ns: int) -> None:
        """The dearer half of a record made in this process: CPU times, size, single samples, own
        cost."""
        fetch_cpu = collate_cpu = -1
        if self.t_collate > 0:
            fetch_cpu = self.t_cpu_collate - self.t_cpu_fetch
            collate_cpu = max(0, thread_cpu_ns() - self.t_cpu_collate)
        own = lane.cost_before(n) + self._end_probe(lane, n, fetch_cpu)
        size, tensors = batch_size_of(batch)
        fastest, median, slowest = sample_times(self.indices)
        self.indices = None
        self.recorder.slow = wait_ns > ALWAYS_DETAILED_NS
        self.detailed = self.recorder.slow or (self.epoch == 0 and self.batches < ALWAYS_AT_FIRST)
        if self.device is None:
            self.look_for_device()
        batch_record.DETAIL.put(
            lane.buf,
            lane.at(n),
            fetch_cpu,
            collate_cpu,
            size,
            tensors,
            own + now_ns() - t_handed,
            fastest,
            median,
            slowest,
        )

    def look_for_device(self) -> None:
        """Begin to time the device once the training code has set one up; never set one up
        ourselves."""
        from ..device.device_clock import device_clock

        self.device = device_clock(self)

    def finish_opened(self, lane: Lane, n: int, batch: Any, t_handed: int) -> None:
        """As `finish`, for a batch that came from a worker."""
        if self.waiting_for_first:
            self.waiting_for_first = False
            self._patch_row((batch_record.FIRST, t_handed))
        if self.looks is not None:
            self.looks = self.looks.recorded(lane, n, batch)
        if self.device is None:
            self.look_for_device()
        self.special = self.looks is not None
        batch_record.OWN.put(lane.buf, lane.at(n), lane.cost_before(n) + now_ns() - t_handed)


def _no_lane() -> Lane:
    lane = Lane(Path(), "none", BATCH, Budget(0), sessions.tell)
    lane.stopped = "nothing is recorded"
    return lane


_nothing = _no_lane()


def failed(error: BaseException, recorder: Recorder) -> bool:
    """A failure of ours: go quiet, say why once, and True. False for an error that is the user's:
    it must be raised."""
    ours = is_ours(error)
    if recorder.fetch_probe is not None:
        recorder.fetch_probe.abandon()
    if not ours:
        return False
    recorder.enabled = False
    sessions.tell(
        f"recording of {recorder.name} stopped: {type(error).__name__}: {error}; training goes on"
    )
    return True
