"""What both forms of the hot path agree on: what an envelope is made of, and which batches are
looked at in detail.

Python reads it here; C is told of it when it is loaded, with the places of a record's fields
(`form.tell`).
"""

from __future__ import annotations

import struct

# Work shorter than this is looked at in detail only once in SAMPLE_EVERY batches: reading thread
# CPU time is a system call (0.5 µs), walking the batch and timing each sample cost more.
ALWAYS_DETAILED_NS = 1_000_000
SAMPLE_EVERY = 64
# Where the training process makes the batches itself, each such look holds it up: once a loader has
# its figures, fewer do.
SAMPLE_RARELY = 512
OFTEN_UNTIL = 1024
# The first batches of a loader are all looked at, so that short runs have figures too.
ALWAYS_AT_FIRST = 6

# An envelope's times are found again in the pickled bytes by this mark; sixteen random bytes do not
# occur by chance.
MARK = bytes.fromhex("9f1c64e25b7a4d0e8833d1f6a90b52c7")
SEAL = MARK[:8]

# Written by the worker: task, t_fetch, fetch, collate, fetch_cpu, collate_cpu, bytes, own (ns and
# bytes), tensors, pid, worker id, fastest, median and slowest sample (ns).
TIMES = struct.Struct("@8q3i3f")
# Written last, over the pickled bytes: pack (until then the time of the put), time of sending,
# length.
SENT = struct.Struct("@3q")
TIMES_AT = len(MARK)
SENT_AT = TIMES_AT + TIMES.size
META_BYTES = SENT_AT + SENT.size
