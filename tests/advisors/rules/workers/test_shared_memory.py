"""shared-memory: /dev/shm or file descriptors that run out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.case import Case
from rule_cases1 import (
    FakeWhatIf,
    arguments,
    assert_documented,
    case_of,
    host_samples,
    judged,
    only,
    worker_loop,
    workers_config,
)

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


def test_documented() -> None:
    assert_documented(NAME)


def test_batches_in_flight_that_fill_it(tmp_path: Path) -> None:
    advice = only(judged(NAME, held(tmp_path))[0])
    assert advice.params == {"num_workers": 4, "prefetch_factor": 2}  # 32 MB: half of it
    assert arguments(advice.code)["num_workers"] == "4"
    assert "prefetch_factor" in arguments(advice.code)
    assert "--shm-size" in advice.code
    assert advice.evidence["batches in flight"] == "16 of 4.00 MB: 64.0 MB"
    assert advice.predicted.mid == 0.97


def test_a_batch_too_large_for_workers(tmp_path: Path) -> None:
    assert only(judged(NAME, held(tmp_path, a_batch=50 * MB))[0]).params == {"num_workers": 0}


def test_a_full_one(tmp_path: Path) -> None:
    assert judged(NAME, held(tmp_path, a_batch=2 * MB, used=60 * MB))[0]


@pytest.mark.parametrize(
    "change",
    [
        {"a_batch": 2 * MB},
        {"total": 16_000 * MB},
        {"a_batch": 100_000, "used": 60 * MB},  # full, but not by this loader
        {"workers": 0},
        {"total": 16_000 * MB, "fds": 900, "tensors": 2},
        {"total": 16_000 * MB, "fds": lambda second: 100 + 70 * second, "tensors": 2},  # 730: there is room
        {"total": 16_000 * MB, "fds": lambda second: 600 + 34 * second, "tensors": 2},  # most were open before
    ],
)
def test_silent_one_step_away(tmp_path: Path, change: dict[str, Any]) -> None:
    assert judged(NAME, held(tmp_path, **change)) == ([], [], [])


def test_descriptors(tmp_path: Path) -> None:
    advice = only(judged(NAME, held(tmp_path, total=16_000 * MB, fds=900, tensors=60))[0])
    assert "descriptors" in advice.title
    assert "file_system" in advice.code


def test_batches_that_are_kept(tmp_path: Path) -> None:
    advice = only(judged(NAME, held(tmp_path, total=16_000 * MB, fds=lambda second: 50 + 95 * second, tensors=2))[0])
    assert advice.title == "Batches are kept, and each holds file descriptors"
    assert advice.evidence["of them since the loop began"] == "855"
    assert "clone()" in advice.code


def with_limit(case: Case, limit: int | None) -> Case:
    return replace(case, process=replace(case.process, fd_limit=limit))


@pytest.mark.parametrize(
    ("limit", "speaks"), [(None, True), (1024, True), (1100, True), (4096, False), (1 << 20, False)]
)
def test_the_process_s_own_limit_counts(tmp_path: Path, limit: int | None, speaks: bool) -> None:
    found = judged(NAME, with_limit(held(tmp_path, total=16_000 * MB, fds=900, tensors=60), limit))[0]
    assert bool(found) is speaks
    if speaks:
        assert f"{limit or 1024:,}" in only(found).why


def test_a_low_limit_is_reached_early(tmp_path: Path) -> None:
    few = held(tmp_path, total=16_000 * MB, fds=230, tensors=60)
    assert judged(NAME, few) == ([], [], [])
    assert only(judged(NAME, with_limit(few, 256))[0]).evidence["limit"] == "256 files (ulimit -n)"
