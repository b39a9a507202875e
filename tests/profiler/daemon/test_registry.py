import json
import os
import subprocess
import sys
from types import SimpleNamespace

import psutil
import pytest

from loaderscope.profiler.base.clock import now_ns
from loaderscope.profiler.base.schema import WORKER
from loaderscope.profiler.daemon.pace import Allowance
from loaderscope.profiler.daemon.processes import Probe, probe
from loaderscope.profiler.daemon.reasons import Reasons
from loaderscope.profiler.daemon.registry import LATE_START_NS, Registry
from loaderscope.profiler.store.lanes.lane import Budget, Lane
from started import until

S = 1_000_000_000
PYTHON = [sys.executable, "-S", "-c"]
HERE = {"host": "here", "boot_id": "boot"}


def fake(pid, create_time=1000.0, start_ns=0, ppid=1):
    """A process with chosen facts."""
    told = dict.fromkeys(("usage", "slow", "detail"), lambda: None)
    return SimpleNamespace(pid=pid, create_time=create_time, start_ns=start_ns, ppid=ppid, **told)


def registry(run, *processes):
    return Registry(run, *HERE.values(), {each.pid: each for each in processes}.get)


def register(run, pid, number=0, **told):
    folder = run / f"p{pid}-{number}"
    folder.mkdir(exist_ok=True)
    facts = {"format": 1, "pid": pid, "create_time": 1000.0, **HERE, **told}
    temporary = folder / "new"
    temporary.write_text(json.dumps(facts))
    temporary.replace(folder / "process.json")
    return folder


def test_processes_of_other_hosts_and_other_boots_are_not_ours_and_an_end_is_taken_in(tmp_path):
    register(tmp_path, 1, host="there")
    register(tmp_path, 2, boot_id="before")
    (tmp_path / "p3-0").mkdir()  # nothing told yet
    (tmp_path / "system-here-0").mkdir()
    found = registry(tmp_path, *map(fake, (1, 2, 3)))
    found.scan()
    assert not found.registered
    register(tmp_path, 3)
    found.scan()
    found.update()
    assert [main.probe.pid for main in found.living] == [3]
    register(tmp_path, 3, ended_clock_ns=5)
    found.update()
    assert found.registered and not found.living


@pytest.mark.parametrize(("told", "living"), [(500.0, False), (999.2, True)])
def test_a_process_is_known_by_its_start_but_for_a_corrected_clock(tmp_path, told, living):
    register(tmp_path, 7, create_time=told)
    found = registry(tmp_path, fake(7, create_time=1000.0))
    found.scan()
    assert found.registered and bool(found.living) == living


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"host": "here", "pid": "x"}'])
def test_nonsense_in_process_json_is_no_living_process(tmp_path, text):
    (tmp_path / "p1-0").mkdir()
    (tmp_path / "p1-0" / "process.json").write_text(text)
    found = registry(tmp_path, fake(1))
    found.scan()
    found.update()
    assert not found.living


def test_workers_come_from_the_lane_and_strangers_of_their_numbers_are_refused(tmp_path):
    folder = register(tmp_path, 7)
    late = fake(11, ppid=1, start_ns=S + LATE_START_NS + 1)
    in_time = fake(12, ppid=1, start_ns=S)  # of a fork server: another parent
    own = fake(8, ppid=7), fake(9, ppid=7)
    found = registry(tmp_path, fake(7), *own, late, in_time)
    found.scan()
    found.update()
    # The third is gone already.
    lane = Lane(folder, "workers", WORKER, Budget(1 << 20), print)
    for number, pid in enumerate((8, 9, 10, 11, 12)):
        lane.append(S, 0, 0, number, pid)
    found.update()
    employed = {pid: one.worker for pid, one in found.living[0].workers.items()}
    assert employed == {8: 0, 9: 1, 12: 4}


def test_a_probe_agrees_with_psutil_and_a_dead_one_a_zombie_and_a_stranger_give_nothing():
    code = "print(flush=True); input()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*PYTHON, code], **pipes) as child:
        child.stdout.readline()
        reasons = Reasons()
        one = probe(child.pid, reasons)
        assert isinstance(one, Probe)
        assert one.ppid == os.getpid()
        assert one.create_time == psutil.Process(child.pid).create_time()
        assert abs(one.start_ns - now_ns()) < 20 * S
        usage, other = one.usage(), psutil.Process(child.pid)
        assert usage.threads == 1
        assert usage.rss_bytes == pytest.approx(other.memory_info().rss, rel=0.5)
        assert usage.read_all_bytes > 0 and usage.read_disk_bytes >= 0
        assert one.fds() == other.num_fds()
        uss, pss = one.detail()
        assert 0 < uss <= pss <= usage.rss_bytes * 2
        assert reasons.sentences == {}
        earlier = Probe(child.pid, reasons)
        earlier._start -= 1  # as if it was another process of this number
        assert earlier.usage() is None
        child.kill()
        until(lambda: other.status() == psutil.STATUS_ZOMBIE, "its death")
        for _ in range(2):  # not yet waited for; gone
            assert one.usage() is None and probe(child.pid, Reasons()) is None
            child.wait()


def test_waiting_for_a_core_is_told_apart_from_other_waiting():
    core = min(os.sched_getaffinity(0))
    spinning = f"import os; os.sched_setaffinity(0, [{core}]); print(flush=True)\nwhile True: pass"
    sleeping = "import time; print(flush=True); time.sleep(60)"
    codes = (spinning, spinning, sleeping)
    children = [subprocess.Popen([*PYTHON, code], stdout=subprocess.PIPE) for code in codes]
    try:
        for each in children:
            each.stdout.readline()
        probes = [probe(each.pid, Reasons()) for each in children]
        before = [each.usage().run_delay_ns for each in probes]

        def waited():
            after = (each.usage().run_delay_ns for each in probes)
            return [now - was for now, was in zip(after, before, strict=True)]

        until(lambda: min(waited()[:2]) > 0.1 * S, "two that take turns on one core")
        asleep = waited()[2]
    finally:
        for each in children:
            each.kill()
            each.wait()
            each.stdout.close()
    assert asleep < 0.05 * S


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
