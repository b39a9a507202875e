"""The dashboard's threads. One reads the run and makes snapshots: widgets only draw what it posts.
Advice is expensive (rules, and simulations of changed loaders): another works it out from the
newest batches, and not at every refresh. Others take stacks of a live run, and make advice a patch:
a failure costs what was asked for, never the screen.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..advisors.schema.report_model import LoaderReport, Recommendation
from ..profiler.base.endable_thread import EndableThread
from ..profiler.base.errors import LoaderscopeError
from ..profiler.base.metadata import clean
from ..profiler.store.run.follow import Follower, Place
from ..profiler.store.run.run import Run
from ..profiler.store.stacks.stack_samples import StackCapture
from ..reports.words.units import plural
from .snapshot import AdviceView, Snapshot, SnapshotBuilder, ViewRequest, advice_of

INTERVAL_S = 0.5
ADVICE_EVERY_S = 5.0
# Of each interval, so much may be spent on adding older batches to the totals.
CATCH_UP_S = 0.15

Post = Callable[[Snapshot], object]
Advise = Callable[[Run, Place], AdviceView]

Take = Callable[[Path], StackCapture]
Diff = Callable[[Path, LoaderReport, Recommendation], str]


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
        self._builder = SnapshotBuilder(follower)
        self._follower = follower
        self._post = post
        self._interval_s = interval_s
        self._request = ViewRequest()
        self._asked = threading.Event()
        self._over = False
        self._last = Snapshot(clean(follower.path.name), (), "unreadable")
        self.advisor = Advisor(advise)

    def view(self, request: ViewRequest) -> None:
        """Show this from now on."""
        self._request = request
        self._asked.set()

    def advise_soon(self) -> None:
        """Work advice out again at the next refresh: there is something new for it to rest on."""
        self.advisor.forget()
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
            self._catch_up()
            self._asked.wait(max(0.02, self._interval_s - (time.monotonic() - began)))

    def step(self, asked: bool = True) -> Snapshot | None:
        """One refresh; None where there is nothing new."""
        fresh, request = self._follower.poll(), self._request
        last, live = self._last.loader, self._last.state == "live" and request.at_ns is None
        # The rate of a live loop that stands still falls though nothing new was recorded.
        falls = live and last and last.pace.batches_s
        if not (fresh or asked or self.advisor.news or falls):
            return None
        snapshot, run = self._builder.build(request, self.advisor.take())
        if run and snapshot.choice:
            basis = request.at_ns, self._follower.version
            self.advisor.consider(run, snapshot.choice.place, basis)
        self._last = snapshot
        return snapshot

    def _catch_up(self) -> None:
        """Add older batches to the totals, leaving about half of a core alone; what they change is
        shown at once."""
        began = time.monotonic()
        if self._follower.catch_up(CATCH_UP_S):
            self._asked.set()
            time.sleep(min(CATCH_UP_S, time.monotonic() - began))


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

    def forget(self) -> None:
        """Take the next chance to begin anew."""
        self._basis, self._next_s = None, 0.0

    def consider(self, run: Run, place: Place, basis: object) -> None:
        """Begin anew if what it rests on has changed and it is time."""
        if place != self._place:
            self.forget()
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


class Jobs:
    """One thread for each kind of work; `later` calls a function in the dashboard's."""

    def __init__(self, later: Callable[..., Any]) -> None:
        self._later = later
        self.threads: dict[str, EndableThread] = {}

    def start(self, kind: str, work: Callable[[], Any], done: Callable[[Any], None]) -> bool:
        """Hand what `work` returns to `done`. False where work of this kind is under way."""
        if kind in self.threads:
            return False
        self.threads[kind] = thread = EndableThread(
            target=lambda: self._later(self._end_of, kind, done, work()),
            name=f"loaderscope-{kind}",
            daemon=True,
        )
        thread.start()
        return True

    def _end_of(self, kind: str, done: Callable[[Any], None], result: Any) -> None:
        del self.threads[kind]
        done(result)

    def end(self) -> None:
        """All that is under way is given up."""
        for thread in self.threads.values():
            thread.end()


@dataclass(frozen=True)
class Taken:
    """How taking stacks went, in words; `done` is None while it goes on."""

    done: bool | None
    said: str


def taken(path: Path, take: Take) -> Taken:
    """Take stacks once."""
    try:
        samples = take(path).samples
    except Exception as error:
        return Taken(False, _why("no stacks", error))
    counted = plural(sum(samples.values()), "sample")
    return Taken(True, f"taken: {counted} of {plural(len(samples), 'process', 'processes')}")


def diff_of(path: Path, report: LoaderReport, advice: Recommendation) -> str:
    """The advice as a patch of the user's source, not tried; or why there is none."""
    from ..experiment.git import project_folder
    from ..fixing.patch import make_patch, open_project
    from ..profiler.store.run.run_reader import open_run

    try:
        run = open_run(path)
        root = project_folder(Path.cwd())
        return make_patch(run, open_project(run, root), report, advice).diff
    except Exception as error:
        return _why("no patch", error)


def _why(lacking: str, error: Exception) -> str:
    """What our own errors say is a sentence; others are named too."""
    kind = "" if isinstance(error, LoaderscopeError) else f"{type(error).__name__}: "
    return f"{lacking}: {kind}{clean(error, 400)}"
