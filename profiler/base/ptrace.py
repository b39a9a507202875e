"""Lets the sampler's stack reader read this process where Yama forbids it (`ptrace_scope` 1, as on
Ubuntu).

With Yama, a process can be read by its ancestors, and by one process that it names with that one's
descendants. A training process and its workers name the sampler, whose child py-spy is. Nothing
else of their protection changes. The permission is not inherited, so each worker gives its own.
"""

from __future__ import annotations

from contextlib import suppress
from multiprocessing import process as processes

PR_SET_PTRACER = 0x59616D61  # linux/prctl.h
_KEY = "loaderscope_tracer"


def allow(pid: int | None) -> None:
    """Let process `pid` and its descendants read this process's memory. Does nothing without Yama
    (the kernel answers EINVAL) and on other systems. Never raises."""
    if pid is None or pid <= 1:
        return
    with suppress(Exception):  # no other system has `prctl`
        import ctypes

        prctl = ctypes.CDLL(None).prctl
        prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
        prctl(PR_SET_PTRACER, pid, 0, 0, 0)


def pass_on(pid: int | None) -> None:
    """Tell the workers that this process will start whom to allow.

    `multiprocessing` passes its configuration from process to process with every start method.
    """
    with suppress(Exception):
        config = processes.current_process()._config  # type: ignore[attr-defined]
        if pid:
            config[_KEY] = pid
        else:
            config.pop(_KEY, None)


def allow_as_told() -> None:
    """In a worker, allow the process that its parent names. Never raises."""
    with suppress(Exception):
        allow(int(processes.current_process()._config.get(_KEY, 0)))  # type: ignore[attr-defined]
