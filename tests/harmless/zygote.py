"""A process that has imported torch and forks once a program: each begins like a fresh one, at once.

Reads a job a line, and answers how the program ended and what it left running. A fork goes on into
`perform`, as the last thing this module does, so that it ends as any Python program. No thread may
exist here. `--job JSON` is one job in an interpreter of its own.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

GRACE_S = 8.0  # for what a program leaves running to end


def serve() -> dict[str, Any]:
    """Returns in each fork, with the job it is to do."""
    import numpy.random  # noqa: F401
    import psutil  # noqa: F401
    import torch
    import torch.utils.data

    from harmless import catalogue, observing  # noqa: F401
    from harmless.preparing import own_shared_memory

    # Torch imports at a first batch, and drops what a handler raises meanwhile.
    with suppress(AttributeError):
        torch.autograd.profiler._maybe_cupti_monitor()
    torch.set_num_threads(1)
    for module in (torch.utils.data._utils, torch.utils.data._utils.worker):
        module.MP_STATUS_CHECK_INTERVAL = 0.5  # torch waits so long for a worker that is silent
    catalogue.programs()
    os.environ["HARMLESS_SHM"] = "own" if own_shared_memory() else "shared"
    gc.collect()
    gc.freeze()  # or each fork would copy all of torch's objects to look at them once
    while line := sys.stdin.readline():
        job: dict[str, Any] = json.loads(line)
        if os.environ["HARMLESS_SHM"] == "own":
            for left in os.listdir("/dev/shm"):  # by a program that was killed
                with suppress(OSError):
                    os.unlink(f"/dev/shm/{left}")
        pid = os.fork()
        if pid == 0:
            _become(job)
            return job
        print(json.dumps(_supervise(pid, job["limit_s"])), flush=True)
    sys.exit(0)


def _become(job: dict[str, Any]) -> None:
    """In the fork: a session, files and a folder of its own."""
    os.setsid()
    os.chdir(job["folder"])
    for fd, name in ((0, os.devnull), (1, "stdout"), (2, "stderr")):
        opened = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        os.dup2(opened, fd)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115  the program's, to its end
    os.environ.update(job["environment"])
    if job["options"] is not None:
        command = [sys.executable, *job["options"], "-m", "harmless.zygote", "--job"]
        os.execv(sys.executable, [*command, json.dumps(job)])


def _supervise(pid: int, limit_s: float) -> dict[str, Any]:
    """Waits for it, kills it past its limit, ends what it left."""
    ended = os.pidfd_open(pid)
    in_time = bool(select.select([ended], [], [], limit_s)[0])
    os.close(ended)
    if not in_time:
        for other in _session_of(pid):
            with suppress(ProcessLookupError):
                os.kill(other, signal.SIGKILL)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    deadline = time.monotonic() + (GRACE_S if in_time else 0)
    while (left := _session_of(pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for other in left:
        with suppress(ProcessLookupError):
            os.kill(other, signal.SIGKILL)
    if not in_time:
        return {"status": f"still running after {limit_s:.0f} s", "left running": None}
    return {"status": os.waitstatus_to_exitcode(status), "left running": len(left)}


def _session_of(leader: int) -> list[int]:
    """The living processes of this session, but the zombies."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError):
                with open(f"/proc/{name}/stat") as file:
                    state, _, _, session = file.read().rpartition(")")[2].split()[:4]
                if int(session) == leader and state != "Z":
                    found.append(int(name))
    return found


if __name__ == "__main__":
    job = json.loads(sys.argv[2]) if sys.argv[1:2] == ["--job"] else serve()
    sys.argv[:] = ["program.py", "--lr", "0.1"]
    from harmless.observing import perform

    perform(job)
