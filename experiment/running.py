"""One side of a trial: the script, running in its copy of the project, or stopped."""

from __future__ import annotations

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
from collections.abc import Iterator, Mapping
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

START_S = 1800.0  # to the first batch, and for one
POLL_S = 0.2
MOST_BESIDE = 1_000  # files beside the project and above it, that are linked
# Trackers off, and what tells scripts that this is a trial.
_TRIAL = {
    "LOADERSCOPE_TRIAL": "1",
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
    "DVC_STUDIO_OFFLINE": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # A linked folder of modules would get their compiled forms.
    "PYTHONDONTWRITEBYTECODE": "1",
}


@dataclass(frozen=True)
class Script:
    """`command` is run in `folder` below the copy of the project in `root`."""

    command: tuple[str, ...]
    root: Path
    folder: str


class Failed(Exception):
    """The script has failed, or cannot be stopped for its turns: one sentence."""


@dataclass
class Turn:
    """What a side did with the batches that it was given. `events`: "begin", "batch", "end" and
    "raised" with what was said of each. `ended`: the script has."""

    seconds: float | None = None
    batches: int = 0
    events: list[tuple[str, Any]] = field(default_factory=list)
    rows: list[dict[str, list[list[float]]]] = field(default_factory=list)
    ended: bool = True


class Side:
    """`name`: how sentences call it; `project`: the code it runs, which is copied, since a script
    may write there what the next run would find.

    The script starts, and runs until it asks for its first batch. Raises Failed.
    """

    def __init__(self, name: str, script: Script, project: Path, scratch: Scratch) -> None:
        self.name, self._scratch = name, scratch
        self._folder = Path(tempfile.mkdtemp(prefix="side-", dir=scratch.folder))
        self._errors = self._folder / "stderr"
        copy = _place_for(script.root, self._folder / "files")
        shutil.copytree(project, copy, symlinks=True)
        self._listener = socket.socket(socket.AF_UNIX)
        address = f"loaderscope-try-{secrets.token_hex(16)}"
        self._listener.bind("\0" + address)
        self._listener.listen()
        self._listener.settimeout(POLL_S)
        self._connection: socket.socket | None = None
        began = time.monotonic()
        told = {"socket": address, "root": str(script.root), "copy": str(copy)}
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [_moved(each, script.root, copy) for each in script.command],
                cwd=copy / script.folder,
                env=_environment(told, self._folder / "runs"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        scratch.tell(f"+{self._process.pid}")
        self._said = self._lines()
        self.hello = next(self._said, None)
        self.started_s = time.monotonic() - began
        self.memory_bytes = self._turns = 0
        if self.hello is not None:
            self._stop()

    def _lines(self) -> Iterator[dict[str, Any]]:
        """What the script says, until it has ended; first of itself, at its first batch."""
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
        # Names of abstract sockets can be listed, so anybody may connect.
        size = struct.calcsize("3i")
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
        if struct.unpack("3i", credentials)[1] != os.getuid():
            connection.close()
            return
        connection.settimeout(POLL_S)
        self._connection = connection
        self._listener.close()  # one process is listened to

    def turn(self, batches: int, compare: str = "", most_s: float = START_S) -> Turn:
        """Let it have so many batches; `compare`: "" for none of them, "values", or "rows" too."""
        assert self._connection is not None
        for process in processes_of(self._process.pid):
            with suppress(psutil.Error):
                process.resume()
        found = Turn()
        order = {"batches": batches, "compare": compare, "most_s": most_s}
        with suppress(OSError):
            self._connection.sendall(json.dumps(order).encode() + b"\n")
        for said in self._said:
            if "done" in said:
                found.seconds, found.batches, found.ended = said["done"], said["batches"], False
                self._stop()
                break
            found.events += [(what, said[what]) for what in _EVENTS if what in said]
            found.rows += filter(None, [said.get("rows")])
        return found

    def _stop(self) -> None:
        """Stop all its processes: workers would make batches ahead in the other side's turn."""
        stopped: set[psutil.Process] = set()
        while new := processes_of(self._process.pid) - stopped:
            for process in new:
                with suppress(psutil.Error):
                    process.suspend()
            stopped |= new
        self._turns += 1
        if self._turns & (self._turns - 1) == 0:  # of many workers it takes a while
            self.memory_bytes = max(self.memory_bytes, sum(map(_pss, stopped)))

    def why_failed(self) -> str | None:
        """A sentence, where the script has failed; None where it has ended as it should."""
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
        """Kill it, if it has not ended."""
        end_processes(self._process.pid)
        self._process.wait()
        self._scratch.tell(f"-{self._process.pid}")
        self._listener.close()
        if self._connection is not None:
            self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _place_for(root: Path, folder: Path) -> Path:
    """A place for a copy of the project, in which `../data` is what it is in the project."""
    real, here = Path(root.anchor), folder
    for part in root.relative_to(real).parts:
        here.mkdir()
        with suppress(OSError), os.scandir(real) as beside:
            for entry in islice(beside, MOST_BESIDE):
                if entry.name != part:
                    (here / entry.name).symlink_to(entry.path)
        real, here = real / part, here / part
    return here


_EVENTS = ("begin", "batch", "end", "raised")


def script_of(argv: list[str], root: Path, here: Path) -> Script:
    """The script as it is called from the folder `here` of the project. Raises UsageError."""
    if argv and (here / argv[0]).is_file():
        argv = [str(here / argv[0]), *argv[1:]]
    command = command_line(argv)
    folder = os.path.relpath(here, root) if here.is_relative_to(root) else "."
    return Script(tuple(command), root, folder)


def _environment(told: Mapping[str, str], runs: Path) -> dict[str, str]:
    runs.mkdir(exist_ok=True)
    env = environment(runs, os.environ)
    paths = [
        _moved(p, Path(told["root"]), Path(told["copy"]))
        for p in env["PYTHONPATH"].split(os.pathsep)
    ]
    return {
        **env,
        **_TRIAL,
        "PYTHONHASHSEED": env.get("PYTHONHASHSEED") or "0",
        "PYTHONPATH": os.pathsep.join(paths),
        "MLFLOW_TRACKING_URI": (runs / "mlflow").as_uri(),
        side.VARIABLE: json.dumps(dict(told)),
        "LOADERSCOPE_START": f"{side.__name__}:{side.at_start.__name__}",
        BEGIN_VARIABLE: f"{side.__name__}:{side.begin.__name__}",
    }


def _moved(argument: str, root: Path, copy: Path) -> str:
    """A path of the project in an argument (`/root/x`, `--out=/root/x`) as one of the copy."""
    option, equals, value = argument.rpartition("=")
    path = Path(value)
    if not path.is_absolute() or not path.is_relative_to(root) or path.is_relative_to(sys.prefix):
        return argument
    return f"{option}{equals}{copy / path.relative_to(root)}"


def _pss(process: psutil.Process) -> int:
    """Memory of a process, what it shares divided by those it shares it with."""
    try:
        return int(process.memory_full_info().pss)
    except (psutil.Error, OSError):
        return 0


def _last_line(errors: Path) -> str:
    """What the last traceback ends with, else the last line that says anything."""
    with errors.open("rb") as file:
        file.seek(max(0, errors.stat().st_size - 100_000))
        text = file.read().decode(errors="replace").replace("\r", "\n").rstrip()
    raised = re.findall(r"^Traceback \(.*\n(?:[ \t].*\n|\n)*(\S.*)", text, re.MULTILINE)
    return (raised or text.split("\n"))[-1].strip()
