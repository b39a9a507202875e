"""Everything the screens show at one moment, as one frozen value. Made in the reader's thread,
drawn in the app's."""

from __future__ import annotations

from dataclasses import dataclass

from ..advisors.schema.report_model import LoaderReport
from ..profiler.store.run.follow import Place
from ..profiler.store.run.history import Course
from ..profiler.store.run.rank_waits import RankWait
from ..profiler.store.run.run import LoaderRun, SystemRun
from ..profiler.store.run.tuning import Tuned
from .facts import Lanes, Pace


@dataclass(frozen=True)
class Choice:
    """A loader that can be looked at."""

    place: Place
    name: str
    rank: int | None
    pid: int


@dataclass(frozen=True)
class Times:
    """Where the scrubber stands. `at_ns` is None while the newest is shown; times are those of the
    loader's process."""

    begin_ns: int
    end_ns: int
    at_ns: int | None


@dataclass(frozen=True, eq=False)
class LoaderView:
    """The chosen loader at the chosen moment. `caught_up` is the share of its batches behind the
    figures."""

    report: LoaderReport  # without advice
    loader: LoaderRun
    begin_ns: int  # of recording in its process
    pace: Pace
    course: Course
    lanes: Lanes
    caught_up: float


@dataclass(frozen=True)
class AdviceView:
    """The last report with advice and stacks: it is expensive, and a little older than the rest.
    `problem` is why there is none."""

    report: LoaderReport | None = None
    problem: str | None = None


@dataclass(frozen=True)
class TuningView:
    """How the loader's settings are tried. `place`: whose process decides, which may be another
    rank's."""

    tuned: Tuned
    place: Place


@dataclass(frozen=True, eq=False)  # holds arrays: two are the same only if they are one
class Snapshot:
    """`state` is live, finished, crashed, unknown or removed; `problem` a sentence where the run
    cannot be read."""

    run_id: str
    argv: tuple[str, ...]
    state: str
    choices: tuple[Choice, ...] = ()
    chosen: int = 0
    times: Times | None = None
    loader: LoaderView | None = None
    system: SystemRun | str = ""  # of the host of this loader; why there is none
    advice: AdviceView = AdviceView()
    ranks: tuple[RankWait, ...] = ()  # of the job whose loader this is, at the newest moment
    tuning: TuningView | None = None  # None: the loader's settings are not tried
    missing: tuple[str, ...] = ()  # what the torch of this run kept from being measured
    problem: str | None = None

    @property
    def choice(self) -> Choice | None:
        """The loader looked at."""
        return self.choices[self.chosen] if self.chosen < len(self.choices) else None
