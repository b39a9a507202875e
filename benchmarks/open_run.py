"""How long a finished run of 1,000,000 batches takes to open and to report on, and in how much
memory.

    python benchmarks/open_run.py [--batches N]

The run is made up in a temporary folder (workers in use, so that almost every column is filled) and
read in a fresh process. Prints JSON. The bounds: opening and stage statistics at most 1 s and 400
MB; the whole report, with advice, at most 1 s once the run is open.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

BOUND_S = 1.0
BOUND_BYTES = 400e6
BOUND_ADVICE_S = 1.0

MEASURE = """
import json, resource, sys, time
began = time.perf_counter()
from loaderscope.profiler.store.run.run_reader import open_run
imported = time.perf_counter()
run = open_run(sys.argv[1])
opened = time.perf_counter()
from loaderscope.advisors.assemble.build_report import build_report
build_report(run, advice=False)
done = time.perf_counter()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
again = time.perf_counter()
report = build_report(run)
advised = time.perf_counter()
print(json.dumps({
    "import_s": imported - began, "open_s": opened - imported, "report_s": done - opened, "total_s": done - began,
    "whole_report_s": advised - again,
    "peak_rss_bytes": peak, "batches": report.loaders[0].batches, "verdict": report.loaders[0].verdict,
    "advice": [each.rule for each in report.loaders[0].recommendations],
}))
"""


def make_run(directory: Path, batches: int) -> None:
    """A finished run of one loader with four workers, written as segments of the real format."""
    import numpy as np

    from loaderscope.profiler.base.atomic_write import write_atomically
    from loaderscope.profiler.base.schema import BATCH
    from loaderscope.profiler.store.lanes.lane import SEGMENT_BYTES
    from loaderscope.profiler.store.lanes.segment_file import (
        FORMAT_VERSION,
        HEADER,
        HEADER_BYTES,
        MAGIC,
        SCHEMA_OFFSET,
    )

    process = directory / "p1234-0"
    process.mkdir(parents=True)
    described = BATCH.described
    types = {"q": "<i8", "i": "<i4", "h": "<i2", "f": "<f4"}
    dtype = np.dtype(
        {
            "names": [f.name for f in BATCH.fields],
            "formats": [types[f.code] for f in BATCH.fields],
            "offsets": [BATCH.offset(f.name) for f in BATCH.fields],
            "itemsize": BATCH.size,
        }
    )
    rng = np.random.default_rng(0)
    capacity = (SEGMENT_BYTES - HEADER_BYTES) // BATCH.size
    blank = np.frombuffer(BATCH.blank, dtype)
    at = 10**12
    for number, first in enumerate(range(0, batches, capacity)):
        count = min(capacity, batches - first)
        rows = np.repeat(blank, count)
        rows["seq"] = np.arange(first + 1, first + count + 1)
        wait, compute = rng.gamma(2.0, 50_000, count), rng.gamma(9.0, 50_000, count)
        rows["wait_ns"] = wait
        rows["t_ns"] = at + np.cumsum(rows["wait_ns"] + compute.astype(np.int64)) - rows["wait_ns"]
        at = int(rows["t_ns"][-1] + rows["wait_ns"][-1])
        rows["index_ns"] = rng.gamma(3.0, 1_000, count)
        rows["fetch_ns"] = rng.gamma(4.0, 400_000, count)
        rows["collate_ns"] = rng.gamma(4.0, 20_000, count)
        rows["samples"], rows["epoch"] = 32, rows["seq"] // 10_000
        rows["t_fetch_ns"] = rows["t_ns"] - 2_000_000
        rows["pack_ns"] = rng.gamma(4.0, 20_000, count)
        rows["queued_ns"] = rng.gamma(1.0, 200_000, count)
        rows["unpack_ns"] = rng.gamma(4.0, 20_000, count)
        rows["pin_ns"] = rng.gamma(4.0, 5_000, count)
        rows["pickled_bytes"], rows["task"] = 400, rows["seq"]
        rows["worker"] = rows["seq"] % 4
        rows["worker_pid"] = 2000 + rows["worker"]
        rows["outstanding"], rows["ready"], rows["bytes"], rows["tensors"] = 8, 2, 1 << 20, 2
        rows["fetch_cpu_ns"][::16] = rows["fetch_ns"][::16] * 0.9
        rows["collate_cpu_ns"][::16] = rows["collate_ns"][::16]
        for name in ("own_ns", "sample_min_ns", "sample_median_ns", "sample_max_ns"):
            rows[name][::16] = 3_000
        rows["h2d_copies"], rows["h2d_pinned"], rows["h2d_blocking"], rows["h2d_bytes"] = (
            2,
            2,
            0,
            1 << 20,
        )
        rows["h2d_ns"] = rows["h2d_host_ns"] = rng.gamma(4.0, 10_000, count)
        rows["compute_device_ns"], rows["stall_ns"] = compute, wait * 0.5
        header = HEADER.pack(
            MAGIC,
            FORMAT_VERSION,
            HEADER_BYTES,
            BATCH.size,
            capacity,
            first + 1,
            count,
            len(described),
        )
        data = (header.ljust(SCHEMA_OFFSET, b"\0") + described).ljust(
            HEADER_BYTES, b"\0"
        ) + rows.tobytes()
        (process / f"batches0x0-{number:06d}.seg").write_bytes(data.ljust(SEGMENT_BYTES, b"\0"))
    common = {"format": 1, "host": platform.node(), "boot_id": None, "clock_ns": 10**12}
    run = {
        **common,
        "id": "20250101-000000-abcdef",
        "created_unix_ns": 1_735_689_600_000_000_000,
        "argv": ["train.py"],
    }
    ended = {
        **common,
        "pid": 1234,
        "ended_clock_ns": at,
        "ended_unix_ns": 0,
        "device": "NVIDIA H200",
    }
    loader = {
        "format": 1,
        "index": 0,
        "name": "Images",
        "kind": "dataloader",
        "config": {"num_workers": 4},
    }
    for path, value in (
        (directory / "run.json", run),
        (process / "process.json", ended),
        (process / "loader0.json", loader),
    ):
        write_atomically(path, json.dumps(value))


def timed_processes(code: str, directory: Path, repeat: int) -> list[dict[str, Any]]:
    """What fresh processes print that run `code` on this run, the fastest first."""
    results: list[dict[str, Any]] = []
    for _ in range(repeat):
        command = [sys.executable, "-c", code, str(directory)]
        results.append(
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        )
    return sorted(results, key=lambda result: float(result["total_s"]))


def this_machine() -> dict[str, Any]:
    return {
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder, "20250101-000000-abcdef")
        make_run(directory, options.batches)
        written = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
        results = timed_processes(MEASURE, directory, options.repeat)
    median = results[len(results) // 2]
    passed = (
        median["total_s"] <= BOUND_S
        and median["peak_rss_bytes"] <= BOUND_BYTES
        and median["whole_report_s"] <= BOUND_ADVICE_S
    )
    print(
        json.dumps(
            {
                "benchmark": "open_run",
                "machine": this_machine(),
                "run_bytes": written,
                "median": median,
                "fastest_s": results[0]["total_s"],
                "slowest_s": results[-1]["total_s"],
                "bounds": {
                    "total_s": BOUND_S,
                    "peak_rss_bytes": BOUND_BYTES,
                    "whole_report_s": BOUND_ADVICE_S,
                },
                "passed": passed,
            },
            indent=2,
        )
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
