"""Letting the sampler's stack reader look at this process where Yama forbids it (`ptrace_scope` 1,
as on Ubuntu).

Yama lets a process be read by its ancestors and by one process it names, with that one's
descendants. So a training process and its workers name the sampler, and nobody else: py-spy runs as
the sampler's child. Nothing else of a process's protection is changed. The permission is not
inherited, so each worker gives its own.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from multiprocessing import process as processes

PR_SET_PTRACER = 0x59616D61  # linux/prctl.h
_KEY = "loaderscope_tracer"


def allow(pid: int | None) -> None:
    """Let process `pid` and its descendants read this process's memory; does nothing where there is
    no Yama (the kernel then says EINVAL) and no such rule (other systems). Never raises."""
    if not sys.platform.startswith("linux") or not pid or pid <= 1:
        return
    with suppress(Exception):
        import ctypes

        prctl = ctypes.CDLL(None).prctl
        prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
        prctl(PR_SET_PTRACER, pid, 0, 0, 0)


def pass_on(pid: int | None) -> None:
    """Have the workers that this process will start know whom to allow.

    It travels in the configuration that `multiprocessing` hands from process to process, however
    they are started.
    """
    with suppress(Exception):
        config = processes.current_process()._config  # type: ignore[attr-defined]
        if pid:
            config[_KEY] = pid
        else:
            config.pop(_KEY, None)


def allow_as_told() -> None:
    """In a worker: allow whom the process that started it names. Never raises."""
    with suppress(Exception):
        allow(int(processes.current_process()._config.get(_KEY, 0)))  # type: ignore[attr-defined]
