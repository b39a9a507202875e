"""`loaderscope run`: runs a script unchanged, and records all of its DataLoaders.

The script runs in its own Python, as by `python script.py`, with its own `sys.argv`, `__main__`,
output, tracebacks and exit code. `LOADERSCOPE_RUN` names the run. `PYTHONPATH` begins with the
folder of our `sitecustomize`, which Python runs at start-up, also in child processes (such as
torchrun's ranks). `BEGIN_VARIABLE` names a function to call instead of `watch_all`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from .base.errors import UsageError
from .record.session.begin_run import begin_run
from .record.session.session import RUN_VARIABLE
from .store.rundir import VARIABLE, runs_directory

BEGIN_VARIABLE = "LOADERSCOPE_BEGIN"
Beside = Callable[[Path], AbstractContextManager[object]]

INJECT = Path(__file__).resolve().parent / "record" / "inject"

# Files that Python runs. Other executable files (torchrun, a Python) are started as they are.
_PYTHON = (".py", ".pyw", ".pyc", ".pyz", ".zip")

# Signals passed on to the script, the first two unless a terminal sends them to it as well.
_TYPED = (signal.SIGINT, signal.SIGQUIT)
_PASSED_ON: tuple[int, ...] = (
    *_TYPED,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


class Ended(NamedTuple):
    """How a command ended. `code` is negative for a signal. `directory` is that of its run, None if
    nothing was recorded. `could` is false if nothing could be, which was printed."""

    code: int
    directory: Path | None
    could: bool = True


def run_command(
    argv: Sequence[str],
    runs: Path | None,
    variables: Mapping[str, str] | None = None,
    beside: Beside = nullcontext,
) -> Ended:
    """Run and record a script (`train.py …`), a module (`-m pkg …`) or a command (`torchrun …`).
    `variables` are added to its environment. `beside` receives the run directory, and lasts while
    the command runs.

    If no run directory can be made, a line says so, and the command runs unrecorded. Raises
    UsageError if there is nothing to run.
    """
    command, directory = prepare(argv, runs)
    if directory is None:
        return run_bare(command)
    with beside(directory):
        code = _run(command, {**environment(directory, os.environ), **(variables or {})})
    return Ended(code, recorded(directory))


def run_bare(command: list[str]) -> Ended:
    """Run a command of `prepare`, unrecorded."""
    return Ended(_run(command, dict(os.environ)), None, could=False)


def prepare(argv: Sequence[str], runs: Path | None) -> tuple[list[str], Path | None]:
    """(the command to start, the run directory). The directory is a new one or the job's, else one
    in the temporary folder, else None. Raises UsageError."""
    command = command_line(argv)
    directory, said = begin_run(
        lambda: Path.absolute(runs or runs_directory()), list(argv), lambda made: made
    )
    if said:
        print(f"loaderscope: {said}", file=sys.stderr)
    return command, directory


def recorded(directory: Path) -> Path | None:
    """The run directory. If nothing was recorded it is removed, and None returned. Other nodes may
    still record into a job's."""
    if any(directory.glob("p*/process.json")) or any(directory.glob("part-*")):
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    return None


def command_line(argv: Sequence[str]) -> list[str]:
    """The command to start: this Python for a file, `-m` or `-c`, else a command on the PATH or of
    this Python's environment."""
    if not argv:
        raise UsageError("nothing to run; try `loaderscope run train.py`")
    first = argv[0]
    if first in ("-m", "-c"):
        if len(argv) < 2:
            raise UsageError(f"`{first}` needs a {'module' if first == '-m' else 'program text'}")
        return [sys.executable, *argv]
    path = Path(first)
    if path.exists():
        runs = path.is_dir() or path.suffix in _PYTHON or not os.access(path, os.X_OK)
        return [sys.executable, *argv] if runs else [str(path.absolute()), *argv[1:]]
    # torchrun or accelerate of an environment that is not activated.
    ours = os.pathsep.join([os.path.dirname(sys.executable), sysconfig.get_path("scripts")])
    found = shutil.which(first) or shutil.which(first, path=ours)
    if found is None or first.endswith(".py"):
        raise UsageError(f"there is no script {first!r} here; check the path")
    return [found, *argv[1:]]


def environment(run: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment that makes Python processes record into `run`."""
    paths = [str(INJECT), *filter(None, [environ.get("PYTHONPATH")])]
    ours = {
        RUN_VARIABLE: str(run),
        "PYTHONPATH": os.pathsep.join(paths),
        # The folder of our package, for a Python whose `sys.path` does not have it.
        "LOADERSCOPE_HOME": str(Path(sys.modules[__name__.partition(".")[0]].__path__[0]).parent),
    }
    if environ.get(VARIABLE):
        ours[VARIABLE] = str(runs_directory(environ))  # absolute
    return {**environ, **ours}


def _run(command: list[str], env: dict[str, str]) -> int:
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # signals that came before the process was started

    def pass_on(number: int, frame: FrameType | None) -> None:
        if process is None:
            early.append(number)
        # A terminal sends Ctrl-C to its whole group, the script included.
        elif number not in _TYPED or not _terminal_signals_us():
            with suppress(ProcessLookupError):
                process.send_signal(number)

    before: dict[int, Any] = {}
    for number in _PASSED_ON:
        # The script inherits ignored signals (of nohup, say).
        if signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(OSError, ValueError):
                before[number] = signal.signal(number, pass_on)
    try:
        process = subprocess.Popen(command, env=env)
        for number in early:
            pass_on(number, None)
        return process.wait()
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror}") from error
    finally:
        for number, handler in before.items():
            if handler is not None:  # not a handler of C
                signal.signal(number, handler)


def _terminal_signals_us() -> bool:
    """Whether we are in the foreground of a terminal, whose Ctrl-C reaches all of our group."""
    with suppress(OSError), open("/dev/tty", "rb", buffering=0) as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False
