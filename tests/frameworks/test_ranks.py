"""Two ranks of every launcher: which they are, and how many share the host."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from running import needs, program, recorded, runs_in, slurm_task
from started import ran

pytestmark = pytest.mark.timeout(600)
GROUP = "torch.distributed"


def ranks(run: Run) -> list[tuple[int | None, ...]]:
    """(rank, world, local rank, ranks on the host) a process, in order."""
    return sorted((p.rank, p.world_size, p.local_rank, p.local_world_size) for p in run.processes)


def ranks_told(report: Report) -> set[int]:
    """Those whose figures the sections show together."""
    told = [loader.ranks for loader in report.loaders if loader.ranks is not None]
    return {each.rank for ranks in told for each in ranks.each}


BOTH = [(0, 2, 0, 2), (1, 2, 1, 2)]


TORCHRUN = ("torchrun", "--nproc-per-node", "2", "ddp.py", "FILE")
ACCELERATE = ("accelerate", "launch", "--multi_gpu", "--num_processes", "2", "accelerate_loop.py")
LAUNCHERS: dict[str, tuple[str, ...]] = {
    "torchrun": TORCHRUN,
    "torchrun, group made late": (*TORCHRUN, "late"),
    "mp.spawn": ("ddp.py", "FILE", "spawn"),
    "lightning": ("lightning_fit.py", "2"),
    "accelerate": ACCELERATE,
    "ray": ("ray_train.py", "FOLDER"),
}
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in [*LAUNCHERS][:2]]


@pytest.mark.parametrize("name", [*SLOW, *[*LAUNCHERS][2:]])
def test_launchers(name: str, runs_dir: Path) -> None:
    command = LAUNCHERS[name]
    needs(*{"lightning", "accelerate", "ray"} & {name})
    at = next(number for number, each in enumerate(command) if each.endswith(".py"))
    run, report, _ = recorded(runs_dir, *command[:at], *program(*command[at:]), SLOW_RANK="1")
    assert ranks(run) == BOTH and {p.rank_source for p in run.processes} == {GROUP}
    assert run.state == "finished"
    cpus = {p.affinity for p in run.processes}
    assert report.system.effective_cpus is not None
    assert report.system.effective_cpus <= max(c for c in cpus if c) / 2
    assert ranks_told(report) == {0, 1}
    sections = [(each.name, each.config.get("phase")) for each in report.loaders]
    assert len(sections) == len(set(sections)), "one section a loader, however many ranks"
    (training,) = (each.ranks for each in report.loaders if each.config.get("phase") == "training")
    slow = training.slowest if training is not None else None
    assert slow is not None and (slow.rank, slow.cause, slow.held_up) == (1, "fetch", True)


def test_accelerates_dispatcher_is_known(runs_dir: Path) -> None:
    """Rank 0 makes the batches of both: the advice is about that."""
    needs("accelerate")
    command = program(ACCELERATE[-1], "dispatch")
    run, report, _ = recorded(runs_dir, *ACCELERATE[:-1], *command)
    assert ranks(run) == BOTH
    assert {(loader.rank, bool(loader.count)) for loader in run.loaders} == {(0, True), (1, False)}
    assert all(loader.config["dispatched"] for loader in run.loaders)
    told = {each.rule for loader in report.loaders for each in loader.recommendations}
    assert "distributed-sampler" not in told


@pytest.mark.parametrize("grouped", [pytest.param(True, marks=pytest.mark.slow), False])
def test_tasks_of_slurm(runs_dir: Path, grouped: bool) -> None:
    """Each task is started by itself, as srun does, and all record one run."""
    script = program("ddp.py", "FILE", "task", *([] if grouped else ["alone"]))
    command = [sys.executable, "-m", "loaderscope", "run", "-q", "--runs", str(runs_dir), *script]
    told = [{**os.environ, **slurm_task(rank, rank, 0, "2")} for rank in range(2)]
    tasks = [subprocess.Popen(command, env=env) for env in told]
    assert [task.wait(240) for task in tasks] == [0, 0]
    run = open_run("latest", runs_dir)
    assert ranks(run) == BOTH and len(runs_in(runs_dir)) == 1
    assert {p.rank_source for p in run.processes} == {GROUP if grouped else "SLURM"}
    assert ranks_told(build_report(run)) == {0, 1}


@pytest.mark.parametrize("mpirun", ["mpirun.openmpi", "mpirun.mpich"])
def test_mpirun(mpirun: str, runs_dir: Path) -> None:
    if shutil.which(mpirun) is None:
        pytest.skip(f"{mpirun} is not installed")
    ours = [sys.executable, "-m", "loaderscope", "run", "-q", "--runs", str(runs_dir)]
    script = program("ddp.py", "FILE", "task")
    options = ["--allow-run-as-root", "--oversubscribe"] if mpirun == "mpirun.openmpi" else []
    done = ran([*ours, mpirun, *options, "-n", "2", sys.executable, *script])
    assert done.returncode == 0, done.stderr
    run = open_run("latest", runs_dir)
    assert ranks(run) == BOTH and len(runs_in(runs_dir)) == 1 and run.state == "finished"
    assert ranks_told(build_report(run)) == {0, 1}
