"""The one clock of every figure: monotonic, in nanoseconds, the same in every process of a host."""

import time

now_ns = time.monotonic_ns

# CPU time of the calling thread. On Linux this is a real system call (about 0.5 µs), so hot paths
# sample it.
thread_cpu_ns = time.thread_time_ns
