"""Where programs are run: jobs handed to whichever zygote is free, what was seen read back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from loaderscope.profiler.launch import environment  # here: threads must not be first to import it
from loaderscope.profiler.store.rundir import create_run
from started import here, until

from .catalogue import STILL, TUNED, Program

BARE = "bare"
AT_ONCE = 3  # beside other tests; programs mostly wait
RECORDED_WITHIN_S = 60.0  # what is recorded may be written by another process, a moment later

Seen = dict[str, Any]


def bare_of(way: str) -> str:
    """The way of running without us that a run in this way is held against."""
    return STILL if way == TUNED else BARE


class Zygote:
    def __init__(self) -> None:
        # Zygotes start at any time, within a test or between two; all are given the same.
        ours = ("LOADERSCOPE_", "PYTEST_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")
        env = {name: value for name, value in here().items() if not name.startswith(ours)}
        threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        env |= {**dict.fromkeys(threads, "1"), "PYTHONHASHSEED": "0"}
        how: Any = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
        command = [sys.executable, "-m", "harmless.zygote"]
        process: Any = subprocess.Popen(command, env=env, text=True, start_new_session=True, **how)
        self._process, self._jobs, self._answers = process, process.stdin, process.stdout

    def do(self, job: dict[str, Any]) -> dict[str, Any]:
        print(json.dumps(job), file=self._jobs, flush=True)
        answer = self._answers.readline()
        assert answer, f"the zygote ended ({self._process.wait()}) at {job['program']}"
        return json.loads(answer)

    def close(self) -> None:
        self._jobs.close()
        self._process.wait(timeout=30)
        self._answers.close()


class Stage:
    """Runs programs, each way of running as often as is asked for. Several threads may use it."""

    def __init__(self) -> None:
        # Open to all, under the system's own temporary folder: a program may be nobody's.
        self.folder = Path(tempfile.mkdtemp(prefix="harmless-"))
        self.folder.chmod(0o755)
        self._free: list[Zygote] = []
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(AT_ONCE)
        # A test waits for these: they do not queue behind all that runs ahead.
        self._again = ThreadPoolExecutor(1)
        self._runs: dict[tuple[str, str, int], Future[Seen]] = {}

    def ask(self, program: Program, way: str, number: int = 0, **more: str) -> Future[Seen]:
        """What is seen of the program run in this way, for the `number`-th time, in `more`."""
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
        places = {"LOADERSCOPE_DIR": f"{folder}/runs", "HOME": str(folder), "TMPDIR": str(folder)}
        started = _started_by_run(folder / "runs") if way == "run" else {}
        job = {"program": program.name, "way": way, "folder": str(folder)}
        job |= {name: getattr(program, name) for name in ("module", "options", "limit_s")}
        job["environment"] = {**places, **more, **started}
        with self._lock:
            zygote = self._free.pop() if self._free else None
        zygote = zygote or Zygote()
        try:
            ended = zygote.do(job)
        finally:
            with self._lock:
                self._free.append(zygote)
        return _read(folder, ended)

    def close(self) -> None:
        for pool in (self._pool, self._again):
            pool.shutdown(cancel_futures=True)
        for zygote in self._free:
            zygote.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _started_by_run(runs: Path) -> dict[str, str]:
    """The environment `loaderscope run` gives a script."""
    given = environment(create_run(runs, ["program.py"]), {"PYTHONPATH": here()["PYTHONPATH"]})
    names = [name for name in given if name.startswith("LOADERSCOPE_")]
    return {name: given[name] for name in (*names, "PYTHONPATH")}


def _read(folder: Path, ended: dict[str, Any]) -> Seen:
    """What was seen from outside and what the program said; what it says again gets a number."""
    seen: Seen = {"folder": str(folder), **ended}
    for name in ("stdout", "stderr"):
        seen[name] = (folder / name).read_text(errors="backslashreplace")
    times: dict[str, int] = {}
    said = folder / "said"
    for line in said.read_text().splitlines() if said.exists() else []:
        what, value = json.loads(line)
        times[what] = times.get(what, 0) + 1
        seen[what if times[what] == 1 else f"{what} ({times[what]})"] = value
    return seen


def was_recorded(folder: str) -> bool:
    """Whether any batch was recorded there. Some runs hold thousands of lanes: one is looked for."""

    def found() -> bool:
        return any(map(_has_records, Path(folder, "runs").glob("2*/p*/batches*.seg")))

    with suppress(AssertionError):
        return until(found, "records", RECORDED_WITHIN_S)
    return False


def _has_records(segment: Path) -> bool:
    from loaderscope import LoaderscopeError
    from loaderscope.profiler.store.lanes.lane_reader import read_segment

    try:
        return len(read_segment(segment)[0]) > 0
    except LoaderscopeError:
        return False
