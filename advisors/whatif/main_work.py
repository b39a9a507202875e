"""What the training process does for loading and computing, beyond the recorded stages."""

import numpy as np

from ...profiler.base.arrays import Floats
from ...profiler.store.run.run import ProcessRun, Run
from ..stage_model.core_wait import grown_in_loop
from ..stage_model.measured import mean
from . import costs
from .recorded import Recorded

# Fewer batches show too little of a typical hand-over.
ENOUGH = 5
# Taking a batch costs unpacking and torch's own code: more than this is something else.
RECEIVE_MOST_NS = 3e6
# If computing takes less than this part of making batches in main, CPU time of other threads is not
# attributed to computing.
MINOR = 0.5
# A loop that computes for less than this share of its time does not compute.
LEAST_COMPUTING = 0.02


def receive_ns(seen: Recorded) -> float:
    """Time in main for a batch that no stage explains: torch's own code, sending the next task."""
    if not seen.loader.num_workers:
        return max(0.0, float(np.median(_unexplained(seen) - seen.time("unpack_ns"))))
    unpack, queued = seen.time("unpack_ns"), seen.of_steady("queued_ns")
    wait, awaited = seen.wait[seen.steady], queued >= 0
    # It was sent before main asked for it.
    ready = awaited & (queued + unpack + seen.time("pin_ns") >= wait)
    if np.count_nonzero(ready) >= ENOUGH:
        found = float(np.median((wait - seen.time("index_ns") - unpack)[ready]))
    elif awaited.any():  # the message arrives, main wakes up and takes it
        found = float(np.quantile(queued[awaited], 0.25))
    else:
        found = costs.RECEIVE_NS
    # Bytes outside of tensors come through a pipe, a piece at a time: both ends wait for each
    # other.
    piped = float(np.mean(seen.time("pickled_bytes"))) * costs.PIPED_MOST_NS_PER_BYTE
    return min(RECEIVE_MOST_NS + piped, max(0.0, found))


def _unexplained(seen: Recorded) -> Floats:
    """Without workers: the part of each wait that no stage explains."""
    names = ("index_ns", "fetch_ns", "collate_ns", "pin_ns")
    found: Floats = seen.wait[seen.steady] - sum(map(seen.time, names))
    return found


def compute_cores(run: Run, process: ProcessRun, seen: Recorded, in_main: Floats) -> float | None:
    """Cores that main used while it computed: its CPU time between the first and the last sample
    inside the loop, without loading (`in_main`)."""
    names, loader = ("t_ns", "cpu_user_ns", "cpu_system_ns"), seen.loader
    took, *used = grown_in_loop(run, process, loader, True, *names)
    if not took:
        return None
    computing = float(seen.compute[seen.steady].mean())
    step, making = float(seen.step_ns.mean()), float(in_main.mean())
    if computing <= LEAST_COMPUTING * step:
        return 1.0  # the rest of main's CPU time would be divided by next to nothing
    found = (sum(used) / took * step - making) / computing
    if not loader.num_workers and computing < MINOR * making:
        # More is probably threads of fetching, which spin while they wait for work.
        found = min(found, 1.0)
    return min(max(1.0, float(process.torch_threads or 1)), max(0.0, found))


def sizes(seen: Recorded) -> tuple[float, float, float]:
    """(tensors, bytes in tensors, bytes outside) of a typical batch."""
    leaves = seen.loader.inspection.leaves
    found, bytes_, pickled = (
        mean(seen.of_steady(name)) for name in ("tensors", "bytes", "pickled_bytes")
    )
    tensors, total = 1.0 if found is None else found, bytes_ or 0.0
    outside = [leaf.nbytes or 0 for leaf in leaves if leaf.kind != "tensor"]
    if not seen.loader.num_workers:  # arrays and texts go through the pipe
        pickled = total if leaves and len(outside) == len(leaves) else float(sum(outside))
    return tensors, max(0.0, total - (pickled or 0.0)) if tensors else 0.0, pickled or 0.0
