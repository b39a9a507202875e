"""shared-memory: /dev/shm or file descriptors that run out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, arguments, case_of, outcomes, workers_config
from rule_rows import host_samples, worker_loop

NAME = "shared-memory"
MB = 1_000_000


def held(
    path: Path, workers: int = 4, factor: int = 4, a_batch: int = 4 * MB, total: int = 64 * MB, used: int = 10 * MB,
    tensors: int = 2, fds: int | Callable[[int], int] = 20,
) -> Case:  # fmt: skip
    return case_of(
        path, worker_loop(100, bytes=a_batch, tensors=tensors), whatif=FakeWhatIf(0.97),
        config=workers_config(workers, prefetch_factor=factor),
        system=host_samples(shm_total_bytes=total, shm_used_bytes=used, fds=fds),
    )  # fmt: skip


def test_batches_in_flight_that_fill_it(tmp_path: Path) -> None:
    found = advice(NAME, held(tmp_path))
    assert found.params == {"num_workers": 4, "prefetch_factor": 2}  # 32 MB: half of it
    assert arguments(found.code)["num_workers"] == "4"
    assert "prefetch_factor" in arguments(found.code)
    assert "--shm-size" in found.code
    assert str(found.evidence["batches in flight"]) == "64.0 MB in 16"
    assert found.predicted.mid == 0.97


def test_a_batch_too_large_for_workers(tmp_path: Path) -> None:
    assert advice(NAME, held(tmp_path, a_batch=50 * MB)).params == {"num_workers": 0}


def test_a_full_one(tmp_path: Path) -> None:
    assert advice(NAME, held(tmp_path, a_batch=2 * MB, used=60 * MB))


@pytest.mark.parametrize(
    "change",
    [
        {"a_batch": 2 * MB},
        {"total": 16_000 * MB},
        {"a_batch": 100_000, "used": 60 * MB},  # full, but not by this loader
        {"workers": 0},
        {"total": 16_000 * MB, "fds": 900, "tensors": 2},
        {
            "total": 16_000 * MB,
            "fds": lambda second: 100 + 70 * second,
            "tensors": 2,
        },  # 730: there is room
        {
            "total": 16_000 * MB,
            "fds": lambda second: 600 + 34 * second,
            "tensors": 2,
        },  # most were open before
    ],
)
def test_silent_one_step_away(tmp_path: Path, change: dict[str, Any]) -> None:
    assert outcomes(NAME, held(tmp_path, **change)) == []


def test_descriptors(tmp_path: Path) -> None:
    found = advice(NAME, held(tmp_path, total=16_000 * MB, fds=900, tensors=60))
    assert "descriptors" in found.title
    assert "file_system" in found.code


def test_batches_that_are_kept(tmp_path: Path) -> None:
    found = advice(
        NAME, held(tmp_path, total=16_000 * MB, fds=lambda second: 50 + 95 * second, tensors=2)
    )
    assert found.title == "Batches are kept, and each holds file descriptors"
    assert str(found.evidence["of them since the loop began"]) == "855"
    assert "clone()" in found.code


def with_limit(case: Case, limit: int | None) -> Case:
    return replace(case, process=replace(case.process, fd_limit=limit))


@pytest.mark.parametrize(
    ("limit", "speaks"), [(None, True), (1024, True), (1100, True), (4096, False), (1 << 20, False)]
)
def test_the_process_s_own_limit_counts(tmp_path: Path, limit: int | None, speaks: bool) -> None:
    case = with_limit(held(tmp_path, total=16_000 * MB, fds=900, tensors=60), limit)
    if speaks:
        assert f"{limit or 1024:,}" in advice(NAME, case).why
    else:
        assert outcomes(NAME, case) == []


def test_a_low_limit_is_reached_early(tmp_path: Path) -> None:
    few = held(tmp_path, total=16_000 * MB, fds=230, tensors=60)
    assert outcomes(NAME, few) == []
    assert str(advice(NAME, with_limit(few, 256)).evidence["limit"]) == "256 files (ulimit -n)"
