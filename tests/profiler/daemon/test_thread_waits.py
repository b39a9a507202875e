"""What a process waits for, told from outside: processes that wait in one way each."""

import os
import select
import subprocess
import sys
import tempfile
import textwrap
import time
from collections import Counter, defaultdict
from contextlib import contextmanager

import pytest

import started
from loaderscope.profiler.daemon.stack_capture.merge_stacks import Merged
from loaderscope.profiler.daemon.stack_capture.peers import Peer, peer_of
from loaderscope.profiler.daemon.stack_capture.py_spy import Recording, find_py_spy
from loaderscope.profiler.daemon.stack_capture.readings import Readings
from loaderscope.profiler.daemon.stack_capture.thread_waits import ThreadWaits

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux")

BEGIN = """
import fcntl, multiprocessing, os, select, socket, subprocess, sys, tempfile, threading, time
fork = multiprocessing.get_context("fork")
def aside(what, *args):
    process = fork.Process(target=what, args=args, daemon=True)
    process.start()
    return process
def served(family=socket.AF_INET, answer=time.sleep):
    listening = socket.socket(family)
    listening.bind(("127.0.0.1", 0) if family == socket.AF_INET else tempfile.mktemp())
    listening.listen()
    def serve():
        connection = listening.accept()[0]
        answer(1000)
    aside(serve)
    asking = socket.socket(family)
    asking.connect(listening.getsockname())
    return asking
def spin(seconds=1000):
    end = time.monotonic() + seconds
    while time.monotonic() < end: pass
def ready(): print("ready", flush=True)
"""
# What the process does, and what is seen of it.
WAITS = {
    "sleeps": ("time.sleep(1000)", "sleep", ""),
    "nothing to select": ("select.select([], [], [], 1000)", "sleep", ""),
    "computes": ("spin()", "compute", ""),
    "own pipe": ("os.read(os.pipe()[0], 1)", "pipe", ""),
    "local socket": ("served(socket.AF_UNIX).recv(1)", "server waits", "python"),
    "server": ("served().recv(1)", "server waits", "python 127.0.0.1:"),
    "busy server": ("served(answer=spin).recv(1)", "server", "python 127.0.0.1:"),
    "a timeout": ("it = served(); it.settimeout(9e3); it.recv(1)", "server waits", "python 127."),
    "select": ("select.select([served()], [], [], 1000)", "server waits", None),
    "epoll": (
        "waits = select.epoll(); asking = served(); waits.register(asking); "
        "waits.modify(asking, select.EPOLLIN); waits.poll(1000)",
        *("server waits", None),
    ),
    "busy child": ("subprocess.run([sys.executable, '-c', 'while True: pass'])", "child", ""),
    "child": ("subprocess.run(['sleep', '9999'], stdout=subprocess.PIPE)", "child waits", "sleep"),
    "file lock": (
        "file = tempfile.NamedTemporaryFile()\n"
        "held, mine = fork.Event(), open(file.name, 'a')\n"
        "def hold(): fcntl.lockf(mine, fcntl.LOCK_EX); held.set(); time.sleep(1000)\n"
        "aside(hold); held.wait(); fcntl.lockf(mine, fcntl.LOCK_EX)",
        *("lock", tempfile.gettempdir()),
    ),
    "threads that sleep": (
        "thread = threading.Thread(target=time.sleep, args=(1000,), daemon=True)\n"
        "thread.start(); thread.join()",
        *("sleep", ""),
    ),
    "a lock of its own": ("lock = threading.Lock(); lock.acquire(); lock.acquire()", "lock", ""),
}


@contextmanager
def process(code):
    """Runs the code until the test has looked; `ready()` says that it is about to wait."""
    code = f"{BEGIN}\n{textwrap.dedent(code)}"
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    begun = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, **how)
    try:
        assert begun.stdout.readline() == "ready\n"
        yield begun
    finally:
        os.killpg(begun.pid, 9)
        begun.wait()
        begun.stdout.close()


def until(look, right):
    """What is seen, once it is right."""
    return started.until(lambda: next(filter(right, [look()]), None), "what is waited for")


@pytest.mark.parametrize("name", WAITS)
def test_what_a_process_waits_for(name):
    code, kind, what = WAITS[name]
    with process(f"ready()\n{code}") as waiting:
        waits = ThreadWaits()
        found = until(
            lambda: waits.look(waiting.pid),  # a child has no name of its own at first
            lambda seen: seen.kind == kind and seen.what.startswith(what or ""),
        )
        for _ in range(5):  # and goes on to
            again = until(lambda: waits.look(waiting.pid), lambda seen: seen.kind == kind)
            assert again.what == found.what
        assert what is None or bool(found.what) == bool(what)


def test_a_lock_that_processes_share_is_the_same_in_each_of_them():
    code = """
        lock = fork.Lock()
        other = fork.Lock()
        other.acquire(); lock.acquire()
        one, two, else_ = aside(lock.acquire), aside(lock.acquire), aside(other.acquire)
        ready()
        print(one.pid, two.pid, else_.pid, flush=True)
        time.sleep(1000)
    """
    with process(code) as holding:
        pids = list(map(int, holding.stdout.readline().split()))
        waits = ThreadWaits()
        looks = [lambda pid=pid: waits.look(pid) for pid in pids]
        found = [until(look, lambda seen: seen.key is not None) for look in looks]
        assert {seen.kind for seen in found} == {"lock"}
        assert found[0].key == found[1].key != found[2].key


@pytest.mark.parametrize(
    ("machine", "spinning", "kinds"), [(None, 3, {"gil"}), ("vax", 0, {"sleep", "unknown"})]
)
def test_the_interpreter_and_an_unknown_machine(machine, spinning, kinds):
    code = f"""
        for _ in range({spinning}): threading.Thread(target=spin, daemon=True).start()
        ready()
        spin() if {spinning} else time.sleep(1000)
    """
    with process(code) as busy:
        waits = ThreadWaits(machine) if machine else ThreadWaits()
        until(lambda: waits.look(busy.pid), lambda seen: seen.kind in kinds)


def test_of_a_process_that_has_ended_nothing_is_known():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(FileNotFoundError):
        ThreadWaits().look(ended.pid)
    assert peer_of(ended.pid, 1, "socket:[1]") in (Peer("unknown"), Peer("process"))
    readings = Readings()
    readings.watch(ended.pid)
    assert readings.reason is not None and readings.pairs(ended.pid, 1, "") is None
    readings.close()


@pytest.mark.quiet  # a reading that waits for a core comes after what it is paired with
@pytest.mark.skipif(find_py_spy() is None, reason="py-spy is not installed")
@pytest.mark.timeout(240)
def test_each_stack_is_paired_with_what_its_thread_did_then(tmp_path):
    """A thread that alternates every few milliseconds between what is known of its lines."""
    code = """
        def sleeps(): time.sleep(0.006)
        def computes(): spin(0.006)
        def locks():
            with lock: pass
        def hold():
            while True:
                with lock: time.sleep(0.012)
                time.sleep(0.001)  # a lock is not fair: who takes it again at once may keep it
        lock = fork.Lock()
        aside(hold)
        ready()
        while True: sleeps(); computes(); locks()
    """
    with process(code) as waiting:
        pid, readings, merged = waiting.pid, Readings(), Merged()
        readings.watch(pid)
        recording = Recording(find_py_spy(), pid, tmp_path, 100, 4, gil=False)
        while not recording.over:
            readings.wait(0.05)
        told = recording.outcome().message
        taken = merged.add(0, pid, recording.output, lambda many: readings.pairs(pid, many, told))
        readings.close()
        recording.clear()
        assert not list(tmp_path.iterdir())
    assert readings.reason is None and taken > 200
    frames, stacks, _, waits = merged.kept(["main"])
    seen = defaultdict(Counter)
    for row in stacks:
        for at in row.frames:
            for place, samples in row.waits:
                seen[frames[at].function][waits[place].kind] += samples
    for kind, least in {"sleep": 0.8, "compute": 0.8, "lock": 0.6}.items():
        kinds = seen[f"{kind}s"]
        assert kinds[kind] + kinds["core"] > least * sum(kinds.values()), seen


def test_readings_that_failed_are_left_out_and_what_does_not_add_up_is_no_pair():
    readings = Readings()
    readings.watch(os.getpid())

    def listed(times):
        for _ in range(times):
            os.listdir(f"/proc/{os.getpid()}/task")
            readings.wait(0.001)

    try:
        listed(2)  # its trial, and one sample
        stamp = time.time_ns()
        listed(3)  # two more, and one that it threw away
        whole = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(stamp // 10**9))
        failed = f"[{whole}.{stamp % 10**9:09}Z WARN  py_spy] Failed to get stack trace from 7"
        pairs = readings.pairs(os.getpid(), 3, "")
        assert len(pairs) == 3 and readings.reason is None
        assert len(readings.pairs(os.getpid(), 2, failed)) == 2
        assert readings.pairs(os.getpid(), 4, "") is None and readings.reason is not None
        assert readings.pairs(os.getpid(), 1, "Failed to connect to process, retrying") is None
    finally:
        readings.close()
    readings.wait(0.0)
    assert select.select([], [], [], 0) == ([], [], [])
