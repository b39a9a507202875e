"""The records of every lane: names, types, units and how to read them.

A field's struct code is native and naturally aligned ('q' int64, 'i' int32, 'h' int16, 'f'
float32). Fields that were not measured hold -1 or, if float, NaN; never 0. The first field of every
record is `seq`, its number in the lane, from 1.
"""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Field:
    """One column of a lane. `code` is a struct code."""

    name: str
    code: str
    doc: str


@dataclass(frozen=True)
class Schema:
    """A fixed-size record, as `struct` writes it and as NumPy reads it."""

    name: str
    version: int
    fields: tuple[Field, ...]

    @cached_property
    def format(self) -> str:
        return _format(self.fields)

    @cached_property
    def size(self) -> int:
        """Bytes a record, padded to 8 so that every record in a segment is aligned."""
        return (struct.calcsize(self.format) + 7) // 8 * 8

    def offset(self, name: str) -> int:
        """Byte offset of a field in the record; KeyError for an unknown name."""
        for at, field in enumerate(self.fields):
            if field.name == name:
                return struct.calcsize(_format(self.fields[:at]) + f"0{field.code}")
        raise KeyError(name)

    @cached_property
    def blank(self) -> bytes:
        """A record with every field unmeasured."""
        values = [math.nan if field.code in "fd" else -1 for field in self.fields]
        return struct.pack(self.format, *values).ljust(self.size, b"\0")

    @cached_property
    def described(self) -> bytes:
        """The schema as JSON, for a segment's header: [name, code, 1, offset] a field."""
        fields = [[f.name, f.code, 1, self.offset(f.name)] for f in self.fields]
        return json.dumps([self.name, self.version, fields], separators=(",", ":")).encode()


def _format(fields: tuple[Field, ...]) -> str:
    return "@" + "".join(f.code for f in fields)


def _schema(name: str, *rows: tuple[str, str, str]) -> Schema:
    """Version 1 of a record, a row a field."""
    return Schema(name, 1, tuple(Field(*row) for row in rows))


BATCH = _schema(
    "batch",
    # Written for every batch, in one call.
    ("seq", "q", "number of the batch in this lane, from 1"),
    ("t_ns", "q", "when next() was entered"),
    ("wait_ns", "q", "inside next()"),
    ("index_ns", "q", "drawing the indices from the sampler"),
    ("fetch_ns", "q", "the dataset access, in the worker or in main"),
    ("collate_ns", "q", "collate_fn(samples), in the worker or in main"),
    ("samples", "i", "indices in the batch (batch_size, less in a short last batch)"),
    ("epoch", "i", "which iteration over the loader, from 0"),
    # Patched when the loop comes back, only for the last batch of an epoch; otherwise it
    # follows from t_ns.
    (
        "compute_ns",
        "q",
        "hand-over to the next next(); -1 here means: derive it from the next record",
    ),
    # Written when the batch came from a worker.
    ("t_fetch_ns", "q", "when the worker began to fetch"),
    (
        "pack_ns",
        "q",
        "serialising the batch for the queue, copies into shared memory included, until it is sent",
    ),
    ("queued_ns", "q", "finished in the worker, not yet taken by main"),
    ("unpack_ns", "q", "rebuilding the batch from the queue"),
    ("pin_ns", "q", "copying to page-locked memory"),
    (
        "pickled_bytes",
        "q",
        "bytes that crossed the pipe (tensor data in shared memory not counted)",
    ),
    ("task", "i", "number of the batch in the order it was asked for, from 0"),
    ("worker_pid", "i", "process id of the worker"),
    ("worker", "h", "worker id"),
    ("outstanding", "h", "batches asked for and not yet received, at hand-over"),
    ("ready", "h", "batches finished and waiting, at hand-over"),
    ("flags", "h", "reserved"),
    # Written for the batches measured in detail.
    ("fetch_cpu_ns", "q", "thread CPU time of fetch"),
    ("collate_cpu_ns", "q", "thread CPU time of collate"),
    ("bytes", "q", "bytes of the batch's tensors and arrays"),
    ("tensors", "i", "tensors in the batch"),
    ("own_ns", "f", "what recording this batch cost in the training process"),
    ("sample_min_ns", "f", "fastest single sample of the batch"),
    ("sample_median_ns", "f", "median single sample of the batch"),
    ("sample_max_ns", "f", "slowest single sample of the batch"),
    # Written, and partly patched later, when a device is in use.
    ("h2d_copies", "i", "copies of this batch to the device"),
    ("h2d_ns", "q", "those copies, by device events"),
    ("h2d_host_ns", "q", "host time inside those copy calls"),
    ("h2d_bytes", "q", "bytes copied"),
    (
        "compute_device_ns",
        "q",
        "device time from hand-over to the next next(), by device events",
    ),
    (
        "stall_ns",
        "q",
        "part of wait during which the device had nothing to do, by device events",
    ),
    ("h2d_pinned", "i", "copies that came from page-locked memory"),
    ("h2d_blocking", "i", "copies issued without non_blocking=True"),
    # Written for the first batches of an epoch only.
    (
        "digest",
        "q",
        "63-bit hash: of the batch's indices (map-style), of its contents (iterable data "
        "sets); equal digests at the same place of two epochs, ranks or workers mean the same "
        "data",
    ),
)

RECORD_BYTES = BATCH.size
# A device time, or an epoch's end, is written at most so many records after the one it belongs to:
# 256 steps may wait for the device, and events are read every 96 steps or sooner (`record.device`).
LATE_ROWS = 360
WINDOW_AT = 256  # where records begin in the memory that a lane writes to, see `lanes/block.py`

EPOCH = _schema(
    "epoch",
    ("seq", "q", "number of the row"),
    ("t_iter_ns", "q", "when iter() was called"),
    ("t_first_ns", "q", "hand-over of the first batch: startup is t_first_ns - t_iter_ns"),
    ("t_end_ns", "q", "when the iteration ended, as far as it is known"),
    ("batches", "q", "batches handed over"),
    ("epoch", "i", "which iteration over the loader, from 0"),
    (
        "instance",
        "i",
        "which object this loader was, from 0: more than one means it was built again",
    ),
    ("num_workers", "i", "workers of this iteration"),
    ("how", "i", "-1 running or left early, 1 exhausted, 3 ended by an exception"),
)

WORKER = _schema(
    "worker",
    ("seq", "q", "number of the row"),
    ("t_ns", "q", "when the worker had been started"),
    ("loader", "i", "number of the loader in this process, from 0"),
    ("epoch", "i", "iteration that started it"),
    ("worker", "i", "worker id"),
    ("pid", "i", "process id"),
)

# What each record of the sampler begins with.
_SAMPLE = (("seq", "q", "number of the sample"), ("t_ns", "q", "when the sample was taken"))

MACHINE = _schema(
    "machine",
    *_SAMPLE,
    ("mem_total_bytes", "q", "memory of the machine"),
    ("mem_available_bytes", "q", "memory that can be had without swapping"),
    ("page_cache_bytes", "q", "page cache"),
    ("disk_read_bytes", "q", "read from disks since boot"),
    ("disk_write_bytes", "q", "written to disks since boot"),
    ("net_recv_bytes", "q", "received since boot"),
    ("net_sent_bytes", "q", "sent since boot"),
    ("shm_total_bytes", "q", "size of /dev/shm"),
    ("shm_used_bytes", "q", "used of /dev/shm"),
    ("cgroup_mem_limit_bytes", "q", "memory limit of the container"),
    ("cgroup_mem_bytes", "q", "memory charged to the container"),
    ("cgroup_throttled_ns", "q", "time the container was throttled, since it began"),
    (
        "sampler_cpu_ns",
        "q",
        "CPU time the sampler itself has used, with the py-spies it ran to their end",
    ),
    ("sampler_rss_bytes", "q", "resident memory of the sampler itself"),
    ("cpu_user_pct", "f", "user time since the last sample, 100 = all cores"),
    ("cpu_system_pct", "f", "system time since the last sample, 100 = all cores"),
    (
        "cpu_iowait_pct",
        "f",
        "idle with I/O outstanding since the last sample, 100 = all cores",
    ),
    ("cpu_idle_pct", "f", "idle since the last sample, 100 = all cores"),
    ("cgroup_cpu_quota", "f", "cores the container may use"),
)

PROCESS = _schema(
    "process",
    *_SAMPLE,
    ("cpu_user_ns", "q", "user CPU time since the process began"),
    ("cpu_system_ns", "q", "system CPU time since the process began"),
    ("rss_bytes", "q", "resident memory, shared pages included"),
    ("uss_bytes", "q", "memory only this process holds"),
    ("pss_bytes", "q", "memory with shared pages divided among their users"),
    ("major_faults", "q", "page faults that needed I/O, since the process began"),
    (
        "read_disk_bytes",
        "q",
        "bytes this process, and children it has reaped, made the storage layer read",
    ),
    ("read_all_bytes", "q", "bytes read by system calls, from disk and from the page cache"),
    ("pid", "i", "process id"),
    ("owner_pid", "i", "the training process it belongs to (itself for a training process)"),
    ("role", "i", "0 training process, 1 worker"),
    ("worker", "i", "worker id"),
    ("loader", "i", "number of the loader in its process"),
    ("threads", "i", "threads"),
    ("fds", "i", "open file descriptors"),
    (
        "run_delay_ns",
        "q",
        "time its main thread was ready to run but had no core, since it began (Linux with "
        "schedstat)",
    ),
    (
        "children_cpu_ns",
        "q",
        "CPU time of processes that it started and waited for, since it began",
    ),
)

GPU = _schema(
    "gpu",
    *_SAMPLE,
    ("mem_used_bytes", "q", "device memory in use, all processes"),
    ("mem_total_bytes", "q", "device memory"),
    ("power_mw", "i", "power draw, milliwatts"),
    ("sm_clock_mhz", "i", "SM clock"),
    (
        "util_pct",
        "i",
        "share of the time in which any kernel ran; 100 does not mean well used",
    ),
    ("gpu", "i", "NVML index of the device"),
)
