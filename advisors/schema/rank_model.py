"""What a report says of a job's ranks, as frozen values with their units in their names."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class RankFigures:
    """One rank's part of a loader. `mean_us` holds the measured mean times per steady batch, by
    stage."""

    rank: int
    host: str | None
    pid: int
    batches: int
    steady_batches: int
    workers: int | None
    mean_us: Mapping[str, float]
    finished: bool  # ended by itself, or still at work


@dataclass(frozen=True)
class Spread:
    """One figure over the ranks: the lowest and the highest, each with its rank, and the median."""

    low: float
    low_rank: int
    median: float
    high: float
    high_rank: int


@dataclass(frozen=True)
class SlowestRank:
    """The rank that waits for its data so much longer than the others that it holds them up.

    `lost_us` is its waiting for data per step, `others_lost_us` the median of the others, `step_us`
    its step. `cause` is the stage of its loader that takes longer than the others' (`cause_us`
    against `others_cause_us`); None if no stage explains the waiting. `function`, `file` and `line`
    are the user's own code that takes that stage's time in this rank, if it was seen. `held_up`
    says whether all ranks step at one pace, so that each waits for it.
    """

    rank: int
    lost_us: float
    others_lost_us: float
    step_us: float
    held_up: bool
    cause: str | None = None
    cause_us: float | None = None
    others_cause_us: float | None = None
    function: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Ranks:
    """A loader over the ranks of a job. `spread` is by stage, in µs per batch, as in
    `RankFigures.mean_us`.

    `each` has every rank that recorded this loader, by rank. `world_size` is that of the job, if
    known: ranks may be missing.
    """

    world_size: int | None
    hosts: int
    spread: Mapping[str, Spread]
    each: tuple[RankFigures, ...]
    slowest: SlowestRank | None = None
