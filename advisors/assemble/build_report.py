"""From a `Run` to a `Report`."""

import os
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from ...profiler.base.errors import RunNotFound, UsageError
from ...profiler.base.torch_parts import untried
from ...profiler.store.run.missing_figures import missing_figures
from ...profiler.store.run.run import LoaderRun, ProcessRun, Run
from ...profiler.store.run.run_reader import open_run
from ...profiler.store.stacks.stack_request import end_burst
from ..schema.rank_model import Ranks
from ..schema.report_model import SCHEMA, LoaderReport, Overhead, Report, RunInfo, SystemSummary
from ..stacks.code_summary import code_of
from ..stage_model.core_wait import core_wait_ratio
from ..stage_model.measured import mean
from ..stage_model.ranks import Member
from ..stage_model.stages import stages, step_totals, total
from ..stage_model.summary import sampler_cost, summarise
from ..stage_model.verdict import EPOCH_START_NOTED_FROM, headroom, iter_ns, lost_time, verdict
from ..stage_model.waiting import waiting
from ..storage.summary import storage_of
from .engine import advise
from .job import groups_of, open_job, with_ranks
from .make_case import case_of
from .tried import with_trials

Place = tuple[str, int]  # name of the process's folder, number of the loader in it

# Of all CPU time. Enough to make workers late now and then; quiet shared hosts were seen below
# 0.01.
STOLEN_NOTED_FROM = 0.05


def build_report(
    run: Run,
    pid: int | None = None,
    loader: Place | None = None,
    *,
    advice: bool = True,
) -> Report:
    """What the run means, a loader of several ranks as one section; with `pid`, sections of that
    process's loaders alone; with `loader` (process folder, index), of it alone.

    Without `advice`, only what was measured.
    """
    # Garbage in a lane may be any number: sums that overflow are wrong, but no warning of ours may
    # stop a caller.
    with np.errstate(all="ignore"):
        system = summarise(run)

        def section(member: Member, ranks: Ranks | None) -> LoaderReport:
            process, index = member[0], member[1].index
            loader = next(each for each in process.loaders if each.index == index)
            coded = loader.as_coded()
            found = loader_report(run, process, coded)
            if ranks is not None:
                found = with_ranks(found, ranks)
            if advice:
                found = advise(case_of(run, process, coded, found, system))
            return with_trials(found, loader.tuning) if loader.tuning is not None else found

        loaders: list[LoaderReport] = []
        for group in groups_of(run.processes):
            if pid is None and loader is None:
                # Of the foremost rank, with what all ranks show.
                loaders.append(section(group.foremost, group.ranks))
            else:
                loaders += [
                    section(each, group.ranks if advice else None)
                    for each in group.members
                    if pid in (None, each[0].pid)
                    and loader in (None, (each[0].path.name, each[1].index))
                ]
        return Report(
            schema=SCHEMA,
            run=_run_info(run),
            loaders=tuple(loaders),
            system=system,
            overhead=_overhead(run, system),
            notes=tuple(_notes(run, system, so_far=pid is None)),
            missing=missing_figures(run),
        )


def report(target: Any = None) -> Report:
    """What has been recorded so far.

    With no argument: all loaders of this process. With a watched loader: that one. With a `Run`, or
    what `open_run` takes (an id, "latest", a path): that run. Of stacks that are being taken, those
    until now count: that may take 0.3 s. Raises RunNotFound if nothing has been recorded,
    UsageError for a loader that is not watched.
    """
    if isinstance(target, Run | str | os.PathLike):
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
    end_burst(directory)
    only = (place[0].name, place[1]) if place is not None else None
    return build_report(open_run(directory), os.getpid(), only)


def shared(cls: type[Any], source: object) -> dict[str, Any]:
    """The fields of a dataclass that another object has by the same names."""
    names = (each.name for each in fields(cls) if hasattr(source, each.name))
    return {name: getattr(source, name) for name in names}


def loader_report(run: Run, process: ProcessRun, loader: LoaderRun) -> LoaderReport:
    """One loader's part of the report, without advice."""
    lost, figures = lost_time(loader), stages(loader, process.device)
    found, basis = verdict(loader, lost)
    samples = int(total(loader, "samples")) if loader.batches.measured("samples") else None
    # From `iter()` to the last batch's end, pauses between epochs left out.
    wall_s = (step_totals(loader) + iter_ns(loader, lost)) / 1e9 or None
    ratio = core_wait_ratio(run, process, loader, in_main=not loader.num_workers)
    starts = basis.epoch_start_share if found != "too-short" else None
    own: dict[str, Any] = {
        **shared(LoaderReport, loader),
        "config": dict(loader.config),
        "batches": loader.count,
        "epochs": max(loader.epochs.rows, 1 if loader.count else 0),  # iterations begun
        "notes": (*loader.notes, *_loader_notes(loader, starts or 0.0)),
        "tuning": None,
    }
    return LoaderReport(
        samples=samples,
        folded_batches=loader.older,
        wall_s=wall_s,
        batches_per_s=loader.batches.rows / wall_s if wall_s else None,
        samples_per_s=samples / wall_s if wall_s and samples is not None else None,
        bytes_per_batch=mean(loader.batches["bytes"]),
        verdict=found,
        basis=basis,
        headroom=headroom(loader, lost) if found != "too-short" else None,
        stages=figures,
        waiting=waiting(loader, lost.first, ratio),
        code=code_of(run, process, loader),
        storage=storage_of(run, process, loader, figures),
        made_at=loader.made.place,
        **own,
    )


def _loader_notes(loader: LoaderRun, starts: float) -> Iterator[str]:
    built = int(loader.epochs["instance"].max(initial=0)) + 1
    if loader.older:
        yield (
            f"{loader.older:,} older batches are left out: the figures rest on the newest "
            f"{loader.batches.rows:,}"
        )
    if starts >= EPOCH_START_NOTED_FROM:
        part = f"{starts * 100:.0f} % of the time"
        yield f"waiting for the first batch of each epoch after the first costs {part}"
    if built > 1:
        yield f"the loader was built {built} times"


def _run_info(run: Run) -> RunInfo:
    known: dict[str, Any] = {
        **shared(RunInfo, run),
        # JSON has no place for other bytes.
        "path": os.fsencode(run.path).decode(errors="replace"),
        "state": run.outcome,
        "processes": len(run.processes),
    }
    return RunInfo(
        wall_s=max(map(_wall_ns, run.processes), default=0) / 1e9 or None,
        torch=next((each.torch for each in run.processes if each.torch), None),
        world_size=max((each.world_size or 0 for each in run.processes), default=0) or None,
        devices=tuple(dict.fromkeys(each.device for each in run.processes if each.device)),
        **known,
    )


def _wall_ns(process: ProcessRun) -> int:
    """How long a process recorded: clocks of different hosts are never mixed."""
    moments: list[int] = []
    for loader in process.loaders:
        rows, epochs = loader.batches, loader.epochs
        ends = rows["t_ns"] + rows["wait_ns"].clip(0) + rows["compute_ns"].clip(0)
        for first in (epochs["t_iter_ns"], rows["t_ns"]):
            moments += first[:1].tolist()
        for last in (epochs["t_first_ns"], epochs["t_end_ns"], ends):
            moments += last[-1:].tolist()
    known = [each for each in moments if each >= 0]
    return max(known, default=0) - min(known, default=0)


def _overhead(run: Run, system: SystemSummary) -> Overhead:
    """Cost per batch = hooks (calibrated) + what batches sampled in detail cost on top, spread
    over all batches. Both are wall times: beside other programs they say little."""
    cost_ns = step_ns = 0.0
    batches, why = 0, ""
    for loader in run.loaders:
        own = total(loader, "own_ns")
        if own or loader.hook_ns is not None:
            batches += loader.count
            cost_ns += (loader.hook_ns or 0.0) * loader.count + own
            step_ns += step_totals(loader)
    if not batches:
        why = "no batch was timed for it"
    elif system.crowded_by_others:
        why = "other programs kept the cores busy"
    elif system.samples == 1:
        why = "the run was too short to tell how busy the machine was"
    reasons = {"per_batch_us": why} if why else {}
    costs = [sampler_cost(system) for system in run.systems]
    share = max((share for share, _ in costs if share is not None), default=None)
    if share is None:
        reasons["sampler_cpu_share"] = "the system sampler took fewer than two samples"
    return Overhead(
        per_batch_us=None if why else cost_ns / batches / 1e3,
        share_of_step=None if why or step_ns <= 0 else cost_ns / step_ns,
        sampler_cpu_share=share,
        sampler_rss_bytes=max((size for _, size in costs if size is not None), default=None),
        reasons=reasons,
    )


def _notes(run: Run, system: SystemSummary, so_far: bool) -> Iterator[str]:
    of_loaders = {f"{loader.name}: {note}" for loader in run.loaders for note in loader.notes}
    stolen = system.cpu_stolen_mean_share or 0.0
    yield from (note for note in run.notes if note not in of_loaders)
    if run.state == "crashed":
        yield (
            "the run ended without saying so (killed or crashed): everything recorded until then "
            "is here"
        )
    if run.state == "live" and so_far:
        yield "the run is still going on: these are the figures so far"
    if stolen >= STOLEN_NOTED_FROM:
        yield (
            f"the hypervisor gave {stolen * 100:.0f} % of this machine's CPU time to others: "
            "measured times are too long, and predictions less certain; record again when the "
            "host is quiet"
        )
    versions = dict.fromkeys(process.torch for process in run.processes)
    yield from filter(None, map(untried, versions))
    if not run.loaders:
        yield "no loader was recorded"
    if len({each.host for each in run.systems}) > 1:
        yield "several hosts were recorded: the system summary is that of the first"
