"""Shared memory or file descriptors that run out.

What it looks for
    Batches in flight (num_workers × prefetch_factor of them) that need more than 80 % of /dev/shm
    (FULL), a /dev/shm that was more than 80 % full, or a process with more than 80 % of the file
    descriptors it may hold (where that was not recorded, of 1,024, the usual limit), because its
    batches hold many tensors.

Why it matters
    A worker that cannot get shared memory dies with "Bus error", and one without file descriptors
    with "Too many open files": often not at the start, but when a batch is larger or the loop is
    slower than usual. Containers often get 64 MB of /dev/shm.

What to change
    Fewer batches in flight, more shared memory for the container (docker run --shm-size), fewer and
    larger tensors, or torch.multiprocessing.set_sharing_strategy("file_system") against the limit
    of descriptors.

When not to
    The file_system strategy uses the same shared memory, and leaves its files behind when a run is
    killed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...case.advice import Advice, Outcome
from ...case.case import Case
from ...case.evidence import tensors
from ...code.loader_code import loader_code
from ...schema.figures import count, percent, size

NAME = "shared-memory"
KIND = "safety"
EFFORT = "one argument"

FULL = 0.8  # docs/causes.md, "Shared memory and descriptors"
# The usual soft limit of Linux distributions (RLIMIT_NOFILE), where the process's own was not
# recorded.
DESCRIPTORS = 1024
# Descriptors are only laid to the loader if its tensors in flight can be that many.
LOADERS_SHARE = 0.5
# What a batch of the usual kind keeps free: after the change no more than half of the memory is to
# be in use.
AIM = 0.5

_KEEP_COPIES = """\
# keep copies, not what came from the worker:
kept.append(batch.clone())  # of each tensor; or what is computed of it: loss.item()

# or, where all of it must be kept:
import torch

torch.multiprocessing.set_sharing_strategy("file_system")
"""
_SHARING = """\
import torch

torch.multiprocessing.set_sharing_strategy("file_system")  # or raise the limit: ulimit -n 65536
"""


def examine(case: Case) -> Iterator[Outcome]:
    if not case.num_workers:
        return
    yield from _memory(case)
    yield from _descriptors(case)


def _memory(case: Case) -> Iterator[Outcome]:
    total, used, a_batch = (
        case.system.shm_total_bytes,
        case.system.shm_used_peak_bytes,
        case.report.bytes_per_batch,
    )
    if not total or a_batch is None:
        return
    now = case.loader.prefetch_factor
    held = case.num_workers * now * a_batch
    # What others keep there is not known apart; a full /dev/shm is this loader's doing if it needs
    # a good part of it.
    full = used is not None and used > FULL * total and held > (1 - FULL) * total
    if not (held > FULL * total or full):
        return
    workers, factor = _fitting(case, total * AIM, a_batch)
    evidence = {
        "/dev/shm": size(total),
        "batches in flight": f"{case.num_workers * now} of {size(a_batch)}: {size(held)}",
    }
    if used is not None:
        evidence["used at most"] = f"{size(used)} ({percent(used / total)})"
    fewer: dict[str, Any] = (
        {"num_workers": workers, "prefetch_factor": factor} if workers else {"num_workers": 0}
    )
    yield case.change(
        **fewer, then="\n# or give the container more: docker run --shm-size=8g …\n"
    ).advise(
        title="Shared memory is about to run out",
        why=f"{case.num_workers * now} batches of {size(a_batch)} may lie in /dev/shm, which has "
        f"{size(total)}: a worker that finds it full dies with a bus error.",
        evidence=evidence,
        caveat="Fewer batches in flight absorb less unevenness; more shared memory costs nothing "
        "in speed.",
    )


def _fitting(case: Case, room: float, a_batch: float) -> tuple[int, int]:
    """(workers, prefetch_factor) of which the batches in flight fit, giving up depth before
    workers."""
    batches = int(room / a_batch)
    workers = max(0, min(case.num_workers, batches))
    factor = min(case.loader.prefetch_factor, max(1, batches // workers)) if workers else 1
    return workers, factor


def _grown(case: Case) -> int:
    """How many more files the training process held open at its most than when the loop began."""
    if case.host is None or not case.loader.batches.rows:
        return 0
    process = case.host.process
    mine = (process["pid"] == case.process.pid) & (process["fds"] >= 0)
    fds = process["fds"][mine & (process["t_ns"] >= int(case.loader.batches["t_ns"][0]))]
    return int(fds.max()) - int(fds[0]) if len(fds) else 0


def _limit(case: Case) -> tuple[int, str]:
    """How many files the process may hold open, and a sentence that says so."""
    own = case.process.fd_limit
    if own is not None and own > 0:
        return own, f"It may hold {count(own)}."
    return DESCRIPTORS, f"The usual limit is {count(DESCRIPTORS)}."


def _kept(case: Case, open_now: int, many: float) -> Advice:
    grown = _grown(case)
    return case.change(code=_KEEP_COPIES).advise(
        title="Batches are kept, and each holds file descriptors",
        why=f"The training process came to hold {count(grown)} more open files while it looped, "
        f"{count(open_now)} in all. Each tensor from a worker that is kept (in a list, say) keeps "
        f"one: {count(many)} a batch. {_limit(case)[1]}",
        evidence={
            "open files": count(open_now),
            "of them since the loop began": count(grown),
            "tensors": f"{count(many)} a batch",
            "limit": f"{count(_limit(case)[0])} files (ulimit -n)",
        },
        caveat="The file_system strategy leaves files in /dev/shm when a run is killed.",
    )


def _descriptors(case: Case) -> Iterator[Outcome]:
    open_now = [
        p.fds_max
        for p in case.system.processes
        if p.pid == case.process.pid and p.fds_max is not None
    ]
    many = tensors(case)
    if not open_now or many is None or max(open_now) <= FULL * _limit(case)[0]:
        return
    flight = case.num_workers * case.loader.prefetch_factor * many
    if flight < LOADERS_SHARE * max(open_now):
        if many > 0 and _grown(case) >= LOADERS_SHARE * max(open_now):
            yield _kept(case, max(open_now), many)
        return
    yield case.change(code=f"{_SHARING}{loader_code(case)}\n").advise(
        title="File descriptors are about to run out",
        why=f"The training process holds {count(max(open_now))} open files. Each tensor on its way "
        f"from a worker is one: {count(many)} a batch, up to {count(flight)} in flight. "
        f"{_limit(case)[1]}",
        evidence={
            "open files": count(max(open_now)),
            "tensors in flight": f"{count(flight)} ({count(many)} a batch)",
            "limit": f"{count(_limit(case)[0])} files (ulimit -n)",
        },
        caveat="The file_system strategy leaves files in /dev/shm when a run is killed. Packing "
        "the fields of a batch into a few tensors helps speed too.",
    )
