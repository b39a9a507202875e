"""What the system sampler costs: `python benchmarks/sampler_cost.py [--seconds 20] [--workers 4]
[--interval 0.2]`.

Starts a main process and workers, half of them busy, registers them in a run directory as a
recording process would, runs the sampler beside them and prints JSON: its share of one core over
the whole life (start included) and once it is running, and its memory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from loaderscope.profiler.base import schema
from loaderscope.profiler.base.clock import now_ns
from loaderscope.profiler.base.host import boot_id, host_name
from loaderscope.profiler.store.lanes import lane_reader, segment_file
from loaderscope.profiler.store.lanes.lane import Budget, Lane

BOOT = (
    "import sys; sys.path[:] = {path!r}; from loaderscope.profiler.daemon.loop import main; "
    "sys.exit(main({argv!r}))"
)

# 300 MB of touched memory: about what a worker that has imported torch holds.
CHILD = """
import sys, time
ballast = bytearray(int(sys.argv[2]))
ballast[::4096] = b"x" * len(ballast[::4096])
while True:
    if sys.argv[1] == "busy":
        sum(range(20_000)); time.sleep(0.002)
    else:
        time.sleep(1)
"""
BALLAST_BYTES = 300_000_000


def start(kind: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-S", "-c", CHILD, kind, str(BALLAST_BYTES)])


def register(run: Path, main: int, workers: list[int]) -> None:
    folder = run / f"p{main}-0"
    folder.mkdir()
    lane = Lane(folder, "workers", schema.WORKER, Budget(1 << 20), lambda why: None)
    for number, pid in enumerate(workers):
        lane.append(now_ns(), 0, 0, number, pid)
    facts = {
        "format": 1,
        "pid": main,
        "create_time": psutil.Process(main).create_time(),
        "host": host_name(),
        "boot_id": boot_id(),
    }
    (folder / "process.json").write_text(json.dumps(facts))


def measure(run: Path, seconds: float, interval_s: float) -> dict[str, object]:
    system = run / f"system-{host_name()}-0"
    system.mkdir()
    argv = [str(run), str(system), "--interval", str(interval_s)]
    path = [str(Path(part).absolute()) for part in sys.path if part]
    begun = time.monotonic()
    child = subprocess.Popen([sys.executable, "-S", "-c", BOOT.format(path=path, argv=argv)])
    sampler = psutil.Process(child.pid)
    time.sleep(min(2.0, seconds / 4))
    warm, warm_at = cpu_s(sampler), time.monotonic()
    time.sleep(max(0.0, seconds - (time.monotonic() - begun)))
    cpu, ended = cpu_s(sampler), time.monotonic()
    memory = sampler.memory_full_info()
    peak_kib = next(
        int(line.split()[1])
        for line in Path(f"/proc/{child.pid}/status").read_text().splitlines()
        if "VmHWM" in line
    )
    child.terminate()
    child.wait()
    rows = {}
    for lane in ("machine", "process", "gpu"):
        records = [
            lane_reader.read_segment(segment)[0] for segment in segment_file.segments(system, lane)
        ]
        rows[lane] = sum(map(len, records))
        if lane == "process":
            detailed = sum(int((record["uss_bytes"] >= 0).sum()) for record in records)
    written = sum(file.stat().st_blocks * 512 for file in system.iterdir())
    return {
        "seconds": round(ended - begun, 2),
        "ticks": rows["machine"],
        "process_rows": rows["process"],
        "uss_readings": detailed,
        "gpu_rows": rows["gpu"],
        "cpu_share": round((cpu - warm) / (ended - warm_at), 5),
        "cpu_share_with_start": round(cpu / (ended - begun), 5),
        "cpu_start_s": round(warm, 3),
        "rss_mb": round(memory.rss / 1e6, 1),
        "rss_peak_mb": round(peak_kib * 1024 / 1e6, 1),
        "uss_mb": round(memory.uss / 1e6, 1),
        "written_bytes": written,
    }


def cpu_s(process: psutil.Process) -> float:
    """CPU time of all threads, s, to the nanosecond: /proc/PID/stat counts ticks of 10 ms."""
    total = 0
    for thread in Path(f"/proc/{process.pid}/task").iterdir():
        total += int((thread / "schedstat").read_text().split()[0])
    return total / 1e9


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--interval", type=float, default=0.2)
    options = parser.parse_args()
    children = [start("idle" if number % 2 else "busy") for number in range(options.workers + 1)]
    try:
        time.sleep(1.0)
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder)
            register(run, children[0].pid, [child.pid for child in children[1:]])
            result = measure(run, options.seconds, options.interval)
    finally:
        for child in children:
            child.kill()
            child.wait()
    machine = {
        "cores": os.cpu_count(),
        "cpu": cpu_name(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "psutil": psutil.__version__,
        "load_1m": os.getloadavg()[0],
    }
    asked = {"workers": options.workers, "interval_s": options.interval}
    bounds = {"cpu_share": 0.015, "rss_mb": 40}
    print(
        json.dumps(
            {"benchmark": "sampler_cost", **asked, **result, "bounds": bounds, "machine": machine},
            indent=1,
        )
    )
    return 0


def cpu_name() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    sys.exit(main())
