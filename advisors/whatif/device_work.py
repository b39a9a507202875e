"""What the device does in a loop, and how the program and the device wait for each other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...profiler.base.arrays import Floats, Ints
from ...profiler.store.run.run import LoaderRun

_COLUMNS = (
    "compute_ns",
    "compute_device_ns",
    "stall_ns",
    "h2d_ns",
    "h2d_host_ns",
    "h2d_copies",
    "h2d_pinned",
    "h2d_blocking",
)
# A loop counts as one that waits for its copies, or issues them on another stream, if more than
# this part of them is.
MOST = 0.5
# Issuing a copy takes as long each time. Where a call takes longer than its copy by more, the
# device was further behind than is known: the low quantile is the issuing itself.
LEAST = 0.1


@dataclass(frozen=True)
class Together:
    """How the program and the device work together. `blocking`: it waits for the copies;
    `asked_blocking`: it would from page-locked memory, too. `synchronous`: it waits for the end of
    each step. `copy_stream`: copies go to a stream of their own."""

    blocking: bool
    asked_blocking: bool
    synchronous: bool
    copy_stream: bool

    def pinned(self, on: bool) -> Together:
        """As it is with page-locked batches, or without: copies out of ordinary memory are always
        waited for."""
        return replace(self, blocking=self.asked_blocking if on else True)


@dataclass(frozen=True, repr=False)
class DeviceWork:
    """Times of each steady batch in ns: `copy` and `kernel` are the device's, `issue` is the
    program's own in a step, without waiting for the device; `call` is the part of `issue` in calls
    that copy."""

    together: Together
    copy_ns: Floats
    kernel_ns: Floats
    issue_ns: Floats
    call_ns: Floats
    step_ns: float  # mean, by the device: from one hand-over to the next

    def free_ns(self, together: Together, copy: float, kernel: float) -> float:
        """Mean of a step if batches were there at once, with these factors on copying and on
        computing."""
        copying, issue = self.copy_ns * copy, self.issue_ns - self.call_ns * (1 - min(1.0, copy))
        kernels = self.kernel_ns * kernel
        device = np.maximum(copying, kernels) if together.copy_stream else copying + kernels
        return float(np.maximum(issue * kernel + copying * together.blocking, device).mean())


def device_work(loader: LoaderRun, steady: Ints) -> DeviceWork | None:
    """Of these rows of the loader's batches; None where the device was not timed."""
    c = {name: loader.batches[name][steady].astype(np.float64) for name in _COLUMNS}
    if not np.any(c["compute_device_ns"] >= 0):
        return None
    device, copy, host = (_filled(c[n]) for n in ("compute_device_ns", "h2d_ns", "h2d_host_ns"))
    copies, steps = c["h2d_copies"].clip(0).sum(), loader.device_steps
    aside = steps is not None and (steps.aside_share or 0.0) > MOST
    asked = _share(c["h2d_blocking"], copies) > MOST
    ordinary = bool((c["h2d_pinned"] >= 0).any()) and _share(c["h2d_pinned"], copies) < MOST
    blocking = bool(copies and (asked or ordinary))
    waits = steps.every_step if steps is not None else ()
    waited = sum(wait.mean_ns * wait.a_step for wait in waits)
    calls, issue = host, c["compute_ns"] - waited
    if blocking:
        free = (c["h2d_host_ns"] - c["h2d_ns"]).clip(0)
        timed = (c["h2d_host_ns"] >= 0) & (c["h2d_ns"] >= 0)
        calls = np.full(len(host), np.quantile(free[timed], LEAST) if timed.any() else 0.0)
        issue = issue - (host - calls)
    issue = issue.clip(0)
    stall = c["stall_ns"]
    known = (stall >= 0) & (c["compute_device_ns"] >= 0)
    return DeviceWork(
        together=Together(blocking, asked, waited > 0, aside),
        copy_ns=copy,
        # While calls wait for a copy, the device stands still between two copies for as long as the
        # rest of them takes.
        kernel_ns=device if aside else (device - copy - calls * blocking).clip(0),
        issue_ns=issue,
        call_ns=np.minimum(calls, issue),
        step_ns=float((stall + c["compute_device_ns"])[known].mean()) if known.any() else 0.0,
    )


def _filled(values: Floats) -> Floats:
    """What was measured of some batches only stands for the others, too."""
    known = values[values >= 0]
    return np.where(values >= 0, values, known.mean() if len(known) else 0.0)


def _share(values: Floats, copies: float) -> float:
    return float(values.clip(0).sum() / copies) if copies else 0.0
