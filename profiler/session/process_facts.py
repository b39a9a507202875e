"""What a recording process says of itself in its `process.json`."""

from __future__ import annotations

import os
import platform
from typing import Any

from ..base.host import allowed_cores, boot_id, both_clocks, host_name
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
    """JSON values; ranks are those torchrun and its like set in the environment."""
    import multiprocessing

    import psutil
    import torch

    def number(name: str) -> int | None:
        text = os.environ.get(name, "")
        return int(text) if text.isdigit() else None

    return {
        "format": FORMAT,
        "pid": os.getpid(),
        "create_time": psutil.Process().create_time(),
        "host": host_name(),
        "boot_id": boot_id(),
        **both_clocks(),
        "argv": command_line(),
        "rank": number("RANK"),
        "local_rank": number("LOCAL_RANK"),
        "world_size": number("WORLD_SIZE"),
        "local_world_size": number("LOCAL_WORLD_SIZE"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "start_method": multiprocessing.get_start_method(allow_none=True),
        "affinity": allowed_cores(),
        "torch_threads": torch.get_num_threads(),
        "fd_limit": _fd_limit(),
        "device": None,
        "reasons": {},
    }
