"""Is `loaderscope try` right? Sixty changes of a batch, changes of none, and changes of speed.

    python benchmarks/try.py [--quick] [--only CASE] [--json FILE] [--store FOLDER] [--repeat N] [--budget S]

    batches   each mutant of try_mutants.py against its base, by the command itself: none may be called
              "same batches", and what changes no batch must be
    speed     loops of which a change makes a part faster or slower by a known factor, --repeat times each:
              one of nothing may be called faster or slower once in a hundred, one of a tenth or more must
              be called rightly 19 times in 20

The true factors are those of the loops' own sleeping and computing: a batch takes 10 to 20 ms, so that handing it over
hardly counts. Prints JSON on standard output and
tables on standard error. Exit code 0: the bounds hold; 1: not all.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import Any

from known_answers import CaseFailed, conclude, judged, parser, tell
from loaderscope.profiler.base.errors import LoaderscopeError
from try_mutants import BASE, MUTANTS, SAME, Mutant, source_of

LIMIT_S = 600
COMPARE_S = 3.0  # the budget of a trial that compares only
WRONG_SAME, RIGHT_SHARE, FALSE_SHARE = 0, 0.95, 0.01
LEAST_CHANGE = 0.1

LOOP = """\
import time
import torch
from torch.utils.data import DataLoader, Dataset

UNITS = 100  # of work in a batch


class Rows(Dataset):
    def __init__(self):
        self.square = torch.rand(96, 96, generator=torch.Generator().manual_seed(0))

    def __len__(self):
        return 2000

    def __getitem__(self, index):
        {work}
        return index


if __name__ == "__main__":
    torch.set_num_threads(1)
    for epoch in range(10_000):
        for batch in DataLoader(Rows(), batch_size=8, num_workers={workers}):
            {step}
"""
WORK = {
    "waits": "time.sleep(UNITS * 2e-5)",
    "computes": "for _ in range(UNITS // 2): self.square @ self.square",
}
SPEEDS = (100, 91, 83, 67, 110, 125)  # units of work with the change


@dataclass(frozen=True)
class Case:
    """`expected`: "same", "different", or the factor."""

    name: str
    before: str
    after: str
    expected: str | float
    quick: bool = False
    needs: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        return str(self.expected)


def cases() -> dict[str, Case]:
    found = [
        *(_mutated(mutant, "different", at % 8 == 0) for at, mutant in enumerate(MUTANTS)),
        *(_mutated(mutant, "same", at == 0) for at, mutant in enumerate(SAME)),
    ]
    for kind, work in WORK.items():
        for workers in (0, 2):
            source = LOOP.format(work=work, workers=workers, step="pass")
            for units in SPEEDS:
                after = source.replace("UNITS = 100", f"UNITS = {units}")
                name = f"{kind}, {workers} workers, {units} units"
                quick = units in (100, 67) and not workers
                found.append(Case(name, source, after, 100 / units, quick))
    return {case.name: case for case in found}


def _mutated(mutant: Mutant, expected: str, quick: bool) -> Case:
    return Case(mutant.name, BASE, source_of(mutant), expected, quick)


def tried(case: Case, budget: float) -> Any:
    """What the command says of it."""
    import json

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "train.py").write_text(case.before)
        lines = (each.splitlines(keepends=True) for each in (case.before, case.after))
        patch = "".join(unified_diff(*lines, "train.py", "train.py"))
        if not patch:  # nothing is changed, but a patch has to say something
            patch = "--- /dev/null\n+++ nothing.py\n@@ -0,0 +1 @@\n+\n"
        options = ["--patch", "-", "--yes", "--format", "json", "--budget", str(budget)]
        done = subprocess.run(
            [sys.executable, "-m", "loaderscope", "try", *options, "train.py"],
            cwd=root,
            input=patch,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    if done.returncode == 2 or not done.stdout:
        raise CaseFailed(done.stderr or done.stdout)
    return json.loads(done.stdout)


def judge(case: Case, options: Any) -> dict[str, Any]:
    """Of a mutant, what was said of its batches; of a loop, how often it was called what."""
    if isinstance(case.expected, str):
        found = tried(case, COMPARE_S)
        said = "same" if found["same_batches"] else "different"
        return {"said": said, "right": said == case.expected, "what": found["first_difference"]}
    called = Counter[str]()
    factors = []
    for _ in range(options.repeat):
        found = tried(case, options.budget)
        factor = found["factor"]
        factors.append(factor)
        called[_called(factor)] += 1
    true = case.expected
    wanted = "faster" if true > 1 else "slower" if true < 1 else "neither"
    counts = abs(true - 1) >= LEAST_CHANGE - 0.02 or true == 1
    return {
        "true": true,
        "factors": factors,
        "called": dict(called),
        "right": called[wanted],
        "of": options.repeat,
        "judged": counts,
    }


def _called(factor: Any) -> str:
    from loaderscope.experiment.result import Range, TryResult

    found = TryResult(factor=Range(**factor) if factor else None)
    return "faster" if found.faster else "slower" if found.slower else "neither"


def summed_up(results: dict[str, Any], known: dict[str, Case]) -> dict[str, Any]:
    """The figures that bounds are given for."""
    mutants = {name: each for name, each in results.items() if "said" in each}
    loops = [each for each in results.values() if each.get("judged")]
    still = [each for each in loops if each["true"] == 1]
    moved = [each for each in loops if each["true"] != 1]

    def share(of: list[dict[str, Any]]) -> float | None:
        return sum(e["right"] for e in of) / sum(e["of"] for e in of) if of else None

    right = share(still)
    return {
        "wrong_same": sum(e["said"] == "same" != known[n].expected for n, e in mutants.items()),
        "wrong_different": sum(
            e["said"] == "different" != known[n].expected for n, e in mutants.items()
        ),
        "called_rightly_share": share(moved),
        "false_alarm_share": None if right is None else 1 - right,
    }


def main() -> int:
    known = cases()
    options = parser(__doc__, known)
    options.add_argument("--repeat", type=int, default=5, help="trials of each change of speed")
    options.add_argument("--budget", type=float, default=30.0, help="seconds of a trial")
    told = options.parse_args()

    def shown(result: dict[str, Any]) -> list[str]:
        return [f"  {result.get('said') or result.get('called') or result.get('failed')}"]

    try:
        done = judged(known, told, lambda case: judge(case, told), lambda case: {}, shown)
    except LoaderscopeError as error:
        tell(str(error))
        return 1
    figures = summed_up(done["results"], known)
    failed = sum("failed" in each for each in done["results"].values())
    conclude("try", told, done, summary=figures, failed=failed)
    right, false = figures["called_rightly_share"], figures["false_alarm_share"]
    holds = (
        not failed
        and figures["wrong_same"] <= WRONG_SAME
        and not figures["wrong_different"]
        and (right is None or right >= RIGHT_SHARE)
        and (false is None or false <= FALSE_SHARE)
    )
    tell(f"{figures}: {'the bounds hold' if holds else 'NOT all bounds hold'}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
