"""When a burst is taken, what comes of it, and what may go wrong; with recordings made up."""

import ctypes
import functools
import json
import os
import signal
import stat
import sys
import time
from types import SimpleNamespace

import pytest

from builders import loop, write_lane
from loaderscope.profiler.base import ptrace, schema
from loaderscope.profiler.base.tolerant import as_json
from loaderscope.profiler.daemon.reasons import Reasons
from loaderscope.profiler.daemon.registry import Main, Worker
from loaderscope.profiler.daemon.stack_capture import bursts as stacks
from loaderscope.profiler.daemon.stack_capture import capture, py_spy
from loaderscope.profiler.daemon.stack_capture.bursts import COMPUTING, YOUNG, Bursts
from loaderscope.profiler.daemon.stack_capture.merge_stacks import MAX_OUTPUT_CHARACTERS, Merged
from loaderscope.profiler.daemon.stack_capture.py_spy import Outcome, Recording, find_py_spy
from loaderscope.profiler.daemon.stack_capture.thread_waits import Seen
from loaderscope.profiler.store.lanes.lane_tail import LaneTail
from loaderscope.profiler.store.stacks import stack_samples
from loaderscope.profiler.store.stacks.stack_files import answer_to, read_bursts
from loaderscope.profiler.store.stacks.stack_request import request_burst
from loaderscope.profiler.store.stacks.stack_samples import REQUEST, Frame, StackRow, Wait
from started import until

S = 1_000_000_000
linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


def speedscope(*stacks, thread='Thread 50 "MainThread"'):
    """As py-spy writes it; a stack is a row of `function@file`."""
    frames = list(dict.fromkeys(name for one in stacks for name in one))
    parts = (name.split("@") for name in frames)
    shared = [{"name": name, "file": file, "line": 3, "col": None} for name, file in parts]
    samples = [[frames.index(name) for name in one] for one in stacks]
    profile = {"name": thread, "samples": samples, "weights": []}
    return {"shared": {"frames": shared}, "profiles": [profile]}


class FakeRecording:
    """One that is over when told to be. What it wrote, or how it failed, is set by the test."""

    over = killed = ended = False
    cpu, said = 0, Outcome(0, 10, 0, "")

    def __init__(self, program, pid, folder, rate_hz, seconds, gil):
        self.pid, self.rate_hz, self.seconds, self.gil = pid, rate_hz, seconds, gil
        self.output = folder / f".stacks-{pid}.json"
        FakeRecording.made.append(self)

    def cpu_ns(self):
        return self.cpu

    def end(self):
        self.ended = self.over = True

    def kill(self):
        self.killed = self.over = True

    def outcome(self):
        if self.said.status == 0 and not self.gil:
            work = speedscope(["work@train.py"], ["work@train.py"])
            self.output.write_text(json.dumps(self.written.get(self.pid, work)))
        return self.said

    def clear(self):
        self.output.unlink(missing_ok=True)


@pytest.fixture(autouse=True)
def made(monkeypatch):
    monkeypatch.setattr(capture, "Recording", FakeRecording)
    monkeypatch.setattr(stacks, "find_py_spy", lambda: "/bin/py-spy")
    FakeRecording.made, FakeRecording.written = [], {}
    return FakeRecording.made


def worker(pid, number, loader=0):
    return Worker(SimpleNamespace(pid=pid), number, loader)


class Place:
    """A run with one training process (50) and its workers, and the bursts of its sampler."""

    def __init__(self, path, workers=(51, 52), stacks="on"):
        self.path, self.system = path, path / "system-here-0"
        self.system.mkdir()
        self.reasons = Reasons()
        self.main = self.process(50, workers, stacks)
        self.living = [self.main]
        self.now = time.monotonic_ns()
        self.bursts = Bursts(path, self.system, self.reasons, cores=2)

    def process(self, pid, workers=(), stacks="on"):
        directory = self.path / f"p{pid}-0"
        directory.mkdir()
        tail = LaneTail(directory, "workers", schema.WORKER)
        main = Main(directory, tail, probe=SimpleNamespace(pid=pid), stacks=stacks)
        main.workers = {one: worker(one, at) for at, one in enumerate(workers)}
        return main

    def train(self, batches=60, wait_ms=50.0, compute_ms=50.0, loader=0, main=None):
        directory = (main or self.main).directory
        rows = loop(batches, wait_ms, compute_ms)
        write_lane(directory, f"batches{loader}x0", schema.BATCH, rows)

    def tick(self, seconds=1.0, times=1):
        for _ in range(times):
            self.now += int(seconds * S)
            self.bursts.tick(self.now, self.living)

    def begin(self, **how):
        self.train(**how)
        self.tick()

    def ask(self, **how):
        nonce = request_burst(self.path, **how)
        self.tick(times=2)
        return nonce

    def end(self, rounds=1):
        """The recordings at work come to their end, and those of the next round."""
        for _ in range(rounds):
            for one in FakeRecording.made:
                one.over = True
            self.tick()

    def whole_burst(self):
        self.tick()
        assert self.bursts.busy
        self.end(2)
        assert not self.bursts.busy

    @property
    def reason(self):
        return self.reasons.sentences.get("stacks")

    def told(self, number=0):
        return json.loads((self.system / f"stacks-{number}.json").read_text())

    def samples(self, number=0):
        return {one["pid"]: one["samples"] for one in self.told(number)["processes"]}


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_a_run_that_waits_for_its_data_gets_a_burst(place, made):
    place.begin()
    assert [(one.pid, one.gil) for one in made] == [(pid, False) for pid in (50, 51, 52)]
    assert {one.rate_hz for one in made} == {17} and {one.seconds for one in made} == {10}
    place.end()
    assert [one.pid for one in made[3:]] == [50, 51, 52] and all(one.gil for one in made[3:])
    made[3].said = Outcome(0, 20, 0, "")
    made[4].said = Outcome(0, 90, 20, "")
    made[5].said = Outcome(0, 9, 0, "py-spy> Stopped sampling because process exited")
    place.end()
    assert not place.bursts.busy and place.reason is None
    (burst,), notes = read_bursts(place.system, ())
    assert notes == () and burst.why == "steady" and burst.samples == {50: 2, 51: 2, 52: 2}
    assert burst.gil == {50: 20 / (2 * made[3].rate_hz), 51: 1.0} and burst.rate_hz == 17
    place.tick(1000)  # each process gets one
    assert not place.bursts.busy
    assert sorted(path.name for path in place.system.iterdir()) == ["stacks-0.json"]


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"batches": 9}, YOUNG),
        ({"batches": 19, "wait_ms": 20.0, "compute_ms": 80.0}, YOUNG),
        ({"batches": 400, "wait_ms": 1.0, "compute_ms": 0.8}, YOUNG),
        ({"batches": 3, "wait_ms": 900.0}, YOUNG),
        ({"wait_ms": 5.0, "compute_ms": 95.0}, COMPUTING),
        ({"batches": 12}, None),  # a slow loader is certain within a second
        ({"batches": 5, "wait_ms": 300.0}, None),
    ],
)
def test_others_do_not(place, made, how, reason):
    place.begin(**how)
    assert reason in (None, place.reason)
    assert [one.pid for one in made] == ([] if reason else [50, 51, 52])


@pytest.mark.parametrize("worker", [0, -1])
def test_the_start_of_workers_is_no_waiting(place, made, worker):
    """Epochs of ten batches, each begun by two seconds of starting workers, or of making data."""
    rows, start = [], 0
    for epoch in range(6):
        times = {"start_ns": start, "first_wait_ms": 2000}
        rows += loop(10, 1.0, 99.0, epoch=epoch, worker=worker, **times)
        start = rows[-1]["t_ns"] + 3 * S
    write_lane(place.main.directory, "batches0x0", schema.BATCH, rows)
    place.tick()
    assert (not made and place.reason == COMPUTING) is (worker == 0)


def test_eager(tmp_path, made):
    place = Place(tmp_path, stacks="eager")
    place.train(7, wait_ms=1.0, compute_ms=199.0)
    place.tick(0.2)
    assert {(one.rate_hz, one.seconds) for one in made} == {(50, 3)}
    place.end(2)
    count = len(made)
    place.tick(1000)
    assert len(made) == count


def test_the_ranks_of_a_host_take_turns_and_stop_at_eight(place, made):
    """The one that waits most for its data comes first."""
    place.train(wait_ms=15.0, compute_ms=85.0)
    for pid in range(100, 110):
        main = place.process(pid)
        place.living.append(main)
        wait_ms = 90.0 if pid == 105 else 50.0
        place.train(main=main, wait_ms=wait_ms, compute_ms=100.0 - wait_ms)
    for _ in range(8):
        place.whole_burst()
    assert made[0].pid == 105
    assert len({one.pid for one in made if one.pid >= 100}) == 8
    place.tick(1000)
    assert not place.bursts.busy


def test_the_workers_read_are_few_and_of_the_loader_that_waits(tmp_path, made):
    place = Place(tmp_path, workers=())
    place.main.workers = {60 + at: worker(60 + at, at, at % 2) for at in range(16)}
    place.train(loader=0, wait_ms=20.0)
    place.train(loader=1, wait_ms=60.0)
    place.tick()
    assert [one.pid for one in made] == [50, 61, 63, 65, 67]
    assert {one.rate_hz for one in made} == {10}


def test_the_workers_of_the_next_epoch_take_the_place_of_those_that_ended(place, made):
    place.begin()
    made[1].over = made[2].over = True
    place.main.workers = {}
    place.tick()
    assert len(made) == 3
    place.main.workers = {pid: worker(pid, pid - 61) for pid in (61, 62, 63)}
    place.tick()
    assert [(one.pid, one.seconds) for one in made[3:]] == [(61, 8), (62, 8)]
    place.tick()
    assert len(made) == 5
    made[3].over = True
    place.tick(7)
    assert len(made) == 5  # too late for another
    place.end(2)
    assert place.samples() == dict.fromkeys((50, 51, 52, 61, 62), 2)


def test_a_request_is_answered_by_name_unless_it_is_of_long_ago(place, made):
    request_burst(place.path)
    os.utime(place.path / REQUEST, (time.time() - 100,) * 2)
    place.tick(times=2)
    assert not made
    nonce = place.ask(seconds=2)
    assert {one.seconds for one in made} == {2}
    place.end(2)
    answer = answer_to(place.path, nonce)
    assert answer is not None and answer.why == "asked" and answer.samples == {50: 2, 51: 2, 52: 2}
    count = len(made)
    place.tick(times=2)
    assert len(made) == count  # once
    place.living = []
    assert "alive" in answer_to(place.path, place.ask()).reason


def test_a_reader_gets_what_the_burst_has_so_far_and_the_loop_another(place, made):
    def ask_so_far(nonce):
        (place.path / REQUEST).write_text(json.dumps({"nonce": nonce, "so_far": True}))
        place.bursts.listen()

    place.begin()
    first = list(made)
    request_burst(place.path, seconds=2)  # is not forgotten over it
    place.tick()
    ask_so_far("so-far-1")
    assert all(one.ended for one in first)
    assert place.told()["why"] == "steady" and place.told()["stacks"]
    place.tick()
    assert {one.seconds for one in made[len(first) :]} == {2}
    place.end(2)
    taken = len(made)
    ask_so_far("so-far-2")  # nothing is at work
    place.train(loader=1)
    place.tick(times=2)
    assert len(made) > taken  # in place of the one that was ended


def test_py_spy_missing_is_a_reason_and_an_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(stacks, "find_py_spy", lambda: None)
    place = Place(tmp_path)
    place.begin()
    assert place.reason == py_spy.MISSING and not place.bursts.busy
    answer = answer_to(tmp_path, place.ask())
    assert answer is not None and answer.reason == py_spy.MISSING and answer.stacks == ()


def test_failures_are_a_reason_and_a_note_and_cost_the_others_nothing(place, made):
    place.begin()
    made[0].said = Outcome(1, None, None, "Permission Denied: Try running again")
    made[1].said = made[2].said = Outcome(1, None, None, "Error: No such file (os error 2)")
    place.end()
    assert "--cap-add=SYS_PTRACE" in place.reason and not place.bursts.busy
    told = place.told()
    assert told["reason"] == place.reason and told["stacks"] == [] and len(told["failures"]) == 2
    place.ask()
    FakeRecording.written[51] = {"profiles": 5}
    made[5].said = Outcome(1, None, None, "Error: odd")
    place.end(2)
    assert place.told(1)["reason"] is None and place.reason is None
    assert place.samples(1) == {50: 2, 51: 0, 52: 0}


def test_one_that_hangs_is_killed(place, made):
    place.begin()
    place.tick(19)
    assert not any(one.killed for one in made)
    place.tick(2)
    assert all(one.killed for one in made)
    place.end(2)
    assert "did not end in time" in place.told()["failures"][0]


def test_one_that_is_dearer_than_allowed_ends_early(place, made):
    place.begin()
    made[0].cpu = 2 * S
    place.tick()
    assert all(one.ended for one in made)
    place.end()
    assert not place.bursts.busy and place.told()["ended_early"] is True and place.told()["stacks"]


@pytest.mark.parametrize(("slower", "early"), [(1.3, True), (1.02, False)])
def test_a_burst_that_slows_the_loop_down_ends_early(place, made, slower, early):
    def lane(inside):
        before = loop(200, 4.0, 1.0)
        after = loop(inside, 4.0 * slower, slower, start_ns=before[-1]["t_ns"] + 5 * S // 1000)
        write_lane(place.main.directory, "batches0x0", schema.BATCH, [*before, *after])

    lane(0)
    place.tick()
    lane(150)
    place.tick()
    assert not any(one.ended for one in made)
    place.tick()
    assert {one.ended for one in made} == {early}


def test_broken_parts_raise_nothing_and_the_end_keeps_what_was_seen(place, made, monkeypatch):
    place.begin()
    with monkeypatch.context() as broken:
        broken.setattr(Merged, "add", lambda *what: 1 / 0)
        place.end()
    assert not place.bursts.busy and "ZeroDivisionError" in place.reason
    place.ask()
    place.bursts.close()
    assert all(one.ended for one in made[3:]) and place.told(1)["stacks"]
    (place.path / REQUEST).unlink(missing_ok=True)
    (place.path / REQUEST).mkdir()
    place.tick()


def merge(tmp_path, data, into):
    path = tmp_path / "out.json"
    path.write_text(json.dumps(data))
    return into.add(0, 50, path, lambda samples: None)


def test_equal_stacks_are_counted_and_frames_kept_once(tmp_path):
    both = ["a@x.py", "b@x.py"]
    own = 'Thread 50 "Thread-9 (train)"'  # its main thread, whatever its name
    merged, other = Merged(), 'Thread 77 "Thread-1 ("odd")"'
    samples = merge(tmp_path, speedscope(both, ["a@x.py"], both, thread=own), merged)
    merge(tmp_path, speedscope(["b@x.py"], thread=other), merged)
    frames, stacks, dropped, _ = merged.kept(["main"])
    assert samples == 3 and dropped == 0
    assert frames == (Frame("a", "x.py", 3), Frame("b", "x.py", 3))
    found = [("MainThread", (0, 1), 2), ("MainThread", (0,), 1), ('Thread-1 ("odd")', (1,), 1)]
    assert stacks == tuple(StackRow(0, *one) for one in found)


def test_what_the_main_thread_did_goes_with_its_stacks(tmp_path):
    path, merged = tmp_path / "out.json", Merged()
    sleeps, lock = Seen("sleep"), Seen("lock", "", ("00:01 7", 64))
    path.write_text(json.dumps(speedscope(["a@x.py"], ["b@x.py"], ["a@x.py"], ["a@x.py"])))
    for process in range(3):
        merged.add(process, 50, path, lambda many: [sleeps, lock, sleeps, None][:many])
    path.write_text(json.dumps(speedscope(["c@x.py"], thread='Thread 51 "Thread-1"')))
    merged.add(0, 50, path, lambda many: [sleeps] * many)
    # The third process takes the place of the second, in a later epoch.
    _, stacks, _, waits = merged.kept(["main", "worker 0", "worker 0"])
    told = {(row.process, row.frames): {waits[at]: n for at, n in row.waits} for row in stacks}
    assert told[1, (0,)] == {Wait("sleep"): 2}  # of three samples
    assert told[1, (1,)] == {Wait("lock", "", 2): 1}
    assert told[0, (2,)] == {}  # not of its main thread


def test_the_rarest_are_dropped_where_there_is_no_room():
    merged = Merged()
    for number in range(6000):
        stack = [Frame(f"f{number}{at}" * 9, "é" * 40, at) for at in range(3)]
        places = tuple(merged.frames.setdefault(one, len(merged.frames)) for one in stack)
        merged.counts[0, "MainThread", places] = 2 if number < 5 else 1
    frames, stacks, dropped, _ = merged.kept(["main"])
    text = json.dumps(as_json(stack_samples.BurstFile(frames=frames, stacks=stacks)))
    assert len(text) <= MAX_OUTPUT_CHARACTERS
    assert dropped == 6005 - sum(stack.samples for stack in stacks) > 0
    assert [stack.samples for stack in stacks[:6]] == [2, 2, 2, 2, 2, 1]
    assert max(max(stack.frames) for stack in stacks) == len(frames) - 1


def test_where_it_is_found(tmp_path, monkeypatch):
    beside, elsewhere = tmp_path / "env", tmp_path / "bin"
    for folder in (beside, elsewhere):
        folder.mkdir()
        (folder / "py-spy").write_text("#!/bin/sh\n")
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path / "none"))
    path = {"PATH": str(elsewhere)}
    assert find_py_spy(path, str(beside / "python")) is None  # not programs
    (elsewhere / "py-spy").chmod(0o755)
    assert find_py_spy(path, str(beside / "python")) == str(elsewhere / "py-spy")
    (beside / "py-spy").chmod(0o755)
    assert find_py_spy(path, str(beside / "python")) == str(beside / "py-spy")


@pytest.mark.parametrize(
    ("message", "scope", "part"),
    [
        ("Permission Denied: Try running again", None, "--cap-add=SYS_PTRACE"),
        ("Error: Operation not permitted (os error 1)", "1", "--cap-add=SYS_PTRACE"),
        ("Permission Denied", "2", "kernel.yama.ptrace_scope=1"),
        ("Permission Denied", "3", "next boot"),
        ("Error: x\n  0: No such process (os error 3)", None, "had ended"),
        ("py-spy> Sampling\nError: Failed to find\n\nCaused by", None, "Failed to find"),
        ("", None, "said nothing"),
    ],
)
def test_what_its_failure_means(tmp_path, message, scope, part):
    if scope is not None:
        (tmp_path / "proc/sys/kernel/yama").mkdir(parents=True)
        (tmp_path / "proc/sys/kernel/yama/ptrace_scope").write_text(scope + "\n")
    assert part in py_spy.why_failed(message, tmp_path)
    assert "\n" not in py_spy.why_failed(message, tmp_path)


def program(path, text):
    path.write_text(f"#!{sys.executable} -S\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@linux
def test_a_recording_that_fails_or_cannot_begin(tmp_path):
    text = "import sys\nprint('Error: odd', file=sys.stderr)\nsys.exit(3)\n"
    failing = program(tmp_path / "failing", text)
    one = Recording(failing, os.getpid(), tmp_path, 5, 1, gil=False)
    until(lambda: one.over, "its end")
    assert one.outcome() == Outcome(3, None, None, "Error: odd\n")
    one.clear()
    with pytest.raises(FileNotFoundError):
        Recording(str(tmp_path / "nowhere"), os.getpid(), tmp_path, 5, 1, gil=False)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@linux
def test_a_recording_can_be_ended_and_killed(tmp_path):
    def begun(name, handler, pid):
        text = f"import signal, sys, time\nsignal.signal(signal.SIGINT, {handler})\n"
        text += "print('on', flush=True)\ntime.sleep(200)\n"
        return Recording(program(tmp_path / name, text), pid, tmp_path, 5, 1, gil=False)

    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in the sampler
    try:
        polite = begun("polite", "lambda *_: sys.exit(7)", 5)
        deaf = begun("deaf", "signal.SIG_IGN", 6)
    finally:
        signal.signal(signal.SIGINT, heard)
    said = [tmp_path / f".stacks-{pid}.txt" for pid in (5, 6)]
    until(lambda: all("on" in path.read_text() for path in said), "both")
    polite.end()
    deaf.end()
    until(lambda: polite.over, "its end")
    assert polite.outcome().status == 7 and not deaf.over
    deaf.kill()
    until(lambda: deaf.over, "its end")
    assert deaf.outcome().status == -signal.SIGKILL


@linux
def test_trying_whether_stacks_can_be_read(tmp_path):
    text = "import sys\nsys.exit('Permission Denied: Try running again')\n"
    denied = program(tmp_path / "denied", text)
    assert py_spy.try_stacks(program(tmp_path / "reads", "print('Thread 5 (idle)')\n")) is None
    assert py_spy.try_stacks(denied, tmp_path) == py_spy.NOT_PERMITTED[0]
    assert "cannot be started" in py_spy.try_stacks(str(tmp_path / "nowhere"))


def test_only_the_sampler_is_permitted(monkeypatch):
    calls = []
    prctl = functools.partial(lambda *given: calls.append(given))  # takes attributes
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(prctl=prctl))
    for pid in (None, 0, 1, -1, 4321):
        ptrace.allow(pid)
    for pid in (77, None):
        ptrace.pass_on(pid)
        ptrace.allow_as_told()
    assert calls == [(ptrace.PR_SET_PTRACER, pid, 0, 0, 0) for pid in (4321, 77)]
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace())  # as on macOS
    ptrace.allow(4321)
