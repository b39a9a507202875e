"""What the compiled form of the hot path is worth: the same loops bare, recorded in C, and recorded
in Python.

    python benchmarks/forms.py [--quick] [--only WORKLOAD] [--json FILE] [--store FOLDER]
    python benchmarks/forms.py --wheel PYTHON [--json FILE] [--store FOLDER]

For each workload of benchmarks/overhead.py, two fresh processes hold a bare and a watched loader
each, one process a form. They loop in turn, in short blocks, in random order; each turn gives what
a form adds to a batch, beside the bare loop of its own process, and what Python adds beyond C. The
result is the median over all turns.

Beside that stands what the hooks cost alone, driven over iterators that do nothing
(`profiler/record/iterate/calibrate.py`), each time in a fresh process: it tells the training
process of a loader with workers apart, which loops with real ones cannot.

With --wheel, only the hooks: those of this checkout, built from source, and those of a wheel that
is installed in the environment of PYTHON.

Prints JSON on standard output and a table on standard error.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from overhead import BARE, OURS, a_batch_ns, check_recorded, in_turn, machine, store, tell
from overhead_process import Side
from overhead_stats import summary
from overhead_workloads import WORKLOADS, pictures
from quiet import await_quiet

FORMS = {"compiled": "0", "python": "1"}  # with LOADERSCOPE_PURE
SIDES = {
    "single_ns": "no workers",
    "main_ns": "with workers, in main",
}
CALIBRATION = (
    "import json; from loaderscope.profiler.native import form; "
    "from loaderscope.profiler.record.iterate.calibrate import hook_ns; "
    "costs = {'single_ns': hook_ns(False), 'main_ns': hook_ns(True)}; "
    "print(json.dumps({'compiled': form.native is not None, **costs}))"
)


def measure(name: str, processes: int, blocks: int, rng: random.Random) -> dict[str, Any]:
    """One workload in both forms, each beside the bare loop of its own process."""
    workload = WORKLOADS[name]
    turns: list[dict[str, dict[str, dict[str, float]]]] = []
    size = 0 if workload.target_us is not None else workload.size
    for _ in range(processes):
        await_quiet()
        with ExitStack() as stack:
            sides: dict[str, Side] = {}
            for form, pure in FORMS.items():
                sides[form] = stack.enter_context(
                    Side(name, [BARE, OURS], size, LOADERSCOPE_PURE=pure)
                )
                size = sides[form].ready()["size"]
            for _ in range(blocks):
                forms = rng.sample(list(FORMS), len(FORMS))
                turns.append(
                    {
                        form: in_turn(dict.fromkeys((BARE, OURS), sides[form]), 1, rng)[0]
                        for form in forms
                    }
                )
            for side in sides.values():
                check_recorded(side, blocks * workload.batches)
    added = {
        form: [a_batch_ns(turn[form][OURS]) - a_batch_ns(turn[form][BARE]) for turn in turns]
        for form in FORMS
    }
    return {
        "title": workload.title,
        "size": size,
        "bare_us_a_batch": round(
            median(a_batch_ns(turn[form][BARE]) for turn in turns for form in FORMS) / 1e3, 2
        ),
        "added_ns_a_batch": {form: summary(values, 0) for form, values in added.items()},
        "python_beyond_compiled_ns": summary(
            [slow - fast for fast, slow in zip(added["compiled"], added["python"], strict=True)], 0
        ),
    }


def hooks_alone(rounds: int, wheel: str | None = None) -> dict[str, Any]:
    """ns a batch of each side's hooks, in both forms; or compiled, here and in the environment with
    the wheel."""
    own = sys.executable
    forms = {"compiled": own, "wheel": wheel} if wheel else dict.fromkeys(FORMS, own)
    found: dict[str, dict[str, list[float]]] = {
        side: {form: [] for form in forms} for side in SIDES
    }
    for _ in range(rounds):
        for form, python in forms.items():
            env = {**os.environ, "LOADERSCOPE_PURE": FORMS.get(form, "0")}
            told = subprocess.run(  # from a folder in which no checkout lies
                [python, "-c", CALIBRATION], env=env, cwd="/", capture_output=True, check=True
            )
            costs = json.loads(told.stdout)
            if costs["compiled"] != (form != "python"):
                raise SystemExit(f"the extension is not built for {python}: there is one form only")
            for side in SIDES:
                found[side][form].append(costs[side])
    return {
        side: {form: summary(values, 0) for form, values in forms.items()}
        for side, forms in found.items()
    }


def show(results: dict[str, Any]) -> None:
    """The tables, on standard error."""
    from rich.console import Console
    from rich.table import Table

    names = [*results["hooks_alone_ns"]["single_ns"]]
    table = Table(
        "added to a batch, ns",
        *names,
        f"{names[1]} beyond compiled",
        title="The two forms of the hot path",
    )
    for found in results["workloads"].values():
        values = [*found["added_ns_a_batch"].values(), found["python_beyond_compiled_ns"]]
        table.add_row(
            f"{found['title']} ({found['bare_us_a_batch']:.0f} µs bare)", *map(cell, values)
        )
    for side, forms in results["hooks_alone_ns"].items():
        compiled, other = forms.values()
        table.add_row(
            f"hooks alone, {SIDES[side]}",
            cell(compiled),
            cell(other),
            f"{between(compiled, other):+.0f}",
        )
    Console(stderr=True).print(table)


def between(fast: dict[str, Any], slow: dict[str, Any]) -> float:
    return float(slow["median"] - fast["median"])


def cell(found: dict[str, Any]) -> str:
    ends = found["ci95"]
    return f"{found['median']:g}" + (f" ({ends[0]:g} to {ends[1]:g})" if ends else "")


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
    parser.add_argument(
        "--wheel", metavar="PYTHON", help="that of an environment with the wheel: the hooks only"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the order of the blocks")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE too")
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the results in FOLDER, named by the date"
    )
    options = parser.parse_args()
    rng = random.Random(options.seed)
    names = [] if options.wheel else options.only or list(WORKLOADS)
    tell("the hooks alone…")
    results: dict[str, Any] = {
        "benchmark": "forms",
        "date": datetime.date.today().isoformat(),
        "quick": options.quick,
        "machine": machine(),
        "hooks_alone_ns": hooks_alone(3 if options.quick else 15, options.wheel),
        "workloads": {},
    }
    if names:
        pictures()
    for name in names:
        tell(f"{WORKLOADS[name].title}: both forms in turn…")
        processes, blocks = (1, 6) if options.quick else (3, WORKLOADS[name].blocks)
        results["workloads"][name] = measure(name, processes, blocks, rng)
    text = json.dumps(results, indent=1)
    print(text)
    show(results)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.store is not None:
        tell(f"Kept as {store(options.store, text, options.quick)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
