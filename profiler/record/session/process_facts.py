"""The facts of a recording process, for its `process.json`."""

from __future__ import annotations

import os
import platform
import resource
from dataclasses import asdict
from typing import Any

from ...base.cpu_list import cpu_list
from ...base.facts import FORMAT, ProcessFacts
from ...base.host import allowed_cores, boot_id, both_clocks, host_name
from ...base.liveness import created_here
from ...base.tolerant import as_json
from ...store.rundir import command_line
from .ranks import group_of_process, ranks


def _fd_limit() -> int | None:
    """The soft limit on open files, None if unlimited."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if soft != resource.RLIM_INFINITY else None


def process_facts() -> dict[str, Any]:
    """As JSON values, with the ranks known now (see `ranks`)."""
    import multiprocessing

    import torch

    clocks = both_clocks()
    return as_json(
        ProcessFacts(
            format=FORMAT,
            pid=os.getpid(),
            create_time=created_here(),
            host=host_name(),
            boot_id=boot_id(),
            clock_ns=clocks["clock_ns"],
            unix_ns=clocks["unix_ns"],
            argv=tuple(command_line()),
            **asdict(ranks(os.environ, group_of_process())),
            python=platform.python_version(),
            torch=str(torch.__version__),
            start_method=multiprocessing.get_start_method(allow_none=True),
            affinity=allowed_cores(),
            cpus=cpu_list(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
            torch_threads=torch.get_num_threads(),
            fd_limit=_fd_limit(),
        )
    )
