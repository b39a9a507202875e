"""Two ranks of every launcher; two nodes that share a folder whose views are old and unmappable."""

import ctypes.util
import mmap
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from running import PROGRAMS, needs, program, recorded, runs_in, slurm_task
from started import LOADERSCOPE, ran, until

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


NODES = ("loaderscope-a", "loaderscope-b")


@pytest.fixture
def views(tmp_path: Path) -> Iterator[list[Path]]:
    """The shared folder as each node sees it, mounted there."""
    needs("fuse")
    may_mount = os.access("/dev/fuse", os.R_OK | os.W_OK) and not os.geteuid()
    if ctypes.util.find_library("fuse") is None or not may_mount:
        pytest.skip("no file system can be mounted here")
    shared = tmp_path / "shared"
    shared.mkdir()
    with ExitStack() as stack:
        found = []
        for node in NODES:
            view = tmp_path / node
            view.mkdir()
            command = [sys.executable, str(PROGRAMS / "share.py"), str(shared), str(view)]
            served = subprocess.Popen(command)
            stack.callback(served.wait)
            stack.callback(subprocess.run, ["umount", "--lazy", str(view)], check=False)
            if not is_mounted(view, served):
                pytest.skip("the file system was not mounted")
            found.append(view)
        yield found


def is_mounted(view: Path, served: subprocess.Popen[bytes]) -> bool:
    """Whether it is, once it is or cannot be."""
    until(lambda: served.poll() is not None or os.path.ismount(view), "a mount")
    return served.poll() is None


def test_nodes_that_share_a_folder_record_one_run(views: list[Path]) -> None:
    fd = os.open(views[0] / "probe", os.O_RDWR | os.O_CREAT)
    os.truncate(fd, mmap.PAGESIZE)
    with pytest.raises(OSError, match="No such device"):
        mmap.mmap(fd, mmap.PAGESIZE)
    os.close(fd)
    script = program("ddp.py", "FILE", "task")
    tasks = []
    for rank, (node, view) in enumerate(zip(NODES, views, strict=True)):
        told = slurm_task(rank, 0, rank, "1(x2)")
        env = {**os.environ, **told, "SLOW_RANK": "1", "GLOO_SOCKET_IFNAME": "lo"}
        ours = [*LOADERSCOPE, "run", "-q", "--runs", str(view / "runs"), *script]
        started = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', node, *ours]
        tasks.append(subprocess.Popen(started, env=env, stderr=subprocess.PIPE, text=True))
    said = [task.communicate(timeout=240)[1] for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], said
    assert not any("loaderscope:" in each for each in said)
    for view in views:
        assert len(runs_in(view / "runs")) == 1
        run = open_run("latest", view / "runs")
        assert run.state == "finished" and {p.host for p in run.processes} == set(NODES)
        assert sorted((p.rank, p.local_world_size) for p in run.processes) == [(0, 1), (1, 1)]
        assert all(loader.count == 12 for loader in run.loaders)
        (section,) = build_report(run).loaders
        assert section.ranks is not None and section.ranks.hosts == 2
        assert section.ranks.slowest is not None and section.ranks.slowest.rank == 1
