"""Everything the screens show at one moment, as one frozen value: made of a followed run in the
reader's thread, each part again only when what it rests on has changed; drawn in the app's."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..advisors.assemble.build_report import build_report
from ..advisors.schema.report_model import LoaderReport
from ..profiler.base.errors import LoaderscopeError
from ..profiler.base.metadata import clean
from ..profiler.store.run.follow import Follower, Place
from ..profiler.store.run.missing_figures import missing_figures
from ..profiler.store.run.run import LoaderRun, ProcessRun, Run, SystemRun
from ..profiler.store.run.tuning import Tuned


@dataclass(frozen=True, eq=False)
class LoaderView:
    """The chosen loader, by its newest batches."""

    report: LoaderReport  # without advice
    loader: LoaderRun
    now_ns: int | None  # None: the run does not go on


@dataclass(frozen=True)
class AdviceView:
    """The last report with advice and stacks: it is expensive, and a little older than the rest.
    `problem` is why there is none."""

    report: LoaderReport | None = None
    problem: str | None = None


@dataclass(frozen=True, eq=False)  # holds arrays: two are the same only if they are one
class Snapshot:
    """`state` is live, finished, crashed, unknown or removed; `problem` a sentence where the run
    cannot be read."""

    run_id: str
    argv: tuple[str, ...]
    state: str
    loaders: Mapping[Place, LoaderRun] = field(default_factory=dict)  # those to choose from
    place: Place | None = None  # of the chosen one
    loader: LoaderView | None = None
    system: SystemRun | str = ""  # of the host of this loader; why there is none
    advice: AdviceView = AdviceView()
    missing: tuple[str, ...] = ()  # what the torch of this run kept from being measured
    problem: str | None = None

    @property
    def tuning(self) -> Tuned | None:
        """How the loader's settings are tried; None if they are not."""
        return self.loader.loader.tuning if self.loader else None


def snapshot_of(
    follower: Follower, asked: Place | None, advice: AdviceView
) -> tuple[Snapshot, Run | None]:
    """The snapshot of the loader asked for, and the run it was made of (None where it cannot be
    read). Without one: of the first loader of the first process, as training comes before
    validation. Never raises for a bad run."""
    try:
        run = follower.run(asked)
        found = {_place(*each): each for each in _loaders(run)}
        place = asked if asked in found else next(iter(found), None)
        if place != asked:
            run = follower.run(place)
            found = {_place(*each): each for each in _loaders(run)}
    except LoaderscopeError as error:
        state = follower.state if follower.state != "unknown" else "unreadable"
        return Snapshot(clean(follower.path.name), (), state, problem=str(error)), None
    process, loader = found.get(place, (None, None)) if place else (None, None)
    snapshot = Snapshot(
        run.id,
        run.argv,
        follower.state if follower.state == "removed" else run.outcome,
        {at: each for at, (_, each) in found.items()},
        system=system_of(run, process or next(iter(run.processes), None)),
        missing=missing_figures(run),
        advice=advice,
    )
    if not place or not process or not loader:
        return snapshot, run
    # Merging stacks is expensive: they come with the advice, not with every snapshot.
    bare = replace(run, systems=tuple(replace(system, bursts=()) for system in run.systems))
    report = build_report(bare, loader=(place.process, place.loader), advice=False).loaders[0]
    now_ns = time.monotonic_ns() if snapshot.state == "live" else None
    return replace(
        snapshot,
        place=place,
        loader=LoaderView(report, loader, now_ns),
    ), run


def advice_of(run: Run, place: Place) -> AdviceView:
    """The advice on a loader of a run already in memory. A failure of ours costs the advice, never
    the screen."""
    try:
        found = build_report(run, loader=(place.process, place.loader)).loaders
    except Exception as error:
        return AdviceView(problem=f"advice failed: {type(error).__name__}: {clean(error, 200)}")
    return AdviceView(next(iter(found), None))


def _loaders(run: Run) -> Iterator[tuple[ProcessRun, LoaderRun]]:
    return ((process, loader) for process in run.processes for loader in process.loaders)


def system_of(run: Run, process: ProcessRun | None) -> SystemRun | str:
    """What the sampler of this process's host saw; of the first host where that one was not
    sampled; else why there is nothing."""
    system = (run.host_of(process) if process else None) or run.first_host
    if system and system.machine.rows:
        return system
    said = (each.reasons["system"] for each in run.processes if "system" in each.reasons)
    return next(said, "the system sampler has recorded nothing yet")


def _place(process: ProcessRun, loader: LoaderRun) -> Place:
    return Place(process.path.name, loader.index)
