"""The dashboard's threads. One reads the run and makes snapshots: widgets only draw what it posts.
Advice is expensive (rules, and simulations of changed loaders): another works it out from the
newest batches, and not at every refresh.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from ..profiler.base.endable_thread import EndableThread
from ..profiler.base.metadata import clean
from ..profiler.store.run.follow import Follower, Place
from ..profiler.store.run.run import Run
from .facts import NOW_NS
from .snapshot import AdviceView, Snapshot, advice_of, snapshot_of

INTERVAL_S = 0.5
ADVICE_EVERY_S = 5.0

Post = Callable[[Snapshot], object]
Advise = Callable[[Run, Place], AdviceView]


class Reader(EndableThread):
    """Posts a snapshot whenever there is something new, at most one each INTERVAL_S; at once after
    a request."""

    def __init__(
        self,
        follower: Follower,
        post: Post,
        interval_s: float = INTERVAL_S,
        advise: Advise = advice_of,
    ) -> None:
        super().__init__(name="loaderscope-reader", daemon=True)
        self._follower = follower
        self._post = post
        self._interval_s = interval_s
        self._place: Place | None = None
        self._asked = threading.Event()
        self._over = False
        self._fresh_ns = 0
        self._last = Snapshot(clean(follower.path.name), (), "unreadable")
        self.advisor = Advisor(advise)

    def view(self, place: Place) -> None:
        """Show this loader from now on."""
        self._place = place
        self._asked.set()

    def stop(self) -> None:
        """End soon; does not wait."""
        self._over = True
        self._asked.set()

    def end(self) -> None:
        """End now, whatever is being read or worked out: waits until no thread of it is left."""
        self.stop()
        super().end()
        self.advisor.end()

    def work(self) -> None:
        while not self._over:
            began = time.monotonic()
            asked = self._asked.is_set()
            self._asked.clear()
            try:
                snapshot = self.step(asked)
            except Exception as error:  # a dead thread would leave a screen that only looks alive
                said = f"{type(error).__name__}: {clean(error, 200)}"
                snapshot = replace(self._last, problem=said)
            if snapshot and not self._over:
                self._post(snapshot)
            self._asked.wait(max(0.02, self._interval_s - (time.monotonic() - began)))

    def step(self, asked: bool = True) -> Snapshot | None:
        """One refresh; None where there is nothing new."""
        fresh, now_ns = self._follower.poll(), time.monotonic_ns()
        if fresh:
            self._fresh_ns = now_ns
        # The rate of a live loop that stands still falls though nothing new was recorded.
        falls = self._last.state == "live" and now_ns < self._fresh_ns + 2 * NOW_NS
        if not (fresh or asked or self.advisor.news or falls):
            return None
        asked_for = self._place or self._last.place
        snapshot, run = snapshot_of(self._follower, asked_for, self.advisor.take())
        if run and snapshot.place:
            self.advisor.consider(run, snapshot.place, self._follower.seen)
        self._last = snapshot
        return snapshot


class Advisor:
    """Works advice out in a thread of its own, at most once in ADVICE_EVERY_S."""

    def __init__(self, advise: Advise) -> None:
        self._advise = advise
        self.news = False
        self._advice = AdviceView()
        self._basis: object = None
        self._place: Place | None = None
        self._thread = EndableThread()
        self._next_s = 0.0

    def take(self) -> AdviceView:
        self.news = False
        return self._advice

    def finish(self) -> None:
        """Wait for advice being worked out."""
        if self._thread.ident is not None:
            self._thread.join()

    def end(self) -> None:
        """Give up what is being worked out, and wait until it has ended."""
        self._thread.end()

    def consider(self, run: Run, place: Place, basis: object) -> None:
        """Begin anew if what it rests on has changed and it is time."""
        if place != self._place:
            self._basis, self._next_s = None, 0.0
            self._place, self._advice = place, AdviceView()
        if basis == self._basis or self._thread.is_alive() or time.monotonic() < self._next_s:
            return
        self._basis = basis
        self._next_s = time.monotonic() + ADVICE_EVERY_S
        self._thread = EndableThread(
            target=self._work, args=(run, place), name="loaderscope-advice", daemon=True
        )
        self._thread.start()

    def _work(self, run: Run, place: Place) -> None:
        began = time.thread_time()
        found = self._advise(run, place)
        # Advice takes at most a tenth of a core: the slower it is, the less often.
        self._next_s = max(self._next_s, time.monotonic() + 10 * (time.thread_time() - began))
        if place == self._place:
            self._advice, self.news = found, True
