"""The one clock of every figure: monotonic, in nanoseconds, the same in every process of a host."""

from __future__ import annotations

import sys
import time

# On Windows `monotonic_ns` ticks every 15.6 ms before Python 3.13; the performance counter is
# system-wide too.
now_ns = time.perf_counter_ns if sys.platform == "win32" else time.monotonic_ns

# CPU time of the calling thread. On Linux this is a real system call (about 0.5 µs), so hot paths
# sample it.
thread_cpu_ns = time.thread_time_ns
