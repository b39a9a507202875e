"""page-cache: epochs that read everything from the disk again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advice_cases import FakeWhatIf, advice, case_of, check_doc, outcomes, rows_of, unmeasured
from builders import MS
from loaderscope.advisors.case import Case

NAME = "page-cache"


def case(
    tmp_path: Path, *reads: float, idle: float = 0.7, sampled: bool = True, workers: int = 0, **options: Any
) -> Case:
    """A loader whose epochs read these bytes from the disk, one after another."""
    columns: dict[str, Any] = {}
    if workers:
        columns = {"t_fetch_ns": lambda n, t, w: t, "worker_pid": 4001, "worker": 0}
    rows, epochs = rows_of(
        len(reads), wait_ms=20.0, compute_ms=5.0, fetch_ns=20 * MS, fetch_cpu_ns=round(20 * MS * (1 - idle)), **columns
    )
    samples = []
    total = 0.0
    for epoch, read in zip(epochs, reads, strict=True):
        for t in np.linspace(epoch["t_iter_ns"], epoch["t_end_ns"], 20):
            part = (t - epoch["t_iter_ns"]) / (epoch["t_end_ns"] - epoch["t_iter_ns"])
            samples.append((int(t), int(total + part * read)))
        total += read
    process = [
        {"t_ns": t, "pid": 4000, "owner_pid": 4000, "role": 0, "read_disk_bytes": value, "read_all_bytes": value}
        for t, value in samples
    ]
    if workers:
        process = [{**row, "pid": 4001, "role": 1, "loader": 0} for row in process] + process
        process.sort(key=lambda row: row["t_ns"])
    system = {"process": process} if sampled else None
    return case_of(tmp_path, rows, epochs, config={"num_workers": workers}, system=system, **options)


def test_its_documentation_is_complete() -> None:
    check_doc(NAME)


@pytest.mark.parametrize("workers", [0, 1])
def test_it_speaks_where_later_epochs_read_all_again(tmp_path: Path, workers: int) -> None:
    whatif = FakeWhatIf()

    found = advice(NAME, case(tmp_path, 1e9, 0.9e9, 0.95e9, workers=workers, whatif=whatif))

    assert found.evidence["read from the disk in the first epoch"].endswith(("GB", "MB"))
    assert "93 %" in found.why or "92 %" in found.why
    assert whatif.asked[0]["fetch"] == (pytest.approx(0.3), pytest.approx(0.79))


@pytest.mark.parametrize(
    ("reads", "options"),
    [
        ((1e9,), {}),  # one cold epoch proves nothing
        ((1e9, 0.5e9), {}),
        ((1e9, 0.0), {}),
        ((1e7, 1e7), {}),  # too little to matter
        ((1e9, 1e9), {"idle": 0.1}),  # fetching computes
        ((1e9,), {"sampled": False}),
    ],
)
def test_it_is_silent_one_step_away(tmp_path: Path, reads: tuple[float, ...], options: dict[str, Any]) -> None:
    assert outcomes(NAME, case(tmp_path, *reads, **options)) == []


def test_without_the_sampler_it_cannot_say(tmp_path: Path) -> None:
    assert "system sampler" in unmeasured(NAME, case(tmp_path, 1e9, 1e9, sampled=False))
