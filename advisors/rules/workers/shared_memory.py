"""Shared memory or file descriptors that run out.

What it looks for
    Batches in flight (num_workers × prefetch_factor of them) that need more than 80 % of /dev/shm
    (FULL), a /dev/shm that was more than 80 % full, or a process with more than 80 % of the file
    descriptors it may hold, because its batches hold many tensors.

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

from typing import Any

from ...case.advice import Outcomes
from ...case.case import Case
from ...case.workers import per_batch
from ...code.loader_code import loader_code
from ...schema.evidence import count, percent, size
from ...stage_model.measured import peak

KIND = "safety"
EFFORT = "one argument"
NEEDS = "workers"

FULL = 0.8  # docs/causes.md, "Shared memory and descriptors"
# Descriptors are the loader's doing only if its tensors in flight can be that many, or if so many
# were opened while it ran: by tensors that the loop keeps.
LOADERS_SHARE = 0.5
# After the change, batches of the usual size use at most this part of the memory.
AIM = 0.5

_LEFT_BEHIND = "The file_system strategy leaves files in /dev/shm when a run is killed."
_SHARING = """\
import torch

torch.multiprocessing.set_sharing_strategy("file_system")"""

_COPIES = "# of what the loop keeps, keep copies: kept.append(batch.clone())\n"


def examine(case: Case) -> Outcomes:
    yield from _memory(case)
    yield from _descriptors(case)


def _memory(case: Case) -> Outcomes:
    total, used = case.system.shm_total_bytes, case.system.shm_used_peak_bytes
    a_batch = case.report.bytes_per_batch
    if not total or a_batch is None:
        return
    batches = case.num_workers * case.loader.prefetch_factor
    held = batches * a_batch
    # Others use /dev/shm too. If it is full, this loader is the cause if it needs a good part.
    full = (used or 0) > FULL * total and held > (1 - FULL) * total
    if not (held > FULL * total or full):
        return
    yield case.change(
        **_fitting(case, int(total * AIM / a_batch)),
        then="\n# or give the container more: docker run --shm-size=8g …\n",
    ).advise(
        "Shared memory is about to run out",
        f"{batches} batches of {size(a_batch)} may lie in /dev/shm, which has {size(total)}. A "
        "worker that finds it full dies with a bus error.",
        {
            "/dev/shm": size(total),
            "batches in flight": size(held, f"in {batches}"),
            "used at most": size(used),
            "of /dev/shm": percent(used / total if used is not None else None),
        },
        caveat="Fewer batches in flight absorb less unevenness; more shared memory costs nothing "
        "in speed.",
    )


def _fitting(case: Case, batches: int) -> dict[str, Any]:
    """Arguments for at most so many batches in flight, giving up depth before workers."""
    workers = max(0, min(case.num_workers, batches))
    if not workers:
        return {"num_workers": 0}
    factor = min(case.loader.prefetch_factor, max(1, batches // workers))
    return {"num_workers": workers, "prefetch_factor": factor}


def _descriptors(case: Case) -> Outcomes:
    many, limit = per_batch(case, "tensors"), case.process.fd_limit or 0
    if many is None or case.host is None or limit <= 0:
        return
    lane = case.host.process
    fds = lane["fds"][lane["pid"] == case.process.pid]
    open_now = peak(fds) or 0
    if open_now <= FULL * limit:
        return
    flight = case.num_workers * case.loader.prefetch_factor * many
    evidence = {
        "open files": count(open_now),
        "tensors per batch": count(many),
        "limit": count(limit, "files (ulimit -n)"),
    }
    if max(flight, many and open_now - fds[0]) >= LOADERS_SHARE * open_now:
        code = f"{_SHARING}  # or raise the limit: ulimit -n 65536\n{_COPIES}{loader_code(case)}\n"
        yield case.change(code=code).advise(
            "File descriptors are about to run out",
            f"The training process holds {count(open_now)} open files. Each tensor on its way from "
            f"a worker is one: {count(many)} per batch, up to {count(flight)} in flight. So is "
            f"each that the loop keeps (in a list, say). It may hold {count(limit)}.",
            {**evidence, "tensors in flight": count(flight)},
            caveat=f"{_LEFT_BEHIND} Packing the fields of a batch into a few tensors helps speed "
            "too.",
        )
