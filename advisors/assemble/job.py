"""A job of several ranks as one report: one section per loader, of one rank, with what all ranks
show."""

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ...profiler.base.liveness import Liveness
from ...profiler.base.metadata import Scalar
from ...profiler.store.run.loader_summary import summary_of
from ...profiler.store.run.run import ProcessRun, Run
from ...profiler.store.run.run_finder import find_run
from ...profiler.store.run.run_reader import read_run
from ..schema.rank_model import Ranks, SlowestRank
from ..schema.report_model import LoaderReport
from ..stage_model.ranks import Member, ranks_of

# What takes this part of a stage is the reason for it.
MOST = 0.5


@dataclass(frozen=True)
class Group:
    """One loader of a job, once per rank. `ranks` is None for a loader of one rank or none."""

    members: tuple[Member, ...]
    ranks: Ranks | None

    @property
    def foremost(self) -> Member:
        """The rank of its section. The slowest costs the job most; without one, ranks are alike and
        the first will do."""
        slowest = self.ranks.slowest if self.ranks is not None else None
        alike = (each for each in self.members if slowest and each[0].rank == slowest.rank)
        return next(alike, self.members[0])


def open_job(name: str | os.PathLike[str]) -> Run:
    """As `open_run`, for a report: of a job of many ranks, only those that the report needs are
    read whole."""
    return read_run(
        find_run(name),
        Liveness(),
        choose=lambda processes: {group.foremost[0].path for group in groups_of(processes)},
    )


def groups_of(processes: Iterable[ProcessRun]) -> list[Group]:
    """The loaders of a run in the order of their first use, the same loader of several ranks as one
    group."""
    found: dict[tuple[object, ...], list[Member]] = {}
    for process in processes:
        seen: Counter[tuple[Scalar, ...]] = Counter()
        for loader in process.summaries or map(summary_of, process.loaders):
            key: tuple[object, ...] = (process.world_size, loader.identity, seen[loader.identity])
            seen[loader.identity] += 1
            # No rank, or a rank that was started anew, or a child of it: a group of its own.
            ranks = [other.rank for other, _ in found.get(key, ())]
            if process.rank is None or process.rank in ranks:
                key = (process.path.name, *key)
            found.setdefault(key, []).append((process, loader))
    groups = []
    for members in found.values():
        members.sort(key=lambda member: member[0].rank or 0)
        groups.append(Group(tuple(members), ranks_of(members) if len(members) > 1 else None))
    return groups


def with_ranks(section: LoaderReport, ranks: Ranks) -> LoaderReport:
    """The section of one rank with what all show, and for the slowest the code behind its cause."""
    slowest = ranks.slowest
    if slowest is not None and slowest.rank == section.rank and slowest.cause is not None:
        ranks = replace(ranks, slowest=_with_code(slowest, slowest.cause, section))
    return replace(section, ranks=ranks)


def _with_code(slowest: SlowestRank, cause: str, section: LoaderReport) -> SlowestRank:
    """With the user's line that takes most of the stage."""
    stage = section.code.stages.get(cause) if section.code is not None else None
    most = [each for each in stage.lines if each.total_share >= MOST] if stage is not None else []
    if not most:
        return slowest
    spot = most[-1]  # the innermost
    return replace(slowest, function=spot.function, file=spot.file, line=spot.line)
