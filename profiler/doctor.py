"""What can and cannot be measured on this machine, and how to enable it. Changes nothing."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .base import torch_parts
from .daemon.gpu import driver_present
from .daemon.stack_capture.py_spy import MISSING, find_py_spy, ptrace_scope, try_stacks
from .native import form
from .record.session.start_sampler import why_not_kept
from .store.rundir import runs_directory

# With which the tests passed: `make test-python`, benchmarks/results/python.
TRIED_PYTHONS = ("3.11", "3.13", "3.14")


@dataclass(frozen=True)
class Check:
    """One finding. `ok` is None if nothing is known, or nothing is missing that could be had.
    `fix` says how to fix it."""

    name: str
    ok: bool | None
    finding: str
    fix: str | None = None


Load = Callable[[str], Any]
Found = tuple[bool | None, str, str | None]  # the fields of a check but its name


def checks(
    root: Path = Path("/"),
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
    load: Load = importlib.import_module,
) -> tuple[Check, ...]:
    """Every check, in the order in which they matter.

    `root` is where /proc, /sys and /dev lie, `directory` the folder for runs (by default the one
    runs go to), `load` imports a module by name. Never raises: a check that fails says so.
    """
    tried: dict[str, Callable[[], Found]] = {
        "run directory": lambda: _run_directory(directory or runs_directory(environ)),
        "recording memory": lambda: _keeping(why_not_kept()),
        "python": lambda: _python_version(platform.python_version()),
        "torch": lambda: _torch_version(load),
        "device": lambda: _device(load("torch")),
        "nvml": lambda: _nvml(root, load),
        "stacks": lambda: _stacks(root, find_py_spy(environ)),
        "hot path": lambda: _hot_path(form.why_python),
    }
    found = []
    for name, check in tried.items():
        try:
            found.append(Check(name, *check()))
        except Exception as error:
            why = f"could not be checked: {type(error).__name__}: {error}"
            found.append(Check(name, None, why))
    return tuple(found)


def _run_directory(directory: Path) -> Found:
    """Whether runs can be written there."""
    nearest = next(each for each in (directory, *directory.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        fix = "set LOADERSCOPE_DIR to a folder that you may write to"
        return False, f"{directory} cannot be written: {error.strerror}", fix
    return True, f"{directory} can be written", None


def _keeping(why_not: str) -> Found:
    """Whether batches are recorded in memory that the system sampler keeps, or each by a system
    call."""
    if why_not:
        fix = "recording works and costs some µs more a batch"
        return True, f"{why_not}: each batch is written by system calls", fix
    return True, "batches are recorded in memory that outlives the training process", None


def _python_version(version: str) -> Found:
    """Whether this Python is one that was tried, or an earlier one."""
    newest = TRIED_PYTHONS[-1]
    if _release(version) <= _release(newest):
        return True, f"Python {version} (tried: {', '.join(TRIED_PYTHONS)})", None
    fix = (
        "the compiled hooks use insides of Python that it may have changed: "
        f"{form.PURE_VARIABLE}=1 does without them; then upgrade loaderscope"
    )
    return None, f"Python {version} is newer than what was tried (up to {newest})", fix


def _torch_version(load: Load) -> Found:
    """Whether torch is there, and of a release whose DataLoader was tried."""
    try:
        version = str(load("torch").__version__)
    except ImportError as error:
        fix = "recorded runs are shown without it; to record, install PyTorch in this environment"
        return False, f"torch cannot be imported: {error}", fix
    oldest = torch_parts.TRIED[0]
    if _release(version) < _release(oldest):
        fix = "upgrade PyTorch"
        return False, f"torch {version} is older than what is handled ({oldest} or later)", fix
    never = torch_parts.untried(version)
    if never is not None:
        fix = (
            "what it changed in its DataLoader is not measured, and reports begin with that; then "
            "upgrade loaderscope"
        )
        return None, never, fix
    return True, f"torch {version} (tried: {', '.join(torch_parts.TRIED)})", None


def _release(version: str) -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return tuple(map(int, numbers.groups())) if numbers else (0, 0)


def _device(torch: Any) -> Found:
    """Whether device times can be measured."""
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        devices = f"{count} CUDA device{'s' * (count != 1)}"
        return True, f"{devices}: copies, compute and stall by device events", None
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        found = "this torch is built for CPUs only: no device times"
        return None, found, "if there is a GPU, install a CUDA build of PyTorch"
    fix = (
        "check that nvidia-smi works here and that the driver is new enough for this torch; in "
        "Docker use --gpus all"
    )
    return None, f"torch is built for CUDA {torch.version.cuda} but sees no device", fix


def _nvml(root: Path, load: Load) -> Found:
    """Whether GPU use, memory, power and PCIe can be sampled."""
    if not driver_present(root):
        found = "no NVIDIA driver is loaded: no GPU use, memory or power"
        return None, found, "in Docker use --gpus all"
    try:
        nvml = load("pynvml")
    except ImportError:
        return False, "NVML's Python binding is missing", "pip install nvidia-ml-py"
    try:
        nvml.nvmlInit()
        count = int(nvml.nvmlDeviceGetCount())
        nvml.nvmlShutdown()
    except Exception as error:
        fix = "check that nvidia-smi works here; after an update of the driver, reboot or reload it"
        return False, f"NVML does not start: {error}", fix
    return bool(count) or None, f"{count} GPU{'s' * (count != 1)} can be sampled", None


def _stacks(root: Path, program: str | None) -> Found:
    """Whether py-spy can say which functions the time goes to. It is tried on this process."""
    if program is None:
        found, _, fix = MISSING.partition(": ")
        return None, f"{found}: no shares of functions", fix
    why, scope = try_stacks(program), ptrace_scope(root)
    if why is None:
        by = "" if not scope else f", which the processes of a run permit it (ptrace_scope {scope})"
        return True, f"py-spy can read the stacks of a run's processes{by}", None
    found, _, fix = why.partition(": ")
    fix = "; ".join(filter(None, (fix, "all other figures are unaffected")))
    return None, f"py-spy cannot read stacks: {found}", fix


def _hot_path(why_python: str) -> Found:
    """Which form of the code that runs once a batch is in use."""
    if not why_python:
        return True, "compiled: about 1 µs a batch", None
    fix = (
        f"about 3 µs a batch instead of 1; for that, unset {form.PURE_VARIABLE}, or install where "
        "there is a C compiler"
    )
    return None, f"in Python: {why_python}", fix
