"""worker-memory: workers whose own memory grows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.case import Case
from rule_cases import advice, case_of, outcomes, unmeasured, workers_config
from rule_rows import host_samples, worker_loop
from silence import silent

NAME = "worker-memory"
MB = 1_000_000
LIST = {"name": "paths", "kind": "paths", "type": "list", "length": 2_000_000}


def growing(
    path: Path,
    uss: Callable[[int], int | None] = lambda n: 100 * MB + n * 4 * MB,
    seconds: int = 60,
    attributes: Any = (LIST,),
    workers: int = 2,
    **host: Any,
) -> Case:
    held = {"type": "train.Files", "name": "Files", "attributes": list(attributes)}
    facts: Any = {"config": workers_config(workers), "inspection": {"dataset": held}}
    system = host_samples(seconds=seconds, uss=uss, **host)
    return case_of(path, worker_loop(100), system=system, **facts)


def test_fires_for_a_clear_slope(tmp_path: Path) -> None:
    found = advice(NAME, growing(tmp_path))
    assert str(found.evidence["growth of a worker"]) == "240 MB per minute"
    assert str(found.evidence["workers that grow"]) == "2"
    assert str(found.evidence["Files.paths"]) == "2,000,000 items (paths)"
    assert "8.00 GB of the machine's memory are used up in 16 min 40 s" in found.why
    assert "dataset.paths = PackedList(dataset.paths)" in found.code


def test_the_containers_limit_counts_if_it_is_nearer(tmp_path: Path) -> None:
    limit = {"cgroup_mem_limit_bytes": 4_000 * MB, "cgroup_mem_bytes": 3_520 * MB}
    found = advice(NAME, growing(tmp_path, attributes=(), **limit))
    assert "480 MB of the container's memory are used up in 1 min 0 s" in found.why
    assert "cache" in found.why  # there is no list


test_silent_without_one = silent(
    NAME,
    growing,
    {"uss": lambda n: 100 * MB},  # steady
    {"uss": lambda n: min(n, 20) * 20 * MB},  # warm-up that ends
    {"uss": lambda n: 100 * MB + n * MB // 2},  # less than 50 MB in all
    {"uss": lambda n: 100 * MB + (n % 7) * 60 * MB},  # up and down
    {"uss": lambda n: None},  # not measured
    {"uss": lambda n: 100 * MB + n * 40 * MB if n < 3 else None},  # too few samples
)


@pytest.mark.parametrize(("after", "fires"), [(10**9, True), (6, False)])
def test_two_samples_of_uss_count_where_rss_grows_to_the_end(tmp_path, after, fires):
    """The second of each pair is growth that ends: a warm-up."""
    case = growing(
        tmp_path,
        uss=lambda n: min(n, after) * 20 * MB if n in (1, 19) else None,
        rss=lambda n: 300 * MB + min(n, after) * 20 * MB,
        seconds=20,
    )
    assert bool(outcomes(NAME, case)) is fires


def test_without_a_sampler_it_says_so(tmp_path: Path) -> None:
    assert unmeasured(NAME, case_of(tmp_path, worker_loop(100), config=workers_config(2)))
