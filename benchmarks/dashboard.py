"""What the dashboard costs at 1,000,000 recorded batches: start, a refresh, an idle minute's share,
memory.

    python benchmarks/dashboard.py [--batches N] [--screen WxH]

The run is made up in a temporary folder, and is live: batches keep being added to its lane while it
is shown, then it stands still. A fresh process shows it without a terminal (Textual's headless
driver: everything but the writing of escape codes). Prints JSON. The bounds: a refresh at most 50
ms (reading, working out and drawing together), 3 % of a core on an idle run, 120 MB, first screen
within 1.5 s of the process's start.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from loaderscope.profiler.base.atomic_write import write_atomically
from loaderscope.profiler.store.lanes.lane import SEGMENT_BYTES
from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.segment_file import (
    COMMITTED_OFFSET,
    HEADER,
    HEADER_BYTES,
    segments,
)

sys.path.insert(0, str(Path(__file__).parent))
from open_run import make_run

BOUND_REFRESH_S = 0.050
BOUND_IDLE_SHARE = 0.03
BOUND_RSS_BYTES = 120e6
BOUND_START_S = 1.5

GROWING_S, IDLE_S = 10, 15
SCREENS = 6

MEASURE = """
import asyncio, json, resource, sys, time
from pathlib import Path
import psutil
begun = psutil.Process().create_time()
from loaderscope.tui.app import Dashboard

def timed(owner, method, costs):
    inner = getattr(owner, method)

    def outer(*args):
        began = time.perf_counter()
        found = inner(*args)
        if found is not None or method != "step":  # a step without news is none
            costs.append(time.perf_counter() - began)
        return found

    setattr(owner, method, outer)

async def main(path, width, height, growing_s, idle_s):
    app = Dashboard(Path(path))
    read_s, draw_s = [], []
    timed(app.reader, "step", read_s)
    timed(app, "_show", draw_s)
    async with app.run_test(size=(width, height)) as pilot:
        while app.snapshot is None or app.snapshot.loader is None:
            await pilot.pause(0.005)
        await pilot.pause()
        start = time.time() - begun
        read_s.clear()
        print("shown", flush=True)
        screens = {}
        cpu, wall = time.process_time(), time.monotonic()
        for number in range(5):
            await pilot.press(str(number + 1))
            draw_s.clear()
            await asyncio.sleep(growing_s / 5)
            screens[number + 1] = draw_s[1:]
        growing = (time.process_time() - cpu) / (time.monotonic() - wall)
        refresh = list(read_s)
        print("grown", flush=True)
        sys.stdin.readline()
        await asyncio.sleep(8)  # advice on the last batches is worked out
        cpu, wall = time.process_time(), time.monotonic()
        await asyncio.sleep(idle_s)
        idle = (time.process_time() - cpu) / (time.monotonic() - wall)
        batches = app.snapshot.loader.report.batches
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({
        "start_s": start, "read_s": refresh, "draw_s": screens, "idle_share": idle,
        "live_share": growing,
        "peak_rss_bytes": peak, "batches": batches, "torch_loaded": "torch" in sys.modules,
    }))

asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
"""


class Growing(threading.Thread):
    """Adds `per_s` batches a second to the lane's newest segment, as the recording process
    would."""

    def __init__(self, directory: Path, per_s: int) -> None:
        super().__init__(daemon=True)
        self.directory = directory
        self.per_s = per_s
        self.over = threading.Event()
        self.added = 0

    def run(self) -> None:
        while not self.over.wait(0.1):
            self.add(max(1, self.per_s // 10))

    def add(self, count: int) -> None:
        path = segments(self.directory, "batches0x0")[-1]
        (*_, capacity, first, committed, _), newest = _header(path), read_segment(path)[0][-1:]
        if committed == capacity:
            number = int(path.stem.rpartition("-")[2]) + 1
            header = bytearray(path.read_bytes()[:HEADER_BYTES])
            struct.pack_into("<Q", header, 24, first + committed)
            struct.pack_into("<Q", header, COMMITTED_OFFSET, 0)
            making = self.directory / ".making"
            making.write_bytes(bytes(header).ljust(SEGMENT_BYTES, b"\0"))
            path, committed = making.rename(self.directory / f"batches0x0-{number:06d}.seg"), 0
        count = min(count, capacity - committed)
        rows = np.repeat(newest, count)
        at = np.arange(1, count + 1)
        rows["seq"] = newest["seq"] + at
        step = 1_000_000_000 // self.per_s
        rows["t_ns"] = newest["t_ns"] + at * step
        rows["t_fetch_ns"] = rows["t_ns"] - 2_000_000
        with path.open("r+b", buffering=0) as file:
            file.seek(HEADER_BYTES + committed * rows.dtype.itemsize)
            file.write(rows.tobytes())
            file.seek(COMMITTED_OFFSET)
            file.write(struct.pack("<Q", committed + count))
        self.added += count


def _header(path: Path) -> tuple[object, ...]:
    with path.open("rb") as file:
        return HEADER.unpack(file.read(HEADER.size))


def measure(batches: int, width: int, height: int, per_s: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder, "20250101-000000-abcdef")
        make_run(directory, batches)
        own = directory / "p1234-0" / "process.json"
        facts = json.loads(own.read_text())
        facts = {name: value for name, value in facts.items() if not name.startswith("ended")}
        write_atomically(own, json.dumps({**facts, "pid": os.getpid()}))  # live, as this process is
        command = [
            sys.executable,
            "-c",
            MEASURE,
            str(directory),
            str(width),
            str(height),
            str(GROWING_S),
            str(IDLE_S),
        ]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline().strip() == "shown"
        growing = Growing(directory / "p1234-0", per_s)
        growing.start()
        assert process.stdout.readline().strip() == "grown"
        growing.over.set()
        growing.join()
        process.stdin.write("\n")
        process.stdin.flush()
        result: dict[str, object] = json.loads(process.stdout.readline())
        assert process.wait() == 0
        result["added"] = growing.added
        return result


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--screen", default="200x60")
    parser.add_argument(
        "--per-second", type=int, default=200, help="batches added a second while it is shown"
    )
    options = parser.parse_args()
    width, height = map(int, options.screen.split("x"))
    began = time.monotonic()
    result = measure(options.batches, width, height, options.per_second)
    read, draw = result.pop("read_s"), result.pop("draw_s")
    assert isinstance(read, list)
    assert isinstance(draw, dict)
    drawn = [cost for costs in draw.values() for cost in costs]
    refresh = float(np.median(read)) + float(np.median(drawn))
    worst = float(np.percentile(read, 95)) + float(np.percentile(drawn, 95))
    passed = (
        refresh <= BOUND_REFRESH_S
        and result["idle_share"] <= BOUND_IDLE_SHARE
        and result["peak_rss_bytes"] <= BOUND_RSS_BYTES
        and result["start_s"] <= BOUND_START_S
    )
    print(
        json.dumps(
            {
                "benchmark": "dashboard",
                "machine": {
                    "cpu": platform.processor() or platform.machine(),
                    "cores": os.cpu_count(),
                    "python": platform.python_version(),
                    "system": platform.platform(),
                },
                "screen": options.screen,
                "refresh_s": {"median": refresh, "p95": worst, "refreshes": len(read)},
                "read_s": {"median": float(np.median(read)), "p95": float(np.percentile(read, 95))},
                "draw_s": {name: float(np.median(costs)) for name, costs in draw.items()},
                **result,
                "bounds": {
                    "refresh_s": BOUND_REFRESH_S,
                    "idle_share": BOUND_IDLE_SHARE,
                    "peak_rss_bytes": BOUND_RSS_BYTES,
                    "start_s": BOUND_START_S,
                },
                "took_s": time.monotonic() - began,
                "passed": passed,
            },
            indent=2,
        )
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
