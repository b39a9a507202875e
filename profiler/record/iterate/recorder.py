"""What is recorded of one loader: its facts, its lanes, and its iterations."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...base.clock import now_ns
from ...base.metadata import Facts
from ...base.schema import BATCH, EPOCH
from ...guard.error_origin import is_ours
from ...guard.helper_thread import in_helper_thread
from ...store.gaps import Gap
from ...store.lanes.lane import Lane
from ..inspect.inspect_loader import TURNED_OFF, inspection_wanted
from ..inspect.uses import Use, joined, library_of, use_now, users_frame
from ..session import session as sessions
from .calibrate import hook_ns
from .first_looks import FirstLooks, look_at_parts

if TYPE_CHECKING:
    from ..fetch_probe.probe import FetchProbe
    from .iteration import Iteration

# Repeated orders, and workers with the same stream, show in the first epochs.
LOOKED_AT_EPOCHS = 16

# Of further loaders in a process only times are taken, since looking at one takes some 3 ms.
# Programs that make thousands of loaders make small ones.
LOOKED_AT_LOADERS = 64
TOO_MANY = f"not looked at: more than {LOOKED_AT_LOADERS} different loaders in this process"


class Recorder:
    """What is recorded of one loader. Iterations may begin in any thread."""

    def __init__(
        self,
        name: str,
        kind: str,
        config: Facts,
        reasons: dict[str, str],
    ) -> None:
        self.name = name
        self.kind = kind
        self.config = config
        self.reasons = reasons
        self.facts: Facts = {  # the loader's JSON
            "kind": kind,
            "config": config,
            "reasons": reasons,
            "notes": [],
        }
        self.instance = 0
        self.enabled = True
        self.signature = ""
        self.use: Use | None = None  # of the latest iteration that was looked at
        self.loader: Callable[[], Any] = lambda: None  # a weak reference
        self.slow = True  # the last batch with detail was slow: all batches get it
        self.index = -1  # the loader's number in its session
        self.begun = 0  # iterations in its session
        self._phases: list[str] = []
        self._lock = threading.Lock()
        self._looked_at = True
        self.iterated_at: tuple[str, int] | None = None  # file and line of the loop
        self._leave_session()

    def _leave_session(self) -> None:
        self.session: sessions.Session | None = None
        # Of the batches made in this process; None if fetches are not sampled.
        self.fetch_probe: FetchProbe | None = None
        self._epochs: Lane | None = None
        # Who writes to each lane, held weakly: the lane of an iterator that was dropped is free.
        self._lanes: dict[Lane, Callable[[], Iteration | None]] = {}

    # Iterations.

    def begin(self, step: Iteration, num_workers: int) -> bool:
        """Begin an iteration: give `step` its epoch and row. False if nothing can be recorded."""
        if not self.enabled or not sessions.may_open():
            return False
        session, opened = self.session, sessions.current()
        if session is None or session is not opened:
            # The helper thread has a stack of its own.
            frame = users_frame(sys._getframe(1))
            if frame is not None:
                self.iterated_at = frame.f_code.co_filename, frame.f_lineno
            # The little that is done for one of many loaders can be interrupted, and begun again.
            many = session is None and opened and opened.loaders >= LOOKED_AT_LOADERS
            session = self._ready() if many else in_helper_thread(self._ready)
        if session is None:
            return False
        with self._lock:
            epochs = self._epochs
            if epochs is None or session is not self.session:
                return False  # closed by another thread
            if session.arena is not None:
                session.arena.kept()  # hands over what the keeper could not take until now
            session.note_ranks()
            step.t_iter = now_ns()  # opening the session is our time, not the loader's
            step.epoch = self.begun
            self.begun += 1
            row = epochs.append(step.t_iter, -1, -1, 0, step.epoch, self.instance, num_workers, -1)
            step.row, step.rows, step.row_window = row, epochs, epochs.window
            if self._looked_at and step.epoch < LOOKED_AT_EPOCHS and inspection_wanted():
                step.looks = FirstLooks(self, num_workers)
            if self.fetch_probe is not None:
                self.fetch_probe.epoch = step.epoch
            # Once a loader is known, its first batches need no detail: iterations may be short.
            step.detailed = step.looks is not None or self.slow
            self._lend(session, step)
        return True

    def attach_iterator(self, step: Iteration, first: Iteration) -> bool:
        """`step` belongs to a further iterator of the epoch that `first` began: it has its own
        lane, and no row. False if nothing can be recorded."""
        if not self.enabled or first.rows is None:
            return False
        with self._lock:
            session = self.session
            if session is None or first.rows is not self._epochs:
                return False  # closed since, or another process's
            self._lend(session, step)
        return True

    def _ready(self) -> sessions.Session | None:
        """The session, with all that this loader needs of it."""
        with self._lock:
            session = sessions.open_session()
            if session is not None and session is not self.session:
                self._attach_session(session)
            return session

    def _attach_session(self, session: sessions.Session) -> None:
        # Later imports are done here: a handler's error could leave one half done.
        from ..device import device_clock as device  # noqa: F401

        self._leave_session()
        self.index = session.loaders
        session.loaders += 1
        self._epochs = session.lane(f"epochs{self.index}", EPOCH)
        self.begun = 0
        self.facts["overhead"] = {"hook_ns": hook_ns(bool(self.config.get("num_workers")))}
        self._looked_at = self.index < LOOKED_AT_LOADERS
        if self._looked_at:
            look_at_parts(self)
            if inspection_wanted():
                session.note_sources()
        else:
            self.reasons["inspection"] = TOO_MANY
        self.fetch_probe = self._probe_of(session)
        session.recorders.append(self)
        self.session = session
        self.write()

    def _probe_of(self, session: sessions.Session) -> FetchProbe | None:
        if self.kind != "dataloader":
            return None
        if not (self._looked_at and inspection_wanted()):
            self.reasons["looks"] = TURNED_OFF if self._looked_at else TOO_MANY
            return None
        from ..fetch_probe.probe import FetchProbe  # here, and not in each worker forked later

        return FetchProbe(session.directory / f"looks-{self.index}-m.json")

    def place_of_probe(self, epoch: int) -> tuple[str, int, int] | None:
        """(session's folder, loader, epoch) for workers that sample their fetches, None if they
        may not."""
        if self.session is None or self.fetch_probe is None:
            return None
        return str(self.session.directory), self.index, epoch

    def workers_started(self, epoch: int, pids: list[int]) -> None:
        """Record the pids of an iteration's workers."""
        session = self.session
        if session is not None:
            with self._lock:
                for worker, pid in enumerate(pids):
                    session.workers.append(now_ns(), self.index, epoch, worker, pid)

    # Lanes.

    @property
    def at_work(self) -> bool:
        """Whether an iteration has not ended, as far as known."""
        with self._lock:
            return any(writer() is not None for writer in self._lanes.values())

    def give_back(self, lane: Lane) -> None:
        """An iterator has ended; the next one may use its lane."""
        if lane in self._lanes:
            self._lanes[lane] = lambda: None

    def _lend(self, session: sessions.Session, step: Iteration) -> None:
        """One lane for each iterator that runs at the same time."""
        free = (
            lane
            for lane, writer in self._lanes.items()
            if lane.stopped is None and writer() is None
        )
        lane = next(free, None)
        if lane is None:
            lane = session.lane(f"batches{self.index}x{len(self._lanes)}", BATCH)
        self._lanes[lane] = weakref.ref(step)
        step.take(lane)

    # Facts.

    def write(self) -> None:
        """Write the loader's facts to the run directory."""
        if self.session is not None:
            facts = {"index": self.index, "name": self.name, **self.facts}
            self.session.write(f"loader{self.index}.json", facts)

    def note_use(self) -> None:
        """Record what this loader is iterated over for, and where first."""
        if self.begun >= LOOKED_AT_EPOCHS:
            return
        config = self.config
        use = self.use = use_now(config.get("shuffle"))
        if use.phase and use.phase not in self._phases:
            self._phases.append(use.phase)
        framework = use.framework or library_of(config.get("loader") or "")
        known: Facts = {
            "phase": joined(self._phases),
            "place": config.get("place") or use.place,
            "framework": config.get("framework") or framework,
        }
        if use.dispatched:
            known["dispatched"] = True
        if any(config.get(name) != value for name, value in known.items()):
            config.update(known)
            self.write()

    def note(self, reason: str, *figures: str) -> None:
        """Record why these figures are not measured."""
        if any(self.reasons.get(figure) != reason for figure in figures):
            self.reasons.update(dict.fromkeys(figures, reason))
            self.write()

    def note_gap(self, gap: Gap) -> None:
        """Record, for the loader and the process, which figures an unknown torch costs."""
        self.note(gap.reason, *gap.figures)
        if self.session is not None:
            self.session.note_reason(gap.key, gap.sentence)

    # The end.

    def failed(self, error: BaseException) -> bool:
        """True if the error is ours: recording has then stopped, with one line that says why. The
        user's errors must be raised."""
        ours = is_ours(error)
        if self.fetch_probe is not None:
            self.fetch_probe.abandon()
        if ours:
            self.enabled = False
            sessions.tell(
                f"recording of {self.name} stopped: {type(error).__name__}: {error}; "
                "training goes on"
            )
        return ours

    def abandon(self) -> None:
        """In a forked child: leave the parent's session untouched."""
        self._lock = threading.Lock()
        for lane in (*self._lanes, self._epochs):
            if lane is not None:
                lane.abandon("forked")
        self._leave_session()
