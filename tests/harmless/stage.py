"""Where programs are run: some zygotes, jobs handed to whichever is free, what was seen read
back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .catalogue import STILL, TUNED, Program

BARE = "bare"
AT_ONCE = 3  # beside other tests; programs mostly wait
RECORDED_WITHIN_S = 10.0  # what is recorded may be written by another process, a moment later

Seen = dict[str, Any]


def bare_of(way: str) -> str:
    """The way of running without us that a run in this way is held against."""
    return STILL if way == TUNED else BARE


class Zygote:
    def __init__(self) -> None:
        limits = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        # Zygotes start at any time, within a test or between two; all are given the same.
        left_out = (
            "LOADERSCOPE_",
            "PYTEST_",
            "PYTHONPATH",
            "NO_COLOR",
            "FORCE_COLOR",
            "COLUMNS",
            "LINES",
        )
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
        # Absolute: programs have folders of their own.
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "harmless.zygote"],
            env={**inherited, **limits, "PYTHONPATH": path, "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def do(self, job: dict[str, Any]) -> dict[str, Any]:
        """Runs one job to its end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"the zygote ended ({self._process.wait()}) at {job['program']}"
        return json.loads(answer)

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)
        self._process.stdout.close()


class Stage:
    """Runs programs, each way of running once, or as often as is asked for. Safe to use from
    several threads."""

    def __init__(self) -> None:
        # Open to all, under the system's own temporary folder: a program may be nobody's.
        self.folder = Path(tempfile.mkdtemp(prefix="harmless-"))
        self.folder.chmod(0o755)
        self._free: list[Zygote] = []
        self._made = 0
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._again = ThreadPoolExecutor(
            1
        )  # a test waits for it: it does not queue behind all that runs ahead
        self._runs: dict[tuple[str, str, int], Future[Seen]] = {}

    def ask(self, program: Program, way: str, number: int = 0, **more: str) -> Future[Seen]:
        """What is seen of the program run in this way, for the `number`-th time. `more` is its
        environment."""
        key = (program.name + repr(sorted(more.items())), way, number)
        with self._lock:
            if key not in self._runs:
                pool = self._again if number else self._pool
                self._runs[key] = pool.submit(self._run, program, way, number, more)
            return self._runs[key]

    def wait_until_idle(self) -> None:
        for run in list(self._runs.values()):
            run.exception()

    def _run(self, program: Program, way: str, number: int, more: dict[str, str]) -> Seen:
        # A short name: sockets that multiprocessing makes under TMPDIR must fit theirs.
        folder = Path(tempfile.mkdtemp(prefix="", dir=self.folder))
        folder.chmod(0o777)
        environment = {
            "LOADERSCOPE_DIR": str(folder / "runs"),
            "HOME": str(folder),
            "TMPDIR": str(folder),
            **more,
        }
        if way == "run":
            environment |= _started_by_run(folder / "runs")
        job = {
            "program": program.name,
            "module": program.module,
            "way": way,
            "folder": str(folder),
            "environment": environment,
            "options": program.options,
            "limit_s": program.limit_s,
        }
        with self._lock:
            zygote = self._free.pop() if self._free else None
        zygote = zygote or Zygote()
        try:
            ended = zygote.do(job)
        finally:
            with self._lock:
                self._free.append(zygote)
        if os.environ.get("HARMLESS_TIMES"):
            print(f"{program.name} {way} {number}: {ended}", file=sys.stderr)
        return _read(folder, ended)

    def close(self) -> None:
        for pool in (self._pool, self._again):
            pool.shutdown(cancel_futures=True)
        for zygote in self._free:
            zygote.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _started_by_run(runs: Path) -> dict[str, str]:
    """The environment `loaderscope run` gives a script."""
    from loaderscope.profiler.launch import environment
    from loaderscope.profiler.store.rundir import create_run

    path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
    given = environment(create_run(runs, ["program.py"]), {"PYTHONPATH": path})
    return {
        name: value
        for name, value in given.items()
        if name.startswith("LOADERSCOPE_") or name == "PYTHONPATH"
    }


def _read(folder: Path, ended: dict[str, Any]) -> Seen:
    """What was seen from outside and what the program said, by name; what it says again gets a
    number."""
    seen: Seen = {
        "folder": str(folder),
        "used": {name: ended.pop(name) for name in ("wall_s", "cpu_s", "rss_kb")},
        **ended,
        "stdout": (folder / "stdout").read_text(errors="backslashreplace"),
        "stderr": (folder / "stderr").read_text(errors="backslashreplace"),
    }
    times: dict[str, int] = {}
    said = folder / "said"
    for line in said.read_text().splitlines() if said.exists() else []:
        what, value = json.loads(line)
        times[what] = times.get(what, 0) + 1
        seen[what if times[what] == 1 else f"{what} ({times[what]})"] = value
    return seen


def was_recorded(folder: str) -> bool:
    """Whether any batch was recorded there. One is looked for, not all are read: some runs hold
    thousands of lanes."""
    deadline = time.monotonic() + RECORDED_WITHIN_S
    while True:
        if any(map(_has_records, Path(folder, "runs").glob("2*/p*/batches*.seg"))):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)


def _has_records(segment: Path) -> bool:
    from loaderscope import LoaderscopeError
    from loaderscope.profiler.store.lanes.lane_reader import read_segment

    try:
        return len(read_segment(segment)[0]) > 0
    except LoaderscopeError:
        return False
