"""The reading thread: bursts, failures, and no more work than there is news."""

import threading
import time
from pathlib import Path

import pytest

from builders import RunBuilder, loop, values_of
from dashboard_samples import ADVICE, Told, advise
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.base.schema import BATCH
from loaderscope.profiler.store.lanes.lane import Budget, Lane
from loaderscope.profiler.store.run.follow import Follower, Place
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.tui.reader import Reader
from loaderscope.tui.snapshot import AdviceView, Snapshot, advice_of
from started import python, until


def test_a_burst_of_ten_thousand_batches_a_second(runs_dir: Path) -> None:
    run = RunBuilder(runs_dir)
    process = run.process()
    process.loader()
    lane = Lane(process.path, "batches0x0", BATCH, Budget(1 << 30), pytest.fail, trimmed=True)
    rows = [values_of(BATCH, row) for row in loop(10_000, wait_ms=0.01, compute_ms=0.09)]
    posted: list[Snapshot] = []
    reader = Reader(Follower(run.path), posted.append, interval_s=0.05, advise=advise)
    reader.start()
    for row in rows * 3:
        lane.append(*row)
    until(lambda: posted and (at := posted[-1].loader) and at.report.batches == 30_000, "all")
    reader.stop()
    reader.join(10)
    assert not reader.is_alive() and posted[-1].problem is None


def test_the_dashboard_says_what_the_report_says_of_a_long_run(runs_dir: Path) -> None:
    """Of 24,000 batches the dashboard reads the newest."""
    run = RunBuilder(runs_dir)
    making = {"fetch_ns": 6_000_000, "fetch_cpu_ns": 5_900_000, "collate_ns": 400_000}
    rows = loop(24_000, wait_ms=6.5, compute_ms=2.0, own_ns=900.0, **making)
    run.process(affinity=4).loader(rows, config={"num_workers": 0, "batch_size": 4})
    follower = Follower(run.path)
    place = Place("p4000-0", 0)
    shown = advice_of(follower.run(place), place).report
    (told,) = build_report(open_run(run.path)).loaders
    assert shown is not None and shown.folded_batches > 10_000 and shown.batches == told.batches
    assert shown.verdict == told.verdict == "input-bound"
    assert shown.headroom == pytest.approx(told.headroom, rel=1e-3)
    assert shown.basis.sentence == told.basis.sentence
    advised, other = (loader.recommendations for loader in (shown, told))
    assert advised and [each.title for each in advised] == [each.title for each in other]
    gains = [[each.predicted.mid for each in found] for found in (advised, other)]
    assert gains[0] == pytest.approx(gains[1], abs=0.01)


def test_nothing_new_is_not_read_again(run: RunBuilder) -> None:
    reader = Told(Follower(run.path), lambda snapshot: None, advise=advise)
    assert reader.step(asked=False) is not None
    reader.advisor.finish()
    advised = reader.step(asked=False)
    assert advised is not None and advised.advice == ADVICE
    assert reader.step(asked=False) is None
    reader.view(Place("p4000-0", 1))
    other = reader.step()
    assert other is not None and other.place is not None
    assert other.loaders[other.place].name == "Validation"


def test_a_failure_of_ours_is_said_on_the_screen(run: RunBuilder) -> None:
    posted: list[Snapshot] = []
    reader = Reader(Follower(run.path), posted.append, interval_s=0.05, advise=advise)
    reader.advisor.take = None  # type: ignore[method-assign, assignment]
    reader.start()
    until(lambda: posted, "a snapshot")
    reader.stop()
    reader.join(10)
    assert "TypeError" in (posted[0].problem or "")


def test_advice_that_fails_costs_only_itself(run: RunBuilder) -> None:
    def failing(run: Run, place: Place) -> AdviceView:
        return advice_of(None, place)  # type: ignore[arg-type]

    reader = Told(Follower(run.path), lambda snapshot: None, advise=failing)
    reader.step()
    reader.advisor.finish()
    snapshot = reader.step()
    assert snapshot is not None and snapshot.loader is not None
    assert "advice failed" in (snapshot.advice.problem or "")


def test_its_end_waits_for_no_advice(run: RunBuilder) -> None:
    begun, ended = threading.Event(), threading.Event()

    def unending(run: Run, place: Place) -> AdviceView:
        begun.set()
        try:
            while True:
                time.sleep(0.01)
        finally:
            ended.set()

    reader = Reader(Follower(run.path), lambda snapshot: None, interval_s=0.05, advise=unending)
    reader.start()
    assert begun.wait(60)
    reader.end()
    assert ended.is_set()
    assert not [each.name for each in threading.enumerate() if each.name.startswith("loaderscope-")]


def test_a_directory_that_is_no_run_says_so_and_a_reader_that_never_began_ends(tmp_path):
    reader = Told(Follower(tmp_path), lambda snapshot: None)
    snapshot = reader.step()
    reader.end()
    assert not reader.is_alive()
    assert snapshot is not None and "not a run directory" in (snapshot.problem or "")


def test_the_dashboard_loads_no_torch(run: RunBuilder) -> None:
    code = (
        "import sys; from pathlib import Path; from loaderscope.tui.app import Dashboard; app = "
        "Dashboard(Path(sys.argv[1])); app.reader.step(); app.reader.advisor.finish(); found = "
        "app.reader.step(); assert found.advice.report, found.advice.problem; "
        "print('torch' in sys.modules, 'plotly' in sys.modules)"
    )
    assert python("-c", code, run.path, check=True).stdout.split() == ["False", "False"]
