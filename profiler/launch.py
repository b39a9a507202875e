"""`loaderscope run`: a script as it is, and every DataLoader of it recorded.

The script is started by a Python of its own, exactly as `python script.py` would: its `sys.argv`,
`__main__`, output, tracebacks and exit code are its own. Two environment variables do the rest:
`LOADERSCOPE_RUN` names the run, and `PYTHONPATH` begins with the folder of our `sitecustomize`,
which Python runs at start-up, in child processes too (torchrun's ranks among them). A third,
`BEGIN_VARIABLE`, names another function than `watch_all` to begin with.
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

# What Python itself would run, executable or not; other executable files (torchrun, a Python) are
# started as they are.
_PYTHON = (".py", ".pyw", ".pyc", ".pyz", ".zip")

# Passed on to the script; the first two unless a terminal has sent them to it too.
_TYPED = ("SIGINT", "SIGQUIT")
_PASSED_ON = (*_TYPED, "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


class Ended(NamedTuple):
    """How a command ended: `code` (negative: the signal it died of), and `directory`, its run's;
    None where nothing was recorded, or (`could` is false) could be recorded, which was said."""

    code: int
    directory: Path | None
    could: bool = True


def run_command(
    argv: Sequence[str],
    runs: Path | None = None,
    variables: Mapping[str, str] | None = None,
    beside: Beside = nullcontext,
) -> Ended:
    """Run a script (`train.py …`), a module (`-m pkg …`) or a command (`torchrun …`), recorded;
    `variables` are added to its environment. `beside` is given its run directory, and lasts as long
    as it runs.

    Where no run directory can be made, the command runs unrecorded, and one line says so. Raises
    UsageError where there is nothing to run.
    """
    command, directory = prepare(argv, runs)
    if directory is None:
        return run_bare(command)
    with beside(directory):
        code = _run(command, {**environment(directory, os.environ), **(variables or {})})
    return Ended(code, recorded(directory))


def run_bare(command: list[str]) -> Ended:
    """Run what `prepare` says, unrecorded."""
    return Ended(_run(command, dict(os.environ)), None, could=False)


def prepare(argv: Sequence[str], runs: Path | None) -> tuple[list[str], Path | None]:
    """What to start, and the run directory it records into: a new one, or that of the job it is a
    part of; one under the temporary folder where that cannot be made, None where no other can.
    Raises UsageError."""
    command = command_line(argv)
    directory, said = begin_run(
        lambda: Path.absolute(runs or runs_directory()), list(argv), lambda made: made
    )
    if said:
        print(f"loaderscope: {said}", file=sys.stderr)
    return command, directory


def recorded(directory: Path) -> Path | None:
    """The run directory; None, and no directory, if nothing was recorded. Other nodes may still
    record into a job's."""
    if any(directory.glob("p*/process.json")) or any(directory.glob("part-*")):
        return directory
    shutil.rmtree(directory, ignore_errors=True)
    return None


def command_line(argv: Sequence[str]) -> list[str]:
    """What to start: a file or `-m` or `-c` goes to this Python, anything else is a command on the
    PATH, or one of this Python's own."""
    if not argv:
        raise UsageError("nothing to run; try `loaderscope run train.py`")
    first = argv[0]
    if first in ("-m", "-c"):
        if len(argv) < 2:
            raise UsageError(f"`{first}` needs a {'module' if first == '-m' else 'program text'}")
        return [sys.executable, *argv]
    path = Path(first)
    if path.exists():
        ours = path.is_dir() or path.suffix in _PYTHON or not os.access(path, os.X_OK)
        return [sys.executable, *argv] if ours else [str(path.absolute()), *argv[1:]]
    found = shutil.which(first) or shutil.which(first, path=_beside_python())
    if found is None or first.endswith(".py"):
        raise UsageError(f"there is no script {first!r} here; check the path")
    return [found, *argv[1:]]


def _beside_python() -> str:
    """Where this Python's own commands lie (torchrun, accelerate): an environment need not be
    activated to be used."""
    return os.pathsep.join(
        dict.fromkeys([os.path.dirname(sys.executable), sysconfig.get_path("scripts")])
    )


def environment(run: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment that makes Python processes record into `run`; a folder of runs is where it
    is from here."""
    paths = [str(INJECT), *filter(None, [environ.get("PYTHONPATH")])]
    ours = {
        RUN_VARIABLE: str(run),
        "PYTHONPATH": os.pathsep.join(paths),
        "LOADERSCOPE_HOME": _home(),
    }
    if environ.get(VARIABLE):
        ours[VARIABLE] = str(runs_directory(environ))
    return {**environ, **ours}


def _home() -> str:
    """The folder our package is imported from, for a Python whose `sys.path` does not have it."""
    package = sys.modules[__name__.split(".", 1)[0]]
    return str(Path(package.__path__[0]).parent)


def _run(command: list[str], env: dict[str, str]) -> int:
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # signals that came before there was a process to send them to

    def pass_on(number: int, frame: FrameType | None) -> None:
        if process is None:
            early.append(number)
            return
        with suppress(ProcessLookupError):
            process.send_signal(number)

    def typed(number: int, frame: FrameType | None) -> None:
        """Ctrl-C goes to the terminal's whole group, the script's process among it: it decides what
        that means."""
        if process is None or not _terminal_signals_us():
            pass_on(number, frame)

    before: dict[int, Any] = {}
    for name in _PASSED_ON:
        number = getattr(signal, name, None)
        # What is ignored (by nohup, say) is left so: the script inherits that.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            with suppress(OSError, ValueError):
                before[number] = signal.signal(number, typed if name in _TYPED else pass_on)
    try:
        process = subprocess.Popen(command, env=env)
        for number in early:
            pass_on(number, None)
        return process.wait()
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror}") from error
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: not Python's, and not to be had again
                signal.signal(number, handler)


def _terminal_signals_us() -> bool:
    """Whether we are in the foreground of a terminal: Ctrl-C typed there signals every process of
    our group."""
    if os.name != "posix":
        return True  # a console's Ctrl-C reaches every process that shares it
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
