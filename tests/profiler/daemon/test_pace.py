from loaderscope.profiler.daemon.pace import Allowance

S = 1_000_000_000


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
