"""Is the device read rightly, and what is the advice worth? Loops on the stand-in of docs/standin.md.

    python benchmarks/device.py [--quick] [--no-measure] [--only CASE] [--json FILE] [--store FOLDER]

Cases are judged as those of known_answers.py. Besides, the figures recorded of the device are compared with the
stand-in's own account, batch by batch, and its synchronisations are counted with and without recording.

All figures are the stand-in's: they say nothing of any GPU. Prints JSON on standard output and tables on standard
error. Exit code 0: the goals are reached; 1: not all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from device_cases import CASES
from known_answers import conclude as told
from known_answers import judge, judged, line, row, show, summarised
from loaderscope.profiler.run.run_reader import open_run
from quiet import add_patience

FIGURE_BOUND = 0.05
FIRST_BATCHES = 4  # the device is noticed in them


def figures(folder: Path, recorded: dict[str, Any]) -> dict[str, Any]:
    """Recorded sums against the account's, over the batches that have both; and synchronisations added a block."""
    truth, waits = recorded.pop("truth"), recorded["synchronised_a_block"]
    batches = open_run(next(folder.glob("2*"))).loaders[-1].batches
    found = {}
    for name, values in truth.items():
        got = batches[name][: len(values)]
        both = [k for k in range(FIRST_BATCHES, len(got)) if got[k] >= 0]
        ours, theirs = sum(int(got[k]) for k in both), sum(values[k] for k in both)
        found[name] = {
            "batches": len(both),
            "recorded_ms": round(ours / 1e6, 3),
            "true_ms": round(theirs / 1e6, 3),
            "error": round(ours / theirs - 1, 4) if theirs else None,
        }
    return {"figures": found, "synchronised_added": waits["recorded"] - waits["bare"]}


def held(results: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Over all cases together: errors are of sums, so that a time of next to nothing counts as that."""
    done = [found for found in results.values() if "figures" in found]
    names = done[0]["figures"] if done else ()
    errors = {}
    for name in names:
        ours, theirs = (sum(found["figures"][name][key] for found in done) for key in ("recorded_ms", "true_ms"))
        errors[name] = round(ours / theirs - 1, 4) if theirs else None
    added = sum(found["synchronised_added"] for found in done)
    return {
        "errors": errors,
        "synchronised_added": added,
        "pass": added == 0 and all(abs(error or 0.0) <= FIGURE_BOUND for error in errors.values()),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few cases, judged but not measured")
    parser.add_argument("--no-measure", action="store_true", help="judge the advice only")
    parser.add_argument("--only", choices=CASES, action="append", help="this case; may be given again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE too")
    parser.add_argument("--store", type=Path, metavar="FOLDER", help="keep the results in FOLDER, named by the date")
    add_patience(parser)
    options = parser.parse_args()
    done = judged(
        CASES,
        options,
        lambda case: judge(case, not (options.no_measure or options.quick), figures),
        lambda case: {"causes": list(case.causes)},
        lambda found: [line(row(found)), str(found.get("figures", ""))],
    )
    summary = {**summarised(done["results"]), "device": held(done["results"])}
    summary["pass"] = summary["pass"] and summary["device"]["pass"]
    show(done["results"], summary)
    print(f"against the account: {summary['device']}", file=sys.stderr)
    told("device", options, done, device="the stand-in of docs/standin.md", summary=summary)
    return 0 if summary["pass"] else 1


if __name__ == "__main__":
    sys.exit(main())
