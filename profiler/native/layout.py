"""What both forms of the hot path share: the layout of an envelope, and which batches are measured
in detail.

Python reads it here. C receives it when it is loaded, with the offsets of a record's fields
(`form.tell`).
"""

import struct

# Shorter work is measured in detail once in SAMPLE_EVERY batches: reading thread CPU time is a
# system call (0.5 µs), and walking the batch and timing each sample cost more.
ALWAYS_DETAILED_NS = 1_000_000
SAMPLE_EVERY = 64
# Without workers, detail delays the training process, so it gets rarer after some batches.
SAMPLE_RARELY = 512
OFTEN_UNTIL = 1024
# The first batches of a loader all have detail, so that short runs have figures too.
ALWAYS_AT_FIRST = 6

# This mark finds an envelope's times in the pickled bytes. Sixteen random bytes do not occur by
# chance.
MARK = bytes.fromhex("9f1c64e25b7a4d0e8833d1f6a90b52c7")
SEAL = MARK[:8]

# Written by the worker: task, t_fetch, fetch, collate, fetch_cpu, collate_cpu, bytes, own (ns and
# bytes), tensors, pid, worker id, fastest, median and slowest sample (ns).
TIMES = struct.Struct("@8q3i3f")
# Written last, into the pickled bytes: pack (before that the time of the put), time of sending,
# length.
SENT = struct.Struct("@3q")
TIMES_AT = len(MARK)
SENT_AT = TIMES_AT + TIMES.size
META_BYTES = SENT_AT + SENT.size
