"""page-cache: epochs that read everything from the disk again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from builders import MS
from loaderscope.advisors.case.case import Case
from rule_cases import advice, asked, case_of, shown, unmeasured
from rule_rows import rows_of
from silence import silent
from storage_cases import looks_of, memory, stored_case
from stored_sets import Listed

NAME = "page-cache"


def case(tmp_path, reads, idle=0.7, sampled=True, workers=0) -> Case:
    """A loader whose epochs read these bytes from the disk, one after another."""
    told = {"fetch_ns": 20 * MS, "fetch_cpu_ns": round(20 * MS * (1 - idle))}
    if workers:
        told |= {"t_fetch_ns": lambda n, t, w: t, "worker_pid": 4001, "worker": 0}
    rows, epochs = rows_of(len(reads), wait_ms=20.0, compute_ms=5.0, **told)
    process: list[dict[str, Any]] = []
    total = 0.0
    for epoch, read in zip(epochs, reads, strict=True):
        times = np.linspace(epoch["t_iter_ns"], epoch["t_end_ns"], 20)
        for t, value in zip(times, np.linspace(total, total + read, 20), strict=True):
            values = dict.fromkeys(("read_disk_bytes", "read_all_bytes"), int(value))
            process.append({"t_ns": int(t), "pid": 4000, "owner_pid": 4000, "role": 0, **values})
        total += read
    if workers:
        process = [{**row, "pid": 4001, "role": 1, "loader": 0} for row in process] + process
        process.sort(key=lambda row: row["t_ns"])
    facts = {"epochs": epochs, "config": {"num_workers": workers}}
    return case_of(tmp_path, rows, system={"process": process} if sampled else None, **facts)


@pytest.mark.parametrize("workers", [0, 1])
def test_it_speaks_where_later_epochs_read_all_again(tmp_path: Path, workers: int) -> None:
    seen = case(tmp_path, (1e9, 0.9e9, 0.95e9), workers=workers)
    found = advice(NAME, seen)
    assert str(found.evidence["read from the disk in the first epoch"]).endswith(("GB", "MB"))
    assert "93 %" in found.why or "92 %" in found.why
    assert asked(seen)[0]["fetch"] == (pytest.approx(0.3), pytest.approx(0.3 + 0.4 * 0.7))


test_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"reads": (1e9,)},  # one cold epoch proves nothing
    {"reads": (1e9, 0.5e9)},
    {"reads": (3e7, 0.0)},
    {"reads": (1e9, 0.0, 0.0)},  # later ones come from memory
    {"reads": (1e7, 1e7)},  # too little to matter
    {"reads": (1e9, 1e9), "idle": 0.1},  # fetching computes
    {"reads": (1e9,), "sampled": False},
)


def test_without_the_sampler_it_cannot_say(tmp_path: Path) -> None:
    assert "system sampler" in unmeasured(NAME, case(tmp_path, (1e9, 1e9), sampled=False))


class Files(Listed):
    """Ten thousand files of 1 MB: 10 GB."""

    def __init__(self) -> None:
        super().__init__([f"data/{n}.png" for n in range(10_000)])


def first_epoch(tmp_path, total, disk=1_000_000, limit=None) -> Case:
    system = memory(total, **({} if limit is None else {"cgroup_mem_limit_bytes": int(limit)}))
    looks = looks_of(mean_bytes=1_000_000, disk=disk)
    return stored_case(tmp_path, DataLoader(Files(), batch_size=4), looks, system=system)


@pytest.mark.parametrize(
    ("total", "limit", "left"),
    [(8e9, None, "7.00 GB"), (256e9, 6e9, "5.00 GB")],  # the container's limit counts
)
def test_before_a_second_epoch_sizes_tell(tmp_path, total, limit, left):
    found = advice(NAME, first_epoch(tmp_path, total, limit=limit))
    assert "will be evicted" in found.why
    # 1 GB is held by processes.
    assert shown(found, "the data set, about", "memory for the page cache") == ("10.0 GB", left)


test_a_first_epoch_is_silent_one_step_away = silent(
    NAME,
    first_epoch,
    {"total": 8e9, "disk": 500_000},  # half of it comes from memory already
    {"total": 12e9},  # it may just fit
    {"total": 64e9},
)


def test_waiting_for_a_core_is_no_part_of_what_fetching_does(tmp_path: Path) -> None:
    before = case(tmp_path, (1e9, 1e9))
    waiting = replace(before.report.waiting, fetch_core_wait_share=0.5)
    found = advice(NAME, replace(before, report=replace(before.report, waiting=waiting)))
    assert str(found.evidence["fetching waits"]) == "40 %"
    assert asked(before)[0]["fetch"][0] == pytest.approx(0.6)
