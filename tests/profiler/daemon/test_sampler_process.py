"""The sampler as the training process starts it: real processes, real lanes."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from loaderscope.profiler.base import schema
from loaderscope.profiler.base.clock import now_ns
from loaderscope.profiler.base.errors import RunUnreadable
from loaderscope.profiler.base.host import boot_id, host_name
from loaderscope.profiler.daemon import loop
from loaderscope.profiler.daemon.loop import Sampler
from loaderscope.profiler.record.session.start_sampler import start_sampler
from loaderscope.profiler.store.lanes.lane import Budget, Lane
from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.segment_file import segments
from started import PATIENCE_S, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into Linux's /proc")

BOOT = (
    "import sys; sys.path[:] = {path!r}; from loaderscope.profiler.daemon.loop import main; "
    "sys.exit(main({argv!r}))"
)

# A training process with two workers; prints its workers' ids and goes on until it is killed.
MAIN = """
import subprocess, sys, time
work = [sys.executable, "-S", "-c", "import time\\nwhile True: sum(range(10000)); time.sleep(0.01)"]
workers = [subprocess.Popen(work, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for _ in range(2)]
print(*[w.pid for w in workers], flush=True)
sys.stdin.readline()
workers[0].kill()
workers[0].wait()
print("killed", flush=True)
sys.stdin.readline()
"""


def rows(system, lane):
    records = []
    for path in segments(system, lane):
        with suppress(RunUnreadable):  # it is only just being made
            records += list(read_segment(path)[0])
    return records


class Training:
    """A stand-in for a training process, registered in a run directory."""

    def __init__(self, run):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, "-S", "-c", MAIN], **pipes)
        self.pid = self.process.pid
        self.workers = [int(word) for word in self.process.stdout.readline().split()]
        self.folder = run / f"p{self.pid}-0"
        self.folder.mkdir()
        lane = Lane(self.folder, "workers", schema.WORKER, Budget(1 << 20), lambda why: None)
        for number, pid in enumerate(self.workers):
            lane.append(now_ns(), 3, 0, number, pid)
        self.tell()

    def tell(self, **more):
        facts = {"format": 1, "pid": self.pid, "host": host_name(), "boot_id": boot_id(), **more}
        facts["create_time"] = psutil.Process(self.pid).create_time()
        (self.folder / "new").write_text(json.dumps(facts))
        (self.folder / "new").replace(self.folder / "process.json")

    def end(self):
        with self.process:
            self.process.kill()
        for pid in self.workers:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.workers.clear()


@pytest.fixture
def run(tmp_path):
    (tmp_path / "run" / "system-here-0").mkdir(parents=True)
    return tmp_path / "run"


@pytest.fixture
def training(run):
    one = Training(run)
    yield one
    one.end()


@pytest.fixture
def started(run, training):
    """(its folder, the process)"""
    system = run / "system-here-0"
    argv = [str(run), str(system), "--interval", "0.05"]
    path = [os.path.abspath(part) for part in sys.path if part]
    command = [sys.executable, "-S", "-c", BOOT.format(path=path, argv=argv)]
    with subprocess.Popen(command, cwd=run) as process:
        yield system, process
        process.kill()


def pids(system, name):
    return {int(row[name]) for row in rows(system, "process")}


def told_its_end(system):
    return "ended_clock_ns" in json.loads((system / "sampler.json").read_text())


def sampled(system):
    until(lambda: len(rows(system, "process")) >= 3, "process rows")


def test_it_samples_what_lives_until_the_last_of_several_has_ended(run, training, started):
    system, process = started
    for wanted in (
        lambda row: row["uss_bytes"] > 0,
        lambda row: row["worker"] == 1,
        lambda row: row["cpu_user_ns"] > 0 and row["role"] == 1,
    ):
        until(lambda wanted=wanted: any(map(wanted, rows(system, "process"))), "such a row")
    until(lambda: len(rows(system, "machine")) >= 3, "samples of the machine")
    found = rows(system, "process")
    names = ("pid", "owner_pid", "role", "worker", "loader")
    told = {tuple(int(row[name]) for name in names) for row in found}
    main, (first, second) = training.pid, training.workers
    assert told == {(main, main, 0, -1, -1), (first, main, 1, 0, 3), (second, main, 1, 1, 3)}
    for row in {int(row["pid"]): row for row in found}.values():
        assert row["rss_bytes"] > 1 << 20 and row["threads"] >= 1
    assert any(row["fds"] >= 3 for row in found)
    times = [int(row["t_ns"]) for row in found]
    assert times == sorted(times) and abs(times[-1] - now_ns()) < 60 * 10**9
    machine = rows(system, "machine")
    assert machine[-1]["sampler_cpu_ns"] > machine[0]["sampler_cpu_ns"] > 0
    # Another joins and ends, and so does a worker: what is left is sampled.
    other = Training(run)
    until(lambda: pids(system, "owner_pid") == {training.pid, other.pid}, "both")
    other.end()
    training.process.stdin.write("\n")
    training.process.stdin.flush()
    training.process.stdout.readline()
    ended = now_ns()
    later = ended + 300_000_000
    until(lambda: any(row["t_ns"] > later for row in rows(system, "machine")), "later samples")
    dead, alive = (
        max(int(row["t_ns"]) for row in rows(system, "process") if row["pid"] == pid)
        for pid in training.workers
    )
    assert dead <= ended < alive and process.poll() is None
    for number in (signal.SIGINT, signal.SIGHUP):  # Ctrl-C is the training's
        process.send_signal(number)
    seen = len(rows(system, "machine"))
    until(lambda: len(rows(system, "machine")) > seen + 3, "samples after Ctrl-C")
    training.end()
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    "ends",
    [
        # Nobody has waited for the training process yet: a zombie counts as dead.
        lambda run, training, sampler: os.kill(training.pid, signal.SIGKILL),
        lambda run, training, sampler: training.tell(ended_clock_ns=now_ns()),
        lambda run, training, sampler: shutil.rmtree(run),
        lambda run, training, sampler: sampler.terminate(),
    ],
    ids=["killed", "says so", "run removed", "sampler terminated"],
)
def test_it_ends_with_the_training(run, training, started, ends):
    system, process = started
    sampled(system)
    ends(run, training, process)
    assert process.wait(PATIENCE_S) == 0
    assert not system.exists() or told_its_end(system)


def test_it_holds_nothing_of_the_training_and_imports_nothing_heavy(run, training, monkeypatch):
    monkeypatch.delenv("LOADERSCOPE_SYSTEM")
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    with os.fdopen(reading), os.fdopen(writing):
        pid = start_sampler(run).pid
        (system,) = until(lambda: set(run.glob("system-*")) - {run / "system-here-0"}, "its folder")
        sampled(system)
        held = set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with suppress(FileNotFoundError):  # open for a moment, while it read
                held.add(os.readlink(f"/proc/{pid}/fd/{fd}").partition(":")[0])
        kept = {place for place in held if not place.startswith(("/proc/", "/sys/", str(run)))}
        assert kept <= {"/dev/null", "socket"}  # the socket is the keeper's
        assert os.readlink(f"/proc/{pid}/cwd") == "/" and os.getsid(pid) == pid
        libraries = Path(f"/proc/{pid}/maps").read_text()
        assert "numpy" not in libraries and "libtorch" not in libraries


def sampler_of(run, interval_s=0.2):
    return Sampler(run, run / "system-here-0", interval_s)


def test_a_full_budget_makes_room_and_a_lane_that_stops_ends_it_quietly(run, training, monkeypatch):
    monkeypatch.setattr(loop, "LANES_BYTES", 1_200_000)
    sampler, now = sampler_of(run), now_ns()
    system = sampler.system
    tick = 0
    while tick < 300 or not (gone := not (system / "machine-000000.seg").exists()):
        assert sampler.tick(now + tick * 200_000_000)
        tick += 1
    assert gone and sum(path.stat().st_size for path in system.glob("*.seg")) <= 1_200_000
    sampler.process_lane.stop("No space left on device")
    assert not sampler.tick(now + tick * 200_000_000)
    sampler.close()


def test_a_newcomer_at_the_last_moment_keeps_it_alive(run, training):
    sampler = sampler_of(run)
    assert sampler._over() is False  # registered since the last scan
    assert not told_its_end(sampler.system)
    training.end()
    sampler.tick(now_ns())
    assert sampler._over() is True
    sampler.close()


def test_nobody_registers(run, monkeypatch):
    monkeypatch.setattr(loop, "NOBODY_NS", 100_000_000)
    sampler = sampler_of(run, 0.02)
    sampler.work()
    sampler.close()
    assert rows(sampler.system, "machine") and not rows(sampler.system, "process")
