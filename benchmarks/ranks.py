"""Who names the rank that holds a job up, and why it is slow, and what a step costs meanwhile.

    python benchmarks/ranks.py [--cases augment read forward] [--rounds 3] [--keep FILE] [--store
    FOLDER]

A training on four ranks (DistributedDataParallel over gloo, on the CPU), in which rank 2 is slow:
in a transform that computes, in reading from a worker, or in the model. Each round runs it whole
under each, in random order, as its users would: by torchrun alone, by `loaderscope run`, and by
traceml-ai's launcher, steps marked as its manual says. Taken from each run: mean time of a step
after the first ones, and what the tool's report says at the end. A round gives one ratio of step
times, and is kept in FILE at once; a later start goes on from there. Prints JSON. Exit code 0: ours
named what was planted, each time.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Any

from overhead import machine, store, tell
from overhead_peers import environment
from overhead_process import free_port
from overhead_stats import summary
from quiet import await_quiet

SIDE = Path(__file__).with_name("ranks_side.py")
BARE, OURS, PEER = "bare", "loaderscope", "traceml-ai"
RANKS, SLOW, STEPS, WARM = 4, 2, 400, 40
RUN_S = 120
# What is slow in rank SLOW: the part of a step, and the function where it is one of the loader's.
PLANTED = {
    "augment": ("input", "Augment.__call__"),
    "read": ("input", "read"),
    "forward": ("forward", None),
}
# What traceml-ai calls the part that a rank is slow in.
KINDS = {
    "INPUT_STRAGGLER": "input",
    "COMPUTE_STRAGGLER": "forward",
    "H2D_STRAGGLER": "h2d",
    "STRAGGLER": None,
}


def run(tool: str, case: str, python: str) -> dict[str, Any]:
    """One training under a tool: ns a step, seconds in all, and what the tool says of it."""
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        times, log = Path(folder, "times.json"), Path(folder, "log.txt")
        asked = [str(SIDE), case, str(STEPS), str(times)]
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(RANKS)]
        command = {
            BARE: [python, *torchrun, *asked],
            OURS: [python, "-m", "loaderscope", "run", *torchrun, *asked],
            PEER: [
                *(
                    str(Path(python).parent / "traceml"),
                    "run",
                    asked[0],
                    "--mode",
                    "summary",
                    "--run-name",
                    "run",
                ),
                *(
                    "--nproc-per-node",
                    str(RANKS),
                    "--logs-dir",
                    folder,
                    "--aggregator-port",
                    str(free_port()),
                ),
                *("--master-port", str(free_port()), "--args", *asked[1:], "traceml"),
            ],
        }[tool]
        env = {**os.environ, "LOADERSCOPE_DIR": str(Path(folder, "runs")), "OMP_NUM_THREADS": "1"}
        began = time.perf_counter()
        with log.open("w") as output:
            subprocess.run(
                command, env=env, stdout=output, stderr=output, timeout=RUN_S, check=True
            )
        took = time.perf_counter() - began
        steps = json.loads(times.read_text())[WARM:]
        named = {BARE: lambda _: None, OURS: said_by_us, PEER: said_by_peer}[tool](Path(folder))
        return {"step_ns": round(mean(steps)), "wall_s": round(took, 2), "named": named}


def said_by_us(folder: Path) -> dict[str, Any] | None:
    from loaderscope.advisors.assemble.build_report import build_report
    from loaderscope.advisors.assemble.job import open_job
    from loaderscope.reports.words.loaders import rank_sentences

    (directory,) = (
        path
        for path in Path(folder, "runs").iterdir()
        if path.name[0] != "." and not path.is_symlink()
    )
    (section,) = build_report(open_job(directory)).loaders
    slow = section.ranks.slowest if section.ranks is not None else None
    if slow is None:
        return None
    part = "input" if slow.cause is not None else None
    place = f"{slow.function} at {Path(slow.file).name}:{slow.line}" if slow.file else slow.function
    return {"rank": slow.rank, "part": part, "place": place, "words": rank_sentences(section)[0]}


def said_by_peer(folder: Path) -> dict[str, Any] | None:
    """Its main finding, where that is of a rank; a function is looked for in all of its report."""
    text = Path(folder, "run", "final_summary.json").read_text()
    found = json.loads(text)["primary_diagnosis"]
    if found["kind"] not in KINDS:
        return None
    rank = found["evidence"].get("worst", {}).get("rank")
    place = next((name for _, name in PLANTED.values() if name and name in text), None)
    return {"rank": rank, "part": KINDS[found["kind"]], "place": place, "words": found["summary"]}


def judged(case: str, named: dict[str, Any] | None) -> dict[str, bool | None]:
    """What of the planted cause was named. In the model, nothing of the loader is at fault: there
    `place` is None."""
    part, function = PLANTED[case]
    found = named or {}
    place = found.get("place") or ""
    return {
        "rank": found.get("rank") == SLOW,
        "part": found.get("part") == part,
        "function_and_line": None
        if function is None
        else function in place and f"{SIDE.name}:" in place,
    }


def summarised(case: str, rounds: list[dict[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {"rounds": len(rounds), "tools": {}}
    bare = [each[BARE] for each in rounds]
    result["bare_step_ms"] = summary([each["step_ns"] / 1e6 for each in bare], 2)
    for tool in (OURS, PEER):
        own = [each[tool] for each in rounds]
        verdicts = [judged(case, each["named"]) for each in own]
        pairs = list(zip(own, bare, strict=True))
        result["tools"][tool] = {
            "step_ratio": summary([one["step_ns"] / other["step_ns"] for one, other in pairs], 4),
            "more_wall_s": summary([one["wall_s"] - other["wall_s"] for one, other in pairs], 2),
            **{f"named_{what}": sum(bool(each[what]) for each in verdicts) for what in verdicts[0]},
            "said": own[-1]["named"],
        }
    return result


def right(case: str, found: dict[str, Any]) -> bool:
    """Whether ours named what is the loader's, and nobody where it is not the loader's."""
    ours, rounds = found["tools"][OURS], found["rounds"]
    if PLANTED[case][0] != "input":
        return bool(ours["named_rank"] == 0)
    return bool(
        ours["named_rank"] == ours["named_part"] == ours["named_function_and_line"] == rounds
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", choices=PLANTED, nargs="+", default=list(PLANTED))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="of the order of the tools")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add the rounds to those in FILE")
    parser.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the results in FOLDER, named by the date"
    )
    options = parser.parse_args()
    rounds: dict[str, list[dict[str, Any]]] = {}
    if options.keep is not None and options.keep.exists():
        rounds = json.loads(options.keep.read_text())
    rng = random.Random(options.seed)
    python = environment()
    for case in options.cases:
        for number in range(options.rounds):
            await_quiet(30.0)
            order = rng.sample((BARE, OURS, PEER), 3)
            rounds.setdefault(case, []).append({tool: run(tool, case, python) for tool in order})
            if options.keep is not None:
                options.keep.write_text(json.dumps(rounds))
            tell(
                f"{case}, round {number + 1}: "
                f"{json.dumps({t: r['step_ns'] for t, r in rounds[case][-1].items()})}"
            )
    cases = {case: summarised(case, each) for case, each in rounds.items()}
    results = {
        "benchmark": "ranks",
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "versions": {PEER: peer_version(python), "loaderscope": version("loaderscope")},
        "ranks": RANKS,
        "planted": {"rank": SLOW, **{case: PLANTED[case] for case in cases}},
        "cases": cases,
        "pass": all(right(case, found) for case, found in cases.items()),
        "rounds": rounds,
    }
    text = json.dumps(results, indent=1)
    print(text)
    if options.store is not None:
        tell(f"Kept as {store(options.store, text, quick=False)}")
    return 0 if results["pass"] else 1


def peer_version(python: str) -> str:
    asked = [python, "-c", f"import importlib.metadata as m; print(m.version({PEER!r}))"]
    return subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
