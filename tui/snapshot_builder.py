"""Makes snapshots of a followed run. Each part is worked out again only when what it rests on has
changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..advisors.assemble.build_report import build_report
from ..advisors.schema.report_model import LoaderReport
from ..profiler.base.errors import LoaderscopeError
from ..profiler.base.metadata import clean
from ..profiler.store.run.follow import Follower, Place
from ..profiler.store.run.missing_figures import missing_figures
from ..profiler.store.run.rank_waits import RankWaits
from ..profiler.store.run.run import LoaderRun, ProcessRun, Run
from ..reports.words.plan_words import plan_rows, plan_summary
from ..reports.words.sentences import nothing_to_change
from .facts.flow import nodes, pace, queue
from .facts.lanes import lanes
from .facts.machine import machine
from .facts.spread import STAGES, batches
from .snapshot import AdviceView, Choice, LoaderView, Snapshot, Times, TuningView


@dataclass(frozen=True)
class Wish:
    """What the user wants to see. `place` None: the first loader; `at_ns` None: the newest."""

    place: Place | None = None
    at_ns: int | None = None


class SnapshotBuilder:
    """Turns a follower's run into snapshots; not for two threads at a time."""

    def __init__(self, follower: Follower, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.follower = follower
        self._clock = clock
        self._place: Place | None = None
        self._waits = RankWaits(clock)
        self._causes: dict[tuple[int, ...], str] = {}

    def build(self, wish: Wish, advice: AdviceView) -> tuple[Snapshot, Run | None]:
        """The snapshot, and the run it was made of (None where it cannot be read). Never raises for
        a bad run."""
        follower = self.follower
        try:
            place = wish.place or self._place
            run = follower.run(place, wish.at_ns)
            if place is None or _find(run, place) is None:
                first = _find(run, None)
                self._place = place = _place(*first) if first is not None else None
                run = follower.run(place, wish.at_ns) if place is not None else run
        except LoaderscopeError as error:
            state = follower.state if follower.state != "unknown" else "unreadable"
            return Snapshot(clean(follower.path.name), (), state, problem=str(error)), None
        choices = tuple(
            Choice(_place(process, loader), loader.name, loader.rank, loader.pid)
            for process in run.processes
            for loader in process.loaders
        )
        chosen = next((n for n, choice in enumerate(choices) if choice.place == place), 0)
        state = follower.state if follower.state == "removed" else run.outcome
        snapshot = Snapshot(
            run.id,
            run.argv,
            state,
            choices,
            chosen,
            notes=run.notes,
            missing=missing_figures(run),
            advice=advice,
        )
        found = _find(run, choices[chosen].place) if choices else None
        if found is None:
            return replace(snapshot, machine=machine(run, next(iter(run.processes), None))), run
        process, loader = found
        span = follower.span_ns(choices[chosen].place)
        times = Times(*span, wish.at_ns) if span is not None else None
        live = state == "live" and wish.at_ns is None
        view = self._loader(run, process, loader, self._clock() if live else None)
        # Of an earlier moment of the other ranks nothing is read.
        ranks = self._waits.of(run, process, loader) if wish.at_ns is None else ()
        tuning = _tuning(run, process, loader)
        return replace(
            snapshot,
            times=times,
            loader=view,
            machine=machine(run, process),
            ranks=ranks,
            tuning=tuning,
        ), run

    def _loader(
        self, run: Run, process: ProcessRun, loader: LoaderRun, now_ns: int | None
    ) -> LoaderView:
        place = process.path.name, loader.index
        # Stacks are dear to merge: what they show comes with the advice, not with every snapshot.
        bare = replace(run, systems=tuple(replace(system, bursts=()) for system in run.systems))
        report = build_report(bare, loader=place, advice=False).loaders[0]
        reasons = {name: report.stages[name].reason for name in STAGES if name in report.stages}
        begun = process.clock_ns or 0
        return LoaderView(
            report=report,
            nodes=nodes(report),
            queue=queue(loader),
            pace=pace(loader, now_ns),
            course=self.follower.course(process, loader),
            lanes=lanes(run, loader),
            batches=batches(loader, begun, reasons, self._causes),
            caught_up=self.follower.caught_up(),
        )


def advice_of(run: Run, place: Place) -> AdviceView:
    """The advice on a loader of a run already in memory. A failure of ours costs the advice, never
    the screen."""
    try:
        found = build_report(run, loader=(place.process, place.loader)).loaders
    except Exception as error:
        return AdviceView(
            problem=f"advice failed: {type(error).__name__}: {clean(error, 200)}", ready=True
        )
    if not found:
        return AdviceView()
    report: LoaderReport = found[0]
    return AdviceView(
        report.recommendations,
        report.rejected,
        report.unmeasured,
        report.batches,
        ready=True,
        code=report.code,
        transforms=report.transforms,
        storage=report.storage,
        plan=tuple(plan_rows(report)),
        summary=plan_summary(report) if report.recommendations else nothing_to_change(report),
    )


def _find(run: Run, place: Place | None) -> tuple[ProcessRun, LoaderRun] | None:
    """The loader at this place; by default the first of the first process: training comes before
    validation."""
    found = ((process, loader) for process in run.processes for loader in process.loaders)
    return next((each for each in found if place in (None, _place(*each))), None)


def _tuning(run: Run, process: ProcessRun, loader: LoaderRun) -> TuningView | None:
    """Of a rank that follows another: what that one tries."""
    tuned = loader.tuning
    if tuned is None:
        return None
    leading = (
        (other, each)
        for other in run.processes
        if tuned.follows is not None and other.rank == tuned.follows and other.host == process.host
        for each in other.loaders
        if each.name == loader.name and each.tuning is not None
    )
    who, leader = next(leading, (process, loader))
    assert leader.tuning is not None
    return TuningView(leader.tuning.followed_from(tuned.follows), _place(who, leader))


def _place(process: ProcessRun, loader: LoaderRun) -> Place:
    return Place(process.path.name, loader.index)
