"""Which steps of a window count; what is certain of rates that take turns; what is tried, and first."""

import itertools
import os
from collections.abc import Iterable
from math import inf
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

import loaderscope
from loaderscope.advisors.schema.report_model import Range
from loaderscope.tuning import candidates, trying, tuner
from loaderscope.tuning.candidates import Candidate, neighbours, ordered
from loaderscope.tuning.evidence.guards import Depends
from loaderscope.tuning.evidence.settings import Settings
from loaderscope.tuning.factor import Fit, product, quantile
from loaderscope.tuning.room import LEAST_WORKER_BYTES, Room, room_left, why_no_room, worker_bytes
from loaderscope.tuning.trial import DECISION_LEVEL, REPORT_LEVEL, Trial
from loaderscope.tuning.window import HELD, WINDOW_S, Window
from played_loop import PlayedLoop
from switch_data import Rows, same

OWN, OTHER = Settings(0), Settings(2)


def window(settings: Settings, rate: float) -> Window:
    found = Window(settings, left_out=3)
    steps = itertools.count()
    while not found.handed(int(next(steps) / rate * 1e9), None):
        pass
    return found


OF_BASE = Range(1.9, 2.0, 2.1)


def over(base: Settings, candidate: Settings) -> Trial:
    """A trial against settings that were proven to be faster than the user's own."""
    found = Trial(base, candidate)
    found.of_base = OF_BASE
    return found


# Abramowitz and Stegun, table 26.10: two-sided.
FREEDOM = (1, 2, 3, 4, 5, 8, 15, 30, 120)
TABLE = {
    0.8: (3.078, 1.886, 1.638, 1.533, 1.476, 1.397, 1.341, 1.310, 1.289),
    0.99: (63.657, 9.925, 5.841, 4.604, 4.032, 3.355, 2.947, 2.750, 2.617),
}


@pytest.mark.parametrize("level", TABLE)
def test_quantiles_of_student_s_distribution_are_those_of_the_tables(level: float) -> None:
    found = [quantile(level, freedom) for freedom in FREEDOM]
    assert found == pytest.approx(TABLE[level], abs=6e-4)


def ratio(base: Any, candidate: Any, level: float) -> Range:
    return Fit(base, candidate).factor(level)


def test_steady_turns_are_certain_and_turns_that_differ_are_not() -> None:
    steady = ratio([10.0, 10.1, 9.9], [16.0, 16.2], DECISION_LEVEL)
    wild = ratio([10.0, 14.0, 8.0], [16.0, 11.0], DECISION_LEVEL)
    assert 1.4 < steady.low < 1.6 < steady.high < 1.8 and wild.low < 1 < wild.high
    told = ratio([10.0, 10.1, 9.9], [16.0, 16.2], REPORT_LEVEL)
    assert steady.low < told.low < told.mid == steady.mid
    assert Fit([10.0, 10.0], [16.0]).few and not Fit([10.0, 10.0, 10.0], [16.0, 16.0]).few
    rates = [10.0 * 0.8**turn for turn in range(7)]  # a machine that slows down moves both
    found = ratio(rates[::2], [1.5 * rate for rate in rates[1::2]], DECISION_LEVEL)
    assert found.low < 1.5 < found.high and found.high - found.low < 0.2


def test_the_interval_holds_what_is_true() -> None:
    """About as many of many noisy intervals hold it as they say."""
    noises = np.exp(np.random.default_rng(3).normal(0, 0.05, (400, 7)))
    found = [ratio(10 * each[::2], 13 * each[1::2], REPORT_LEVEL) for each in noises]
    assert 0.72 < sum(each.low <= 1.3 <= each.high for each in found) / 400 < 0.92


def turns(trial: Trial, rates: dict[Settings, float], noise: float = 0.01) -> Any:
    random = np.random.default_rng(1)
    while trial.outcome is None:
        trial.add(window(trial.turn, rates[trial.turn] * float(np.exp(random.normal(0, noise)))))
    return trial


def test_trials_end_when_they_are_certain() -> None:
    better = turns(Trial(OWN, OTHER), {OWN: 50, OTHER: 80})
    assert better.outcome == "proven" and 1.5 < better.measured.mid < 1.7
    assert turns(Trial(OWN, OTHER), {OWN: 50, OTHER: 50}).outcome == "not faster"
    noisy = turns(Trial(OWN, OTHER), {OWN: 50, OTHER: 55}, noise=0.4)
    assert noisy.outcome in ("undecided", "not faster")
    slow = turns(Trial(OWN, OTHER), {OWN: 50, OTHER: 30})
    assert slow.outcome == "not faster" and len(slow.rates[OTHER]) == 1
    assert slow.measured is not None and slow.measured.low < 0.6 < slow.measured.high < 1


# As far from each other as from it.
WILD = ((50.0, 90.0), 40.0, False)


@pytest.mark.parametrize(("base", "slow", "left"), [((50.0, 51.0), 30.0, True), WILD])
def test_a_slow_window_says_as_much_as_windows_of_the_base_are_alike(base, slow, left):
    trial = Trial(OWN, OTHER)
    for settings, rate in ((OWN, base[0]), (OTHER, slow), (OWN, base[1])):
        trial.add(window(settings, rate))
    assert (trial.outcome == "not faster") == left == (trial.measured is not None)


def test_windows_of_the_base_just_before_count() -> None:
    trial = Trial(OWN, OTHER)
    trial.rates[OWN].append(50.0)
    turns(trial, {OWN: 50, OTHER: 80})
    assert trial.outcome == "proven" and len(trial.rates[OWN]) == 3 == len(trial.rates[OTHER]) + 1


def test_at_the_last_look_less_certainty_is_asked_for() -> None:
    random = np.random.default_rng(4)
    outcomes = []
    for gain in [1.12] * 40 + [1.0] * 40:
        trial = Trial(OWN, OTHER)
        while trial.outcome is None:
            noise = float(np.exp(random.normal(0, 0.05)))
            trial.add(window(trial.turn, 50 * noise * (gain if trial.turn == OTHER else 1)))
        outcomes.append(trial.outcome)
    assert outcomes[:40].count("proven") > 16 and outcomes[40:].count("proven") <= 2


def test_a_trial_against_the_best_so_far_tells_the_gain_over_the_user_s_own() -> None:
    trial = turns(over(OTHER, Settings(3)), {OTHER: 100, Settings(3): 150})
    assert trial.measured is not None and 2.9 < trial.measured.mid < 3.1
    joint = product(OF_BASE, Range(1.4, 1.5, 1.6))
    assert joint.mid == pytest.approx(3.0) and 1.9 * 1.4 < joint.low < 3.0 < joint.high < 2.1 * 1.6


@pytest.mark.parametrize(
    ("workers", "middle", "better"),
    [(1, 1.01, True), (1, 0.99, False), (4, 1.01, False), (4, 1.02, True)],
)
def test_of_two_that_are_about_as_good_the_cheaper_is_preferred(workers, middle, better):
    certain = Range(middle - 0.05, middle, middle + 0.05)
    assert over(Settings(2), Settings(workers))._better(middle, certain) == better
    # The user's own give way to what is proven.
    assert not Trial(Settings(2), Settings(workers))._better(middle, certain)


def factor(value: float) -> Range:
    return Range(value * 0.9, value, value * 1.1)


def chosen(own: Settings, predict: Any, cores: int = 2, free: float = 5.0) -> Any:
    """What is tried, in order, of which this is predicted: a factor; `free` if loading were."""

    def ranged(**changes: Any) -> Range:
        return factor(free if "fetch" in changes else predict(**changes))

    return [each.settings for each in ordered(own, False, ranged, cores)]


def test_the_model_s_best_come_first_and_cheaper_ones_before_as_good_ones() -> None:
    def predict(num_workers: int = 0, prefetch_factor: int = 2, **_: Any) -> float:
        workers = min(num_workers, 3)
        return (1 + workers) * (1.2 if prefetch_factor == 4 and workers else 1)

    found = chosen(OWN, predict, 4)
    assert found[0] == Settings(3, 4) and len(found) == candidates.FIRST
    assert not any(each.pin_memory for each in found)


def test_nothing_is_a_candidate_where_free_loading_would_gain_nothing() -> None:
    assert chosen(OWN, lambda **_: 1.5) and not chosen(OWN, lambda **_: 1.5, free=0.9)


def test_fewer_workers_make_as_many_batches_ahead() -> None:
    """Which hide uneven work. What makes no difference is not tried."""
    found = chosen(Settings(8, 2), lambda **_: 1.0)
    assert found[0] in (Settings(0), Settings(2, 8)) and Settings(2, 8) in found
    assert all(each.ahead >= 16 or each.num_workers < 2 for each in found)
    found = chosen(Settings(1), lambda **_: 1.02)
    assert all(each.num_workers != 1 and each.prefetch_factor > 1 for each in found)


def test_neighbours_of_the_best_that_were_not_tried() -> None:
    def near(best: Settings, own: Settings, *tried: Settings) -> list[Settings]:
        return [each.settings for each in neighbours(best, own, {*tried}, cores=2)]

    found = near(Settings(2), OWN, Settings(3), Settings(0))
    assert found == [Settings(2, 4), Settings(1, 4)]
    assert near(Settings(4), OWN) == [Settings(2, 4), Settings(4, 4), Settings(5)]
    fewer = near(Settings(1, 8, persistent_workers=True), Settings(4))
    assert fewer[0] == Settings(0) and Settings(2, 8, persistent_workers=True) in fewer


@pytest.mark.parametrize(("gain", "tried"), [(0.85, True), (0.5, False)])
@pytest.mark.parametrize(("others", "place"), [(1.0, 0), (1.4, candidates.FIRST - 1)])
def test_leaving_workers_is_tried_where_the_model_sees_no_great_loss(gain, tried, others, place):
    """After what is expected to gain, and before what is not."""

    def predict(num_workers: int | None = None, **_: Any) -> float:
        return 1.0 if num_workers is None else others if num_workers else gain

    found = chosen(Settings(4, 4), predict)
    assert len(found) == candidates.FIRST
    assert (Settings(0) in found) == tried and (found[place] == Settings(0)) == tried


class Loop(PlayedLoop):
    now = 0

    def switch(self, settings: Settings) -> None:
        if settings != self.settings:
            self.settings = settings
            self.driver.switched(self, settings)

    def run(self, driver: Any, seconds: float) -> None:
        self.driver = driver
        end = self.now + seconds * 1e9
        while self.now < end:
            self.now += self.pace_ns
            self.hand_over()


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> Any:
    loaders = []  # the tuner holds its loader weakly

    def make(rates, tried, **options):
        loader = DataLoader(Rows(8), num_workers=1)
        loaders.append(loader)
        found = [Candidate(each, factor(2.0)) for each in tried]
        monkeypatch.setattr(candidates, "usual", lambda own, cores: [*found])
        loop = Loop(rates)
        driver = tuner.Tuner(loader, tuner.Options(**options), clock=lambda: loop.now)
        driver.begun(loop)  # type: ignore[arg-type]
        return loop, driver

    return make


def test_the_best_proven_one_stays_and_is_watched(tuned: Any) -> None:
    rates = {Settings(1): 20.0, Settings(2): 40.0, Settings(3): 60.0, Settings(4): 55.0}
    loop, driver = tuned(rates, [Settings(2)])
    loop.run(driver, 100)
    assert driver.decided and driver.chosen == loop.settings == Settings(3)
    assert driver.trying.best.measured.mid == pytest.approx(3.0, rel=0.05)
    rates[Settings(3)] = 15.0  # slower than the user's own was, and for long
    loop.run(driver, 20)
    assert loop.settings == Settings(3)
    loop.run(driver, 30)
    assert loop.settings == driver.chosen == Settings(1) and "became slower" in driver.said


def test_short_epochs_are_left_alone(tuned: Any) -> None:
    """Starting workers takes longer than what they save in an epoch that short."""
    loop, driver = tuned({Settings(1): 50.0, Settings(4): 100.0}, [Settings(4)])
    for _ in range(10):
        driver.begun(loop)
        loop.given = 0
        loop.run(driver, 1.0)
        driver.ended(loop)
    assert driver.decided and loop.settings == Settings(1) and not driver.trials
    assert driver.said == "not tuned: its epochs take less than 3 seconds"


FASTER = {Settings(1): 20.0, Settings(2): 40.0}
LOOP_CHANGES = "the loop changes Data.level between batches"
DRY = "nothing was tried, as requested; may be tried: num_workers=2"


@pytest.mark.parametrize(
    ("options", "never", "tried", "said", "why"),
    [
        ({"dry": True}, None, 2, DRY, ""),
        ({}, LOOP_CHANGES, 2, f"not tuned: {LOOP_CHANGES}", LOOP_CHANGES),
        ({}, None, 64, "nothing was certainly faster", "of memory"),
    ],
)
def test_what_must_not_be_tried_is_not(tuned, monkeypatch, options, never, tried, said, why):
    monkeypatch.setattr(trying, "room_left", lambda: Room(1e6 if tried > 2 else inf, inf, inf))
    loop, driver = tuned(FASTER, [Settings(tried), Settings(3)][: 2 if never else 1], **options)
    loop.why_never = never
    loop.run(driver, 100)
    assert driver.decided and loop.seen == [(1, Settings(1))] and driver.chosen == Settings(1)
    assert driver.said.startswith(said)
    assert [each.outcome for each in driver.trials] == ["not tried"]
    assert why in driver.trials[0].why


@pytest.mark.parametrize("never", [None, LOOP_CHANGES])
def test_a_trial_whose_settings_fail_ends_at_once(tuned: Any, never: str | None) -> None:
    loop, driver = tuned(FASTER, [Settings(2)])
    while loop.settings != Settings(2):
        loop.run(driver, 1)
    loop.why_never = never
    driver.failed(Settings(2), Depends(LOOP_CHANGES))
    said = f"not tuned: {never}" if never else "nothing was certainly faster"
    assert driver.decided and driver.said.startswith(said)
    assert [(each.outcome, each.why) for each in driver.trials] == [("failed", LOOP_CHANGES)]


def test_the_budget_holds(tuned: Any) -> None:
    loop, driver = tuned(FASTER, [Settings(2), Settings(4)], budget_s=2.0)
    loop.run(driver, 15)
    assert driver.decided and loop.settings == Settings(1)
    assert [each.outcome for each in driver.trials] == ["undecided"]
    assert "used up" in driver.trials[0].why


@pytest.mark.parametrize("wrong", [0, "long", float("nan")])
def test_a_budget_that_is_none_is_one_sentence(wrong: Any) -> None:
    with pytest.raises(loaderscope.LoaderscopeError, match="must be a"):
        loaderscope.tune(DataLoader(Rows(4)), budget=wrong)


def test_tune_gives_the_same_loader_back_and_its_batches(capsys):
    loader = DataLoader(Rows(40), batch_size=2)
    assert loaderscope.tune(loader) is loader and loader.num_workers == 0
    assert same(list(loader), list(DataLoader(Rows(40), batch_size=2)))
    batches = [[1], [2]]
    assert list(loaderscope.tune(batches)) == batches
    assert "not tuned: it is no DataLoader" in capsys.readouterr().err


# What may not fit is not tried.
GB = 1e9
WORKER, BATCH, ROOM = 0.5 * GB, (10_000_000, 2), Room(8 * GB, 4 * GB, 1000)


@pytest.mark.parametrize(
    ("settings", "room", "said"),
    [
        (Settings(4), ROOM, None),
        (Settings(8), ROOM, "of memory"),  # half of what is left is for others
        (Settings(4, 8), Room(8 * GB, 0.4 * GB, 1000), "/dev/shm"),
        (Settings(4, 8), Room(8 * GB, 4 * GB, 120), "files open"),
        (Settings(4), Room(inf, inf, inf), None),
        (Settings(0), Room(0, 0, 0), None),
    ],
)
def test_what_may_not_fit(settings: Settings, room: Room, said: str | None) -> None:
    found = why_no_room(settings, WORKER, BATCH, room)
    assert found is None if said is None else said in str(found)


def test_what_is_left_here_is_known() -> None:
    room = room_left()
    assert 1e6 < room.memory_bytes < inf
    assert room.shared_bytes < inf or not os.path.isdir("/dev/shm")
    assert worker_bytes([os.getpid()], forked=True) > 1e6
    assert worker_bytes([], forked=True) >= LEAST_WORKER_BYTES
    assert worker_bytes([2**22 + 1], forked=False) >= LEAST_WORKER_BYTES


WORKERS, MS = Settings(4), 1_000_000


def played(found: Window, steps: Iterable[tuple[float, float]], since_ns: int = 0) -> bool:
    """Steps of (wait, own work) in ms; whether they were enough."""
    t_ns, over = since_ns, found.handed(since_ns, 0)
    for wait_ms, own_ms in steps:
        t_ns += int((wait_ms + own_ms) * MS)
        over = found.handed(t_ns, int(wait_ms * MS))
        if over:
            break
    return over


def bursts(own_ms: float = 0.02) -> Iterable[tuple[float, float]]:
    """Four workers that wait alike deliver at once."""
    return itertools.cycle([(0.1 - own_ms, own_ms)] * 3 + [(37.0 - own_ms, own_ms)])


@pytest.mark.parametrize("phase", range(4))
def test_bursts_of_workers_are_waited_for_wherever_a_window_begins(phase: int) -> None:
    found = Window(WORKERS, left_out=0)
    assert played(found, itertools.islice(bursts(), phase, None))
    assert found.rate == pytest.approx(4 / 0.0373, rel=1e-6) and len(found.steps_s) % 4 == 0


def test_only_a_pause_of_the_loop_s_own_work_counts_for_nothing() -> None:
    found = Window(OWN, left_out=2)
    usual = (90.0, 10.0)
    steps = [*[(9000.0, 0.0)] * 2, *[usual] * 6, (90.0, 60_000.0), *[usual] * 9]
    assert played(found, steps)
    assert max(found.steps_s) > 60 and found.rate == pytest.approx(10.0)
    assert found.times == pytest.approx((0.1 * 7, 0.01 * 7))
    found = Window(OWN, left_out=0)
    assert played(found, [*[(90.0, 10.0)] * 6, (60_000.0, 10.0), (90.0, 10.0)])
    assert found.rate == pytest.approx(8 / 60.71, rel=0.01)
    unknown = Window(OWN, left_out=0)
    for second in (0, 1, 2, 3, 4, 5, 6, 7, 68):
        unknown.handed(second * 10**9, None)
    assert unknown.rate == pytest.approx(8 / 68) and unknown.times[1] is None


def test_what_workers_made_ahead_during_a_pause_does_not_count_either() -> None:
    found = Window(WORKERS, left_out=0)
    ready = [(0.1, 0.1)] * WORKERS.ahead  # handed over from what was made meanwhile
    steps = [*[(30.0, 0.1)] * 12, (0.1, 60_000.0), *ready]
    played(found, itertools.chain(steps, itertools.repeat((30.0, 0.1), 3)))
    assert found.rate == pytest.approx(1 / 0.0301, rel=1e-3)
    found = Window(OWN, left_out=0)
    assert played(found, itertools.cycle([(1.0, 1.0)] * 7 + [(1.0, 100.0)]))
    assert found.rate == pytest.approx(8 / 0.115, rel=0.1)


def test_what_lies_between_two_iterations_is_no_step() -> None:
    found = Window(OWN, left_out=0)
    played(found, [(90.0, 10.0)] * 3)
    found.broken(1)
    for t_s in (200, 201, 202):
        found.handed(t_s * 10**9, 0)
    assert found.steps_s == pytest.approx([0.1, 0.1, 0.1, 1.0])
    held_ns = int(2 * HELD * WINDOW_S * 1e9)
    found = Window(WORKERS, left_out=0)
    for step in range(10):
        found.handed(step * 10 * MS, 0)
    found.handed(300 * MS, 0, held_ns)
    for step in range(WORKERS.ahead + 1):
        found.handed((301 + step) * MS, 0)
    assert found.steps_s == pytest.approx([0.01] * 9)
    found.handed(320 * MS, 0)
    found.handed(330 * MS, 0, held_ns // 4)  # too little to matter
    assert found.steps_s == pytest.approx([*[0.01] * 9, 0.01 - held_ns / 4e9])


@pytest.mark.parametrize(("wait_ms", "waits"), [(1, False), (30, True)])
def test_a_loop_that_waits_for_nothing_has_nothing_to_gain(wait_ms: float, waits: bool) -> None:
    found = Window(OWN, left_out=0)
    assert played(found, itertools.repeat((wait_ms, 100.0 - wait_ms)))
    assert found.waits == waits
