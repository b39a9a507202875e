"""From a `Run` to a `Report`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...profiler.base.errors import RunNotFound, UsageError
from ...profiler.base.torch_parts import untried
from ...profiler.store.run.epoch_ends import batches_an_epoch
from ...profiler.store.run.missing_figures import missing_figures
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ...profiler.store.run.run_reader import open_run
from ..schema.rank_model import Ranks
from ..schema.report_model import (
    SCHEMA,
    LoaderReport,
    Overhead,
    Report,
    RunInfo,
    SystemSummary,
    Waiting,
)
from ..stacks.code_summary import code_of, transforms_of
from ..stage_model.capacity import capacities
from ..stage_model.core_wait import core_wait_ratio, waiting_share
from ..stage_model.measured import mean
from ..stage_model.stages import stage, stages, step_totals
from ..stage_model.summary import sampler_cost, summarise
from ..stage_model.verdict import (
    EPOCH_START_NOTED_FROM,
    first_of_epoch,
    headroom,
    lost_time,
    verdict,
)
from ..stage_model.waiting import waiting
from ..storage.summary import storage_of
from .engine import advise
from .job import Group, groups_of, open_job, with_advice_of_others, with_ranks
from .make_case import case_of
from .tried import with_trials

if TYPE_CHECKING:
    from ..case.probe_result import ProbeResult

Place = tuple[str, int]  # name of the process's folder, number of the loader in it

# Of all CPU time. Enough to make workers late now and then; quiet shared hosts were seen below
# 0.01.
STOLEN_NOTED_FROM = 0.05

_NS = 1e-9


def build_report(
    run: Run,
    pid: int | None = None,
    loader: Place | None = None,
    *,
    advice: bool = True,
    probes: Mapping[Place, ProbeResult] | None = None,
) -> Report:
    """What the run means, a loader of several ranks as one section; with `pid`, sections of that
    process's loaders alone; with `loader` (process folder, index), of it alone.

    Without `advice`, only what was measured. `probes` holds what was tried on loaders at hand, by
    their place.
    """
    # Garbage in a lane may be any number: sums that overflow are wrong, but no warning of ours may
    # stop a caller.
    with np.errstate(all="ignore"):
        system = summarise(run)

        def section(
            process: ProcessRun, each: LoaderRun, ranks: Ranks | None = None
        ) -> LoaderReport:
            coded = each.as_coded()
            found = loader_report(run, process, coded, system.effective_cpus)
            if ranks is not None:
                found = with_ranks(found, coded, ranks)
            if advice:
                probe = probes.get((process.path.name, each.index)) if probes else None
                case = case_of(run, process, coded, found, system, probe)
                found = advise(case)
            return with_trials(found, each.tuning) if each.tuning is not None else found

        if pid is None and loader is None:
            loaders = [_of_job(group, section, probes or {}) for group in groups_of(run.processes)]
        else:
            told = _ranks_by_place(run) if advice else {}
            loaders = [
                section(process, each, told.get((process.path.name, each.index)))
                for process in run.processes
                if pid in (None, process.pid)
                for each in process.loaders
                if loader in (None, (process.path.name, each.index))
            ]
        return Report(
            schema=SCHEMA,
            run=_run_info(run),
            loaders=tuple(loaders),
            system=system,
            overhead=_overhead(run),
            notes=_notes(run, system, so_far=pid is None),
            missing=missing_figures(run),
        )


def _ranks_by_place(run: Run) -> dict[Place, Ranks]:
    return {
        (process.path.name, summary.index): group.ranks
        for group in groups_of(run.processes)
        if group.ranks is not None
        for process, summary in group.members
    }


def _of_job(
    group: Group,
    section: Callable[[ProcessRun, LoaderRun, Ranks | None], LoaderReport],
    probes: Mapping[Place, ProbeResult],
) -> LoaderReport:
    """The section of one loader of the job: of the rank tried on or else the foremost, with what
    all ranks show."""
    tried = [member for member in group.members if (member[0].path.name, member[1].index) in probes]
    (process, loader), *others = [
        (process, next(each for each in process.loaders if each.index == summary.index))
        for process, summary in tried[:1] or group.foremost
    ]
    found = section(process, loader, group.ranks)
    return with_advice_of_others(found, [section(*other, group.ranks) for other in others])


def report(target: Any = None, *, probe: bool = False) -> Report:
    """What has been recorded so far.

    With no argument: all loaders of this process. With a watched loader: that one. With a `Run`, or
    what `open_run` takes (an id, "latest", a path): that run. With `probe`, faster ways to fetch
    are tried on the loaders at hand for a few seconds each, compared with the slow way sample by
    sample, and timed. Raises RunNotFound where nothing has been recorded, UsageError for a loader
    that is not watched, or to probe a run whose loaders are not at hand.
    """
    if isinstance(target, Run | str | os.PathLike):
        if probe:
            raise UsageError("probe=True needs the loader itself: report(loader, probe=True)")
        return build_report(target if isinstance(target, Run) else open_job(target))
    from ...profiler.record.iterate import watch

    place = watch.loader_place(target) if target is not None else None
    if target is not None and place is None:
        raise UsageError("this loader has recorded nothing: watch() it and iterate over it first")
    directory = watch.current_run_directory()
    if directory is None:
        raise RunNotFound(
            "this process has recorded nothing yet: watch() a loader and iterate over it first"
        )
    probes = None
    if probe:
        from .probe import probe_loader

        live = watch.live_loaders() if place is None else {place: target}
        probes = {(path.name, index): probe_loader(each) for (path, index), each in live.items()}
    only = (place[0].name, place[1]) if place is not None else None
    return build_report(open_run(directory), os.getpid(), only, probes=probes)


def loader_report(
    run: Run, process: ProcessRun, loader: LoaderRun, cpus: float | None
) -> LoaderReport:
    """One loader's part of the report, without advice. `cpus`: effective CPUs."""
    lost = lost_time(loader)
    found, basis = verdict(loader, lost)
    samples = _total(loader, "samples")
    wall_s = _wall_s(loader)
    notes = list(loader.notes)
    if loader.folded.records:
        notes.append(
            f"{loader.folded.records:,} older batches are kept as totals only: causes of waiting "
            f"and the verdict rest on the newest {loader.batches.rows:,}"
        )
    starts = basis.epoch_start_share
    if found != "too-short" and starts is not None and starts >= EPOCH_START_NOTED_FROM:
        notes.append(
            f"waiting for the first batch of each epoch after the first costs {starts * 100:.0f} % "
            "of the time"
        )
    instances = loader.epochs["instance"]
    if len(instances) and instances.max() > 0:
        notes.append(f"the loader was built {int(instances.max()) + 1} times")
    figures = stages(loader, process.device)
    possible, limit = capacities(run, process, loader, figures, cpus)
    return LoaderReport(
        name=loader.name,
        index=loader.index,
        pid=loader.pid,
        rank=loader.rank,
        kind=loader.kind,
        config=dict(loader.config),
        batches=loader.count,
        samples=samples,
        epochs=_epochs(loader),
        folded_batches=loader.folded.records,
        wall_s=wall_s,
        batches_per_s=loader.count / wall_s if wall_s else None,
        samples_per_s=samples / wall_s if wall_s and samples is not None else None,
        bytes_per_batch=mean(loader.batches["bytes"]),
        verdict=found,
        basis=basis,
        headroom=headroom(loader, lost) if found != "too-short" else None,
        stages=figures,
        waiting=_waiting(run, process, loader, lost.first),
        notes=tuple(notes),
        capacities=possible,
        limit=limit,
        code=code_of(run, process, loader),
        transforms=transforms_of(loader, figures),
        storage=storage_of(run, process, loader, figures),
    )


def _waiting(
    run: Run, process: ProcessRun, loader: LoaderRun, first: npt.NDArray[np.bool_]
) -> Waiting | None:
    found = waiting(loader, first)
    if found is None or found.fetch_idle_share is None:
        return found
    ratio = core_wait_ratio(run, process, loader, in_main=not loader.num_workers)
    idle = waiting_share(found.fetch_idle_share, ratio)
    if ratio is None or idle is None:
        return found
    return replace(found, fetch_core_wait_share=found.fetch_idle_share - idle)


def _epochs(loader: LoaderRun) -> int:
    """Iterations begun; of a loader that repeats its sampler without end, passes over the data."""
    expected = batches_an_epoch(loader.config)
    if (
        "_RepeatSampler" in str(loader.config.get("sampler_wrappers"))
        and expected is not None
        and expected[1]
    ):
        return -(-loader.count // expected[1])
    return max(loader.epochs.rows, 1 if loader.count else 0)


def _total(loader: LoaderRun, column: str) -> int | None:
    values = loader.batches[column]
    fold = loader.folded.columns.get(column)
    known = values >= 0
    if not known.any() and fold is None:
        return None
    return int(values.sum(where=known, dtype=np.float64)) + (
        int(fold.total) if fold is not None else 0
    )


def _wall_s(loader: LoaderRun) -> float | None:
    """Time spent inside epochs: from `iter()` to the last batch's end, pauses between epochs left
    out."""
    step_ns = step_totals(loader)
    startup = loader.epochs
    begun = np.where(
        startup["t_first_ns"] >= startup["t_iter_ns"],
        startup["t_first_ns"] - startup["t_iter_ns"],
        0,
    )
    if loader.folded.records:
        return step_ns * _NS or None
    first = loader.batches["wait_ns"][first_of_epoch(loader.batches["epoch"])].clip(0)
    extra = max(
        0.0, float(begun.clip(0).sum(dtype=np.float64)) - float(first.sum(dtype=np.float64))
    )
    return (step_ns + extra) * _NS or None


def _run_info(run: Run) -> RunInfo:
    worlds = [p.world_size for p in run.processes if p.world_size]
    return RunInfo(
        id=run.id,
        path=os.fsencode(run.path).decode(errors="replace"),  # JSON has no place for other bytes
        state=run.outcome,
        created_unix_ns=run.created_unix_ns,
        wall_s=_run_wall_s(run),
        argv=run.argv,
        host=run.host,
        platform=run.platform,
        python=run.python,
        torch=next((p.torch for p in run.processes if p.torch), None),
        loaderscope=run.loaderscope,
        processes=len(run.processes),
        world_size=max(worlds) if worlds else None,
        devices=tuple(dict.fromkeys(p.device for p in run.processes if p.device)),
    )


def _run_wall_s(run: Run) -> float | None:
    """The longest any process recorded; clocks of different hosts are never mixed."""
    longest = 0
    for process in run.processes:
        begun = [
            int(t) for loader in process.loaders for t in loader.epochs["t_iter_ns"][:1] if t >= 0
        ]
        last = []
        for loader in process.loaders:
            begun += [int(t) for t in loader.batches["t_ns"][:1]]
            for column in ("t_first_ns", "t_end_ns"):
                last += [int(t) for t in loader.epochs[column][-1:]]
            rows = loader.batches
            if rows.rows:
                last.append(
                    sum(max(0, int(rows[name][-1])) for name in ("t_ns", "wait_ns", "compute_ns"))
                )
        if begun and last:
            longest = max(longest, max(last) - min(begun))
    return longest * _NS if longest > 0 else None


def _overhead(run: Run) -> Overhead:
    """Cost a batch = hooks (calibrated) + what batches looked at in detail cost on top, spread over
    all batches."""
    cost_ns = step_ns = 0.0
    batches = 0
    for loader in run.loaders:
        own = stage(loader.batches["own_ns"], loader.folded.columns.get("own_ns"), 0.0)
        if not loader.count or (not own.count and loader.hook_ns is None):
            continue
        a_batch = (loader.hook_ns or 0.0) + (own.total_s or 0.0) / _NS / loader.count
        cost_ns += a_batch * loader.count
        step_ns += step_totals(loader)
        batches += loader.count
    costs = [sampler_cost(system) for system in run.systems]
    shares = [share for share, _ in costs if share is not None]
    sizes = [size for _, size in costs if size is not None]
    reasons = {}
    if not batches:
        reasons["per_batch_us"] = "no batch was timed for it"
    if not shares:
        reasons["sampler_cpu_share"] = "the system sampler took fewer than two samples"
    return Overhead(
        per_batch_us=cost_ns / batches / 1e3 if batches else None,
        share_of_step=cost_ns / step_ns if step_ns > 0 else None,
        sampler_cpu_share=max(shares) if shares else None,
        sampler_rss_bytes=max(sizes) if sizes else None,
        reasons=reasons,
    )


def _notes(run: Run, system: SystemSummary, so_far: bool) -> tuple[str, ...]:
    told = {f"{loader.name}: {note}" for loader in run.loaders for note in loader.notes}
    notes = [note for note in run.notes if note not in told]  # the loaders tell theirs
    if run.state == "crashed":
        notes.append(
            "the run ended without saying so (killed or crashed): everything recorded until then "
            "is here"
        )
    elif run.state == "live" and so_far:
        notes.append("the run is still going on: these are the figures so far")
    stolen = system.cpu_stolen_mean_share
    if stolen is not None and stolen >= STOLEN_NOTED_FROM:
        notes.append(
            f"the hypervisor ran others during {stolen * 100:.0f} % of this machine's CPU time: "
            "what was measured is slower than the code, and predictions are less sure; record "
            "again when the host is quiet"
        )
    versions = dict.fromkeys(process.torch for process in run.processes)
    notes += [sentence for version in versions if (sentence := untried(version)) is not None]
    if not run.loaders:
        notes.append("no loader was recorded")
    if len({system.host for system in run.systems}) > 1:
        notes.append("several hosts were recorded: the system summary is that of the first")
    return tuple(notes)
