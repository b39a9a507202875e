"""How long the report of a job of many ranks takes, from opening it to the advice, and in how much
memory.

    python benchmarks/scale.py [--ranks 64 1024] [--repeat 3] [--store FOLDER]

Jobs are made up in a temporary folder: of 100,000 batches a rank, the last 8,000, as is left of
them where a run's room is used up; one rank fetches longer than the others. The segments of the ranks are links to one file: what is read is the same, what is written
much less. Each job is read in a fresh process. Prints JSON. The bounds: 64 ranks on 8 hosts within
2 s, 1,024 on 128 within 10 s and 1 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from open_run import this_machine, timed_processes

BATCHES, DETAIL, A_HOST = 100_000, 8_000, 8
# Ranks → seconds, bytes.
BOUNDS = {64: (2.0, 1e9), 1024: (10.0, 1e9)}

MEASURE = """
import json, resource, sys, time
began = time.perf_counter()
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.assemble.job import open_job
imported = time.perf_counter()
run = open_job(sys.argv[1])
opened = time.perf_counter()
report = build_report(run)
done = time.perf_counter()
(section,) = report.loaders
print(json.dumps({
    "import_s": imported - began, "open_s": opened - imported, "report_s": done - opened, "total_s": done - began,
    "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    "ranks": len(section.ranks.each), "hosts": section.ranks.hosts, "slowest": section.ranks.slowest.rank,
    "cause": section.ranks.slowest.cause, "verdict": section.verdict, "batches": section.batches,
}))
"""


def make_job(directory: Path, ranks: int, slow: int) -> None:
    """A finished job: every rank's folder with its lanes."""
    directory.mkdir(parents=True)
    common = {"format": 1, "boot_id": None, "clock_ns": 10**12}
    told = {
        "id": directory.name,
        "created_unix_ns": 1_735_689_600_000_000_000,
        "argv": ["train.py"],
    }
    (directory / "run.json").write_text(json.dumps({**common, **told, "host": "node0"}))
    patterns: dict[bool, Path] = {}
    for rank in range(ranks):
        process = directory / f"p{1000 + rank % A_HOST}-{rank // A_HOST}"
        process.mkdir()
        pattern = patterns.get(rank == slow)
        facts = {
            **common,
            "pid": 1000 + rank % A_HOST,
            "host": f"node{rank // A_HOST}",
            "rank": rank,
            "world_size": ranks,
            "local_rank": rank % A_HOST,
            "local_world_size": A_HOST,
            "torch": "2.13.0",
            "device": "NVIDIA H200",
            "ended_clock_ns": 10**15,
            "ended_unix_ns": 0,
            "affinity": 64,
            "reasons": {},
        }
        (process / "process.json").write_text(json.dumps(facts))
        if pattern is None:
            _lanes(process, 40 if rank == slow else 4)
            patterns[rank == slow] = process
            continue
        for path in pattern.iterdir():
            if path.name != "process.json":
                os.link(path, process / path.name)


def _lanes(process: Path, fetch_ms: float) -> None:
    """One loader: the newest batches."""
    import numpy as np

    from loaderscope.profiler.base.schema import BATCH, EPOCH
    from loaderscope.profiler.store.lanes.lane import Budget, Lane

    loader = {
        "format": 1,
        "index": 0,
        "name": "Images",
        "kind": "dataloader",
        "reasons": {},
        "notes": [],
        "config": {
            "dataset": "train.Images",
            "num_workers": 4,
            "batch_size": 32,
            "prefetch_factor": 2,
        },
        "overhead": {"hook_ns": 800.0},
    }
    (process / "loader0.json").write_text(json.dumps(loader))
    random, ms = np.random.default_rng(0), 1_000_000
    budget = Budget(DETAIL * BATCH.size)
    lane = Lane(process, "batches0x0", BATCH, budget, print, trimmed=True)
    blank = {f.name: float("nan") if f.code == "f" else -1 for f in BATCH.fields[1:]}
    t, step = 10**12, 14 * ms
    for number in range(BATCHES):
        made = fetch_ms * ms * random.gamma(20, 1 / 20)
        wait = round(max(0.1 * ms, made / 4))
        row = {
            **blank,
            "t_ns": t,
            "wait_ns": wait,
            "samples": 32,
            "epoch": number // 5_000,
            "index_ns": 9_000,
            "fetch_ns": round(made),
            "collate_ns": ms // 2,
            "pack_ns": ms // 10,
            "unpack_ns": ms // 20,
            "queued_ns": ms,
            "t_fetch_ns": t - round(made),
            "task": number % 5_000,
            "worker": number % 4,
            "outstanding": 8,
            "ready": 2,
        }
        lane.append(*row.values())
        t += max(step, wait + ms)
    lane.close()
    epochs = Lane(process, "epochs0", EPOCH, budget, print)
    epochs.append(*(10**12 if f.name == "t_iter_ns" else -1 for f in EPOCH.fields[1:]))
    epochs.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the results in FOLDER, named by the date"
    )
    options = parser.parse_args()
    found, passed = [], True
    for ranks in options.ranks:
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder, "20250101-000000-abcdef")
            make_job(directory, ranks, ranks // 2 + 1)
            results = timed_processes(MEASURE, directory, options.repeat)
        median = results[len(results) // 2]
        right = (
            median["slowest"] == ranks // 2 + 1
            and median["cause"] == "fetch"
            and median["ranks"] == ranks
        )
        seconds, bytes_ = BOUNDS.get(ranks, (float("inf"), float("inf")))
        passed = (
            passed and right and median["total_s"] <= seconds and median["peak_rss_bytes"] <= bytes_
        )
        found.append(
            {"ranks": ranks, "median": median, "bounds": BOUNDS.get(ranks), "right": right}
        )
    told = {
        "benchmark": "scale",
        "machine": this_machine(),
        "jobs": found,
        "passed": passed,
    }
    text = json.dumps(told, indent=2)
    print(text)
    if options.store is not None:
        from overhead import store

        print(f"Kept as {store(options.store, text, quick=False)}", file=sys.stderr)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
