"""How far predictions were off in generated cases, and how wide ranges must be:
advisors/whatif/widths.json.

    python benchmarks/known_residuals.py FOLDER... [--write]

Each FOLDER holds what `known_answers.py --held-out SEED --keep FOLDER` left there: runs, and what
their first advice brought when it was executed. Reports are made anew, by the rules and the model
as they are now; where the first advice is still the same, its range is compared with the truth, and
how far it would have to be stretched is a residual. Cases that known_answers.py judges with by
default, and those of the seed that judges (JUDGES), are no residuals.

Prints a table and the summary; with --write, residuals and the table learnt from them become
widths.json.
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
from learn_widths import learnt, needed
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Range, Recommendation
from loaderscope.advisors.whatif import WhatIf, widths
from loaderscope.profiler.store.run.run_reader import open_run

Found = dict[str, Any]


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


def advised_now(run: Path) -> tuple[Recommendation | None, Range | None, bool]:
    """(the first advice, its range before it was stretched, whether the loop was crowded) of a run,
    as of today."""
    raw: list[tuple[str | None, Range]] = []
    crowded: list[bool] = []
    own = WhatIf.stretched

    def noted(self: WhatIf, found: Range, rule: str | None = None) -> Range:
        crowded.append(self.crowded)
        raw.append((rule, found))
        return own(self, found, rule)

    WhatIf.stretched = noted  # type: ignore[method-assign]
    try:
        loaders = build_report(open_run(run)).loaders
    finally:
        WhatIf.stretched = own  # type: ignore[method-assign]
    loader = max(loaders, key=lambda each: each.batches)
    first = loader.recommendations[0] if loader.recommendations else None
    if first is None:
        return None, None, any(crowded)
    # A rule may have asked for more than it advises: its own is the one with the same middle, as
    # far as that is capped.
    own_ranges = [found for rule, found in raw if rule == first.rule]
    nearest = min(
        own_ranges, key=lambda each: abs(math.log(each.mid / first.predicted.mid)), default=None
    )
    return first, nearest, any(crowded)


def residual(name: str, run: Path, found: Found) -> Found:
    """What is learnt of one case; without "needed" where nothing can be."""
    first, raw, crowded = advised_now(run)
    before = found["first"]
    told: Found = {
        "case": name,
        "rule": first.rule if first is not None else None,
        "crowded": crowded,
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
    asked.add_argument("--write", action="store_true", help="write widths.json")
    options = asked.parse_args()
    told = [residual(*each) for each in kept(options.folders)]
    for each in told:
        print(json.dumps(each))
    every = [each for each in told if "needed" in each]
    right = {"right": sum(each["right"] for each in told), "of": len(told)}
    print(json.dumps({**right, **summary(every)}, indent=1))
    if options.write:
        stored = [
            {key: each[key] for key in ("case", "rule", "crowded", "distance", "needed")}
            for each in every
        ]
        table = learnt(stored)
        text = json.dumps({"table": table}, indent=1)[:-2]
        lines = ",\n".join("  " + json.dumps(each) for each in stored)
        widths.FILE.write_text(f'{text},\n "residuals": [\n{lines}\n ]\n}}\n', encoding="utf-8")
        print(json.dumps(table, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
