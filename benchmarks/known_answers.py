"""Does the advice name the planted cause? Small loaders of which the answer is known, and healthy
ones.

    python benchmarks/known_answers.py [--quick] [--no-measure] [--only CASE] [--json FILE] [--store
    FOLDER]
        [--held-out SEED [--count N]] [--cores N] [--neighbour] [--keep FOLDER]

Each case is recorded in a fresh process, and the report of that run is judged: its first
recommendation must be the planted cause, of a healthy loader nothing may be said, and advice known
to be wrong there may not be given at all. Then another fresh process, without Loaderscope, loops as
found, as a good engineer would leave it, and as advised (where the advice is a DataLoader
argument), in turn; ratios are taken within a round, and their median is the true gain, with which
the predicted range is compared.

With --held-out, cases are drawn from that seed (known_cases/generated.py), and what is measured is
the very code that the first advice gives, executed as it stands; code that says "by hand" counts as
such. `--cores` binds all of it to so many cores, `--neighbour` keeps one of them busy with another
program.

Prints JSON on standard output and tables on standard error. Exit code 0: the goals are reached; 1:
not all.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psutil

from known_cases import CASES
from known_cases.case import Case
from known_cases.generated import PREFIX, held_out
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import LoaderReport, Recommendation
from loaderscope.profiler.record.session.session import RUN_VARIABLE
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.rundir import create_run
from loaderscope.profiler.store.stacks.stack_request import end_burst
from overhead import machine, store, tell
from quiet import add_patience, await_quiet, withheld

LIMIT_S = 120.0
FIRST_GOAL = 0.95
WORTH_SAYING = (
    1.1  # what gains less may be left unsaid: the prediction's own error is about as large
)
RESULT_FILE = "known-answer.json"  # in a run that was kept


class CaseFailed(Exception):
    """A process of a case did not do what it was asked; the text says why."""


def side(mode: str, case: Case, folder: Path, *arguments: str) -> dict[str, Any]:
    """What the processes of a case (one a rank) found; rank 0 speaks for all."""
    env = {**os.environ, "LOADERSCOPE_DIR": str(folder), "PYTHONHASHSEED": "0"}
    env.pop(RUN_VARIABLE, None)
    if mode == "record":
        env[RUN_VARIABLE] = str(create_run(folder, ["known_answers_side.py", case.name]))
    command = [
        sys.executable,
        str(Path(__file__).with_name(case.side)),
        mode,
        case.name,
        *arguments,
    ]
    processes = []
    for rank in range(case.world):
        ours = {**env, **rank_environment(rank, case.world, folder)}
        log = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 closed below
        process = subprocess.Popen(
            command, env=ours, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        processes.append((process, log))
    try:
        answers = [answer(process, log) for process, log in processes]
        return answers[0]
    finally:
        for process, log in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # workers too, if they were left
            process.wait()
            log.close()


def rank_environment(rank: int, world: int, folder: Path) -> dict[str, str]:
    """As torchrun sets it."""
    if world == 1:
        return {}
    port = folder / "port"
    if not port.exists():
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port.write_text(str(free.getsockname()[1]))
    ranks = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    numbers = {name: str(value) for name, value in ranks.items()}
    return {
        **numbers,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port.read_text(),
        "OMP_NUM_THREADS": "1",
    }


def answer(process: subprocess.Popen[str], log: Any) -> dict[str, Any]:
    try:
        said, _ = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise CaseFailed(f"did not end within {LIMIT_S:.0f} s") from None
    if process.returncode:
        log.seek(0)
        raise CaseFailed(
            log.read().strip().rpartition("\n")[2] or f"exit code {process.returncode}"
        )
    found = json.loads(said.strip().splitlines()[-1])
    assert isinstance(found, dict)
    return found


def advised(folder: Path) -> tuple[LoaderReport, list[Recommendation]]:
    """The report of the loader that gave the most batches, and what is recommended, to any rank, in
    the order of its plan."""
    run = next(folder.glob("2*"))
    end_burst(run)  # the sampler may still be at it
    loaders = build_report(open_run(run)).loaders
    if not loaders:
        raise CaseFailed("nothing was recorded")
    shown = max(loaders, key=lambda loader: (len(loader.recommendations), loader.batches))
    recommended: dict[str, Recommendation] = {}
    for loader in (shown, *loaders):
        for each in loader.recommendations:
            recommended.setdefault(each.rule, each)
    return shown, list(recommended.values())


def judge(
    case: Case,
    measured: bool,
    look: Callable[[Path, dict[str, Any]], dict[str, Any]] = lambda folder, recorded: {},
    keep: Path | None = None,
) -> dict[str, Any]:
    """One case: recorded, advised, measured, compared. `look` says more of what was recorded; with
    `keep`, the run and the result stay there, in a folder of the case's name."""
    with tempfile.TemporaryDirectory(prefix="known-answers-") as name:
        folder = Path(name)
        recorded = side("record", case, folder)
        began = time.perf_counter()
        loader, recommended = advised(folder)
        took = time.perf_counter() - began
        if keep is not None:
            run = next(folder.glob("2*"))  # its keeper is a socket
            sockets = shutil.ignore_patterns("keeper")
            shutil.copytree(run, keep / case.name, ignore=sockets, dirs_exist_ok=True)
        first = recommended[0] if recommended else None
        rules = [each.rule for each in recommended]
        result: dict[str, Any] = {
            "about": case.about,
            "causes": list(case.causes),
            "recorded": recorded,
            "report_s": round(took, 3),
            "verdict": loader.verdict,
            "stall_share": loader.basis.stall_share,
            "recommended": rules,
            "rejected": [each.rule for each in loader.rejected],
            "unmeasured": dict(loader.unmeasured),
            "failed_rules": [note for note in loader.notes if "the rule " in note],
            "first": described(first),
            "ok": right(case, rules),
            "names_line": names_line(case, loader, first),
            "held_out": case.held_out,
            "forbidden_seen": [rule for rule in rules if not case.allowed(rule)],
        }
        result |= look(folder, recorded)
        if measured and case.measurable:
            result |= compared(case, first, folder)
        if keep is not None:
            (keep / case.name / RESULT_FILE).write_text(
                json.dumps(result, indent=1, default=str) + "\n", "utf-8"
            )
        return result


def described(advice: Recommendation | None) -> dict[str, Any] | None:
    if advice is None:
        return None
    return {
        "rule": advice.rule,
        "title": advice.title,
        "why": advice.why,
        "evidence": {name: str(figure) for name, figure in advice.evidence.items()},
        "predicted": asdict(advice.predicted),
        "params": dict(advice.change.params),
        "code": advice.change.code,
    }


def names_line(case: Case, loader: LoaderReport, first: Recommendation | None) -> bool | None:
    """Whether the finding that leads, or the first advice, names the planted line; None where the
    case has none."""
    if case.line is None:
        return None
    found = loader.findings[0].text if loader.findings else None
    advised = f"{first.title} {first.why} {first.change.code}" if first is not None else ""
    return case.line in (found or "") or case.line in advised


def right(case: Case, rules: list[str]) -> bool:
    if not rules:
        return case.healthy or case.may_be_silent
    return rules[0] in case.causes


def compared(case: Case, first: Recommendation | None, folder: Path) -> dict[str, Any]:
    """The true gains, and whether that of what was advised is where it was predicted."""
    if case.name.startswith(PREFIX):
        return as_pasted(case, first, folder)
    # None: the case's own, which may be code.
    legs: dict[str, Mapping[str, Any] | str | None] = {"before": {}, "fix": None}
    found_cause = first is not None and first.rule in case.causes
    if first is not None and found_cause and case.accepts(first.change.params):
        legs["advised"] = dict(first.change.params)
    measured = side("measure", case, folder, json.dumps(legs))
    result: dict[str, Any] = {"measured": measured}
    # Another right answer, whose change is code, gains what that code gains: the engineer's fix
    # says nothing of it.
    if first is not None and found_cause and ("advised" in legs or first.rule == case.causes[0]):
        true = measured["gain"].get("advised", measured["gain"]["fix"])
        result["true_gain"] = true
        result["inside"] = first.predicted.low <= true <= first.predicted.high
        result["error"] = round(abs(first.predicted.mid / true - 1), 4)
    return result


def as_pasted(case: Case, first: Recommendation | None, folder: Path) -> dict[str, Any]:
    """The same of the very code that was advised, whether or not its cause is the planted one."""
    if first is None:
        if not case.fix:
            return {}
        # Whether silence was right: what an engineer would have gained.
        measured = side("measure", case, folder, json.dumps({"before": {}, "fix": None}))
        return {"measured": measured, "ok": measured["gain"]["fix"] < WORTH_SAYING}
    if by_hand(first.change.code):
        return {"by_hand": True}
    legs = {"before": {}, **({"fix": None} if case.fix else {}), "advised": first.change.code}
    measured = side("measure", case, folder, json.dumps(legs))
    true = measured["gain"]["advised"]
    result = {
        "measured": measured,
        "true_gain": true,
        "inside": first.predicted.low <= true <= first.predicted.high,
        "error": round(abs(first.predicted.mid / true - 1), 4),
    }
    if case.fix:
        result["of_fix"] = round(true / measured["gain"]["fix"], 4)
    return result


def by_hand(code: str) -> bool:
    """Whether code only defines things, or says what to do: nothing is changed by running it."""
    definitions = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.If, ast.Try)
    return all(isinstance(node, definitions) for node in ast.parse(code).body)


def summarised(results: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The figures over all cases, and whether they reach the goals."""
    done = {name: found for name, found in results.items() if "failed" not in found}
    planted = {name: found for name, found in done.items() if found["causes"]}
    healthy = {name: found for name, found in done.items() if not found["causes"]}
    firsts = [found["ok"] for found in planted.values()]
    share = sum(firsts) / len(firsts) if firsts else None
    # Another change than the planted one, which was measured to gain as much: no mistake, but
    # counted apart.
    right = [found["ok"] or found.get("of_fix", 0.0) >= 1.0 for found in planted.values()]
    alarms = {name: found["recommended"] for name, found in healthy.items() if found["recommended"]}
    wrong = {
        name: found["forbidden_seen"] for name, found in done.items() if found["forbidden_seen"]
    }
    errors = [found["error"] for found in done.values() if "error" in found]
    inside = [found["inside"] for found in done.values() if "inside" in found]
    of_fix = [found["of_fix"] for found in done.values() if "of_fix" in found]
    failed = {name: found["failed"] for name, found in results.items() if "failed" in found}
    return {
        "cases": len(results),
        "planted": len(planted),
        "healthy": len(healthy),
        "first_right_share": share,
        "held_out_right_share": of_all(
            found["ok"] for found in planted.values() if found["held_out"]
        ),
        "named_line_share": of_all(
            found["names_line"] for found in done.values() if found["names_line"] is not None
        ),
        "first_right_or_better_share": sum(right) / len(right) if right else None,
        "missed": {
            name: found["recommended"] for name, found in planted.items() if not found["ok"]
        },
        "false_alarms": alarms,
        "forbidden": wrong,
        "failed": failed,
        "prediction": {
            "count": len(errors),
            "median_error": round(median(errors), 4) if errors else None,
            "p90_error": round(quantiles(errors, n=10, method="inclusive")[-1], 4)
            if len(errors) > 1
            else None,
            "inside_share": round(sum(inside) / len(inside), 4) if inside else None,
            "median_of_fix": round(median(of_fix), 4) if of_fix else None,
            "by_hand": sum("by_hand" in found for found in done.values()),
        },
        "rules": by_rule(done.values()),
        "pass": not alarms and not wrong and not failed and (share is None or share >= FIRST_GOAL),
    }


def of_all(right: Iterable[bool]) -> float | None:
    """The part that is right; None of none."""
    found = list(right)
    return round(sum(found) / len(found), 4) if found else None


def by_rule(results: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """A rule's precision (of its first places, those that were right) and recall (of the cases it
    answers for alone or with others, those where it, or another right answer, was recommended)."""
    first, right_first, planted, found_ = (
        Counter[str](),
        Counter[str](),
        Counter[str](),
        Counter[str](),
    )
    for result in results:
        if result["recommended"]:
            leader = result["recommended"][0]
            first[leader] += 1
            right_first[leader] += leader in result["causes"]
        for cause in result["causes"]:
            planted[cause] += 1
            found_[cause] += any(rule in result["causes"] for rule in result["recommended"])
    return {
        rule: {
            "first": first[rule],
            "precision": round(right_first[rule] / first[rule], 3) if first[rule] else None,
            "planted": planted[rule],
            "recall": round(found_[rule] / planted[rule], 3) if planted[rule] else None,
        }
        for rule in sorted({*first, *planted})
    }


def show(results: Mapping[str, dict[str, Any]], summary: Mapping[str, Any]) -> None:
    """The tables, on standard error."""
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True)
    table = Table("case", "verdict", "first advice", "predicted", "measured", "", title="Cases")
    for name, found in results.items():
        table.add_row(name, *row(found))
    console.print(table)
    rules = Table("rule", "first", "precision", "planted", "recall", title="Rules")
    for name, found in summary["rules"].items():
        rules.add_row(
            name, *(str(found[key]) for key in ("first", "precision", "planted", "recall"))
        )
    console.print(rules)
    told = (
        "first_right_share",
        "first_right_or_better_share",
        "missed",
        "false_alarms",
        "forbidden",
        "failed",
        "prediction",
        "device",
        "pass",
    )
    for key in told:
        if key in summary:
            console.print(f"{key}: {summary[key]}", markup=False)


def row(found: Mapping[str, Any]) -> tuple[str, ...]:
    if "failed" in found:
        return "", "", "", "", f"failed: {found['failed'][:60]}"
    first = found["first"]
    predicted = ""
    if first is not None:
        ends = first["predicted"]
        predicted = f"{ends['mid']:.2f} ({ends['low']:.2f} to {ends['high']:.2f})"
    gains = found.get("measured", {}).get("gain", {})
    measured = ", ".join(f"{name} {gain:.2f}" for name, gain in gains.items())
    marks = ["ok" if found["ok"] else "MISSED"]
    marks += ["by hand"] if "by_hand" in found else []
    marks += ["outside"] if found.get("inside") is False else []
    marks += [f"FORBIDDEN: {', '.join(found['forbidden_seen'])}"] if found["forbidden_seen"] else []
    return (
        found["verdict"],
        first["rule"] if first else "nothing",
        predicted,
        measured,
        " ".join(marks),
    )


def missing(case: Case) -> list[str]:
    return [name for name in case.needs if importlib.util.find_spec(name) is None]


def line(cells: Iterable[str]) -> str:
    return " | ".join(cell for cell in cells if cell)


def judged(
    cases: Mapping[str, Any],
    options: argparse.Namespace,
    judge: Callable[[Any], dict[str, Any]],
    failed: Callable[[Any], dict[str, Any]],
    told: Callable[[dict[str, Any]], Iterable[str]],
) -> dict[str, Any]:
    """The cases asked for in `results`, told one by one as they are judged (`failed`: what stands
    for one that could not be), each with what was withheld of the CPU time meanwhile; those that
    lack a package in `left_out`, and the `seconds` they all took."""
    results: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    began = time.perf_counter()
    for name in options.only or [
        name for name, case in cases.items() if case.quick or not options.quick
    ]:
        case = cases[name]
        if missing(case):
            left_out[name] = f"needs {', '.join(missing(case))}"
            continue
        tell(f"{name}: {case.about}…")
        await_quiet(options.patience)
        cpu = psutil.cpu_times()
        try:
            results[name] = judge(case)
        except CaseFailed as error:
            results[name] = {**failed(case), "failed": str(error)}
        results[name]["withheld_share"] = withheld(cpu, psutil.cpu_times())
        for said in told(results[name]):
            tell(f"    {said}")
    return {"seconds": round(time.perf_counter() - began), "left_out": left_out, "results": results}


def conclude(
    benchmark: str, options: argparse.Namespace, done: Mapping[str, Any], **facts: Any
) -> None:
    """What `judged` gave and the facts beside it, on standard output and in the files asked for."""
    found = {
        "benchmark": benchmark,
        "date": datetime.date.today().isoformat(),
        "quick": options.quick,
        "machine": machine(),
        "seconds": done["seconds"],
        **facts,
        "left_out": done["left_out"],
        "cases": done["results"],
    }
    text = json.dumps(found, indent=1, default=str)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n", encoding="utf-8")
    if options.store is not None:
        tell(f"Kept as {store(options.store / benchmark.replace('_', '-'), text, options.quick)}")


@contextmanager
def neighbour() -> Iterator[None]:
    """Another program, which computes all the time on the first core that is ours."""
    core = min(os.sched_getaffinity(0))
    bound = f"import os\nos.sched_setaffinity(0, [{core}])\nparent = os.getppid()\n"
    code = f"{bound}while os.getppid() == parent:\n    sum(range(10**6))"
    busy = subprocess.Popen([sys.executable, "-c", code])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def parser(doc: str | None, cases: Iterable[str] | None = None) -> argparse.ArgumentParser:
    """The options that all benchmarks of such cases have. Without `cases`, --only takes any
    name."""
    found = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--quick", action="store_true", help="a few cases, judged but not measured")
    found.add_argument(
        "--only",
        choices=cases,
        action="append",
        metavar="CASE",
        help="this case; may be given again",
    )
    found.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE too")
    found.add_argument(
        "--store", type=Path, metavar="FOLDER", help="keep the results in FOLDER, named by the date"
    )
    add_patience(found)
    return found


def known_answers(
    benchmark: str,
    options: argparse.Namespace,
    cases: Mapping[str, Case],
    judge: Callable[[Case, bool], dict[str, Any]],
    summarised: Callable[[Mapping[str, dict[str, Any]]], dict[str, Any]],
    **facts: Any,
) -> int:
    """A benchmark of planted causes, from its options (`asked_for`) to what it prints and its exit
    code."""
    done = judged(
        cases,
        options,
        lambda case: judge(case, not (options.no_measure or options.quick)),
        lambda case: {"causes": list(case.causes)},
        lambda found: [line(row(found))],
    )
    summary = summarised(done["results"])
    show(done["results"], summary)
    conclude(benchmark, options, done, summary=summary, **facts)
    return 0 if summary["pass"] else 1


def causes_parser(doc: str | None, cases: Iterable[str] | None = None) -> argparse.ArgumentParser:
    """`parser`, with the option to measure nothing."""
    asked = parser(doc, cases)
    asked.add_argument("--no-measure", action="store_true", help="judge the advice only")
    return asked


def main() -> int:
    asked = causes_parser(__doc__)
    asked.add_argument(
        "--held-out", type=int, metavar="SEED", help="cases drawn from this seed instead"
    )
    asked.add_argument(
        "--count", type=int, default=30, metavar="N", help="how many of them (%(default)s)"
    )
    asked.add_argument("--cores", type=int, metavar="N", help="bind all processes to so many cores")
    asked.add_argument(
        "--neighbour", action="store_true", help="beside a program that keeps one core busy"
    )
    asked.add_argument(
        "--keep", type=Path, metavar="FOLDER", help="keep each run and its result in FOLDER"
    )
    options = asked.parse_args()
    if options.cores is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: max(1, options.cores)])
    cases = CASES if options.held_out is None else held_out(options.held_out, options.count)
    if unknown := set(options.only or ()) - cases.keys():
        asked.error(f"there is no case {', '.join(sorted(unknown))}")
    drawn = {"held_out": options.held_out, "cores": options.cores, "neighbour": options.neighbour}
    with neighbour() if options.neighbour else nullcontext():
        return known_answers(
            *("known_answers", options, cases, partial(judge, keep=options.keep), summarised),
            **(drawn if options.held_out is not None else {}),
        )


if __name__ == "__main__":
    sys.exit(main())
