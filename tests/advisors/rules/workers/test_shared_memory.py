"""shared-memory: /dev/shm or file descriptors that run out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from loaderscope.advisors.case.case import Case
from rule_cases import FakeWhatIf, advice, arguments, case_of, outcomes, workers_config
from rule_rows import host_samples, worker_loop
from silence import silent

NAME = "shared-memory"
MB = 1_000_000


def held(
    path: Path,
    workers: int = 4,
    factor: int = 4,
    a_batch: int = 4 * MB,
    total: int = 64 * MB,
    used: int = 10 * MB,
    tensors: int = 2,
    fds: int | Callable[[int], int] = 20,
    limit: int | None = 1024,
) -> Case:
    case = case_of(
        path,
        worker_loop(100, bytes=a_batch, tensors=tensors),
        whatif=FakeWhatIf(0.97),
        config=workers_config(workers, prefetch_factor=factor),
        system=host_samples(shm_total_bytes=total, shm_used_bytes=used, fds=fds),
    )
    return replace(case, process=replace(case.process, fd_limit=limit))


def test_batches_in_flight_that_fill_it(tmp_path: Path) -> None:
    found = advice(NAME, held(tmp_path / "a"))
    assert found.params == {"num_workers": 4, "prefetch_factor": 2}  # 32 MB: half of it
    assert arguments(found.code)["num_workers"] == "4"
    assert "prefetch_factor" in arguments(found.code)
    assert "--shm-size" in found.code
    assert str(found.evidence["batches in flight"]) == "64.0 MB in 16"
    assert found.predicted.mid == 0.97
    large = held(tmp_path / "b", a_batch=50 * MB)
    assert advice(NAME, large).params == {"num_workers": 0}
    assert advice(NAME, held(tmp_path / "c", 4, 4, 2 * MB, used=60 * MB))


test_silent_one_step_away = silent(
    NAME,
    held,
    {"a_batch": 2 * MB},
    {"total": 16_000 * MB},
    {"a_batch": 100_000, "used": 60 * MB},  # full, but not by this loader
    {"workers": 0},
    {"total": 16_000 * MB, "fds": 900},
    {"total": 16_000 * MB, "fds": lambda second: 100 + 70 * second},  # 730: there is room
    {"total": 16_000 * MB, "fds": lambda second: 600 + 34 * second},  # most were open before
    {"total": 16_000 * MB, "fds": 230, "tensors": 60},
)


@pytest.mark.parametrize(
    ("fds", "limit", "speaks"),
    [*((900, limit, True) for limit in (1024, 1100)), (230, 256, True)]
    + [(900, limit, False) for limit in (None, 4096, 1 << 20)],
)
def test_the_process_s_own_limit_of_descriptors_counts(tmp_path, fds, limit, speaks):
    case = held(tmp_path, total=16_000 * MB, fds=fds, tensors=60, limit=limit)
    if not speaks:
        assert outcomes(NAME, case) == []
        return
    found = advice(NAME, case)
    assert "descriptors" in found.title and "file_system" in found.code
    assert f"{limit:,}" in found.why
    assert str(found.evidence["limit"]) == f"{limit:,} files (ulimit -n)"
