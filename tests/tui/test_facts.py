"""What the screens say of a run, against runs whose truth is known."""

from pathlib import Path

import numpy as np
import pytest

from builders import MS, T0, loader_of, loop, opened
from loaderscope.profiler.store.run.follow import Follower
from loaderscope.reports.document.stages import cause_of, slowest_rows
from loaderscope.reports.words.curves import curves
from loaderscope.tui.draw import overview
from loaderscope.tui.facts import LEAST_STEP_NS, course, lanes
from loaderscope.tui.snapshot import AdviceView, snapshot_of, system_of


def test_the_pace_is_that_of_the_last_moments_and_falls_when_nothing_comes(runs_dir: Path) -> None:
    slow, fast = loop(50, 50, 50), loop(1_001, 2, 8, start_ns=T0 + 5 * 10**9)
    loader = loader_of(runs_dir, slow + fast)
    found = course(loader, None)
    now = [found.now(each) for each in (found.batches, found.samples, found.lost)]
    assert now == pytest.approx([100, 400, 0.2], rel=0.02)
    end = T0 + 15 * 10**9
    for passed_s, batches_s in ((4, 29), (60, 0)):  # the step that is not over is left out
        later = course(loader, end + passed_s * 10**9)
        assert later.now(later.batches) == pytest.approx(batches_s, rel=0.1)
    # The course of the newest batches, in steps of time.
    assert len(found.batches) == 15 * 10**9 // LEAST_STEP_NS - 1
    assert found.batches[[2, -2]] == pytest.approx([10, 100])
    assert found.samples[-2] == pytest.approx(400)
    assert found.lost[[2, -2]] == pytest.approx([0.5, 0.2])


def test_the_pace_of_a_loop_faster_than_a_step_of_time_and_of_none(runs_dir: Path) -> None:
    found = course(loader_of(runs_dir, loop(4_096, wait_ms=0.01, compute_ms=0.09)), None)
    assert found.now(found.batches) == pytest.approx(10_000, rel=0.01)
    assert found.now(course(loader_of(runs_dir / "one", loop(1)), None).batches) is None
    assert len(course(loader_of(runs_dir / "none", []), None).batches) == 0


@pytest.mark.parametrize(
    ("rows", "config", "drawn"),
    [
        ({"ready": lambda n, t, w: n % 5}, {"num_workers": 4, "prefetch_factor": 2}, "2.0 of 8"),
        ({}, {"num_workers": 4}, "not measured"),
        ({}, None, "no workers: nothing is made ahead"),
    ],
)
def test_the_queue_against_its_room(runs_dir, rows, config, drawn):
    reasons = {"reasons": {"system": "switched off"}}
    run = opened(runs_dir, loop(100, **rows), config=config, process=reasons)
    assert system_of(run, None) == "switched off"  # its host was not sampled
    follower = Follower(run.path)
    follower.poll()
    found, _ = snapshot_of(follower, None, AdviceView())
    assert " ".join(overview.queue(found.loader, 80).plain.split()).startswith(f"queue {drawn}")


def test_without_workers_the_loop_does_everything(runs_dir: Path) -> None:
    loader = loader_of(runs_dir, loop(10, wait_ms=5, compute_ms=5, fetch_ns=4 * MS))
    (main,) = lanes(loader).lanes
    spent = [main.spans[kind].length_ns.sum() for kind in ("fetch", "compute", "wait")]
    assert spent == [40 * MS, 50 * MS, 50 * MS]


def test_time_the_hypervisor_took_has_a_meter_only_where_there_was_some(runs_dir: Path) -> None:
    busy = {"cpu_user_pct": 60.0, "cpu_system_pct": 8.0, "cpu_iowait_pct": 2.0}
    for idle, taken in ((30.0, []), (10.0, [20.0])):
        rows = [{"t_ns": T0 + n * 10**9, **busy, "cpu_idle_pct": idle} for n in range(3)]
        (system,) = opened(runs_dir / str(idle), loop(5), system={"machine": rows}).systems
        found = [each.values[-1] for each in curves(system) if "hypervisor" in each.name]
        assert found == taken


def test_the_slowest_batches_and_their_causes(runs_dir: Path) -> None:
    rows = loop(200, wait_ms=2, compute_ms=8, fetch_ns=MS, collate_ns=MS // 2)
    rows[150].update(wait_ns=90 * MS, fetch_ns=85 * MS)
    rows[60].update(wait_ns=50 * MS, collate_ns=45 * MS)
    loader = loader_of(runs_dir, rows)
    found = slowest_rows(loader.batches["wait_ns"])[:2]
    assert found == [150, 60]
    assert [cause_of(loader, row) for row in found] == ["fetch", "collate"]
    assert slowest_rows(np.full(30, -1)) == []  # unmeasured
