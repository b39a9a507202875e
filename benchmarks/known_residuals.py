"""How far predictions were off in generated cases, and what part of a range holds four truths in
five: NARROWED in advisors/whatif/accuracy.py.

    python benchmarks/known_residuals.py FOLDER... [--write]

Each FOLDER holds what `known_answers.py --held-out SEED --keep FOLDER` left there: runs, and what
their first advice brought when it was executed. Reports are made anew, by the rules and the model
as they are now; where the first advice is still the same, its range is compared with the truth, and
how far it would have to be stretched is a residual. Cases that known_answers.py judges with by
default, and those of the seed that judges (JUDGES), are no residuals.

Prints the residuals, the summary, and the part of ranges that is enough; with --write, the
residuals become benchmarks/residuals.json.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from known_answers import RESULT_FILE, by_hand
from known_cases.generated import JUDGES, PREFIX
from loaderscope.advisors.assemble import engine
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Range, Recommendation
from loaderscope.profiler.store.run.run_reader import open_run

Found = dict[str, Any]
STORED = Path(__file__).with_name("residuals.json")
SHARE = 0.8


def needed(low: float, mid: float, high: float, true: float) -> float:
    """The factor by which this range would have to be stretched to hold the truth, which is on one
    side of it."""
    side = math.log(mid / low) if true < mid else math.log(high / mid)
    return abs(math.log(true / mid)) / max(1e-3, side)


def enough(values: list[float]) -> float:
    """The value below which SHARE of new ones will lie, of values drawn alike (as in split
    conformal prediction)."""
    place = math.ceil(SHARE * (len(values) + 1))
    return sorted(values)[min(place, len(values)) - 1]


def kept(folders: list[Path]) -> Iterator[tuple[str, Path, Found]]:
    """(case, run, what was found) of all that may be learnt from."""
    for folder in folders:
        for file in sorted(folder.glob(f"*/{RESULT_FILE}")):
            case = file.parent.name
            if (
                not case.startswith(PREFIX)
                or int(case.removeprefix(PREFIX).partition("-")[0]) in JUDGES
            ):
                raise SystemExit(f"{case} judges: nothing may be learnt from it")
            yield f"{folder.name}/{case}", file.parent, json.loads(file.read_text(encoding="utf-8"))


def advised_now(run: Path) -> tuple[Recommendation | None, Range | None]:
    """(the first advice, its range before it was narrowed) of a run, as of today."""
    raw: list[Range] = []
    own = engine.narrowed

    def noted(found: Range) -> Range:
        raw.append(found)
        return own(found)

    engine.narrowed = noted
    try:
        loaders = build_report(open_run(run)).loaders
    finally:
        engine.narrowed = own
    loader = max(loaders, key=lambda each: each.batches)
    first = loader.recommendations[0] if loader.recommendations else None
    if first is None:
        return None, None
    # Its own is the one with the same middle, as far as that is capped.
    nearest = min(raw, key=lambda each: abs(math.log(each.mid / first.predicted.mid)), default=None)
    return first, nearest


def residual(name: str, run: Path, found: Found) -> Found:
    """What is learnt of one case; without "needed" where nothing can be."""
    first, raw = advised_now(run)
    before = found["first"]
    told: Found = {
        "case": name,
        "rule": first.rule if first is not None else None,
    }
    told["right"] = (
        first.rule in found["causes"] if first is not None else found.get("ok", not found["causes"])
    )
    if first is None or raw is None or "true_gain" not in found or by_hand(first.change.code):
        return told
    if before["code"] != first.change.code:
        return {**told, "changed": before["rule"]}
    true = found["true_gain"]
    shown = first.predicted
    return {
        **told,
        "predicted": [round(each, 4) for each in (raw.low, raw.mid, raw.high)],
        "shown": [round(each, 3) for each in (shown.low, shown.mid, shown.high)],
        "true": true,
        "distance": round(abs(math.log(raw.mid)), 3),
        "needed": round(needed(raw.low, shown.mid, raw.high, true), 3),
        "of_fix": found.get("of_fix"),
    }


def summary(every: list[Found]) -> Found:
    """As known_answers.py tells it."""
    errors = [abs(each["shown"][1] / each["true"] - 1) for each in every]
    inside = [each["shown"][0] <= each["true"] <= each["shown"][2] for each in every]
    of_fix = [each["of_fix"] for each in every if each["of_fix"]]
    return {
        "count": len(every),
        "median_error": round(median(errors), 4),
        "p90_error": round(quantiles(errors, n=10, method="inclusive")[-1], 4),
        "inside_share": round(sum(inside) / len(inside), 4),
        "median_of_fix": round(median(of_fix), 4) if of_fix else None,
    }


def main() -> int:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    asked.add_argument("--write", action="store_true", help="write residuals.json")
    options = asked.parse_args()
    told = [residual(*each) for each in kept(options.folders)]
    for each in told:
        print(json.dumps(each))
    every = [each for each in told if "needed" in each]
    right = {"right": sum(each["right"] for each in told), "of": len(told)}
    narrowed = enough([each["needed"] for each in every])
    print(json.dumps({**right, **summary(every), "enough": narrowed}, indent=1))
    if options.write:
        stored = [
            {key: each[key] for key in ("case", "rule", "distance", "needed")} for each in every
        ]
        lines = ",\n".join(" " + json.dumps(each) for each in stored)
        STORED.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
