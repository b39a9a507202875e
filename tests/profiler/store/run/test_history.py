"""The course of a loop over time, in bounded memory."""

from __future__ import annotations

import numpy as np

from loaderscope.profiler.store.run.history import BINS, FIRST_STEP_NS, History

S = 10**9


def columns(times_s: list[float], wait_s: float = 0.1) -> dict[str, np.ndarray]:
    known = {"wait_ns": int(wait_s * S), "stall_ns": -1, "samples": 4}
    every = {name: np.full(len(times_s), value) for name, value in known.items()}
    return {"t_ns": (np.array(times_s) * S).astype(np.int64), **every}


NOTHING = columns([]), np.zeros(0, np.int64)


def test_batches_fall_into_their_steps_of_time() -> None:
    history, measured = History(0), columns([2.0])
    measured["stall_ns"] = np.array([3])  # counts where it was measured
    history.add(columns([0.0, 0.1, 0.6]), np.full(3, S // 10))
    course = history.course(measured, None)  # what may change stays apart
    assert course.step_ns == FIRST_STEP_NS
    assert course.batches.tolist() == [2, 1, 0, 0, 1]
    assert course.samples.sum() == 16
    course = history.course(*NOTHING)
    assert course.batches.sum() == 3
    assert np.isclose(course.lost_ns.sum() / course.busy_ns.sum(), 0.5)
    history.add(measured, None)
    assert history.course(*NOTHING).lost_ns.sum() == 3 * S // 10 + 3


def test_a_long_run_keeps_its_sums_and_its_size() -> None:
    history = History(0)
    for hour in range(24):
        history.add(columns([hour * 3600.0 + each for each in range(0, 3600, 10)]), None)
    course = history.course(*NOTHING)
    assert len(course.batches) <= BINS
    assert course.batches.sum() == 24 * 360
    assert course.step_ns * BINS >= 24 * 3600 * S
