"""Ranks of one host decide together: one leads, the others follow, and none waits for another."""

from __future__ import annotations

import heapq
import os
import signal
import subprocess
import sys
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

from loaderscope.advisors.schema.report_model import Range
from loaderscope.profiler.record.iterate.watch import watch
from loaderscope.profiler.record.session.ranks import Ranks
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.words.tuned_words import tuned_text
from loaderscope.tuning import candidates, ranks, trying, tuner
from loaderscope.tuning.candidates import Candidate
from loaderscope.tuning.evidence.settings import Settings
from loaderscope.tuning.ranks import Following, Leading, Word, meet
from loaderscope.tuning.room import Room
from played_loop import PlayedLoop
from started import LOADERSCOPE
from switch_data import Rows

OWN, BETTER, OTHER = Settings(1), Settings(2), Settings(3)
RATES = {OWN: 20.0, BETTER: 40.0}


class Loop(PlayedLoop):
    def switch(self, settings: Settings) -> None:
        if settings == self.rates.get("fails"):
            self.driver.failed(settings, ValueError("no such worker"))
        else:
            self.settings = settings


class Job:
    """Ranks on one clock, in step (each step is the slowest one's) or each for itself."""

    def __init__(self, folder: Path, rates: list[dict[Settings, float]], in_step: bool) -> None:
        self.now, self.in_step = 10**9, in_step
        self._loaders = [DataLoader(Rows(8), num_workers=1) for _ in rates]  # held weakly
        self.loops = []
        for rank, own in enumerate(rates):
            driver = tuner.Tuner(self._loaders[rank], tuner.Options(), clock=lambda: self.now)
            self.loops.append(Loop(own))
            self.loops[-1].driver = driver
            part = Following if rank else Leading
            driver.ranks = part(folder, rank, len(rates), 10**9, self.now)
            driver.begun(self.loops[-1])  # type: ignore[arg-type]

    @property
    def drivers(self) -> list[Any]:
        return [loop.driver for loop in self.loops]

    def run(self, seconds: float, ranks: tuple[int, ...] = (0, 1)) -> None:
        end = self.now + int(seconds * 1e9)
        if self.in_step:
            while self.now < end:
                for rank in ranks:
                    self.loops[rank].hand_over()
                self.now += max(self.loops[rank].pace_ns for rank in ranks)
            return
        due = [(self.now, rank) for rank in ranks]
        while due:
            self.now, rank = heapq.heappop(due)
            self.loops[rank].hand_over()
            if self.now + self.loops[rank].pace_ns < end:
                heapq.heappush(due, (self.now + self.loops[rank].pace_ns, rank))


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(*rates: dict[Settings, float], tried: Any = (BETTER,), in_step: bool = True) -> Job:
        found = [Candidate(each, Range(1.8, 2.0, 2.2)) for each in tried]
        monkeypatch.setattr(candidates, "usual", lambda own, cores: found)
        monkeypatch.setattr(trying, "room_left", lambda: Room(inf, inf, inf))
        return Job(tmp_path, list(rates or (dict(RATES), dict(RATES))), in_step)

    return make


def test_all_have_the_same_settings_at_the_same_steps(job: Any) -> None:
    both = job({**RATES, OTHER: 41.0}, {**RATES, OTHER: 41.0})
    both.run(90)
    leader, follower = both.drivers
    assert leader.decided and follower.decided and follower.said == leader.said
    assert {loop.settings for loop in both.loops} == {BETTER}
    assert [each[1] for each in both.loops[0].seen] == [each[1] for each in both.loops[1].seen]
    pairs = zip(both.loops[0].seen, both.loops[1].seen, strict=True)
    assert all(abs(a[0] - b[0]) <= 2 for a, b in pairs)
    assert follower.trials == [] and both.loops[1].released
    assert follower.ranks.leader.trials[0].outcome == "proven"
    for loop in both.loops:  # slower than the code's own, for long
        loop.rates[BETTER] = 10.0
    both.run(60)
    assert {loop.settings for loop in both.loops} == {OWN} and "became slower" in follower.said


def test_the_slowest_rank_s_rate_is_what_counts(job: Any) -> None:
    both = job({OWN: 20.0, BETTER: 60.0}, {OWN: 20.0, BETTER: 20.0}, in_step=False)
    both.run(90)
    assert both.drivers[0].trials[0].outcome == "not faster"
    assert {loop.settings for loop in both.loops} == {OWN}


def until_tried(both: Job) -> Job:
    while both.loops[1].settings != BETTER:
        both.run(0.2)
    return both


@pytest.mark.parametrize("gone", [0, 1])
def test_a_rank_that_is_gone_leaves_the_other_its_own_settings(job: Any, gone: int) -> None:
    both = until_tried(job())
    both.run(ranks.LATE_NS / 1e9 + 2, ranks=(1 - gone,))
    left = both.loops[1 - gone]
    assert left.settings == OWN and left.driver.decided
    assert f"rank {gone} has stopped or fallen behind" in left.driver.said


def test_a_long_pause_of_all_is_no_absence(job: Any) -> None:
    both = until_tried(job())
    both.now += 2 * ranks.LATE_NS  # rank 0 evaluates, and the others wait for it
    both.run(60)
    assert {loop.settings for loop in both.loops} == {BETTER}


def test_a_rank_that_falls_behind_ends_it_for_all(job: Any) -> None:
    both = until_tried(job(in_step=False))
    both.loops[1].rates.update(dict.fromkeys((OWN, BETTER), 0.05))
    both.run(60)
    assert {each.decided for each in both.drivers} == {True}
    assert {loop.settings for loop in both.loops} == {OWN}


def test_a_rank_that_never_comes(job: Any) -> None:
    both = job()
    Path(both.drivers[1].ranks._folder, "1.json").unlink()
    both.run(20, ranks=(0,))
    assert both.drivers[0].decided
    assert "rank 1 has not come to decide together" in both.drivers[0].said
    assert both.loops[0].seen == [(1, OWN)]


def test_settings_that_fail_in_one_rank_are_left_by_all(job: Any) -> None:
    rates = {**RATES, OTHER: 40.0}
    both = job(dict(rates), {**rates, "fails": OTHER}, tried=(OTHER, BETTER))
    both.run(120)
    failed = both.drivers[0].trials[0]
    assert (failed.outcome, failed.why) == ("failed", "ValueError: no such worker")
    assert {loop.settings for loop in both.loops} == {BETTER}


def test_what_an_earlier_try_wrote_is_not_heard(tmp_path: Path) -> None:
    Following(tmp_path, 1, 2, 0, now=50)
    leader = Leading(tmp_path, 0, 2, since_ns=100, now=10**9)
    leader.listen(10**9)
    assert not leader.met
    (tmp_path / "1.json").write_text('{"t_ns": 2')
    leader.listen(2 * 10**9)
    assert not leader.met
    Following(tmp_path, 1, 2, 0, now=3 * 10**9)
    leader.listen(3 * 10**9)
    assert leader.met


def test_cores_and_memory_are_shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "usable_cores", lambda: 8)
    monkeypatch.setattr(ranks, "_cpus", lambda: list(range(8)))
    leader = Leading(tmp_path, 0, 2, 0, 1)
    for own, cores in ((range(8), 4), (range(8, 16), 8)):  # the same ones; others each
        leader.heard[1] = Word(cpus=tuple(own))
        assert leader.cores == cores
    assert Room(8e9, 4e9, 100).shared_by(4) == Room(2e9, 1e9, 100)


def test_ranks_that_cannot_meet_are_told_so() -> None:
    loader = DataLoader(Rows(4))
    assert "not recorded" in str(meet(loader, Ranks(0, 2), 0, 0))
    watch(loader)
    list(loader)
    assert "on several hosts" in str(meet(loader, Ranks(0, 4, 0, 2), 0, 0))
    assert "does not say which" in str(meet(loader, Ranks(None, 2), 0, 0))
    assert isinstance(meet(loader, Ranks(0, 2, 0, 2), 0, 0), Leading)
    assert isinstance(meet(loader, Ranks(1, 2), 0, 0), Following)


def test_two_ranks_of_torchrun(tmp_path: Path, runs_dir: Path) -> None:
    """Batches are the code's, both ranks end alike; then one dies, and the job as without."""
    script = str(Path(__file__).with_name("two_ranks.py"))
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*LOADERSCOPE, "tune", "-q", sys.executable, *launcher, script]
    # Not pipes, which workers that start as their parent dies would hold open.
    with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        job = subprocess.Popen(command, stdout=out, stderr=err, start_new_session=True)
        try:
            status = job.wait(timeout=200)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
    stderr = (tmp_path / "err").read_text()
    out_ = (tmp_path / "out").read_text().splitlines()
    told = sorted(line for line in out_ if line.startswith("rank"))
    assert len(told) == 3, stderr
    zero, death, one = told
    assert zero[8:] == one[8:] and zero.startswith("rank 0: True True ")
    assert death == "rank 1 dies in a trial"
    assert status == 1 and "exitcode  : 3" in stderr
    assert "tuning/tuner.py" not in stderr and "tuning/ranks.py" not in stderr
    run = open_run("latest", runs_dir)
    tuned = {(loader.rank, loader.name): loader.tuning for loader in run.loaders}
    leader, follower = tuned[0, "Slow"], tuned[1, "Slow"]
    assert leader is not None and follower is not None
    assert leader.follows is None and follower.follows == 0
    assert leader.trials and follower.trials == leader.trials and follower.switches
    assert tuned_text(run).count("Tuned ") == 2


KEPT = ("keep", BETTER, "was kept, as requested")
STOPPED = ("stop", OWN, "nothing was certainly faster")


@pytest.mark.parametrize(("wish", "stays", "said"), [KEPT, ("back", OWN, "put back"), STOPPED])
def test_what_is_asked_for_at_a_dashboard_holds_for_all(job, monkeypatch, wish, stays, said):
    both = until_tried(job())
    wishes = [wish]
    for name, found in {
        "loader_place": lambda loader: (Path(), int(loader is both._loaders[1])),
        "asked": lambda path, index: wishes.pop(0) if wishes and not index else None,
    }.items():
        monkeypatch.setattr(tuner, name, found)
    both.run(10)
    assert not wishes and {loop.settings for loop in both.loops} == {stays}
    assert all(each.decided and said in each.said for each in both.drivers)
    assert both.drivers[0].trials[0].outcome == "undecided"
    wishes += ["keep", "back"] if stays == BETTER else []  # of what is kept, only putting back
    both.run(10)
    assert {loop.settings for loop in both.loops} == {OWN}
