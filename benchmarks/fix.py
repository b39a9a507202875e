"""How good the patches of `loaderscope fix` are, on small projects with an engineer's own patch each.

    python benchmarks/fix.py [NAME ...] [--budget 20] [--source-only]

Each project is recorded, patched, and both patches are tried: are the batches the same, and what part of the engineer's
gain is reached? Prints JSON; exit code 1: a bound is exceeded. `--source-only` tries nothing: it says what is patched and
what is refused, and needs no quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fix_projects import PROJECTS, Project
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.assemble.job import open_job
from loaderscope.advisors.schema.ranges import Range
from loaderscope.advisors.schema.report_model import Change as Advised
from loaderscope.advisors.schema.report_model import LoaderReport, Recommendation, Report
from loaderscope.experiment.change import Change, Options
from loaderscope.experiment.result import TryResult
from loaderscope.experiment.try_change import try_change
from loaderscope.fixing.patch import Patch, chosen, make_patch, open_project
from loaderscope.fixing.trial import holds, try_patch
from loaderscope.profiler.base.errors import UsageError

LEAST_PATCHED, LEAST_GAIN = 0.8, 0.9
# Where a busy machine lets no rule speak, the patch is still made: of this change.
WORKERS = {"num_workers": 8, "persistent_workers": True}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="projects, by default all")
    parser.add_argument("--budget", type=float, default=20.0, help="seconds a trial")
    parser.add_argument("--source-only", action="store_true", help="try nothing")
    args = parser.parse_args()
    wanted = [each for each in PROJECTS if not args.names or each.name in args.names]
    rows = []
    for project in wanted:
        rows.append(judged(project, None if args.source_only else args.budget))
        print(rows[-1]["name"], rows[-1]["outcome"], file=sys.stderr)
    summary = summed_up(rows)
    machine = {"cpus": os.cpu_count(), "load": os.getloadavg()[0]}
    print(json.dumps({"machine": machine, "summary": summary, "projects": rows}, indent=1))
    return 0 if all(each["held"] for each in summary.values()) else 1


def judged(project: Project, budget_s: float | None) -> dict[str, Any]:
    """What becomes of one project: "patched", "refused", or what went wrong."""
    folder = Path(tempfile.mkdtemp(prefix="fix-"))
    try:
        row: dict[str, Any] = {"name": project.name, "patchable": bool(project.engineer)}
        before, after = folder / "project", folder / "engineer"
        lay(before, dict(project.files))
        lay(after, project.patched())
        run = recorded(project, folder)
        loader, advice, row["advised"] = wanted_advice(project, build_report(run))
        row["rule"] = advice.rule
        try:
            patch = make_patch(run, open_project(run, before), loader, advice)
        except UsageError as error:
            right = bool(project.refused) and project.refused in str(error)
            return {**row, "outcome": "refused", "why": str(error), "right": right}
        row |= {"outcome": "patched", "right": not project.refused, **applied(before, patch)}
        if budget_s is not None:
            row |= tried(run, patch, before, after, [*project.arguments], budget_s)
        return row
    except Exception as error:
        return {
            "name": project.name,
            "patchable": bool(project.engineer),
            "outcome": f"failed: {error!r}",
            "right": False,
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lay(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


def recorded(project: Project, folder: Path) -> Any:
    command = [
        sys.executable,
        "-m",
        "loaderscope",
        "run",
        "--runs",
        str(folder / "runs"),
        "train.py",
        *project.arguments,
    ]
    done = subprocess.run(
        command, cwd=folder / "project", capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-500:])
    return open_job(next((folder / "runs").iterdir()))


def wanted_advice(project: Project, report: Report) -> tuple[LoaderReport, Recommendation, bool]:
    """The advice to patch, and whether it was given (or made up, where the machine was too busy for it)."""
    for loader in report.costliest:
        for advice in loader.recommendations:
            if project.advice in (None, advice.rule):
                return loader, advice, True
    if project.advice != "num-workers":
        return (*chosen(report, None), True)
    loader = max(report.loaders, key=lambda each: each.batches)
    one = Range(1.0, 1.0, 1.0)
    return (
        loader,
        Recommendation("num-workers", "", "", {}, one, None, Advised(WORKERS, ""), None, None),
        False,
    )


def applied(before: Path, patch: Patch) -> dict[str, bool]:
    """Whether `patch` makes of the project what was promised, byte for byte."""
    copy = before.parent / "applied"
    shutil.copytree(before, copy)
    diff = patch.diff.encode("utf-8", "surrogateescape")
    done = subprocess.run(
        ["patch", "-p1", "--binary"], cwd=copy, input=diff, capture_output=True, check=False
    )
    same = all((copy / each.path).read_bytes() == each.after for each in patch.changes)
    return {"applies": done.returncode == 0 and same}


def tried(
    run: Any, patch: Patch, before: Path, after: Path, arguments: list[str], budget_s: float
) -> dict[str, Any]:
    options = Options(budget_s=budget_s)
    ours = try_patch(run, patch, before, options=options)
    theirs = try_change(
        ["train.py", *arguments], Change(before, other=after), here=before, options=options
    )
    return {
        "holds": holds(patch, ours),
        "same_batches": ours.same_batches,
        "promised": patch.same_batches,
        "gain": middle(ours),
        "engineer": middle(theirs),
        "error": ours.error or theirs.error,
    }


def middle(found: TryResult) -> float | None:
    return found.factor.mid if found.factor is not None else None


def summed_up(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Each bound: the figure, and whether it held."""
    patched = [row for row in rows if row["outcome"] == "patched"]
    patchable = [row for row in rows if row["patchable"]]
    refused = [row for row in rows if not row["patchable"]]
    right = sum(row["right"] and row["outcome"] == "patched" for row in patchable)
    found = {
        "patched of those to patch": share(right, len(patchable), LEAST_PATCHED),
        "refused for the right reason": share(
            sum(row["right"] for row in refused), len(refused), 1.0
        ),
        "applies byte for byte": share(sum(row["applies"] for row in patched), len(patched), 1.0),
    }
    measured = [row for row in patched if "holds" in row]
    if measured:
        same = sum(row["same_batches"] is True or not row["promised"] for row in measured)
        ratios = [
            row["gain"] / row["engineer"] for row in measured if row["gain"] and row["engineer"]
        ]
        found["runs, same batches where promised"] = share(same, len(measured), 1.0)
        gain = statistics.median(ratios) if ratios else 0.0
        found["gain over the engineer's, median"] = {
            "figure": gain,
            "of": len(ratios),
            "held": gain >= LEAST_GAIN,
        }
    return found


def share(count: int, of: int, least: float) -> dict[str, Any]:
    return {"figure": count / of if of else 1.0, "of": of, "held": count >= least * of}


if __name__ == "__main__":
    sys.exit(main())
