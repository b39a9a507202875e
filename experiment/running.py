"""One side of a trial: the script in its copy of the project, running or stopped."""

import json
import os
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import psutil

from ..profiler.launch import BEGIN_VARIABLE, command_line, environment
from . import side
from .janitor import end_processes, processes_of
from .scratch import Scratch

START_S = 1800.0  # until the first batch, and for each batch
POLL_S = 0.2
MOST_BESIDE = 1_000  # files linked in each folder above the project
# Switches trackers off, and lets scripts know that this is a trial.
_TRIAL = {
    "LOADERSCOPE_TRIAL": "1",
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
    "DVC_STUDIO_OFFLINE": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # Python would write .pyc files into linked folders.
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True)
class Script:
    """A command, and the folder it runs in, relative to the project's `root`."""

    command: tuple[str, ...]
    root: Path
    folder: str


class Failed(Exception):
    """The script failed, or gets no batch. The message is one sentence."""


@dataclass
class Turn:
    """One turn of a side. `events`: "begin", "batch", "end" or "raised", each with its details.
    `ended`: the script has ended."""

    seconds: float | None = None
    events: list[tuple[str, Any]] = field(default_factory=list)
    ended: bool = True


class Side:
    """The script's process. `name` is used in messages. `project` is the code that it runs; the
    side copies it, so that files written by one run are not found by the next.

    The script starts, and runs until it asks for its first batch. Raises Failed.
    """

    def __init__(self, name: str, script: Script, project: Path, scratch: Scratch) -> None:
        self.name, self._scratch = name, scratch
        self._folder = Path(tempfile.mkdtemp(prefix="side-", dir=scratch.folder))
        self._errors = self._folder / "stderr"
        copy = _copy_place(script.root, self._folder / "files")
        shutil.copytree(project, copy, symlinks=True)
        self._listener = socket.socket(socket.AF_UNIX)
        address = f"loaderscope-try-{secrets.token_hex(16)}"
        self._listener.bind("\0" + address)
        self._listener.listen()
        self._listener.settimeout(POLL_S)
        self._connection: socket.socket | None = None
        began = time.monotonic()
        settings = {"socket": address, "root": str(script.root), "copy": str(copy)}
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [_in_copy(each, script.root, copy) for each in script.command],
                cwd=copy / script.folder,
                env=_environment(settings, self._folder / "runs"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        scratch.notify(f"+{self._process.pid}")
        self._messages = self._listen()
        self.hello: dict[str, Any] = next(self._messages, ("hello", {}))[1]
        self.started_s = time.monotonic() - began
        self.memory_bytes = self._turns = 0
        if self.hello:
            self._stop()

    def _listen(self) -> Iterator[tuple[str, Any]]:
        """The script's messages until it ends: what, and its details. The first describes the
        script."""
        held = b""
        heard = time.monotonic()
        while time.monotonic() < heard + START_S:
            try:
                if self._connection is None:
                    self._accept()
                    continue
                got = self._connection.recv(1 << 20)
            except TimeoutError:
                if self._process.poll() is None:
                    continue
                return
            except OSError:
                return
            if not got:
                return
            heard = time.monotonic()
            *lines, held = (held + got).split(b"\n")
            yield from map(json.loads, lines)
        raise Failed(f"the script {self.name} got no batch within {START_S / 60:.0f} minutes")

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        # Any user can list abstract sockets and connect to them.
        size = struct.calcsize("3i")
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        if struct.unpack("3i", credentials)[1] != os.getuid():
            connection.close()
            return
        connection.settimeout(POLL_S)
        self._connection = connection
        self._listener.close()  # only one process connects

    def turn(self, batches: int, compare: bool, most_s: float = START_S) -> Turn:
        """Run for so many batches. `compare`: with their fingerprints."""
        assert self._connection is not None
        for process in processes_of(self._process.pid):
            with suppress(psutil.Error):
                process.resume()
        found = Turn()
        order = {"batches": batches, "compare": compare, "most_s": most_s}
        with suppress(OSError):
            self._connection.sendall(json.dumps(order).encode() + b"\n")
        for what, said in self._messages:
            if what == "done":
                found.seconds, found.ended = said, False
                self._stop()
                break
            found.events.append((what, said))
        return found

    def _stop(self) -> None:
        """Stop all processes: workers would make batches ahead during the other side's turn."""
        stopped: set[psutil.Process] = set()
        while new := processes_of(self._process.pid) - stopped:
            for process in new:
                with suppress(psutil.Error):
                    process.suspend()
            stopped |= new
        self._turns += 1
        if self._turns & (self._turns - 1) == 0:  # takes a while with many workers
            self.memory_bytes = max(self.memory_bytes, sum(map(_pss, stopped)))

    def why_failed(self) -> str | None:
        """One sentence if the script failed; None if it ended normally."""
        try:
            code = self._process.wait(timeout=START_S)
        except subprocess.TimeoutExpired:
            return f"the script {self.name} does not end"
        if code == 0:
            return None
        how = f"with exit code {code}" if code > 0 else f"by {signal.Signals(-code).name}"
        last = _last_line(self._errors)
        return f"the script {self.name} ended {how}" + (f": {last}" if last else "")

    def end(self) -> None:
        """Kill the script if it still runs, and remove its copy."""
        end_processes(self._process.pid)
        self._process.wait()
        self._scratch.notify(f"-{self._process.pid}")
        self._listener.close()
        if self._connection is not None:
            self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _copy_place(root: Path, folder: Path) -> Path:
    """A path for the copy of the project. `../data` leads to the same files as in the project."""
    real, here = Path(root.anchor), folder
    for part in root.relative_to(real).parts:
        here.mkdir()
        with suppress(OSError), os.scandir(real) as beside:
            for entry in islice(beside, MOST_BESIDE):
                if entry.name != part:
                    (here / entry.name).symlink_to(entry.path)
        real, here = real / part, here / part
    return here


def script_of(argv: list[str], root: Path, here: Path) -> Script:
    """The script as called in the folder `here` of the project. Raises UsageError."""
    if argv and (here / argv[0]).is_file():
        argv = [str(here / argv[0]), *argv[1:]]
    command = command_line(argv)
    return Script(tuple(command), root, os.path.relpath(here, root))


def _environment(settings: dict[str, str], runs: Path) -> dict[str, str]:
    runs.mkdir(exist_ok=True)
    env = environment(runs, os.environ)
    paths = [
        _in_copy(p, Path(settings["root"]), Path(settings["copy"]))
        for p in env["PYTHONPATH"].split(os.pathsep)
    ]
    return {
        **env,
        **_TRIAL,
        "PYTHONHASHSEED": env.get("PYTHONHASHSEED") or "0",
        "PYTHONPATH": os.pathsep.join(paths),
        "MLFLOW_TRACKING_URI": (runs / "mlflow").as_uri(),
        side.VARIABLE: json.dumps(settings),
        "LOADERSCOPE_START": f"{side.__name__}:{side.at_start.__name__}",
        BEGIN_VARIABLE: f"{side.__name__}:{side.begin.__name__}",
    }


def _in_copy(argument: str, root: Path, copy: Path) -> str:
    """An argument with a path of the project (`/root/x`, `--out=/root/x`), moved to the copy."""
    option, equals, value = argument.rpartition("=")
    path = Path(value)
    if not path.is_absolute() or not path.is_relative_to(root) or path.is_relative_to(sys.prefix):
        return argument
    return f"{option}{equals}{copy / path.relative_to(root)}"


def _pss(process: psutil.Process) -> int:
    """Memory of a process; shared memory counts by share."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, OSError):
        return 0


def _last_line(errors: Path) -> str:
    """The error of the last traceback, else the last line."""
    with errors.open("rb") as file:
        file.seek(max(0, errors.stat().st_size - 100_000))
        text = file.read().decode(errors="replace").replace("\r", "\n").rstrip()
    raised = re.findall(r"^Traceback \(.*\n(?:[ \t].*\n|\n)*(\S.*)", text, re.MULTILINE)
    return (raised or text.split("\n"))[-1].strip()
