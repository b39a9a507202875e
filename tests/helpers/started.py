"""Programs that tests start, in processes of their own."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE_S = 120  # far above what is needed, so that a loaded machine fails no test
LOADERSCOPE = (sys.executable, "-m", "loaderscope")
Ended = subprocess.CompletedProcess[str]


def ran(command: Sequence[object], timeout: float = 250, check: bool = False, **how: Any) -> Ended:
    """How a command ended, and what it printed."""
    line = list(map(str, command))
    return subprocess.run(line, capture_output=True, text=True, timeout=timeout, check=check, **how)


def python(*arguments: object, **how: Any) -> Ended:
    """The same of this Python with these arguments."""
    return ran([sys.executable, *arguments], **how)


def here(**environ: str) -> dict[str, str]:
    """The environment of the tests, in which programs find what the tests can import."""
    paths = os.pathsep.join(map(os.path.abspath, filter(None, sys.path)))
    return {**os.environ, "PYTHONPATH": paths, **environ}


@contextmanager
def going_on(command: Sequence[str], runs: Path, **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A training that goes on until it is killed, once a new run in the folder has batches and
    samples of the system."""
    before = set(runs.glob("*"))

    def recorded() -> bool:
        assert process.poll() is None, "the training ended"
        new = set(runs.glob("*")) - before
        lanes = ("system-*/machine*", "p*/batches0*")
        return any(all(any(run.glob(lane)) for lane in lanes) for run in new)

    silent: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, start_new_session=True, **silent, **how)
    try:
        until(recorded, "a batch")
        yield process
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def all_kept(runs: Path) -> None:
    """Waits for the sampler's end: it keeps the memory that a killed program recorded into."""
    told = "2*/system-*/sampler.json"
    until(lambda: any("ended_clock_ns" in each.read_text() for each in runs.glob(told)), "its end")


def until(condition: Callable[[], Any], what: str, patience_s: float = PATIENCE_S) -> Any:
    """What the condition is, once it is true."""
    deadline = time.monotonic() + patience_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.05)
    return found
