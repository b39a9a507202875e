"""Processes that were started apart meet in one run, by the job's name and nothing else; and what
`loaderscope run` starts."""

import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from loaderscope.profiler.launch import command_line, prepare, recorded
from loaderscope.profiler.record.session import job
from loaderscope.profiler.record.session.job import job_of, join_run
from loaderscope.profiler.store.run.run_finder import run_ids


def slurm(task, **more):
    step = {"SLURM_JOB_ID": "77", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "8"}
    return {**step, "SLURM_PROCID": str(task), **more}


def torchrun(rank, id_="abc"):
    return {"TORCHELASTIC_RUN_ID": id_, "RANK": str(rank), "WORLD_SIZE": "4", "LOCAL_RANK": "0"}


@pytest.mark.parametrize(
    ("environ", "command", "name"),
    [
        ({}, (), None),
        (torchrun(1), (), "torchrun abc"),
        (torchrun(1, "none"), (), None),  # torchrun's default: any job's
        ({"TORCHELASTIC_RUN_ID": "abc"}, (), None),
        (slurm(1), (), "SLURM 77.0 0"),
        (slurm(1, SLURM_RESTART_COUNT="2"), (), "SLURM 77.0 2"),
        (slurm(0, SLURM_STEP_NUM_TASKS="1"), (), None),  # what a shell of srun's starts is no task
        ({"SLURM_JOB_ID": "77", "SLURM_PROCID": "0"}, (), None),  # a batch script, of no step
        ({}, ("torchrun", "--nnodes=2", "--rdzv-id=job5", "train.py"), "torchrun job5"),
        ({}, ("torchrun", "--rdzv_id", "job5", "train.py"), "torchrun job5"),
        ({}, ("torchrun", "--nnodes", "2", "train.py"), None),
    ],
)
def test_what_names_a_job(environ, command, name):
    found = job_of(environ, command)
    assert (found.name if found is not None else None) == name


def test_tasks_meet_in_one_run_and_the_next_step_in_another(tmp_path):
    first, made = join_run(tmp_path, ["a.py"], slurm(0))
    assert made and join_run(tmp_path, ["a.py"], slurm(1)) == (first, False)
    other, made = join_run(tmp_path, ["a.py"], slurm(0, SLURM_STEP_ID="1"))
    assert made and other != first
    alone = {join_run(tmp_path, ["a.py"], {})[0] for _ in range(2)}
    assert len(alone) == 2 and len(run_ids(tmp_path)) == 4


def test_what_a_task_starts_next_is_another_run_in_which_all_meet(tmp_path):
    runs = [[join_run(tmp_path, ["a.py"], slurm(task))[0] for _ in range(2)] for task in range(3)]
    assert runs[0] == runs[1] == runs[2] and runs[0][0] != runs[0][1]


def test_all_at_once(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda task: join_run(tmp_path, ["a.py"], slurm(task)), range(24)))
    assert len({run for run, _ in found}) == 1 and sum(made for _, made in found) == 1
    assert len(run_ids(tmp_path)) == 1


def test_a_folder_without_links_gives_each_its_own(tmp_path, monkeypatch):
    refused = Mock(side_effect=PermissionError(1, "Operation not permitted"))
    monkeypatch.setattr(job.os, "symlink", refused)
    assert len({join_run(tmp_path, ["a.py"], slurm(task))[0] for task in range(2)}) == 2


def test_a_run_that_was_deleted_or_lies_outside_is_not_joined(tmp_path):
    """Whoever may write there may make a link: only a run in the folder itself is joined."""
    runs, outside = tmp_path / "runs", tmp_path / "outside"
    outside.mkdir()
    deleted, _ = join_run(tmp_path / "deleted", ["a.py"], slurm(0))
    shutil.rmtree(deleted)
    again, made = join_run(tmp_path / "deleted", ["a.py"], slurm(1))
    assert made and again.is_dir()
    first, _ = join_run(runs, ["a.py"], slurm(0))
    (link,) = (path for path in runs.iterdir() if path.is_symlink())
    link.unlink()
    os.symlink(outside, link)
    found, made = join_run(runs, ["a.py"], slurm(1))
    assert made and found.parent == first.parent and not list(outside.iterdir())


def test_the_command_of_each_node_joins(tmp_path, monkeypatch):
    script = tmp_path / "train.py"
    script.touch()
    runs = []
    for task in range(2):
        for name, value in slurm(task).items():
            monkeypatch.setenv(name, value)
        runs.append(prepare([str(script)], tmp_path / "runs")[1])
    assert runs[0] == runs[1] == recorded(runs[0])
    assert runs[0].is_dir()  # the other node has perhaps not begun yet


def test_a_command_is_found_beside_python_where_the_path_has_none(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    ours, first = os.path.join(os.path.dirname(sys.executable), "torchrun"), tmp_path / "torchrun"
    rest = ["--nproc-per-node", "2", "train.py"]
    assert command_line(["torchrun", *rest]) == [ours, *rest]
    first.write_text("#!/bin/sh\n")
    first.chmod(0o755)
    assert command_line(["torchrun"]) == [str(first)]
