"""Running py-spy: where it is, one recording of one process, and what its failure means."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ...base.ptrace import allow
from ..procfs import TICK_NS, read_stat

PR_SET_PDEATHSIG = 1  # linux/prctl.h
MAX_ERROR_BYTES = 1 << 18
# Readings that failed are logged with their times, and whether it had to begin anew.
ENVIRONMENT = {
    "PATH": os.defpath,
    "RUST_BACKTRACE": "0",
    "RUST_LOG": "py_spy=warn,py_spy::python_spy=info",
}
_LOGGED = re.compile(r"^\[\d{4}-.*\n?", re.MULTILINE)

ENDED = "the process had ended"
MISSING = "py-spy is not installed here: pip install py-spy"


def find_py_spy(
    environ: Mapping[str, str] = os.environ, executable: str = sys.executable
) -> str | None:
    """The program next to this Python, in its scripts folder, or on the PATH; None if there is
    none."""
    import shutil  # seldom needed, and loads modules that the sampler has no use for

    places = os.path.dirname(executable), sysconfig.get_path("scripts")
    path = [*(place or "/nowhere" for place in places), environ.get("PATH", os.defpath)]
    return shutil.which("py-spy", path=os.pathsep.join(path))


PATIENCE_S = 20.0

# By ptrace_scope.
NOT_PERMITTED = {
    0: "reading stacks is not permitted here: in a container start it with --cap-add=SYS_PTRACE "
    "(Kubernetes: securityContext.capabilities.add), and as the user who trains",
    2: "only root may read stacks here (ptrace_scope 2): sudo sysctl kernel.yama.ptrace_scope=1",
    3: "the kernel forbids it until the next boot (ptrace_scope 3): boot with "
    "kernel.yama.ptrace_scope=1",
}


class Outcome(NamedTuple):
    """How a recording ended. `samples` and `errors` are py-spy's own counts, None where it did not
    say."""

    status: int
    samples: int | None
    errors: int | None
    message: str


class Recording:
    """One py-spy at work on one process, writing to files of the system directory that it removes
    at the end."""

    def __init__(
        self,
        program: str,
        pid: int,
        folder: Path,
        rate_hz: int,
        seconds: int,
        gil: bool,
    ) -> None:
        """Raises OSError where it cannot be started."""
        self.pid = pid
        self.gil = gil
        self.rate_hz = rate_hz
        self.seconds = seconds
        self.output = folder / f".stacks-{pid}.json"
        self._said = folder / f".stacks-{pid}.txt"
        command = [
            program,
            "record",
            "--full-filenames",
            "--format=speedscope",
            "--gil" if gil else "--idle",
            "--nonblocking",  # else py-spy stops the process while it reads it
            f"--pid={pid}",
            f"--rate={rate_hz}",
            f"--duration={seconds}",
            f"--output={os.devnull if gil else self.output}",
        ]
        fd = os.open(self._said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=fd,
                stderr=fd,
                cwd="/",
                env=ENVIRONMENT,
                # The sampler's one other thread only calls NVML, of which the child needs nothing.
                preexec_fn=_ends_with_parent(os.getpid()),  # noqa: PLW1509
            )
        except BaseException:
            self._said.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)

    @property
    def over(self) -> bool:
        return self._child.poll() is not None

    def cpu_ns(self) -> int:
        """CPU time it has used, 0 once it has ended."""
        try:
            stat = read_stat(self._child.pid)
        except (OSError, ValueError, IndexError):
            return 0
        return (stat.user + stat.system) * TICK_NS

    def end(self) -> None:
        """Ask it to write what it has and to end."""
        with suppress(OSError):
            self._child.send_signal(signal.SIGINT)

    def kill(self) -> None:
        with suppress(OSError):
            self._child.kill()
        with suppress(Exception):
            self._child.wait(1.0)

    def outcome(self) -> Outcome:
        """How it ended; only once it is over."""
        message = ""
        with suppress(OSError), open(self._said, "rb") as file:
            message = file.read(MAX_ERROR_BYTES).decode("utf-8", "replace")
        counts = re.search(r"Samples: (\d{1,12}) Errors: (\d{1,12})", message)
        samples, errors = map(int, counts.groups()) if counts else (None, None)
        status = self._child.returncode
        return Outcome(-1 if status is None else status, samples, errors, message)

    def clear(self) -> None:
        """Remove what it wrote."""
        for path in (self.output, self._said):
            with suppress(OSError):
                os.unlink(path)


def _ends_with_parent(parent: int) -> Callable[[], Any]:
    """What the child does before it becomes py-spy: end with the sampler, and hear SIGINT, unlike
    the sampler."""
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def why_failed(message: str, root: Path = Path("/")) -> str:
    """One sentence for py-spy's complaint, with what to do about it."""
    message = _LOGGED.sub("", message)
    lowered = message.lower()
    if any(part in lowered for part in ("permission denied", "not permitted", "os error 1)")):
        return NOT_PERMITTED.get(ptrace_scope(root) or 0, NOT_PERMITTED[0])
    if any(part in lowered for part in ("no such file", "no such process", "process ended")):
        return ENDED
    lines = [line.strip() for line in message.splitlines() if not line.startswith("py-spy>")]
    lines = sorted(filter(None, lines), key=lambda line: not line.startswith("Error:"))
    first = lines[0].removeprefix("Error:").strip() if lines else "it said nothing"
    return f"py-spy failed: {first[:200]}"


def ptrace_scope(root: Path) -> int | None:
    """What Yama permits: 0 all of one's own processes, 1 those that allow it, 2 root only, 3 none;
    None: no Yama."""
    try:
        return int((root / "proc/sys/kernel/yama/ptrace_scope").read_text())
    except (OSError, ValueError):
        return None


def try_stacks(program: str, root: Path = Path("/")) -> str | None:
    """Why py-spy (`program`) cannot read this process, which permits it as a training does; None
    where it can. Never raises."""
    allow(os.getpid())  # its children too, one of which py-spy is
    try:
        dump = subprocess.run(
            [program, "dump", "--nonblocking", f"--pid={os.getpid()}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
            env=ENVIRONMENT,
        )
    except subprocess.TimeoutExpired:
        return f"py-spy did not answer within {PATIENCE_S:g} s"
    except OSError as error:
        return f"py-spy cannot be started: {error.strerror or error}"
    if dump.returncode == 0 and b"Thread " in dump.stdout:
        return None
    return why_failed((dump.stderr or dump.stdout).decode("utf-8", "replace"), root)
