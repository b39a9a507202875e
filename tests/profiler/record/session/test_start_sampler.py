"""The system sampler is nobody's child: what waits for children sees what it would without it."""

import json
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from loaderscope.profiler.record.session import start_sampler
from loaderscope.profiler.record.session.start_sampler import why_not_kept
from started import ran, until

pytestmark = pytest.mark.skipif(bool(why_not_kept()), reason=f"{why_not_kept()}")

PROGRAM = """
import json, os, signal, sys, time
from pathlib import Path
from loaderscope.profiler.record.session.start_sampler import start_sampler

told = []
signal.signal(signal.SIGCHLD, lambda number, frame: told.append(number))
if "subreaper" in sys.argv:
    import ctypes
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
run = Path(sys.argv[1])
folder = run / f"p{os.getpid()}-0"
folder.mkdir()
import psutil
from loaderscope.profiler.base.host import boot_id
import socket
facts = {"pid": os.getpid(), "create_time": psutil.Process().create_time(), "host": socket.gethostname(),
         "boot_id": boot_id()}
(folder / "process.json").write_text(json.dumps(facts))
started = start_sampler(run)
seen = {"reason": started.reason, "keeps": started.keeper is not None, "pid": started.pid}
deadline = time.monotonic() + 20
while not list(run.glob("system-*/sampler.json")) and time.monotonic() < deadline:
    time.sleep(0.02)
seen["started"] = bool(list(run.glob("system-*/sampler.json")))
mine = os.fork()
if not mine:
    os._exit(7)
waited = []
while True:
    try:
        pid, status = os.wait()
    except ChildProcessError:
        break
    waited.append([pid == mine, os.waitstatus_to_exitcode(status)])
seen.update(waited=waited, told=len(told))
seen["children"] = [child.pid for child in psutil.Process().children()]
seen["parent"] = psutil.Process(started.pid).ppid()
print(json.dumps(seen))
"""


def run(tmp_path, *arguments, before=()):
    directory = tmp_path / "run"
    directory.mkdir()
    command = [*before, sys.executable, "-c", textwrap.dedent(PROGRAM), str(directory), *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = ran(command, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    seen = json.loads(done.stdout)
    assert seen["started"] and seen["keeps"]
    assert seen["waited"] == [[True, 7]] and seen["told"] == 1  # of its own child alone
    return seen


def ended(tmp_path):
    (told,) = tmp_path.glob("run/system-*/sampler.json")
    return until(lambda: "ended_clock_ns" in json.loads(told.read_text()), "its end")


def test_nothing_of_it_is_seen(tmp_path):
    seen = run(tmp_path)
    assert seen["reason"] is None and seen["children"] == []
    assert seen["parent"] != os.getpid()
    assert ended(tmp_path)


def test_a_process_that_adopts_orphans_can_wait_for_all_its_children(tmp_path):
    seen = run(tmp_path, "subreaper")
    assert len(seen["children"]) == 1  # the sampler's own parent, which no wait finds
    assert ended(tmp_path)


def test_process_1_of_a_container_can_wait_for_all_its_children(tmp_path):
    unshare = shutil.which("unshare")
    inside = (str(unshare), "--pid", "--fork", "--mount-proc")
    if (
        unshare is None
        or subprocess.run([*inside, "true"], check=False, capture_output=True).returncode
    ):
        pytest.skip("a PID namespace cannot be made here")
    run(tmp_path, before=inside)


def test_without_the_extension_one_who_listens_for_children_gets_no_sampler(tmp_path, monkeypatch):
    import signal

    monkeypatch.setitem(sys.modules, "loaderscope.profiler.native._spawn", None)
    before = signal.signal(signal.SIGCHLD, lambda number, frame: None)
    try:
        started = start_sampler.start_sampler(tmp_path)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert started.pid is None and started.keeper is None
    assert started.reason is not None and "seen as a child" in started.reason


def test_a_python_that_does_not_know_itself_gets_no_sampler(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    started = start_sampler.start_sampler(tmp_path)
    assert started.pid is None
    assert started.reason is not None and "does not know its own Python" in started.reason
