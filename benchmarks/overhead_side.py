"""One training process of benchmarks/overhead.py: makes a workload's loop under one tool, and times
blocks on request.

Started by overhead_process.py, which tells it in OVERHEAD_SIDE (JSON) what to be, and talks to it
over a socket, since some tools take over standard output. Each request is answered by one JSON
line.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.metadata
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from statistics import median
from time import perf_counter_ns
from typing import Any

import torch

from overhead_workloads import WORKLOADS, Workload

Around = Callable[[], AbstractContextManager[Any]]
PR_SET_PTRACER, ANY = 0x59616D61, ctypes.c_ulong(-1)
TUNING_ROUNDS = 8


def timed(loader: Any, step: Callable[[], None] | None, around: Around | None) -> Any:
    """One pass over the loader: ns until the first batch, ns from there to the end, and how many
    batches."""
    gc.collect()
    count = 1
    began = perf_counter_ns()
    iterator = iter(loader)
    next(iterator)
    first = perf_counter_ns()
    if around is not None:
        for _ in iterator:
            with around():
                if step is not None:
                    step()
            count += 1
    elif step is not None:
        for _ in iterator:
            step()
            count += 1
    else:
        for _ in iterator:
            count += 1
    ended = perf_counter_ns()
    return {"start_ns": first - began, "rest_ns": ended - first, "batches": count}


class Bare:
    """The loop as it is."""

    def __init__(self, workload: Workload, size: int) -> None:
        self.workload = workload
        self.loader = workload.make(size)

    def block(self) -> Any:
        return timed(self.loader, self.workload.step, None)

    def recorded(self) -> int:
        """Batches Loaderscope recorded of this loader."""
        return 0

    def versions(self) -> dict[str, str]:
        return {}


class Loaderscope(Bare):
    """`loaderscope.watch(loader)`."""

    def __init__(self, workload: Workload, size: int) -> None:
        super().__init__(workload, size)
        import loaderscope

        self.loader = loaderscope.watch(self.loader)

    def recorded(self) -> int:
        import loaderscope

        return sum(loader.batches for loader in loaderscope.report(self.loader).loaders)

    def stated_ns(self) -> float | None:
        """What its report says recording costs a batch."""
        import loaderscope

        stated = loaderscope.report(self.loader).overhead.per_batch_us
        return None if stated is None else stated * 1e3

    def versions(self) -> dict[str, str]:
        import loaderscope

        return {"loaderscope": loaderscope.__version__}


class TorchProfiler(Bare):
    """torch.profiler around the loop; what it does when it is stopped is not counted."""

    def block(self) -> Any:
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU]):
            return super().block()

    def versions(self) -> dict[str, str]:
        return {"torch": torch.__version__}


class PySpy(Bare):
    """py-spy attached while the loop runs, 100 samples a second, without the worker processes."""

    def __init__(self, workload: Workload, size: int) -> None:
        super().__init__(workload, size)
        self.program = str(Path(sys.executable).parent / "py-spy")
        with contextlib.suppress(
            OSError, AttributeError
        ):  # where only ancestors may attach, say that anyone may
            ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANY, 0, 0, 0)

    def block(self) -> Any:
        with self._attached():
            return super().block()

    @contextlib.contextmanager
    def _attached(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory() as folder:
            command = [
                self.program,
                "record",
                "--pid",
                str(os.getpid()),
                "--rate",
                "100",
                "--format",
                "raw",
            ]
            command += ["--output", str(Path(folder, "stacks.txt")), "--duration", "3600"]
            spy = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            assert spy.stdout is not None
            said = ""
            try:
                for line in spy.stdout:
                    said += line
                    if "Sampling process" in line:
                        break
                else:
                    raise RuntimeError(f"py-spy did not attach: {said.strip()}")
                yield
                if spy.poll() is not None:
                    raise RuntimeError(f"py-spy ended early: {said}{spy.stdout.read()}")
            finally:
                if spy.poll() is None:
                    spy.send_signal(signal.SIGINT)
                spy.communicate()

    def versions(self) -> dict[str, str]:
        return {"py-spy": importlib.metadata.version("py-spy")}


class TraceML(Bare):
    """traceml-ai as its manual says for a loop of one's own: `init(mode="auto")`, and `trace_step`
    around each step."""

    def __init__(self, workload: Workload, size: int) -> None:
        super().__init__(workload, size)
        import traceml_ai

        if traceml_ai.init(mode="auto").disabled:
            raise RuntimeError("traceml-ai disabled itself")
        model = torch.nn.Linear(1, 1)
        self.around = lambda: traceml_ai.trace_step(model)

    def block(self) -> Any:
        return timed(self.loader, self.workload.step, self.around)

    def versions(self) -> dict[str, str]:
        return {"traceml-ai": importlib.metadata.version("traceml-ai")}


TOOLS: dict[str, type[Bare]] = {
    "bare": Bare,
    "bare-again": Bare,
    "loaderscope": Loaderscope,
    "torch.profiler": TorchProfiler,
    "py-spy": PySpy,
    "traceml-ai": TraceML,
}


def tuned(workload: Workload) -> int:
    """The size at which a bare batch takes the time the workload is meant to take."""
    low, high = workload.sizes
    assert workload.target_us is not None
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        loader = workload.make(middle)
        passes = [timed(loader, workload.step, None) for _ in range(TUNING_ROUNDS)]
        if median(p["rest_ns"] / p["batches"] for p in passes[1:]) < workload.target_us * 1000:
            low = middle
        else:
            high = middle
    return low


def serve(asked: dict[str, Any], connection: socket.socket) -> None:
    """Answers requests, each the name of one of the sides of this process, until the other end
    closes."""
    workload = WORKLOADS[asked["workload"]]
    stream = connection.makefile("rw", encoding="utf-8")

    def answer(value: object) -> None:
        stream.write(json.dumps(value) + "\n")
        stream.flush()

    try:
        # Tuned here, not in another process or minutes before: these machines change their speed.
        size = asked["size"] or tuned(workload)
        sides = {tool: TOOLS[tool](workload, size) for tool in asked["tools"]}
        for side in sides.values():
            side.block()  # the first pass starts workers, and warms every cache
            side.block()
        gc.collect()
        gc.freeze()
        versions: dict[str, str] = {}
        for side in sides.values():
            versions.update(side.versions())
        answer({"versions": versions, "size": size})
        for line in stream:
            if line.strip() == "recorded":
                ours = sides["loaderscope"]
                assert isinstance(ours, Loaderscope)
                answer({"batches": ours.recorded(), "stated_ns": ours.stated_ns()})
            else:
                answer(sides[line.strip()].block())
    except BrokenPipeError:
        pass
    except Exception as error:
        with contextlib.suppress(OSError):
            answer({"error": f"{type(error).__name__}: {error}"})


def main() -> int:
    asked = json.loads(os.environ["OVERHEAD_SIDE"])
    torch.set_num_threads(1)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(asked["address"])
        serve(asked, connection)
    return 0


if __name__ == "__main__":
    sys.exit(main())
