"""Which rank this process is, by who tells it."""

import json
import os
import sys

import pytest
import torch.distributed as dist
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

import loaderscope
from loaderscope.profiler.record.session import ranks as ranking
from loaderscope.profiler.record.session import session as sessions
from loaderscope.profiler.record.session.ranks import Ranks, ranks, share_of_sampler
from loaderscope.profiler.store.run.run_reader import open_run

SLURM = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, Ranks()),
        (
            {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"},
            Ranks(3, 8, 1, 2, "environment"),
        ),
        # Lightning's launcher.
        (
            {"LOCAL_RANK": "1", "NODE_RANK": "0", "WORLD_SIZE": "2"},
            Ranks(1, 2, 1, None, "environment"),
        ),
        (
            {"LOCAL_RANK": "1", "NODE_RANK": "2", "WORLD_SIZE": "12", "LOCAL_WORLD_SIZE": "4"},
            Ranks(9, 12, 1, 4, "environment"),
        ),
        ({"LOCAL_RANK": "1", "NODE_RANK": "2", "WORLD_SIZE": "12"}, Ranks(None, 12, 1, None)),
        (
            {**SLURM, "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "4(x2)"},
            Ranks(5, 8, 1, 4, "SLURM"),
        ),
        (
            {**SLURM, "SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "4,2(x2)"},
            Ranks(5, 8, 1, 2, "SLURM"),
        ),
        # In a batch script, outside of any step, SLURM_PROCID is 0 whatever is started there.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_LOCALID": "0"}, Ranks()),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_LOCALID": "0"}, Ranks()),
        (
            {
                "OMPI_COMM_WORLD_RANK": "1",
                "OMPI_COMM_WORLD_SIZE": "4",
                "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            },
            Ranks(1, 4, 1, 2, "Open MPI"),
        ),
        (
            {"PMI_RANK": "2", "PMI_SIZE": "4", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"},
            Ranks(2, 4, 0, 2, "MPI"),
        ),
        ({"PMI_RANK": "2"}, Ranks()),
        ({"RANK": "x", "WORLD_SIZE": "-1"}, Ranks()),
    ],
)
def test_what_launchers_leave_in_the_environment(environ, expected):
    assert ranks(environ) == expected


def test_torch_distributed_knows_better_than_a_sampler_and_that_than_the_environment():
    told = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    assert ranks(told, group=(2, 4), sampler=(1, 3)) == Ranks(2, 4, rank_source="torch.distributed")
    assert ranks(told, sampler=(1, 3)) == Ranks(1, 3, rank_source="sampler")


def test_a_launcher_tells_the_hosts_part_only_of_the_same_job():
    told = {**SLURM, "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}
    assert ranks(told, group=(5, 8)) == Ranks(5, 8, 1, 4, "torch.distributed")
    assert ranks(told, group=(5, 16)) == Ranks(5, 16, rank_source="torch.distributed")
    # Lightning's second node, whose rank only the group knows.
    node = {"LOCAL_RANK": "1", "NODE_RANK": "2", "WORLD_SIZE": "12"}
    assert ranks(node, group=(9, 12)) == Ranks(9, 12, 1, None, "torch.distributed")


def test_the_share_of_a_sampler():
    assert share_of_sampler({"replica": 1, "replicas": 4}) == (1, 4)
    for told in ({}, {"replica": 0, "replicas": 1}, {"replica": 4, "replicas": 4}, {"replicas": 4}):
        assert share_of_sampler(told) is None


def test_no_group_is_no_rank():
    assert ranking.group_of_process() is None


def train(say, store):
    """A loop before anybody knows a rank, and what may tell it later."""
    loader = loaderscope.watch(DataLoader(list(range(12)), batch_size=4))
    list(loader)
    if "sampler" in say:
        data = list(range(12))
        sampler = DistributedSampler(data, 3, 1)
        list(loaderscope.watch(DataLoader(data, 4, sampler=sampler)))
    if "group" in say:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
        if "again" in say:
            list(loader)
            dist.destroy_process_group()
    sessions.close_session()


@pytest.mark.parametrize(
    ("say", "expected"),
    [
        ((), (None, None, None)),
        (("sampler",), (1, 3, "sampler")),
        (("group",), (0, 1, "torch.distributed")),
        (("sampler", "group", "again"), (0, 1, "torch.distributed")),
    ],
)
def test_a_rank_unknown_at_the_start_is_filled_in(tmp_path, runs_dir, say, expected):
    child = os.fork()  # which may have a group of its own
    if not child:
        status = 1
        try:
            train(say, tmp_path / "group")
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    (process,) = open_run("latest", runs_dir).processes
    assert (process.rank, process.world_size, process.rank_source) == expected
    assert {loader.rank for loader in process.loaders} == {expected[0]}


def test_facts_name_the_cpus(tmp_path):
    session = sessions.Session(tmp_path)
    try:
        told = json.loads((session.directory / "process.json").read_text())
    finally:
        session.workers.close()
        session.finish()
    if sys.platform == "linux":
        from loaderscope.profiler.base.cpu_list import cpus_of

        assert len(cpus_of(told["cpus"])) == told["affinity"]
