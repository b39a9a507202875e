"""Does the report name what other people's loaders were slow for? Cases after public repositories'
fixes and closed issues, each a folder outside of this repository.

    python benchmarks/casebook.py FOLDER [--only CASE] [--half seen|aside] [--no-measure]
        [--kept FILE] [--keep FOLDER] [--write-docs docs/casebook.md]

A case's folder holds slow.py (the loader as it was found), fast.py (as its authors or an engineer
left it) and case.json: `source`, `cause`, `authors_gain`, `lines` ("slow.py:36") and `calls` that
the leading finding may name, `rules` of which the first advice may be and a pattern that its title
may fit (`advice`), `same_batches`, `healthy` and `set_aside`.

slow.py is recorded by `loaderscope run`, and its report judged: the leading finding must name one
of the lines or calls, the first step of the plan must be of the expected kind, and a healthy loader
gets no advice. Then slow.py, fast.py and slow.py with the first advice pasted run bare, in turns: a
process is stopped while it is not its turn. What is already in the kept file is not done again.
Scripts end after $CASE_SECONDS.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from math import inf
from pathlib import Path
from statistics import median
from textwrap import shorten
from typing import Any

from casebook_side import DIGESTED, RATE
from known_answers import by_hand
from overhead import tell
from quiet import add_patience, await_quiet

SIDE = Path(__file__).with_name("casebook_side.py")
RECORD_S = 15
LIMIT_S = 120.0
TURNS, TURN_S = 3, 1.25
AS_GOOD = 0.9  # of the fix's gain: another way to it
MARK = "<!-- written by benchmarks/casebook.py -->\n"
COLUMNS = (
    "| source | cause | authors' gain | what the report says costs | its first step | right | "
    "gain of the fix | gain of the step |\n|---|---|---|---|---|---|---|---|\n"
)


class CaseFailed(Exception):
    """A script of a case did not do what it was asked; the text says why."""


# A case -----------------------------------------------------------------------------------------


def environment(seconds: float) -> dict[str, str]:
    return {**os.environ, "CASE_SECONDS": str(seconds), "PYTHONHASHSEED": "0"}


@contextmanager
def script(mode: str, path: Path, folder: Path, code: str = "") -> Iterator[tuple[Any, Path]]:
    """A script's process in a session of its own, and the file in which it tells of batches."""
    told = Path(tempfile.mkstemp(dir=folder)[1])
    command = [sys.executable, str(SIDE), mode, str(path), str(told), code]
    with Path(f"{told}.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command,
            cwd=path.parent,
            env=environment(3600),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            yield process, told
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def last_words(told: Path) -> str:
    return Path(f"{told}.log").read_text("utf-8").strip().rpartition("\n")[2] or "it ended early"


def contents(path: Path, folder: Path, code: str = "") -> str:
    """A digest of the first batches; also makes the data of a case that runs for the first time."""
    with script("digest", path, folder, code) as (process, told):
        try:
            process.wait(LIMIT_S * 3)
        except subprocess.TimeoutExpired:
            raise CaseFailed(f"{path.name} gave no {DIGESTED} batches in time") from None
        if not (found := told.read_bytes()):
            raise CaseFailed(f"{path.name}: {last_words(told)}")
        return found[:32].hex()


def recorded(case: Path, folder: Path) -> dict[str, Any]:
    """What the report says of slow.py: the loader that gave the most batches."""
    product = [sys.executable, "-m", "loaderscope"]
    command = [*product, "run", "--quiet", "--runs", str(folder), "slow.py"]
    done = subprocess.run(
        command,
        cwd=case,
        env=environment(RECORD_S),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    run = next(folder.glob("2*"), None)
    if done.returncode or run is None:
        raise CaseFailed(done.stderr.strip().rpartition("\n")[2] or f"exit {done.returncode}")
    text = subprocess.run(
        [*product, "report", str(run), "--format", "json"],
        cwd=case,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    loaders = json.loads(text)["loaders"]
    if not loaders:
        raise CaseFailed("nothing was recorded")
    found = max(loaders, key=lambda loader: loader["batches"])
    assert isinstance(found, dict)
    return found


def said(loader: Mapping[str, Any]) -> dict[str, Any]:
    """What leads the report, and its plan; the code of the first step."""
    steps = (loader["plan"] or {}).get("steps", ())
    advice = [loader["recommendations"][step["advice"]] for step in steps]
    told = ("rule", "title", "why", "predicted")
    return {
        "verdict": loader["verdict"],
        "batches": loader["batches"],
        "stall_share": loader["basis"]["stall_share"],
        "findings": loader["findings"][:3],
        "plan": [{key: each[key] for key in told} for each in advice],
        "code": advice[0]["change"]["code"] if advice else None,
    }


def finding_right(facts: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether the leading finding names a line or call that an expert would."""
    finding = next(iter(result.get("findings", ())), None)
    if finding is None:
        return False
    told = " ".join(filter(None, (finding[key] for key in ("stage", "text", "place", "call"))))
    return any(re.search(rf"{re.escape(each)}(?!\d)", told) for each in facts["lines"]) or any(
        call in told for call in facts["calls"]
    )


def advice_right(facts: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether the first step of the plan is of the expected kind; of a healthy loader, whether
    there is none."""
    first = next(iter(result.get("plan", ())), None)
    if first is None or facts["healthy"]:
        return facts["healthy"] and first is None and "error" not in result
    title = first["title"].partition(":")[0].lower()  # a line of the case's may follow
    titled = bool(facts["advice"]) and re.search(facts["advice"], title)
    return first["rule"] in facts["rules"] or bool(titled)


def in_turns(legs: Mapping[str, tuple[Path, str]], folder: Path) -> dict[str, Any]:
    """Samples a second of each leg (a script, and code to paste), which run in turns; of one that
    failed, why."""
    with ExitStack() as stack:
        running = {
            name: stack.enter_context(script("count", path, folder, code))
            for name, (path, code) in legs.items()
        }
        windows: dict[str, list[tuple[float, float]]] = {name: [] for name in legs}
        failed: dict[str, str] = {}
        for name, (process, told) in running.items():
            until = time.perf_counter() + LIMIT_S
            while not told.stat().st_size and process.poll() is None:
                if time.perf_counter() > until:
                    failed[name] = "gave no batch in time"
                    break
                time.sleep(0.02)
            if process.poll() is not None:
                failed[name] = last_words(told)
            else:
                os.killpg(process.pid, signal.SIGSTOP)
        for turn in range(TURNS):
            for name in sorted(legs.keys() - failed.keys(), reverse=bool(turn % 2)):
                process = running[name][0]
                began = time.perf_counter()
                os.killpg(process.pid, signal.SIGCONT)
                time.sleep(TURN_S)
                os.killpg(process.pid, signal.SIGSTOP)
                windows[name].append((began, time.perf_counter()))
        rates = {name: rate(running[name][1], windows[name]) for name in legs if name not in failed}
    failed |= {name: "ended with its first batch" for name, each in rates.items() if not each}
    rates = {name: each for name, each in rates.items() if each}
    return {"samples_per_s": rates, "failed": failed}


def rate(told: Path, windows: list[tuple[float, float]]) -> float:
    handed = list(RATE.iter_unpack(told.read_bytes()))
    samples = sum(size for at, size in handed if any(a <= at <= b for a, b in windows))
    return float(samples / sum(b - a for a, b in windows))


def measured(
    case: Path, facts: Mapping[str, Any], kept: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """What the fix and the pasted advice gain, as factors."""
    code = kept.get("code")
    legs = {"slow": (case / "slow.py", "")}
    if not facts["healthy"]:
        legs["fast"] = (case / "fast.py", "")
    if code and not by_hand(code):
        legs["advised"] = (case / "slow.py", code)
    if len(legs) == 1:
        return {"gain": {}}
    found = in_turns(legs, folder)
    rates = found["samples_per_s"]
    base = rates.get("slow")
    gains = {name: round(each / base, 3) for name, each in rates.items() if base and name != "slow"}
    return {**found, "gain": gains, "by_hand": bool(code) and "advised" not in legs}


def done(case: Path, options: argparse.Namespace, kept: dict[str, Any]) -> dict[str, Any]:
    """What is not yet known of a case."""
    facts = json.loads((case / "case.json").read_text("utf-8"))
    result = dict(kept)
    with tempfile.TemporaryDirectory(prefix="casebook-") as name:
        folder = Path(name)
        if "verdict" not in kept:
            batches = [contents(case / "slow.py", folder)]
            if not facts["healthy"]:
                batches.append(contents(case / "fast.py", folder))
            result["same_batches"] = len(set(batches)) == 1
            result |= said(recorded(case, folder))
            if options.keep is not None:
                shutil.copytree(
                    next(folder.glob("2*")), options.keep / case.name, dirs_exist_ok=True
                )
        if not options.no_measure and "gain" not in kept:
            await_quiet(options.patience)
            result |= measured(case, facts, result, folder)
    return result


# All of them ------------------------------------------------------------------------------------


def read(kept: Path | None) -> dict[str, dict[str, Any]]:
    """The newest line of each case."""
    if kept is None or not kept.exists():
        return {}
    lines = [json.loads(line) for line in kept.read_text("utf-8").splitlines()]
    return {line["case"]: line for line in lines}


def summary(facts: Mapping[str, Any], results: Mapping[str, Any]) -> dict[str, Any]:
    """The figures over some cases."""
    slow = {name: each for name, each in results.items() if not facts[name]["healthy"]}
    healthy = {name: each for name, each in results.items() if facts[name]["healthy"]}
    pasted = [each["gain"] for each in slow.values() if {"advised", "fast"} <= gains_of(each)]
    parts = [gain["advised"] / gain["fast"] for gain in pasted]
    predicted = [
        (each["plan"][0]["predicted"], true)
        for name, each in slow.items()
        if (true := true_gain(facts[name], each)) is not None
    ]
    errors = [abs(range_["mid"] / true - 1) for range_, true in predicted]
    inside = [range_["low"] <= true <= range_["high"] for range_, true in predicted]
    named = [finding_right(facts[name], each) for name, each in slow.items()]
    first = [advice_right(facts[name], each) for name, each in slow.items()]
    good = [
        (true_gain(facts[name], each) or 0.0) >= AS_GOOD * each.get("gain", {}).get("fast", inf)
        for name, each in slow.items()
    ]
    return {
        "slow": len(slow),
        "finding_right": round(sum(named) / len(named), 3) if named else None,
        "advice_right": round(sum(first) / len(first), 3) if first else None,
        "advice_right_or_as_good": round(
            sum(map(any, zip(first, good, strict=True))) / len(first), 3
        )
        if first
        else None,
        "healthy": len(healthy),
        "healthy_advised": sum(
            not advice_right(facts[name], each) for name, each in healthy.items()
        ),
        "measured": sum("fast" in gains_of(each) for each in slow.values()),
        "pasted": len(pasted),
        "pasted_failed": sum("advised" in each.get("failed", {}) for each in results.values()),
        "median_of_fix": round(median(parts), 3) if parts else None,
        "predicted": len(predicted),
        "median_error": round(median(errors), 3) if errors else None,
        "inside": round(sum(inside) / len(inside), 3) if inside else None,
        "failed": [name for name, each in results.items() if "error" in each],
    }


def gains_of(result: Mapping[str, Any]) -> set[str]:
    return set(result.get("gain", ()))


def true_gain(facts: Mapping[str, Any], result: Mapping[str, Any]) -> float | None:
    """What the first step gains: pasted, or where it is right and left to a person, as the fix."""
    if "advised" in gains_of(result):
        return float(result["gain"]["advised"])
    if "fast" in gains_of(result) and result.get("by_hand") and advice_right(facts, result):
        return float(result["gain"]["fast"])
    return None


def told(facts: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    """A result in a line."""
    if "error" in result:
        return f"failed: {result['error']}"
    gains = ", ".join(f"{name} ×{gain:.2f}" for name, gain in result.get("gain", {}).items())
    differ = facts["same_batches"] and not result["same_batches"]
    marks = [
        "" if facts["healthy"] or finding_right(facts, result) else "FINDING",
        "" if advice_right(facts, result) else "ADVICE",
        "BATCHES DIFFER" if differ else "",
    ]
    return " | ".join(filter(None, (leads(result), first_step(result), gains, *marks)))


def leads(result: Mapping[str, Any]) -> str:
    """What costs, as the report says first."""
    finding = next(iter(result.get("findings", ())), None)
    if finding is None:
        return result.get("verdict", "")
    share = f"{finding['share']['mid']:.0%} of {finding['stage']}"
    place = finding["place"] or finding["call"]
    if finding["text"] is None:
        return share
    return f"`{shorten(finding['text'], 90, placeholder='…')}` {place}, {share}"


def first_step(result: Mapping[str, Any]) -> str:
    plan = result.get("plan", ())
    return shorten(plan[0]["title"], 90, placeholder="…") if plan else "no change"


def written(page: Path, facts: Mapping[str, Any], results: Mapping[str, Any]) -> None:
    """The page's figures and tables, below its own text."""
    text = page.read_text("utf-8").partition(MARK)[0] + MARK
    for title, aside in (("Set aside", True), ("Seen while rules were written", False)):
        part = {name: each for name, each in results.items() if facts[name]["set_aside"] is aside}
        if part:
            text += f"\n## {title}\n\n{figures_said(summary(facts, part))}\n\n{COLUMNS}"
            text += "".join(row(name, facts[name], each) for name, each in part.items())
    page.write_text(text, encoding="utf-8")


def figures_said(figures: Mapping[str, Any]) -> str:
    told = [
        f"{figures['slow']} slow loaders: what costs named for {figures['finding_right']:.0%}, "
        f"first step right for {figures['advice_right']:.0%}.",
        f"{figures['healthy']} healthy ones: {figures['healthy_advised']} got advice.",
    ]
    if figures["pasted"]:
        told.append(
            f"Pasted on {figures['pasted']}, the first step brings {figures['median_of_fix']:.2f} "
            f"of the fix's gain (median). Right, or as good as the fix: "
            f"{figures['advice_right_or_as_good']:.0%}. "
            f"Pasted code that failed: {figures['pasted_failed']}."
        )
    if figures["predicted"]:
        told.append(
            f"{figures['predicted']} predictions err by {figures['median_error']:.0%} (median); "
            f"{figures['inside']:.0%} of the gains are inside their ranges."
        )
    return "\n".join(told)


def row(name: str, facts: Mapping[str, Any], result: Mapping[str, Any]) -> str:
    repository = "/".join(facts["source"].split("/")[3:5])
    gain = result.get("gain", {})
    plan = result.get("plan", ())
    predicted = f", predicted {plan[0]['predicted']['mid']:.3g}" if plan else ""
    hand = "by hand" if result.get("by_hand") else ""
    advised = f"{gain['advised']:.3g}{predicted}" if "advised" in gain else hand
    marks = [
        "" if facts["healthy"] else "yes" if finding_right(facts, result) else "no",
        "yes" if advice_right(facts, result) else "no",
    ]
    cells = (
        f"[{repository}]({facts['source']})",
        facts["cause"],
        facts["authors_gain"],
        leads(result),
        first_step(result),
        ", ".join(filter(None, marks)),
        f"{gain['fast']:.3g}" if "fast" in gain else "",
        advised,
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def main() -> int:
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("folder", type=Path, help="where the cases are")
    asked.add_argument("--only", action="append", metavar="CASE", help="may be given again")
    asked.add_argument("--half", choices=("seen", "aside"), help="of the cases; both without it")
    asked.add_argument("--no-measure", action="store_true", help="judge the reports only")
    asked.add_argument("--kept", type=Path, metavar="FILE", help="a JSON line a case, added to")
    asked.add_argument("--write-docs", type=Path, metavar="FILE", help="the table of this page")
    asked.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the recorded runs there")
    add_patience(asked)
    options = asked.parse_args()
    cases = {path.parent.name: path.parent for path in sorted(options.folder.glob("*/case.json"))}
    facts = {name: json.loads((at / "case.json").read_text("utf-8")) for name, at in cases.items()}
    kept = read(options.kept)
    results: dict[str, dict[str, Any]] = {}
    for name in options.only or cases:
        if options.half and facts[name]["set_aside"] is not (options.half == "aside"):
            continue
        before = kept.get(name, {"case": name})
        try:
            results[name] = done(cases[name], options, before)
        except (CaseFailed, subprocess.SubprocessError) as error:
            results[name] = {**before, "error": str(error)}
        tell(f"{name}: {told(facts[name], results[name])}")
        if options.kept is not None and results[name] != before:
            with options.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(results[name]) + "\n")
    figures = summary(facts, results)
    print(json.dumps(figures, indent=1))
    if options.write_docs is not None:
        written(options.write_docs, facts, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
