"""The records of every lane: names, types, units and how to read them.

A field's struct code is native and naturally aligned ('q' int64, 'i' int32, 'h' int16, 'f'
float32). Integer fields that were not measured hold -1, float fields hold NaN; never 0. The first
field of every record is `seq`, its 1-based number in the lane.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Field:
    """One column of a lane. `code` is a struct code, `count` > 1 makes it an array of that
    length."""

    name: str
    code: str
    doc: str
    count: int = 1


@dataclass(frozen=True)
class Schema:
    """A fixed-size record, as `struct` writes it and as NumPy reads it."""

    name: str
    version: int
    fields: tuple[Field, ...]

    @cached_property
    def format(self) -> str:
        return "@" + "".join(f"{f.count}{f.code}" if f.count > 1 else f.code for f in self.fields)

    @cached_property
    def size(self) -> int:
        """Bytes a record, padded to 8 so that every record in a segment is aligned."""
        return (struct.calcsize(self.format) + 7) // 8 * 8

    def offset(self, name: str) -> int:
        """Byte offset of a field in the record; KeyError for an unknown name."""
        before = "@"
        for field in self.fields:
            if field.name == name:
                return struct.calcsize(before + f"0{field.code}")
            before += f"{field.count}{field.code}" if field.count > 1 else field.code
        raise KeyError(name)

    @cached_property
    def blank(self) -> bytes:
        """A record with every field unmeasured."""
        values: list[float] = []
        for field in self.fields:
            values += [math.nan if field.code in "fd" else -1] * field.count
        return struct.pack(self.format, *values).ljust(self.size, b"\0")

    @cached_property
    def described(self) -> bytes:
        """The schema as JSON, for a segment's header."""
        return json.dumps(
            [self.name, self.version, self.describe()], separators=(",", ":")
        ).encode()

    def describe(self) -> list[list[object]]:
        """What a segment's header stores: [name, code, count, offset] a field."""
        return [[f.name, f.code, f.count, self.offset(f.name)] for f in self.fields]


BATCH = Schema(
    "batch",
    1,
    (
        # Written for every batch, in one call.
        Field("seq", "q", "number of the batch in this lane, from 1"),
        Field("t_ns", "q", "when next() was entered"),
        Field("wait_ns", "q", "inside next()"),
        Field("index_ns", "q", "drawing the indices from the sampler"),
        Field("fetch_ns", "q", "the dataset access, in the worker or in main"),
        Field("collate_ns", "q", "collate_fn(samples), in the worker or in main"),
        Field("samples", "i", "indices in the batch (batch_size, less in a short last batch)"),
        Field("epoch", "i", "which iteration over the loader, from 0"),
        # Patched when the loop comes back, only for the last batch of an epoch; otherwise it
        # follows from t_ns.
        Field(
            "compute_ns",
            "q",
            "hand-over to the next next(); -1 here means: derive it from the next record",
        ),
        # Written when the batch came from a worker.
        Field("t_fetch_ns", "q", "when the worker began to fetch"),
        Field(
            "pack_ns",
            "q",
            "serialising the batch for the queue, copies into shared memory included, until it is "
            "sent",
        ),
        Field("queued_ns", "q", "finished in the worker, not yet taken by main"),
        Field("unpack_ns", "q", "rebuilding the batch from the queue"),
        Field("pin_ns", "q", "copying to page-locked memory"),
        Field(
            "pickled_bytes",
            "q",
            "bytes that crossed the pipe (tensor data in shared memory not counted)",
        ),
        Field("task", "i", "number of the batch in the order it was asked for, from 0"),
        Field("worker_pid", "i", "process id of the worker"),
        Field("worker", "h", "worker id"),
        Field("outstanding", "h", "batches asked for and not yet received, at hand-over"),
        Field("ready", "h", "batches finished and waiting, at hand-over"),
        Field("flags", "h", "reserved"),
        # Written for the batches measured in detail.
        Field("fetch_cpu_ns", "q", "thread CPU time of fetch"),
        Field("collate_cpu_ns", "q", "thread CPU time of collate"),
        Field("bytes", "q", "bytes of the batch's tensors and arrays"),
        Field("tensors", "i", "tensors in the batch"),
        Field("own_ns", "f", "what recording this batch cost in the training process"),
        Field("sample_min_ns", "f", "fastest single sample of the batch"),
        Field("sample_median_ns", "f", "median single sample of the batch"),
        Field("sample_max_ns", "f", "slowest single sample of the batch"),
        # Written, and partly patched later, when a device is in use.
        Field("h2d_copies", "i", "copies of this batch to the device"),
        Field("h2d_ns", "q", "those copies, by device events"),
        Field("h2d_host_ns", "q", "host time inside those copy calls"),
        Field("h2d_bytes", "q", "bytes copied"),
        Field(
            "compute_device_ns",
            "q",
            "device time from hand-over to the next next(), by device events",
        ),
        Field(
            "stall_ns",
            "q",
            "part of wait during which the device had nothing to do, by device events",
        ),
        Field("h2d_pinned", "i", "copies that came from page-locked memory"),
        Field("h2d_blocking", "i", "copies issued without non_blocking=True"),
        # Written for the first batches of an epoch only.
        Field(
            "digest",
            "q",
            "63-bit hash: of the batch's indices (map-style), of its contents (iterable data "
            "sets); equal digests at the same place of two epochs, ranks or workers mean the same "
            "data",
        ),
    ),
)

RECORD_BYTES = BATCH.size
WINDOW_AT = 256  # where records begin in the memory that a lane writes to, see `lanes/block.py`

EPOCH = Schema(
    "epoch",
    1,
    (
        Field("seq", "q", "number of the row"),
        Field("t_iter_ns", "q", "when iter() was called"),
        Field("t_first_ns", "q", "hand-over of the first batch: startup is t_first_ns - t_iter_ns"),
        Field("t_end_ns", "q", "when the iteration ended, as far as it is known"),
        Field("batches", "q", "batches handed over"),
        Field("epoch", "i", "which iteration over the loader, from 0"),
        Field(
            "instance",
            "i",
            "which object this loader was, from 0: more than one means it was built again",
        ),
        Field("num_workers", "i", "workers of this iteration"),
        Field("how", "i", "-1 running or left early, 1 exhausted, 3 ended by an exception"),
    ),
)

WORKER = Schema(
    "worker",
    1,
    (
        Field("seq", "q", "number of the row"),
        Field("t_ns", "q", "when the worker had been started"),
        Field("loader", "i", "number of the loader in this process, from 0"),
        Field("epoch", "i", "iteration that started it"),
        Field("worker", "i", "worker id"),
        Field("pid", "i", "process id"),
    ),
)

MACHINE = Schema(
    "machine",
    1,
    (
        Field("seq", "q", "number of the sample"),
        Field("t_ns", "q", "when the sample was taken"),
        Field("mem_total_bytes", "q", "memory of the machine"),
        Field("mem_available_bytes", "q", "memory that can be had without swapping"),
        Field("swap_used_bytes", "q", "swap in use"),
        Field("page_cache_bytes", "q", "page cache"),
        Field("disk_read_bytes", "q", "read from disks since boot"),
        Field("disk_write_bytes", "q", "written to disks since boot"),
        Field("net_recv_bytes", "q", "received since boot"),
        Field("net_sent_bytes", "q", "sent since boot"),
        Field("shm_total_bytes", "q", "size of /dev/shm"),
        Field("shm_used_bytes", "q", "used of /dev/shm"),
        Field("cgroup_mem_limit_bytes", "q", "memory limit of the container"),
        Field("cgroup_mem_bytes", "q", "memory charged to the container"),
        Field("cgroup_throttled_ns", "q", "time the container was throttled, since it began"),
        Field("cgroup_nr_throttled", "q", "periods in which it was throttled, since it began"),
        Field("context_switches", "q", "context switches since boot"),
        Field(
            "sampler_cpu_ns",
            "q",
            "CPU time the sampler itself has used, with the py-spies it ran to their end",
        ),
        Field("sampler_rss_bytes", "q", "resident memory of the sampler itself"),
        Field("cpu_user_pct", "f", "user time since the last sample, 100 = all cores"),
        Field("cpu_system_pct", "f", "system time since the last sample, 100 = all cores"),
        Field(
            "cpu_iowait_pct",
            "f",
            "idle with I/O outstanding since the last sample, 100 = all cores",
        ),
        Field("cpu_idle_pct", "f", "idle since the last sample, 100 = all cores"),
        Field("cgroup_cpu_quota", "f", "cores the container may use"),
        Field("load_1m", "f", "runnable and waiting tasks, one-minute average"),
    ),
)

MAX_CORES = 256


def core_schema(cores: int) -> Schema:
    """Busy share a core; `cores` is clipped to MAX_CORES."""
    return Schema(
        "core",
        1,
        (
            Field("seq", "q", "number of the sample"),
            Field("t_ns", "q", "when the sample was taken"),
            Field(
                "busy_pct",
                "f",
                "busy since the last sample, a core",
                count=max(1, min(cores, MAX_CORES)),
            ),
        ),
    )


PROCESS = Schema(
    "process",
    1,
    (
        Field("seq", "q", "number of the sample"),
        Field("t_ns", "q", "when the sample was taken"),
        Field("cpu_user_ns", "q", "user CPU time since the process began"),
        Field("cpu_system_ns", "q", "system CPU time since the process began"),
        Field("rss_bytes", "q", "resident memory, shared pages included"),
        Field("uss_bytes", "q", "memory only this process holds"),
        Field("pss_bytes", "q", "memory with shared pages divided among their users"),
        Field("minor_faults", "q", "page faults served without I/O, since the process began"),
        Field("major_faults", "q", "page faults that needed I/O, since the process began"),
        Field(
            "ctx_voluntary",
            "q",
            "voluntary context switches (waiting); on Linux, of the main thread",
        ),
        Field(
            "ctx_involuntary",
            "q",
            "involuntary context switches (lost the core); on Linux, of the main thread",
        ),
        Field(
            "read_disk_bytes",
            "q",
            "bytes this process, and children it has reaped, made the storage layer read",
        ),
        Field(
            "read_all_bytes", "q", "bytes read by system calls, from disk and from the page cache"
        ),
        Field("pid", "i", "process id"),
        Field(
            "owner_pid", "i", "the training process it belongs to (itself for a training process)"
        ),
        Field("role", "i", "0 training process, 1 worker"),
        Field("worker", "i", "worker id"),
        Field("loader", "i", "number of the loader in its process"),
        Field("threads", "i", "threads"),
        Field("fds", "i", "open file descriptors"),
        Field("affinity", "i", "cores it may run on"),
        Field(
            "run_delay_ns",
            "q",
            "time its main thread was ready to run but had no core, since it began (Linux with "
            "schedstat)",
        ),
    ),
)

GPU = Schema(
    "gpu",
    1,
    (
        Field("seq", "q", "number of the sample"),
        Field("t_ns", "q", "when the sample was taken"),
        Field("mem_used_bytes", "q", "device memory in use, all processes"),
        Field("mem_total_bytes", "q", "device memory"),
        Field("pcie_rx_bytes_s", "q", "received over PCIe, bytes a second"),
        Field("pcie_tx_bytes_s", "q", "sent over PCIe, bytes a second"),
        Field("power_mw", "i", "power draw, milliwatts"),
        Field("sm_clock_mhz", "i", "SM clock"),
        Field("mem_clock_mhz", "i", "memory clock"),
        Field(
            "util_pct",
            "i",
            "share of the time in which any kernel ran; 100 does not mean well used",
        ),
        Field("mem_util_pct", "i", "share of the time in which memory was read or written"),
        Field("gpu", "i", "NVML index of the device"),
    ),
)
