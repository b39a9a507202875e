from contextlib import suppress
from itertools import pairwise

from loaderscope.profiler.daemon.pace import Allowance
from loaderscope.profiler.daemon.processes import EVERY_NS, LARGEST_BYTES, SHARE, Turns

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


def test_allowance_keeps_the_interval_while_ticks_are_cheap_and_bounds_the_dear():
    def wait(allowance, wall_ns, cpu_ns):
        return allowance.wait_ns(S // 5, 3 * S, wall_ns, cpu_ns)

    cheap, saving, dear = (Allowance(0.01, saved, 0, 0) for saved in (0, S // 2, 0))
    for tick in range(1, 100):  # 1 ms in every 200 ms
        assert wait(cheap, tick * S // 5, tick * S // 1000) == S // 5
    assert wait(saving, S // 5, S // 4) == S // 5
    assert wait(saving, 2 * S // 5, S) > S // 5
    now = cpu = 0
    for _ in range(1000):
        cpu += S // 100  # 10 ms a tick: five times too dear at 5 Hz
        now += wait(dear, now, cpu)
    assert cpu / now < 0.0102
    assert wait(Allowance(0.01, 0, 0, 0), S // 5, 1000 * S) == 3 * S


def test_every_process_has_its_turn_and_none_twice_within_two_seconds():
    clocks = Clocks()
    turns, seen = clocks.turns(), []
    for _ in range(50):  # 10 s
        who = turns.choose([("a", 1 << 20), ("b", 1 << 20), ("c", 1 << 20)])
        if who is not None:
            turns.read(who, lambda: (1, 2))
            seen.append((clocks.wall, who))
        clocks.wall += S // 5
    for name in "abc":
        times = [at for at, who in seen if who == name]
        assert len(times) == 5
        assert all(later - earlier >= EVERY_NS for earlier, later in pairwise(times))


def test_the_walks_of_all_processes_together_stay_within_their_share_failed_ones_too():
    def walk():
        clocks.spend(40_000_000)
        if clocks.wall % 2:
            raise OSError("no")
        return 1, 2

    clocks = Clocks()
    turns = clocks.turns()
    rss = 4_000_000 * 1024
    begun = clocks.wall
    for _ in range(3000):
        who = turns.choose([("a", rss), ("b", rss)])
        if who is not None:
            with suppress(OSError):
                turns.read(who, walk)
        clocks.wall += S // 5 + 1
    assert 0.5 * SHARE < clocks.cpu / (clocks.wall - begun) <= SHARE * 1.1


def test_the_largest_processes_are_left_out():
    turns = Clocks().turns()
    assert turns.choose([("big", LARGEST_BYTES + 1)]) is None
    assert turns.choose([("big", LARGEST_BYTES + 1), ("small", 1)]) == "small"
