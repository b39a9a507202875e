"""The four workloads this product was born from: before, after pasting the first recommendation,
and the author's best.

    python benchmarks/seeds.py [--only A] [--json FILE] [--store FOLDER]

Each workload is recorded in a fresh process. What its report recommends first is pasted verbatim,
in another process that knows the user's class, `dataset`, `torch` and `DataLoader`: it must define
`loader`. There the three loops run in turn, and ratios are taken within a round. A and D need no
I/O; of C the report must state how much of the time is decoding and how much reading, which is then
timed apart.

Prints JSON on standard output and a table on standard error. Exit code 0: the goals are reached; 1:
not all.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import LoaderReport
from loaderscope.profiler.record.session.session import RUN_VARIABLE
from loaderscope.profiler.store.run.run_reader import open_run
from overhead import machine, store, tell, verdicts
from quiet import await_quiet
from seeds_workloads import WORKLOADS, Workload

SIDE = Path(__file__).with_name("seeds_side.py")
LIMIT_S = 240.0
READING_WITHIN = 0.10  # of all making: how far the statement about reading may be off


class SeedFailed(Exception):
    """A process of a workload did not do what it was asked; the text says why."""


def side(mode: str, name: str, folder: Path, code: str = "") -> dict[str, Any]:
    await_quiet()
    env = {**os.environ, "LOADERSCOPE_DIR": str(folder), "PYTHONHASHSEED": "0"}
    env.pop(RUN_VARIABLE, None)
    command = [sys.executable, str(SIDE), mode, name]
    try:
        done = subprocess.run(
            command,
            env=env,
            cwd=folder,
            input=code,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SeedFailed(f"did not end within {LIMIT_S:.0f} s") from None
    if done.returncode:
        raise SeedFailed(done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert isinstance(found, dict)
    return found


def seed(name: str, workload: Workload) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="seeds-") as made:
        folder = Path(made)
        recorded = side("record", name, folder)
        loader = build_report(open_run(next(folder.glob("2*")))).loaders[0]
        first = loader.recommendations[0] if loader.recommendations else None
        measured = side("measure", name, folder, first.change.code if first is not None else "")
    result: dict[str, Any] = {
        "title": workload.title,
        "recorded": recorded,
        "verdict": loader.verdict,
        "first": asdict(first) if first is not None else None,
        "recommended": [each.rule for each in loader.recommendations],
        "rejected": {each.rule: each.why for each in loader.rejected},
        "unmeasured": dict(loader.unmeasured),
        "measured": measured,
        "goals": goals(workload, measured),
    }
    if first is not None and "gain" in measured:
        result["inside"] = first.predicted.low <= measured["gain"] <= first.predicted.high
    if workload.reading:
        result["reading"] = statement(loader, measured["reading_share"])
    return result


def goals(workload: Workload, measured: Mapping[str, Any]) -> dict[str, Any]:
    wanted = {"gain": workload.least_gain, "of_author": workload.least_of_author}
    return {
        name: {
            "value": measured.get(name),
            "bound": bound,
            "pass": (measured.get(name) or 0.0) >= bound,
        }
        for name, bound in wanted.items()
        if bound is not None
    }


def statement(loader: LoaderReport, true_share: float) -> dict[str, Any]:
    """What the report says of reading and decoding, beside the truth."""
    said = loader.waiting.fetch_idle_share if loader.waiting is not None else None
    storage = next(
        (
            each
            for each in (*loader.recommendations, *loader.rejected)
            if each.rule == "storage-format"
        ),
        None,
    )
    off = abs(said - true_share) if said is not None else None
    return {
        "said_idle_share": said,
        "true_reading_share": true_share,
        "storage_format": storage.why
        if storage is not None
        else loader.unmeasured.get("storage-format"),
        "storage_format_recommended": any(
            each.rule == "storage-format" for each in loader.recommendations
        ),
        "bound": READING_WITHIN,
        "pass": off is not None and off <= READING_WITHIN,
    }


def show(results: Mapping[str, dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True)
    table = Table(
        "workload",
        "first advice",
        "predicted",
        "measured",
        "of the author's",
        "author's gain",
        "",
        title="Seeds",
    )
    for found in results.values():
        table.add_row(*row(found))
    console.print(table)


def row(found: Mapping[str, Any]) -> tuple[str, ...]:
    if "failed" in found:
        return found["title"], "", "", "", "", "", f"[red]failed[/] {found['failed'][:80]}"
    first, measured = found["first"], found["measured"]
    ends = first["predicted"] if first else None
    predicted = f"{ends['mid']:.2f} ({ends['low']:.2f} to {ends['high']:.2f})" if ends else ""
    cells = [
        f"{measured[name]:.2f}" if name in measured else ""
        for name in ("gain", "of_author", "author_gain")
    ]
    mark = "[green]ok[/]" if all(verdicts(found)) else "[red]missed[/]"
    return found["title"], first["rule"] if first else "nothing", predicted, *cells, mark


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", help="workloads whose name begins so: A, A2, B, C, D"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE too")
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the results in FOLDER, named by the date"
    )
    options = parser.parse_args()
    names = [name for name in WORKLOADS if not options.only or name.startswith(tuple(options.only))]
    if not names:
        parser.error(f"no such workload: {', '.join(options.only)}")
    results: dict[str, Any] = {}
    for name in names:
        tell(f"{WORKLOADS[name].title}…")
        try:
            results[name] = seed(name, WORKLOADS[name])
        except SeedFailed as error:
            results[name] = {"title": WORKLOADS[name].title, "failed": str(error), "pass": False}
    found = {
        "benchmark": "seeds",
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "pass": all(verdicts(results)),
        "workloads": results,
    }
    text = json.dumps(found, indent=1)
    print(text)
    show(results)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.store is not None:
        tell(f"Kept as {store(options.store / 'seeds', text, quick=False)}")
    return 0 if found["pass"] else 1


if __name__ == "__main__":
    sys.exit(main())
