from contextlib import suppress
from itertools import pairwise

from loaderscope.profiler.daemon.pace import Allowance, Pace
from loaderscope.profiler.daemon.processes import EVERY_NS, LONGEST_NS, NS_A_PAGE, SHARE, Turns
from loaderscope.profiler.daemon.procfs import PAGE_BYTES

S = 1_000_000_000


class Clocks:
    """A wall clock and a CPU clock that move only when told."""

    def __init__(self) -> None:
        self.wall = 100 * S
        self.cpu = 0

    def spend(self, ns: int) -> None:
        self.wall += ns
        self.cpu += ns

    def turns(self) -> Turns:
        return Turns(lambda: self.wall, lambda: self.cpu)


def test_a_reading_is_as_rare_as_it_is_dear():
    pace = Pace(0.01)
    assert pace.due(0)
    pace.paid(0, S)
    assert not pace.due(100 * S - 1) and pace.due(100 * S)


def test_allowance_keeps_the_interval_while_ticks_are_cheap_and_forgives_a_dear_moment():
    cheap, saving = Allowance(0.01, 0, 0, 0), Allowance(0.01, S // 2, 0, 0)
    for tick in range(1, 100):  # 1 ms in every 200 ms
        assert cheap.wait_ns(S // 5, 3 * S, tick * S // 5, tick * S // 1000) == S // 5
    assert saving.wait_ns(S // 5, 3 * S, S // 5, S // 4) == S // 5
    assert saving.wait_ns(S // 5, 3 * S, 2 * S // 5, S) > S // 5


def test_allowance_bounds_the_average_of_dear_ticks_and_the_longest_wait():
    allowance = Allowance(0.01, 0, 0, 0)
    now = cpu = 0
    for _ in range(1000):
        cpu += S // 100  # 10 ms a tick: five times too dear at 5 Hz
        now += allowance.wait_ns(S // 5, 3 * S, now, cpu)
    assert cpu / now < 0.0102
    assert Allowance(0.01, 0, 0, 0).wait_ns(S // 5, 3 * S, S // 5, 1000 * S) == 3 * S


def test_every_process_has_its_turn_and_none_twice_within_two_seconds():
    clocks = Clocks()
    turns, seen = clocks.turns(), []
    for _ in range(50):  # 10 s
        who = turns.choose([("a", 1 << 20), ("b", 1 << 20), ("c", 1 << 20)])
        if who is not None:
            turns.read(who, 1 << 20, lambda: (1, 2))
            seen.append((clocks.wall, who))
        clocks.wall += S // 5
    for name in "abc":
        times = [at for at, who in seen if who == name]
        assert len(times) == 5
        assert all(later - earlier >= EVERY_NS for earlier, later in pairwise(times))


def test_the_walks_of_all_processes_together_stay_within_their_share():
    clocks = Clocks()
    turns = clocks.turns()
    rss = 4_000_000 * 1024
    begun = clocks.wall
    for _ in range(3000):
        who = turns.choose([("a", rss), ("b", rss)])
        if who is not None:
            turns.read(who, rss, lambda: clocks.spend(40_000_000) or (1, 2))
        clocks.wall += S // 5
    assert 0.5 * SHARE < clocks.cpu / (clocks.wall - begun) <= SHARE * 1.1


def test_a_walk_expected_to_be_long_is_left_out_until_walks_prove_cheaper():
    clocks = Clocks()
    turns = clocks.turns()
    big = int(LONGEST_NS / NS_A_PAGE * PAGE_BYTES * 1.5)
    assert turns.choose([("big", big)]) is None
    for _ in range(20):  # huge pages: the walks cost a tenth of what was assumed
        clocks.wall += 100 * S
        assert turns.choose([("big", big), ("small", big // 10)]) in ("small", "big")
        cost_ns = int(big / 10 / PAGE_BYTES * NS_A_PAGE / 10)
        turns.read("small", big // 10, lambda cost_ns=cost_ns: clocks.spend(cost_ns) or (1, 2))
    assert not turns.too_big(big)


def test_a_failed_walk_is_charged_too():
    clocks = Clocks()
    turns = clocks.turns()

    def fail() -> tuple[int, int]:
        clocks.spend(S)
        raise OSError("no")

    with suppress(OSError):
        turns.read("a", 0, fail)
    assert turns.choose([("b", 0)]) is None
