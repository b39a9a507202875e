"""worker-memory: workers whose own memory grows. shared-memory: /dev/shm or file descriptors that
run out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.case import Case
from rule_cases import (
    FakeWhatIf,
    advice,
    arguments,
    case_of,
    outcomes,
    shown,
    unmeasured,
    workers_config,
)
from rule_rows import host_samples, worker_loop
from silence import silent

MEMORY = "worker-memory"
MB = 1_000_000
LIST = {"name": "paths", "kind": "paths", "type": "list", "length": 2_000_000}


def growth(second: int) -> int:
    return (100 + 4 * second) * MB


def growing(path: Path, attributes: Any = (LIST,), **host: Any) -> Case:
    held = {"type": "train.Files", "name": "Files", "attributes": list(attributes)}
    facts: Any = {"config": workers_config(2), "inspection": {"dataset": held}}
    system = host_samples(**{"seconds": 60, "uss": growth, **host})
    return case_of(path, worker_loop(100), system=system, **facts)


def test_fires_for_a_clear_slope(tmp_path: Path) -> None:
    found = advice(MEMORY, growing(tmp_path))
    figures = shown(found, "growth of a worker", "workers that grow", "Files.paths")
    assert figures == ("240 MB per minute", "2", "2,000,000 items (paths)")
    assert "8.00 GB of the machine's memory are used up in 16 min 40 s" in found.why
    assert "dataset.paths = PackedList(dataset.paths)" in found.code


def test_the_containers_limit_counts_if_it_is_nearer(tmp_path: Path) -> None:
    limit = {"cgroup_mem_limit_bytes": 4_000 * MB, "cgroup_mem_bytes": 3_520 * MB}
    found = advice(MEMORY, growing(tmp_path, attributes=(), **limit))
    assert "480 MB of the container's memory are used up in 1 min 0 s" in found.why
    assert "cache" in found.why  # there is no list


test_memory_is_silent = silent(
    MEMORY,
    growing,
    {"uss": lambda n: 100 * MB},  # steady
    {"uss": lambda n: min(n, 20) * 20 * MB},  # warm-up that ends
    {"uss": lambda n: 100 * MB + n * MB // 2},  # less than 50 MB in all
    {"uss": lambda n: 100 * MB + (n % 7) * 60 * MB},  # up and down
    {"uss": lambda n: None},  # not measured
    {"attributes": (), "seconds": 25},  # no list, and not for long
    {"uss": lambda n: 100 * MB + n * 40 * MB if n < 3 else None},  # too few samples
)


@pytest.mark.parametrize(("after", "fires"), [(10**9, True), (6, False)])
def test_two_samples_of_uss_count_where_rss_grows_to_the_end(tmp_path, after, fires):
    """The second of each pair is growth that ends: a warm-up."""
    uss = lambda n: min(n, after) * 20 * MB if n in (1, 19) else None  # noqa: E731
    rss = lambda n: 300 * MB + min(n, after) * 20 * MB  # noqa: E731
    assert bool(outcomes(MEMORY, growing(tmp_path, uss=uss, rss=rss, seconds=20))) is fires


def test_without_a_sampler_it_says_so(tmp_path: Path) -> None:
    assert unmeasured(MEMORY, case_of(tmp_path, worker_loop(100), config=workers_config(2)))


SHARED = "shared-memory"


def held(
    path, workers=4, a_batch=4 * MB, total=64 * MB, used=10 * MB, tensors=2, fds=20, limit=1024
) -> Case:
    rows, whatif = worker_loop(100, bytes=a_batch, tensors=tensors), FakeWhatIf(0.97)
    config = workers_config(workers, prefetch_factor=4)
    system = host_samples(shm_total_bytes=total, shm_used_bytes=used, fds=fds)
    case = case_of(path, rows, whatif=whatif, config=config, system=system)
    return replace(case, process=replace(case.process, fd_limit=limit))


def test_batches_in_flight_that_fill_it(tmp_path: Path) -> None:
    found = advice(SHARED, held(tmp_path / "a"))
    assert found.params == {"num_workers": 4, "prefetch_factor": 2}  # 32 MB: half of it
    assert arguments(found.code).items() >= {"num_workers": "4", "prefetch_factor": "2"}.items()
    assert "--shm-size" in found.code and found.predicted.mid == 0.97
    assert shown(found, "batches in flight") == ("64.0 MB in 16",)
    large = held(tmp_path / "b", a_batch=50 * MB)
    assert advice(SHARED, large).params == {"num_workers": 0}
    assert advice(SHARED, held(tmp_path / "c", a_batch=2 * MB, used=60 * MB))


test_shared_memory_is_silent = silent(
    SHARED,
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
        assert outcomes(SHARED, case) == []
        return
    found = advice(SHARED, case)
    assert "descriptors" in found.title and "file_system" in found.code
    assert f"{limit:,}" in found.why
    assert str(found.evidence["limit"]) == f"{limit:,} files (ulimit -n)"


def test_batches_that_the_loop_keeps_hold_descriptors(tmp_path):
    grows = {"fds": lambda second: 50 + 95 * second}
    found = advice(SHARED, held(tmp_path, total=16_000 * MB, limit=1024, **grows))
    assert "905 open files" in found.why and "keep copies" in found.code
