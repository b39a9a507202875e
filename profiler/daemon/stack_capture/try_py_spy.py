"""Trying for real whether stacks can be read here: on a process of our own, that permits it as a
training does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ...base.ptrace import PR_SET_PTRACER
from .py_spy import ENVIRONMENT, why_failed

PATIENCE_S = 20.0

# It permits its parent, whose child py-spy is, says that it runs, and ends with its input.
_SUBJECT = """
import ctypes, sys
try:
    prctl = ctypes.CDLL(None).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    prctl({option}, {parent}, 0, 0, 0)
except Exception:
    pass
print("here", flush=True)
sys.stdin.read()
"""


def try_stacks(program: str, root: Path = Path("/")) -> str | None:
    """Why py-spy (`program`) cannot read a process of this user; None where it can. Takes about 0.2
    s. Never raises."""
    code = _SUBJECT.format(option=PR_SET_PTRACER, parent=os.getpid())
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    try:
        with subprocess.Popen(
            [sys.executable, "-S", "-c", code], stdin=pipe, stdout=pipe, stderr=nothing
        ) as subject:
            try:
                assert subject.stdout is not None
                subject.stdout.readline()
                told = subprocess.run(
                    [program, "dump", "--nonblocking", "--pid", str(subject.pid)],
                    stdin=nothing,
                    capture_output=True,
                    timeout=PATIENCE_S,
                    check=False,
                    env=ENVIRONMENT,
                )
            finally:
                subject.kill()
    except subprocess.TimeoutExpired:
        return f"py-spy did not answer within {PATIENCE_S:g} s"
    except OSError as error:
        return f"py-spy cannot be started: {error.strerror or error}"
    if told.returncode == 0 and b"Thread " in told.stdout:
        return None
    return why_failed((told.stderr or told.stdout).decode("utf-8", "replace"), root)
