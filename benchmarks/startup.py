"""How long the command takes to begin, beside memray's and pyinstrument's.

    python benchmarks/startup.py [--rounds 20] [--store benchmarks/results/startup]

CPU time and wall time of a whole process, each command in turns with the others; the median and the
least of the rounds. `report` shows a small run that is recorded first. Bounds: 0.15 s for `--help`,
0.6 s for `report`, of CPU time (the least of the rounds), which other programs add little to.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
PEERS = HERE / ".env-startup"
BOUNDS_S = {"loaderscope --help": 0.15, "loaderscope report": 0.6}

TRAIN = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

for _ in range(3):
    for (x,) in DataLoader(TensorDataset(torch.rand(20_000, 8)), batch_size=20):
        x.sum()
"""


def peers() -> Path:
    """The bin folder of an environment with the other tools."""
    if not (PEERS / "ready").exists():
        venv.create(PEERS, with_pip=True, clear=True)
        pip = [PEERS / "bin/python", "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "memray", "pyinstrument"], check=True)
        (PEERS / "ready").touch()
    return PEERS / "bin"


def measure(command: list[str], folder: Path) -> tuple[float, float]:
    """(CPU seconds, wall seconds) of one process."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--store", type=Path, help="the folder to write the result to")
    options = parser.parse_args()
    ours, others = Path(sys.executable).parent / "loaderscope", peers()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["LOADERSCOPE_DIR"] = str(folder / "runs")
        (folder / "train.py").write_text(TRAIN)
        (folder / "short.py").write_text("sum(range(10_000))\n")
        subprocess.run([ours, "run", "--quiet", "train.py"], cwd=folder, check=True)
        memray, pyinstrument = str(others / "memray"), str(others / "pyinstrument")
        subprocess.run([memray, "run", "-q", "-o", "it.bin", "short.py"], cwd=folder, check=True)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "loaderscope --help": [str(ours), "--help"],
            "loaderscope report": [str(ours), "report"],
            "memray --help": [memray, "--help"],
            "memray summary": [memray, "summary", "it.bin"],
            "pyinstrument --help": [pyinstrument, "--help"],
        }
        times: dict[str, list[tuple[float, float]]] = {each: [] for each in commands}
        for _ in range(options.rounds):
            for each, command in commands.items():
                times[each].append(measure(command, folder))
    for each, pairs in times.items():
        cpu, wall = zip(*pairs, strict=True)
        found[each] = {
            "cpu_s": round(median(cpu), 3),
            "least_cpu_s": round(min(cpu), 3),
            "wall_s": round(median(wall), 3),
            "least_wall_s": round(min(wall), 3),
        }
    passed = all(found[each]["least_cpu_s"] <= most for each, most in BOUNDS_S.items())
    machine = {"python": platform.python_version(), "system": platform.platform()}
    result = {
        "benchmark": "startup",
        "date": time.strftime("%Y-%m-%d"),
        "machine": {**machine, "load_1m": round(os.getloadavg()[0], 2)},
        "rounds": options.rounds,
        "bounds_s": BOUNDS_S,
        "commands": found,
        "pass": passed,
    }
    text = json.dumps(result, indent=1) + "\n"
    print(text, end="")
    if options.store:
        options.store.mkdir(parents=True, exist_ok=True)
        (options.store / f"{result['date']}.json").write_text(text)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
