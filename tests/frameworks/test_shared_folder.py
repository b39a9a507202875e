"""Two nodes that share a folder as on a network, whose views are old and unmappable: one run."""

from __future__ import annotations

import ctypes.util
import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.store.run.run_reader import open_run
from running import PROGRAMS, needs, program, runs_in, slurm_task
from started import LOADERSCOPE, until

pytestmark = pytest.mark.timeout(600)
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
            served = subprocess.Popen(
                [sys.executable, str(PROGRAMS / "share.py"), str(shared), str(view)]
            )
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
