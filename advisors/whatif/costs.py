"""The cost of handing a batch from a worker to the training process, for runs that did not measure
it.

`benchmarks/handover.py` printed the constants on the reference machine (two cores of a shared AMD
server, quiet, Linux, Python 3.11, torch 2.13, 2026-11-23). RESUME_NS, TASK_HOP_NS and the
page-locked copies are estimates, as there was no device.
"""

from dataclasses import dataclass
from typing import Literal

StartMethod = Literal["fork", "spawn", "forkserver"]
START_METHODS: tuple[StartMethod, ...] = ("fork", "spawn", "forkserver")

# In the worker, CPU time: pickling the message, making each tensor's storage known to another
# process (a file descriptor sent over a socket of its own), first touches of fresh shared memory,
# bytes through the pipe.
PACK_BATCH_NS, PACK_TENSOR_NS = 187_000.0, 152_000.0
SHARED_PACK_NS_PER_BYTE, PICKLED_PACK_NS_PER_BYTE = 0.38, 0.37
# In main, wall time: waking up, taking the message and sending the next task (its feeder thread
# included); a round trip to a thread of the worker for each tensor; touching its pages; bytes out
# of the pipe.
RECEIVE_NS, UNPACK_TENSOR_NS = 106_000.0, 278_000.0
# The shared byte is measured with 8 MB batches in benchmarks/prediction.py. handover.py prints
# 0.16, but its loop never touches the bytes.
SHARED_UNPACK_NS_PER_BYTE, PICKLED_UNPACK_NS_PER_BYTE = 0.45, 0.37
# A tensor's handle takes some 200 bytes of the pickle; the rest is objects. 588 kB of dicts took
# 100 ms, 170 ns a byte. What takes sixty times as long is no pickling, however busy the cores.
HANDLE_BYTES, OBJECTS_MOST_NS_PER_BYTE = 256.0, 10_000.0
# In main, when the loop releases a batch that came from a worker: each tensor's shared memory is
# unmapped and its descriptor closed. It shows in the loop's own computing. Pages of pickled data
# are returned at the same price.
RELEASE_TENSOR_NS, RELEASE_NS_PER_BYTE = 10_300.0, 0.16
# After sleeping until the batch came, the loop's next lines take this much longer.
AWAKE_NS = 10_000.0
# Waiting for the pipe in main takes at most this for each byte outside tensors: an array of 7.6 MB
# took 0.9 in a quarter of the batches, and more in the others.
PIPED_MOST_NS_PER_BYTE = 2.0
# In a worker, default_collate puts each tensor into shared memory of its own, at 60 to 75 µs; in
# main that costs next to nothing. At most this part of collating is attributed to it.
SHARED_COLLATE_TENSOR_NS, SHARED_COLLATE_MOST = 65_000.0, 0.75
# Between two batches a worker sleeps and its feeder thread packs. This part of the CPU time of
# fetching, up to COLD_FETCH_MOST_NS, is due to that (16 rows of a DataFrame 366 µs against 298, 32
# of a tensor 57 to 77 against 38).
COLD_FETCH, COLD_FETCH_MOST_NS = 0.3, 150_000.0
# From the task's sending to the worker's waking up.
TASK_HOP_NS = 60_000.0
# Beside fetch, collate and pin, without workers: torch's own lines around them.
SINGLE_OTHER_NS = 8_000.0

# Starting a worker: in main (one after another), in the worker until its first task, and ending it
# at the epoch's end.
START_MAIN_NS: dict[StartMethod, float] = {"fork": 8.9e6, "spawn": 2.4e6, "forkserver": 2.7e6}
START_WORKER_NS: dict[StartMethod, float] = {"fork": 15e6, "spawn": 0.86e9, "forkserver": 0.84e9}
STOP_NS = 12e6
# A new epoch with persistent workers: each acknowledges.
RESUME_NS = 250_000.0

# Page-locked copies: an estimate, not measured. Torch caches page-locked blocks, so only the copy
# itself remains.
PIN_TENSOR_NS, PIN_NS_PER_BYTE = 20_000.0, 0.12
# The part of drawing an epoch's permutation that remains if it stays an array: torch's shuffle also
# makes a list of it. Of up to 100,000 samples a sixth remains, of four million, which caches do not
# hold, two thirds (CPU time, torch 2.13).
DRAWN_AS_ARRAY = (0.15, 0.8)
# Share of a pageable copy's time that a page-locked one takes. Torch's "pin_memory and
# non_blocking" tutorial finds from no gain to about a third of the time.
PINNED_H2D = (0.4, 1.0)


@dataclass(frozen=True)
class Handover:
    """Costs a batch in ns on the recording machine: CPU time in the worker (`pack`) and in main
    (the others), of which `release` comes after the batch."""

    pack_ns: float
    unpack_ns: float
    receive_ns: float
    hop_ns: float
    pin_ns: float
    release_ns: float


def handover(tensors: float, data_bytes: float, pickled_bytes: float) -> Handover:
    """The cost of handing over batches; `pickled_bytes` are those outside tensors."""
    pack = PACK_BATCH_NS + PACK_TENSOR_NS * tensors + SHARED_PACK_NS_PER_BYTE * data_bytes
    total = data_bytes + pickled_bytes
    unpack = UNPACK_TENSOR_NS * tensors + SHARED_UNPACK_NS_PER_BYTE * data_bytes
    return Handover(
        pack_ns=pack + PICKLED_PACK_NS_PER_BYTE * pickled_bytes,
        unpack_ns=unpack + PICKLED_UNPACK_NS_PER_BYTE * pickled_bytes,
        receive_ns=RECEIVE_NS,
        hop_ns=TASK_HOP_NS,
        pin_ns=PIN_TENSOR_NS * tensors + PIN_NS_PER_BYTE * data_bytes,
        release_ns=AWAKE_NS + RELEASE_TENSOR_NS * tensors + RELEASE_NS_PER_BYTE * total,
    )


def start_ns(method: StartMethod, workers: int, cpus: float) -> float:
    """From `iter()` until the workers can begin: started one after another, then sharing the
    cores."""
    if not workers:
        return 0.0
    return START_MAIN_NS[method] * workers + START_WORKER_NS[method] * max(1.0, workers / cpus)


def method_of(recorded: object, python: str | None) -> StartMethod:
    """The start method as recorded, or the default of that Python on Linux ("fork" until 3.13)."""
    for method in START_METHODS:
        if recorded == method:
            return method
    parts = (python or "").split(".")
    recent = len(parts) > 1 and parts[0] == "3" and parts[1].isdigit() and int(parts[1]) >= 14
    return "forkserver" if recent else "fork"
