"""Waiting until a machine has its CPUs to itself.

A virtual machine may compute at full speed for some minutes only, or have busy neighbours: the
hypervisor then runs others for most of the time, sleeps end late, and what is measured says nothing
of the code. /proc/stat counts that time as stolen; other systems do not tell, and are taken for
quiet.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any

import psutil

# Of the CPU time asked for. Quiet hosts were seen below 0.05, throttled ones above 0.3.
QUIET_BELOW = 0.1
PATIENCE_S, PAUSE_S, BURST_S = 180.0, 10.0, 0.5
BLOCK = bytes(1 << 18)


def withheld(before: Any, after: Any) -> float | None:
    """Of the CPU time this machine asked for between two readings of `psutil.cpu_times()`, the
    share that the hypervisor gave to others."""
    gone = [max(0.0, new - old) for new, old in zip(after, before, strict=True)]
    named = dict(zip(after._fields, gone, strict=True))
    stolen = named.get("steal", 0.0)
    asked = stolen + sum(
        named.get(kind, 0.0) for kind in ("user", "nice", "system", "irq", "softirq")
    )
    return round(stolen / asked, 4) if asked else None


def add_patience(parser: argparse.ArgumentParser) -> None:
    """The option of benchmarks whose cases wait one by one."""
    parser.add_argument(
        "--patience",
        type=float,
        default=PATIENCE_S,
        metavar="SECONDS",
        help="how long each case may wait until the hypervisor of a virtual machine withholds no "
        "CPU (%(default)s)",
    )


def await_quiet(patience_s: float = PATIENCE_S) -> None:
    """Idles until all cores compute unhindered, no longer than `patience_s`."""
    began = time.perf_counter()
    while True:
        before = psutil.cpu_times()
        compute(BURST_S)
        share = withheld(before, psutil.cpu_times())
        if (
            share is None
            or share < QUIET_BELOW
            or time.perf_counter() - began + PAUSE_S > patience_s
        ):
            return
        print(
            f"    waiting: the hypervisor withholds {share:.0%} of the CPU",
            file=sys.stderr,
            flush=True,
        )
        time.sleep(PAUSE_S)


def compute(seconds: float) -> None:
    """Keeps all cores busy."""
    until = time.perf_counter() + seconds
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )

    def busy() -> None:
        while time.perf_counter() < until:
            sha256(BLOCK)  # without the interpreter's lock

    with ThreadPoolExecutor(cores) as pool:
        for done in [pool.submit(busy) for _ in range(cores)]:
            done.result()
