"""Which rank this process is, by who tells it."""

import os

import pytest
import torch.distributed as dist
from torch.utils.data import DataLoader

import loaderscope
from closing import close_session
from loaderscope.profiler.record.session.ranks import Ranks, ranks
from loaderscope.profiler.store.run.run_reader import open_run

SLURM = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"}
OPEN_MPI = [f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")]
PMI = ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"]


def slurm(node, tasks):
    return {**SLURM, "SLURM_NODEID": node, "SLURM_STEP_TASKS_PER_NODE": tasks}


def torchs(**given):
    """RANK and the like, by their names in small letters."""
    return {name.upper(): str(value) for name, value in given.items()}


TORCHRUN = torchs(rank=3, world_size=8, local_rank=1, local_world_size=2)
LIGHTNING = torchs(local_rank=1, node_rank=2, world_size=12)  # its launcher sets no rank


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, Ranks()),
        (TORCHRUN, Ranks(3, 8, 1, 2, "environment")),
        (LIGHTNING, Ranks(None, 12, 1, None)),
        (slurm("1", "4(x2)"), Ranks(5, 8, 1, 4, "SLURM")),
        (slurm("2", "4,2(x2)"), Ranks(5, 8, 1, 2, "SLURM")),
        # In a batch script, outside of any step, SLURM_PROCID is 0 whatever is started there.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_LOCALID": "0"}, Ranks()),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1", "SLURM_LOCALID": "0"}, Ranks()),
        (dict(zip(OPEN_MPI, "1412", strict=True)), Ranks(1, 4, 1, 2, "Open MPI")),
        (dict(zip(PMI, "2402", strict=True)), Ranks(2, 4, 0, 2, "MPI")),
        ({"PMI_RANK": "2"}, Ranks()),
        (torchs(rank="x", world_size=-1), Ranks()),
    ],
)
def test_what_launchers_leave_in_the_environment(environ, expected):
    assert ranks(environ) == expected


def test_torch_distributed_knows_better_than_the_environment():
    told = torchs(rank=0, world_size=1, local_rank=0)
    assert ranks(told, group=(2, 4)) == Ranks(2, 4, rank_source="torch.distributed")
    # A launcher tells the host's part only of the same job.
    told = slurm("1", "4(x2)")
    assert ranks(told, group=(5, 8)) == Ranks(5, 8, 1, 4, "torch.distributed")
    assert ranks(told, group=(5, 16)) == Ranks(5, 16, rank_source="torch.distributed")
    # Lightning's second node, whose rank only the group knows.
    assert ranks(LIGHTNING, group=(9, 12)) == Ranks(9, 12, 1, None, "torch.distributed")


def train(say, store):
    """A loop before anybody knows a rank, and what may tell it later."""
    loader = loaderscope.watch(DataLoader(list(range(12)), batch_size=4))
    list(loader)
    if "group" in say:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=0, world_size=1)
        if "again" in say:
            list(loader)
            dist.destroy_process_group()
    close_session()


@pytest.mark.parametrize(
    ("say", "expected"),
    [
        ((), (None, None, None)),
        (("group",), (0, 1, "torch.distributed")),
        (("group", "again"), (0, 1, "torch.distributed")),
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
