"""How well the what-if model predicts: one recording of a loop, four changes foretold, and each
then measured.

    python benchmarks/prediction.py [--quick] [--only WORKLOAD] [--json FILE] [--store FOLDER]
    [--calibrate]
                                    [--keep FOLDER] [--again FOLDER]

For each workload the base setting is recorded once with `watch()`, and the four changes are
predicted from that run alone. Then the base and the changed loops are run bare, in turn, several
times over, each in a fresh process; the factor measured is that of the median speeds. Of short
epochs, whole ones after the first are timed; of endless ones, the batches after the first some. The
training process computes with one thread, as its workers do: what several threads suffer on busy
cores is not part of the model, and only widens its ranges.

`--calibrate` prints the constants of advisors/whatif/accuracy.py that these results ask for.
`--keep` keeps recordings and results, and `--again` predicts anew from them: what a change of the
model does is seen without measuring again.

Prints JSON on standard output and a table on standard error. Exit code 0: the goals hold; 1: not
all.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import multiprocessing
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch

from overhead import machine, store, tell
from prediction_workloads import WORKLOADS, Workload, prepare
from quiet import await_quiet

GOALS = {"median_abs_error": 0.10, "p90_abs_error": 0.25, "inside_share": 0.75}
RUN_S, RECORD_S, REPETITIONS = 1.1, 4.0, 3
QUICK_S, QUICK_RECORD_S = 0.3, 1.5
LIMIT_S, END_S = 120.0, 20.0
CONTEXT = multiprocessing.get_context("forkserver")
LEAST_BATCHES, WARM_BATCHES = 30, 24
KEPT = "results.json"


def batches_per_s(workload: Workload, loader: Any, seconds: float) -> float:
    """Speed of the loop: of whole epochs after the first, or of an endless one once it runs."""
    step = workload.step
    short = workload.sample is not None and workload.length // loader.batch_size < 1000
    if short:
        pass_over(loader, step)
        began, batches = perf_counter(), 0
        while perf_counter() - began < seconds or batches < LEAST_BATCHES:
            batches += pass_over(loader, step)
        return batches / (perf_counter() - began)
    iterator = iter(loader)
    for _ in range(WARM_BATCHES):
        next(iterator)
        if step is not None:
            step()
    began, batches = perf_counter(), 0
    while perf_counter() - began < seconds or batches < LEAST_BATCHES:
        next(iterator)
        if step is not None:
            step()
        batches += 1
    return batches / (perf_counter() - began)


def pass_over(loader: Any, step: Any) -> int:
    count = 0
    for _batch in loader:
        if step is not None:
            step()
        count += 1
    return count


def side(asked: dict[str, Any]) -> dict[str, Any]:
    """In the fresh process: loops over one workload under one change."""
    multiprocessing.set_start_method(
        "fork", force=True
    )  # the same everywhere, whatever this Python's default
    warnings.simplefilter("ignore")  # more workers than cores are meant
    torch.set_num_threads(1)
    prepare()
    workload = WORKLOADS[asked["workload"]]
    loader: Any = workload.make(asked["change"])
    if asked["record"]:
        import loaderscope

        loader = loaderscope.watch(loader)
    return {"batches_per_s": batches_per_s(workload, loader, asked["seconds"])}


def looped(name: str, change: dict[str, Any], seconds: float) -> float:
    """Batches a second, bare, in a fresh process, forked from a server that has imported torch and
    done nothing."""
    asked = {"workload": name, "change": change, "seconds": seconds, "record": False}
    ours, theirs = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=answer, args=(asked, theirs))
    process.start()
    theirs.close()
    try:
        if not ours.poll(LIMIT_S):
            raise TimeoutError(f"{name} with {change} took more than {LIMIT_S:.0f} s")
        found: float = ours.recv()["batches_per_s"]
    finally:
        process.join(END_S)
        if process.is_alive():
            process.kill()
    return found


def answer(asked: dict[str, Any], connection: Any) -> None:
    connection.send(side(asked))


def record(name: str, seconds: float, runs: Path) -> None:
    """The base setting under `watch()`, in a process of its own from start to end."""
    asked = {"workload": name, "change": {}, "seconds": seconds, "record": True}
    command = [sys.executable, str(Path(__file__).resolve()), "--side", json.dumps(asked)]
    env = {**os.environ, "LOADERSCOPE_DIR": str(runs)}
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, check=True, timeout=LIMIT_S)


def foretold(name: str, seconds: float, keep: Path | None) -> tuple[list[Any], dict[str, Any]]:
    """The predictions from one recording, kept in `keep`, and what the model thinks of it."""
    with tempfile.TemporaryDirectory(prefix="prediction-") as folder:
        runs = Path(folder) if keep is None else keep / name
        record(name, seconds, runs)
        return predictions_of(name, runs)


def predictions_of(name: str, runs: Path) -> tuple[list[Any], dict[str, Any]]:
    """What the newest run in `runs` foretells for the changes of a workload, and what the model
    thinks of it."""
    from loaderscope.advisors.whatif import WhatIf, workload_of
    from loaderscope.advisors.whatif.changes import plans
    from loaderscope.profiler.store.run.run_reader import open_run

    run = open_run("latest", runs)
    process = run.processes[0]
    workload = workload_of(run, process, process.loaders[0])
    whatif = WhatIf(workload)
    whatif.predict(num_workers=workload.num_workers + 1)
    found = []
    for change in WORKLOADS[name].changes:
        began = perf_counter()
        predicted = whatif.predict(**change)
        took_ms = (perf_counter() - began) * 1e3
        found.append((change, predicted, took_ms, sorted(plans(workload, change).kinds)))
    facts = {
        "baseline_batches_per_s": round(whatif.baseline_batches_per_s, 2),
        "misfit": round(whatif.misfit, 3),
        "compute_cores": None
        if workload.compute_cores is None
        else round(workload.compute_cores, 3),
        "receive_us": round(workload.receive_ns / 1e3, 1),
    }
    return found, facts


def measure(name: str, quick: bool, keep: Path | None) -> dict[str, Any]:
    """One workload: predicted, then measured."""
    await_quiet()
    predictions, facts = foretold(name, QUICK_RECORD_S if quick else RECORD_S, keep)
    seconds, repetitions = (QUICK_S, 1) if quick else (RUN_S, REPETITIONS)
    settings: list[dict[str, Any]] = [{}, *WORKLOADS[name].changes]
    speeds: list[list[float]] = [[] for _ in settings]
    for turn in range(repetitions):
        await_quiet()
        order = list(enumerate(settings))
        for place, change in order if turn % 2 == 0 else reversed(order):
            speeds[place].append(looped(name, change, seconds))
    base = median(speeds[0])
    cases = []
    for (change, predicted, took_ms, kinds), measured in zip(predictions, speeds[1:], strict=True):
        spread = max(measured) / min(measured)
        cases.append(compared(change, predicted, took_ms, kinds, median(measured) / base, spread))
    facts["bare_batches_per_s"] = round(base, 2)
    return {"title": WORKLOADS[name].title, "base": WORKLOADS[name].base, **facts, "cases": cases}


def compared(
    change: dict[str, Any],
    predicted: Any,
    took_ms: float,
    kinds: list[str],
    factor: float,
    spread: float,
) -> dict[str, Any]:
    """One change: the predicted factor beside the measured one."""
    return {
        "change": change,
        "kinds": kinds,
        "predicted": [round(predicted.low, 3), round(predicted.mid, 3), round(predicted.high, 3)],
        "measured": round(factor, 3),
        "spread": round(spread, 3),
        "abs_error": round(abs(predicted.mid / factor - 1), 3),
        "inside": bool(predicted.low <= factor <= predicted.high),
        "predicting_ms": round(took_ms, 1),
    }


def again(folder: Path) -> dict[str, Any]:
    """The results in `folder` with predictions made anew from the recordings kept there; nothing is
    measured."""
    results: dict[str, Any] = json.loads((folder / KEPT).read_text(encoding="utf-8"))
    for name, found in results["workloads"].items():
        predictions, facts = predictions_of(name, folder / name)
        found.update(facts)
        found["cases"] = [
            compared(*each, before["measured"], before["spread"])
            for each, before in zip(predictions, found["cases"], strict=True)
        ]
    return results


def summed_up(cases: list[dict[str, Any]]) -> dict[str, Any]:
    errors = sorted(case["abs_error"] for case in cases)
    found = {
        "median_abs_error": round(median(errors), 3),
        "p90_abs_error": errors[min(len(errors) - 1, math.ceil(0.9 * len(errors)) - 1)],
        "inside_share": round(sum(case["inside"] for case in cases) / len(cases), 3),
        "count": len(cases),
        "predicting_ms_max": max(case["predicting_ms"] for case in cases),
        "goals": GOALS,
    }
    found["pass"] = (
        found["median_abs_error"] <= GOALS["median_abs_error"]
        and found["p90_abs_error"] <= GOALS["p90_abs_error"]
        and found["inside_share"] >= GOALS["inside_share"]
    )
    return found


def calibrated(cases: list[dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """MODEL_ERROR anew: slopes are kept, and each floor is what four in five of that kind's errors
    need.

    A kind met fewer than four times, or only together with others, keeps its constants.
    """
    from loaderscope.advisors.whatif.accuracy import MODEL_ERROR

    found = dict(MODEL_ERROR)
    for kind, (_, slope) in MODEL_ERROR.items():
        over = []
        for case in cases:
            if case["kinds"] == [kind]:
                middle = math.log(case["predicted"][1])
                over.append(
                    max(0.0, abs(math.log(case["measured"]) - middle) - slope * abs(middle))
                )
        if len(over) >= 4:
            floor = sorted(over)[min(len(over) - 1, math.ceil(0.8 * len(over)) - 1)]
            found[kind] = (round(max(0.02, floor), 2), slope)
    return found


def show(results: dict[str, Any]) -> None:
    """The table, on standard error."""
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True)
    table = Table(
        "workload",
        "change",
        "predicted",
        "measured",
        "off",
        "inside",
        title="Predicted and measured factors",
    )
    for found in results["workloads"].values():
        for case in found["cases"]:
            low, mid, high = case["predicted"]
            change = ", ".join(
                f"{key}={value}"
                for key, value in case["change"].items()
                if key != "persistent_workers"
            )
            inside = "[green]yes[/]" if case["inside"] else "[red]no[/]"
            table.add_row(
                found["title"],
                change or "persistent_workers=True",
                f"{mid:.2f} ({low:.2f} to {high:.2f})",
                f"{case['measured']:.2f}",
                f"{case['abs_error'] * 100:.0f} %",
                inside,
            )
    console.print(table)
    said = results["summary"]
    console.print(
        f"median error {said['median_abs_error'] * 100:.1f} %, nine in ten within "
        f"{said['p90_abs_error'] * 100:.1f} %, inside the range {said['inside_share'] * 100:.0f} % "
        f"of {said['count']}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="short runs: shows that it runs, not how good it is"
    )
    parser.add_argument(
        "--only", choices=WORKLOADS, action="append", help="this workload; may be given again"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE too")
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the results in FOLDER, named by the date"
    )
    parser.add_argument(
        "--calibrate", action="store_true", help="print MODEL_ERROR as these results ask for it"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep the recordings and the results in FOLDER"
    )
    parser.add_argument(
        "--again", type=Path, metavar="FOLDER", help="only predict anew from what --keep kept there"
    )
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(side(json.loads(options.side))))
        return 0
    CONTEXT.set_forkserver_preload(["torch.utils.data", "prediction_workloads"])
    prepare()
    results: dict[str, Any] = {
        "benchmark": "prediction",
        "date": datetime.date.today().isoformat(),
        "quick": options.quick,
        "machine": machine(),
        "workloads": {},
    }
    if options.again is not None:
        results = again(options.again)
    else:
        for name in options.only or WORKLOADS:
            tell(f"{WORKLOADS[name].title}…")
            results["workloads"][name] = measure(name, options.quick, options.keep)
    cases = [case for found in results["workloads"].values() for case in found["cases"]]
    results["summary"] = summed_up(cases)
    text = json.dumps(results, indent=1)
    if options.keep is not None:
        (options.keep / KEPT).write_text(text + "\n", encoding="utf-8")
    print(text)
    show(results)
    if options.calibrate:
        tell("MODEL_ERROR = " + json.dumps(calibrated(cases), indent=4))
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.store is not None:
        tell(f"Kept as {store(options.store / 'prediction', text, options.quick)}")
    return 0 if results["summary"]["pass"] or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())
