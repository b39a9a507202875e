"""What recording costs: loops with and without Loaderscope in one run, and the same loops under
other profilers.

    python benchmarks/overhead.py [--quick] [--no-peers] [--only WORKLOAD] [--json FILE] [--store
    FOLDER]

How it is measured. For each workload, some fresh processes hold three loaders over equal data: one
bare, one watched, and another bare one as a control, which shows what the machine's noise alone
does to a ratio. They are looped over in turn, in short blocks, in random order; every turn gives
one ratio of speeds (1.0: recording costs nothing), and the result is the median of all of them. A
block is a whole pass over the loader, so what is done when an iterator is made is in the ratio. The
system sampler runs beside all blocks alike; what it costs is measured by itself. That every batch
was recorded is checked.

Then each tool gets a process of its own, and all of them, a bare one among them, loop in turn in
the same way.

Prints JSON on standard output and a table on standard error. Exit code 0: all bounds hold; 1: not
all.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from statistics import median, median_low
from typing import Any

from overhead_peers import environment
from overhead_process import Side, SideFailed
from overhead_side import TOOLS
from overhead_stats import summary
from overhead_workloads import WORKLOADS, pictures
from quiet import await_quiet

HERE = Path(__file__).resolve().parent
PEERS = ["torch.profiler", "py-spy", "traceml-ai"]
BARE, AGAIN, OURS = "bare", "bare-again", "loaderscope"

IMPORT_BOUND_MS = 15.0
SAMPLER_BOUND_SHARE, SAMPLER_BOUND_MB = 0.015, 40.0
OPEN_BOUND_S, OPEN_BOUND_MB = 1.0, 400.0
WRITTEN_BOUND_BYTES = 256
NOISE = 0.01  # a control further than this from 1.0 makes a result worth little

Times = dict[str, float]


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def total_ns(times: Times) -> float:
    return times["start_ns"] + times["rest_ns"]


def a_batch_ns(times: Times) -> float:
    """Nanoseconds a batch, once the first is there."""
    return times["rest_ns"] / (times["batches"] - 1)


def in_turn(sides: dict[str, Side], rounds: int, rng: random.Random) -> list[dict[str, Times]]:
    """One block of each, `rounds` times, each time in a new order."""
    order = list(sides)
    turns = []
    for _ in range(rounds):
        rng.shuffle(order)
        turns.append({tool: sides[tool].ask(tool) for tool in order})
    return turns


def compared(turns: list[dict[str, Times]], tool: str) -> dict[str, Any]:
    """A tool against the bare loop of the same turn."""
    pairs = [(turn[BARE], turn[tool]) for turn in turns]
    return {
        "ratio": summary([total_ns(bare) / total_ns(other) for bare, other in pairs], 4),
        "added_ns_a_batch": summary(
            [a_batch_ns(other) - a_batch_ns(bare) for bare, other in pairs], 0
        ),
        "added_us_an_iterator": summary(
            [(other["start_ns"] - bare["start_ns"]) / 1e3 for bare, other in pairs], 1
        ),
    }


def check_recorded(side: Side, at_least: int) -> float | None:
    """What the report states as ns a batch. What records nothing costs nothing: raises SideFailed
    if batches are missing."""
    told = side.ask("recorded")
    if told["batches"] < at_least:
        raise SideFailed(f"only {told['batches']} of {at_least} batches were recorded")
    return told["stated_ns"]


def measure_pairs(name: str, processes: int, blocks: int, rng: random.Random) -> dict[str, Any]:
    """The workload bare and watched, in the same processes; the bounds are on this."""
    workload = WORKLOADS[name]
    turns: list[dict[str, Times]] = []
    by_process, sizes, stated = [], [], []
    for _ in range(processes):
        await_quiet()
        with Side(
            name, [BARE, OURS, AGAIN], 0 if workload.target_us is not None else workload.size
        ) as side:
            sizes.append(side.ready()["size"])
            some = in_turn(dict.fromkeys((BARE, OURS, AGAIN), side), blocks, rng)
            stated.append(check_recorded(side, blocks * workload.batches))
        turns += some
        by_process.append(compared(some, OURS)["ratio"]["median"])
    result = compared(turns, OURS)
    control = compared(turns, AGAIN)["ratio"]
    ratio, added = result["ratio"], result["added_ns_a_batch"]
    ratio["bound"], ratio["pass"] = workload.bound, ratio["median"] >= workload.bound
    known = [value for value in stated if value is not None]
    if workload.bound_ns is not None:
        added["bound"], added["pass"] = workload.bound_ns, added["median"] <= workload.bound_ns
    return {
        "title": workload.title,
        "about": workload.about,
        "size": median_low(sizes),
        "sizes": sizes,
        "batches_a_block": workload.batches,
        "bare_us_a_batch": round(median(a_batch_ns(turn[BARE]) for turn in turns) / 1e3, 2),
        **result,
        "stated_ns_a_batch": round(median(known)) if known else None,  # none on a busy machine
        "ratio_by_process": by_process,
        "control_ratio": control,
        "noisy": abs(control["median"] - 1) > NOISE,
    }


def measure_side_by_side(
    name: str, size: int, processes: int, blocks: int, rng: random.Random
) -> dict[str, Any]:
    """The workload under every tool, each in a process of its own."""
    python = environment()
    turns: list[dict[str, Times]] = []
    why: dict[str, str] = {}
    versions: dict[str, str] = {}
    for _ in range(processes):
        await_quiet()
        sides: dict[str, Side] = {}
        with ExitStack() as stack:
            for tool in TOOLS:
                if tool in why:
                    continue
                try:
                    side = Side(name, [tool], size, python)
                    stack.callback(side.close)
                    versions.update(side.ready()["versions"])
                    sides[tool] = side
                except SideFailed as error:
                    why[tool] = str(error)
            if BARE not in sides:
                return {"not_measured": why.get(BARE, "")}
            turns += in_turn(sides, blocks, rng)
            if OURS in sides:
                check_recorded(sides[OURS], blocks * WORKLOADS[name].batches)
    result: dict[str, Any] = {"versions": versions, "tools": {}}
    for tool in TOOLS:
        if tool in why:
            result["tools"][tool] = {"not_measured": why[tool]}
        elif tool != BARE:
            result["tools"][tool] = compared(turns, tool)
    return result


def import_cost(rounds: int, rng: random.Random) -> dict[str, Any]:
    """`import loaderscope`, beyond what Python itself takes to start."""
    added = []
    for _ in range(rounds + 2):
        took = {}
        for code in rng.sample(("pass", "import loaderscope"), 2):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True)
            took[code] = time.perf_counter() - began
        added.append((took["import loaderscope"] - took["pass"]) * 1e3)
    return {"import loaderscope, ms": bounded(summary(added[2:], 2), IMPORT_BOUND_MS)}


def sampler_cost(seconds: float) -> dict[str, Any]:
    seen = printed("sampler_cost.py", "--seconds", str(seconds))
    return {
        "sampler process, share of a core": bounded(
            {"median": seen["cpu_share"]}, SAMPLER_BOUND_SHARE
        ),
        "sampler process, MB": bounded({"median": seen["rss_mb"]}, SAMPLER_BOUND_MB),
    }


def opening_cost(batches: int) -> dict[str, Any]:
    seen = printed("open_run.py", "--batches", str(batches))["median"]
    what = f"opening a run of {batches:,} batches and its statistics"
    return {
        f"{what}, s": bounded({"median": round(seen["total_s"], 3)}, OPEN_BOUND_S),
        f"{what}, MB": bounded({"median": round(seen["peak_rss_bytes"] / 1e6, 1)}, OPEN_BOUND_MB),
    }


def written() -> dict[str, Any]:
    from loaderscope.profiler.base.schema import BATCH

    return {"written a batch, bytes": bounded({"median": BATCH.size}, WRITTEN_BOUND_BYTES)}


def printed(script: str, *arguments: str) -> Any:
    """The JSON that another benchmark prints; its exit code says only whether its bounds held."""
    command = [sys.executable, str(HERE / script), *arguments]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return json.loads(result.stdout)


def bounded(measured: dict[str, Any], bound: float) -> dict[str, Any]:
    return {**measured, "bound": bound, "pass": measured["median"] <= bound}


def machine() -> dict[str, Any]:
    import torch

    return {
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "load_1m": round(os.getloadavg()[0], 2),
    }


def cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def host_kind() -> str:
    """A word for this kind of machine: no name of its own."""
    facts = machine()
    device = "-gpu" if facts["device"] else ""
    return f"{platform.system()}-{platform.machine()}-{facts['cores']}cpu{device}".lower()


def verdicts(value: Any) -> Iterable[bool]:
    """Every "pass" in a result."""
    if isinstance(value, dict):
        if "pass" in value:
            yield value["pass"]
        for part in value.values():
            yield from verdicts(part)


def show(results: dict[str, Any]) -> None:
    """The tables, on standard error."""
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True)
    table = Table(
        "measured", "bound", "value", "95 % interval", "control", "", title="What recording costs"
    )
    for found in results["workloads"].values():
        if "not_measured" in found:
            table.add_row(f"{found['title']}: not measured", "", "", "", "", "[red]missed[/]")
            continue
        ratio, added, control = found["ratio"], found["added_ns_a_batch"], found["control_ratio"]
        title = f"{found['title']}: speed of bare (a batch: {found['bare_us_a_batch']:.0f} µs)"
        mark = "noisy" if found["noisy"] else ""
        table.add_row(
            title,
            f"≥ {ratio['bound']}",
            *cells(ratio),
            f"{control['median']:.4f}",
            said(ratio, mark),
        )
        limit = f"≤ {added['bound']:.0f}" if "bound" in added else ""
        table.add_row("  added, ns a batch", limit, *cells(added), "", said(added))
        table.add_row(
            "  as its report states it, ns", "", f"{found['stated_ns_a_batch']}", "", "", ""
        )
    for name, cost in results["costs"].items():
        table.add_row(name, f"≤ {cost['bound']}", *cells(cost), "", said(cost))
    console.print(table)
    if not results["side_by_side"]:
        return
    beside = Table(
        "tool", *results["side_by_side"], title="Speed of bare, and what is added to a batch"
    )
    for tool in TOOLS:
        if tool != BARE:
            beside.add_row(
                tool, *(side_cell(found, tool) for found in results["side_by_side"].values())
            )
    console.print(beside)


def cells(found: dict[str, Any]) -> tuple[str, str]:
    ends = found.get("ci95")
    return f"{found['median']:g}", f"{ends[0]:g} to {ends[1]:g}" if ends else ""


def said(found: dict[str, Any], mark: str = "") -> str:
    verdict = "" if "pass" not in found else "[green]ok[/]" if found["pass"] else "[red]missed[/]"
    return f"{verdict} {mark}".strip()


def side_cell(found: dict[str, Any], tool: str) -> str:
    result = found.get("tools", {}).get(tool, found)
    if "not_measured" in result:
        return "not measured"
    added = result["added_ns_a_batch"]["median"] / 1e3
    return f"{result['ratio']['median']:.3f} ({added:+.1f} µs)"


def store(folder: Path, text: str, quick: bool) -> Path:
    """Keeps a result beside the earlier ones, under its date and the kind of machine."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{datetime.date.today().isoformat()}-{host_kind()}{'-quick' if quick else ''}"
    path = folder / f"{stem}.json"
    number = 1
    while path.exists():
        number += 1
        path = folder / f"{stem}-{number}.json"
    path.write_text(text + "\n", encoding="utf-8")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="few blocks: shows that it runs, not what it costs"
    )
    parser.add_argument(
        "--only", choices=WORKLOADS, action="append", help="this workload; may be given again"
    )
    parser.add_argument("--no-peers", action="store_true", help="leave out the other profilers")
    parser.add_argument(
        "--no-costs", action="store_true", help="leave out import, sampler and opening"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the order of the blocks")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE too")
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the results in FOLDER, named by the date"
    )
    options = parser.parse_args()
    rng = random.Random(options.seed)
    names = options.only or list(WORKLOADS)
    results: dict[str, Any] = {
        "benchmark": "overhead",
        "date": datetime.date.today().isoformat(),
        "quick": options.quick,
        "machine": machine(),
        "workloads": {},
        "costs": {},
        "side_by_side": {},
    }
    pictures()
    sizes = {}
    for name in names:
        tell(f"{WORKLOADS[name].title}: bare and watched in turn…")
        sizes[name] = WORKLOADS[name].size
        processes, blocks = (1, 6) if options.quick else (3, WORKLOADS[name].blocks)
        try:
            results["workloads"][name] = measure_pairs(name, processes, blocks, rng)
            sizes[name] = results["workloads"][name]["size"]
        except SideFailed as error:
            tell(f"{WORKLOADS[name].title}: not measured: {error}")
            results["workloads"][name] = {
                "title": WORKLOADS[name].title,
                "not_measured": str(error),
                "pass": False,
            }
    if not options.no_costs:
        tell("import, sampler, opening…")
        await_quiet()
        costs = results["costs"]
        costs |= import_cost(5 if options.quick else 40, rng)
        costs |= sampler_cost(6 if options.quick else 30)
        costs |= opening_cost(20_000 if options.quick else 1_000_000)
        costs |= written()
    if not options.no_peers:
        for name in names:
            tell(f"{WORKLOADS[name].title}: {', '.join(PEERS)} beside it…")
            processes, blocks = (
                (1, 4) if options.quick else (2, max(10, WORKLOADS[name].blocks // 3))
            )
            results["side_by_side"][name] = measure_side_by_side(
                name, sizes[name], processes, blocks, rng
            )
    results["pass"] = all(verdicts({name: results[name] for name in ("workloads", "costs")}))
    text = json.dumps(results, indent=1)
    print(text)
    show(results)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.store is not None:
        tell(f"Kept as {store(options.store, text, options.quick)}")
    return 0 if results["pass"] else 1


if __name__ == "__main__":
    sys.exit(main())
