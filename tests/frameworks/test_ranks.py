"""Two ranks of every launcher: which they are, and how many share the host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.run.run import Run
from loaderscope.profiler.run.run_reader import open_run
from running import needs, program, recorded

pytestmark = pytest.mark.timeout(600)
GROUP = "torch.distributed"


def ranks(run: Run) -> list[tuple[int | None, ...]]:
    """(rank, world, local rank, ranks on the host) a process, in order."""
    return sorted((p.rank, p.world_size, p.local_rank, p.local_world_size) for p in run.processes)


def ranks_told(report: Report) -> set[int]:
    """Those whose figures the sections show together."""
    return {each.rank for loader in report.loaders if loader.ranks is not None for each in loader.ranks.each}


BOTH = [(0, 2, 0, 2), (1, 2, 1, 2)]


@pytest.mark.parametrize(
    ("packages", "command"),
    [
        ((), ("torchrun", "--nproc-per-node", "2", "ddp.py", "FILE")),
        ((), ("torchrun", "--nproc-per-node", "2", "ddp.py", "FILE", "late")),
        ((), ("ddp.py", "FILE", "spawn")),
        (("lightning",), ("lightning_fit.py", "2")),
        (("accelerate",), ("accelerate", "launch", "--multi_gpu", "--num_processes", "2", "accelerate_loop.py")),
        (("ray",), ("ray_train.py", "FOLDER")),
    ],
    ids=["torchrun", "torchrun, group made late", "mp.spawn", "Lightning ddp", "accelerate launch", "Ray Train"],
)
def test_launchers(packages: tuple[str, ...], command: tuple[str, ...], runs_dir: Path) -> None:
    needs(*packages)
    at = next(number for number, each in enumerate(command) if each.endswith(".py"))
    run, report, _ = recorded(runs_dir, *command[:at], *program(*command[at:]))
    assert ranks(run) == BOTH and {p.rank_source for p in run.processes} == {GROUP}
    assert run.state == "finished"
    cpus = {p.affinity for p in run.processes}
    assert report.system.effective_cpus is not None and report.system.effective_cpus <= max(c for c in cpus if c) / 2
    assert ranks_told(report) == {0, 1}


def test_accelerates_dispatcher_is_known(runs_dir: Path) -> None:
    """Rank 0 makes the batches of both: the advice is about that, not about ranks that read the same."""
    needs("accelerate")
    command = program("accelerate_loop.py", "dispatch")
    run, report, _ = recorded(runs_dir, "accelerate", "launch", "--multi_gpu", "--num_processes", "2", *command)
    assert ranks(run) == BOTH
    assert {(loader.rank, bool(loader.count)) for loader in run.loaders} == {(0, True), (1, False)}
    assert all(loader.config["dispatched"] for loader in run.loaders)
    told = {each.rule for loader in report.loaders for each in loader.recommendations}
    assert "distributed-sampler" not in told


@pytest.mark.parametrize("grouped", [True, False], ids=["with a group", "without"])
def test_tasks_of_slurm(runs_dir: Path, grouped: bool) -> None:
    """Each task is started by itself, as srun does; what they record is one run, by the job they belong to."""
    script = program("ddp.py", "FILE", "slurm", *([] if grouped else ["alone"]))
    command = [sys.executable, "-m", "loaderscope", "run", "-q", "--runs", str(runs_dir), *script]
    tasks = []
    for rank in range(2):
        told = {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": str(rank),
                "SLURM_NODEID": "0", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_JOB_ID": "77",
                "SLURM_STEP_ID": "0"}  # fmt: skip
        tasks.append(subprocess.Popen(command, env={**os.environ, **told}))
    assert [task.wait(240) for task in tasks] == [0, 0]
    run = open_run("latest", runs_dir)
    assert (
        ranks(run) == BOTH
        and len([path for path in runs_dir.iterdir() if path.is_dir() and not path.is_symlink()]) == 1
    )
    assert {p.rank_source for p in run.processes} == {GROUP if grouped else "sampler"}
    assert ranks_told(build_report(run)) == {0, 1}
