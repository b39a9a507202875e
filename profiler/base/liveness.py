"""Whether a recording process is still alive, as far as this machine can tell."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from .host import boot_id, host_name

if TYPE_CHECKING:
    from .facts import EndedProcess

State = Literal["live", "finished", "crashed", "unknown"]

# psutil derives the time from the boot time, which moves a little when the wall clock is set.
CREATE_TIME_TOLERANCE_S = 2.0


def created(pid: int) -> float | None:
    """When the process of this id was created, in seconds since 1970. None if there is none, or a
    zombie. NaN if the time is unknown."""
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return float(process.create_time())
    except psutil.AccessDenied:
        return math.nan
    except (psutil.Error, OSError, ValueError, OverflowError):
        return math.nan if _exists(pid) else None


def created_here() -> float | None:
    """When this process was created. None if unknown, as on Linux without /proc."""
    since = created(os.getpid())
    return None if since is None or math.isnan(since) else since


def _exists(pid: int) -> bool:
    """Whether signals would reach a process of this id that psutil does not know."""
    if os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError):
        return False
    return True


@dataclass(frozen=True)
class Liveness:
    """This host's facts. They are passed in, so that tests can choose them."""

    host: str = field(default_factory=host_name)
    boot_id: str | None = field(default_factory=boot_id)
    created: Callable[[int], float | None] = created

    def state(
        self,
        host: str | None,
        boot: str | None,
        pid: int | None,
        begun: float | None,
        exact: bool = True,
    ) -> State:
        """The state of a process that has not said it ended; `begun` is its creation time.

        With `exact=False`, `begun` is only a time at which it was already running. Another boot of
        the same host means "crashed"; another host means "unknown".
        """
        if host is None or host != self.host:
            return "unknown"
        if boot is not None and self.boot_id is not None and boot != self.boot_id:
            return "crashed"
        since = self.created(pid) if pid is not None and 0 < pid < 1 << 31 else None
        if since is None:
            return "crashed"
        if begun is None or math.isnan(since):
            return "live"
        off = since - begun
        same = off <= CREATE_TIME_TOLERANCE_S and (not exact or -off <= CREATE_TIME_TOLERANCE_S)
        return "live" if same else "crashed"


def process_state(facts: EndedProcess, liveness: Liveness) -> State:
    """The state of the process that wrote this process.json."""
    if facts.ended_clock_ns is not None:
        return "finished"
    return liveness.state(facts.host, facts.boot_id, facts.pid, facts.create_time)
