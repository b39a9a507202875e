"""What a recording process says of itself in its `process.json`."""

from __future__ import annotations

import os
import platform
import socket
import time
from typing import Any

from ..base.clock import now_ns
from ..base.cpu_list import cpu_list
from ..base.liveness import boot_id
from .ranks import group_of_process, ranks
from .rundir import FORMAT, command_line


def _fd_limit() -> int | None:
    """How many files this process may hold open (the soft limit); None where that is unlimited or unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else None


def process_facts() -> dict[str, Any]:
    """JSON values; the ranks are those known now, see `ranks`."""
    import multiprocessing

    import psutil
    import torch

    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
    return {
        "format": FORMAT,
        "pid": os.getpid(),
        "create_time": psutil.Process().create_time(),
        "host": socket.gethostname(),
        "boot_id": boot_id(),
        "clock_ns": now_ns(),
        "unix_ns": time.time_ns(),
        "argv": command_line(),
        **ranks(os.environ, group_of_process()).facts(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "start_method": multiprocessing.get_start_method(allow_none=True),
        "affinity": len(cpus) if cpus is not None else None,
        "cpus": cpu_list(cpus) if cpus is not None else None,
        "torch_threads": torch.get_num_threads(),
        "fd_limit": _fd_limit(),
        "device": None,
        "reasons": {},
    }
