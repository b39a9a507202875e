"""The pieces of benchmarks/tune.py: its loops are many and of many kinds, and its figures say what
they should."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import loaderscope

FOLDER = Path(loaderscope.__file__).resolve().parent / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    folder = str(FOLDER)
    sys.path.insert(0, folder)
    try:
        import tune
        import tune_side

        yield tune, tune_side
    finally:
        sys.path.remove(folder)


def test_there_are_enough_loops_and_a_third_is_held_out(bench: Any) -> None:
    from known_cases import CASES

    loops = bench[0].LOOPS
    apart = [loop for loop in loops.values() if loop.held_out]
    assert len(loops) >= 20 and sum(loop.healthy for loop in loops.values()) >= 6
    assert len(loops) / 4 < len(apart) < len(loops) / 2 and any(loop.healthy for loop in apart)
    assert not loops.keys() & CASES.keys()


def test_batches_end_with_the_numbers_of_their_samples(bench: Any) -> None:
    tune, side = bench
    for name in ("characters", "buckets", "mixup", "weighted", "hidden"):
        loop = tune.LOOPS[name]
        if any(find_spec(needed) is None for needed in loop.needs):
            continue
        loader = loop.loader({"num_workers": 0})
        iterator = iter(loader)
        batch = next(iterator)
        same = loader.collate_fn([loop.data()[index] for index in batch[-1].tolist()])
        assert side.mark(same) == side.mark(batch)


def test_equal_settings_are_equal(bench: Any) -> None:
    tune, _ = bench
    assert tune.plain({"num_workers": 0, "prefetch_factor": None}) == tune.plain({"num_workers": 0})
    assert tune.plain({"num_workers": 2}) == tune.plain({"num_workers": 2, "prefetch_factor": 2})
    assert tune.plain({"num_workers": 2}) != tune.plain(
        {"num_workers": 2, "persistent_workers": True}
    )
    assert (
        tune.short({"num_workers": 3, "prefetch_factor": 4}) == "3×4"
        and tune.short({"num_workers": 0}) == "0"
    )


def judged(tune: Any, of_tuned: float, own: float = 10.0, **tuned: Any) -> dict[str, Any]:
    one, two = {"num_workers": 1, "prefetch_factor": 2}, {"num_workers": 2, "prefetch_factor": 2}
    found: dict[str, Any] = {
        "healthy": False, "held_out": False,
        "grid": {"worker_start_ms": 20.0},
        "tuned": {
            "own": one, "found": two, "decide_s": 10.0, "batches_until_decided": 100, "longest_beside_ms": 100.0,
            "median_there_ms": 50.0, "longest_ordinary_ms": 60.0, "in_order": True, "same_values": True, **tuned,
        },
        "turns": {"own": {"settings": one}, "tuned": {"settings": two}, "grid-0": {"settings": two}},
    }  # fmt: skip
    return {
        **found,
        **tune.figures(found, {"own": [own] * 3, "tuned": [of_tuned] * 3, "grid-0": [20.0] * 3}),
    }


def test_figures_of_a_loop(bench: Any) -> None:
    tune, _ = bench
    found = judged(tune, 19.0)
    assert (found["of_best"], found["of_own"], found["own_of_best"]) == (0.95, 1.9, 0.5)
    # 100 batches took 10 s instead of 5; the other 175 s at 19 batches a second instead of 20.
    assert found["lost"] == pytest.approx((10 + 175 * 20 / 19) / 180, abs=1e-3)
    assert found["longest_within"] and found["longest_bound_ms"] == 170.0
    assert not judged(tune, 19.0, longest_beside_ms=171.0)["longest_within"]


def test_the_bounds(bench: Any) -> None:
    tune, _ = bench
    good = {f"good-{k}": judged(tune, 20.0) for k in range(18)}
    slow = {f"slow-{k}": judged(tune, 18.0) for k in range(3)}
    assert tune.summed_up(good)["pass"]
    assert tune.summed_up({**good, "slow-0": slow["slow-0"], "slow-1": slow["slow-1"]})["reached"][
        "of_best"
    ]
    assert not tune.summed_up({**good, **slow})["reached"]["of_best"]
    for wrong, bound in (
        (judged(tune, 20.0, own=21.0), "of_own"),
        (judged(tune, 20.0, decide_s=61.0, batches_until_decided=1200), "decide"),
        (judged(tune, 20.0, decide_s=50.0, batches_until_decided=0), "lost"),
        (judged(tune, 20.0, in_order=False), "same_batches"),
    ):
        summary = tune.summed_up({**good, "wrong": wrong})
        assert [name for name, reached in summary["reached"].items() if not reached] == [bound]
    assert not tune.summed_up({**good, "gone": {"failed": "did not end"}})["pass"]


def test_the_longest_step_is_looked_for_beside_switches(bench: Any) -> None:
    _, side = bench
    steps = (
        [10] * 40 + [35] + [10] * 20 + [90] + [10] * 40
    )  # ms; the second long one is no switch's
    times = [0]
    for step in steps:
        times.append(times[-1] + step * 10**6)
    two, four = ({"num_workers": n, "prefetch_factor": 2} for n in (2, 4))
    record = [{"t_ns": 0, "settings": two}, {"t_ns": times[41], "settings": four}]
    found = side.steps_around(times, record)
    assert (found["switches"], found["longest_beside_ms"], found["median_there_ms"]) == (
        1,
        35.0,
        10.0,
    )
    assert found["longest_ordinary_ms"] == 90.0


@pytest.mark.parametrize(
    ("case", "settings"), [("decided-0", {"num_workers": 0}), ("others-2", {"prefetch_factor": 3})]
)
def test_what_tuning_costs_is_measured_in_pairs(
    case: str, settings: dict[str, int], tmp_path: Path
) -> None:
    command = [sys.executable, str(FOLDER / "tune_cost.py"), "--side", case, "--turns", "2"]
    env = {**os.environ, "LOADERSCOPE_DIR": str(tmp_path), "LOADERSCOPE_SYSTEM": "0"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=200)
    found = json.loads(done.stdout)
    assert found["ratio"]["count"] == 2 and found["settings"].items() >= settings.items()
