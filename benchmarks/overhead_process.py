"""The training processes of benchmarks/overhead.py: started, asked for one block at a time, and
ended."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

SIDE = Path(__file__).with_name("overhead_side.py")
START_S = 120.0
BLOCK_S = 120.0
END_S = 60.0


class SideFailed(Exception):
    """A process of the benchmark could not do what it was asked; the text says why."""


class Side:
    """A process that loops over one workload. `tools` are the ways in which it can be asked to
    loop; with `size` 0, it finds the size at which a batch takes the workload's target time."""

    def __init__(
        self,
        workload: str,
        tools: list[str],
        size: int,
        python: str = sys.executable,
        **variables: str,
    ) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="overhead-")
        address = str(Path(self.folder.name, "socket"))
        asked = {"workload": workload, "tools": tools, "size": size, "address": address}
        runs = str(Path(self.folder.name, "runs"))
        env = {
            **os.environ,
            "OVERHEAD_SIDE": json.dumps(asked),
            "LOADERSCOPE_DIR": runs,
            "PYTHONHASHSEED": "0",
            **variables,
        }
        self.log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 closed in _kill
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen(1)
            listener.settimeout(0.5)
            self.process = subprocess.Popen(
                self._command(tools, python),
                env=env,
                stdout=self.log,
                stderr=self.log,
                start_new_session=True,
            )
            self.connection = self._accepted(listener)
        self.connection.settimeout(START_S)
        self.stream = self.connection.makefile("rw", encoding="utf-8")

    def _command(self, tools: list[str], python: str) -> list[str]:
        if tools != ["traceml-ai"]:
            return [python, str(SIDE)]
        run = [
            "run",
            str(SIDE),
            "--mode",
            "summary",
            "--logs-dir",
            str(Path(self.folder.name, "logs")),
        ]
        ports = ["--aggregator-port", str(free_port()), "--master-port", str(free_port())]
        return [
            str(Path(python).parent / "traceml"),
            *run,
            *ports,
            "--on-missing-aggregator",
            "raise",
        ]

    def _accepted(self, listener: socket.socket) -> socket.socket:
        for _ in range(int(START_S / 0.5)):
            with suppress(TimeoutError):
                return listener.accept()[0]
            if self.process.poll() is not None:
                break
        raise self._failed("it did not start")

    def _failed(self, why: str) -> SideFailed:
        self.log.seek(0)
        said = [
            re.sub(r"(/[\w.+-]+){2,}", "…", line).strip()
            for line in self.log.read().splitlines()
            if line.strip()
        ]
        self._kill()
        self.folder.cleanup()
        return SideFailed(f"{why}; its last words: {said[-1]}" if said else why)

    def ready(self) -> dict[str, Any]:
        """Waits until it is set up."""
        answer = self._answer()
        self.connection.settimeout(BLOCK_S)
        return answer

    def ask(self, what: str) -> dict[str, Any]:
        """The name of a tool: times of one pass over its loader; "recorded": how many batches
        Loaderscope recorded."""
        self.stream.write(what + "\n")
        self.stream.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        try:
            line = self.stream.readline()
        except OSError as error:
            raise self._failed("it did not answer in time") from error
        if not line:
            raise self._failed("it ended")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise self._failed(answer["error"])
        return answer

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends it, and all it started."""
        with suppress(OSError):
            self.stream.close()
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(END_S)
        self._kill()
        self.folder.cleanup()

    def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.log.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
