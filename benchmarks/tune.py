"""Does tuning find the best settings, how soon, and what does it cost? Loaders of many kinds, and a
full grid.

    python benchmarks/tune.py [--quick] [--only LOOP] [--skip-loadtune] [--kept FILE] [--within
    SECONDS] [--anew]
        [--whole SECONDS] [--json FILE] [--store FOLDER]

Each loop, in processes of its own, one after the other:

    grid      workers 0 to 8 × prefetch 1, 2, 4, 8 (× pin where there is a device), every one in a short window; those
              within 15 % of the best, ten at most, again in a longer one, and the best five of them
              once more
    tuned     a training that calls `loaderscope.tune(loader)` and goes on until it is decided
    loadtune  the same data, batch size and step given to loadtune (PyPI), in an environment of its
    own
    turns     the grid's best three, the user's own settings, and what both tools found, in turns

Rates compared are those of the turns. Of a loader with short epochs, whole epochs are measured.
"Steps lost" is the time that three minutes of training with the grid's best would take, with
tuning: what was lost until it was decided as measured, the rest at the rates of the turns; with
--whole, some loops train for that long in earnest as well.

A third of the loops is held out: nothing was chosen by them, and they are summed up apart.

With --kept, what was measured of a loop is kept in FILE, a line each, and not measured again
(--anew: tunes again, and keeps the grid); no loop is begun once it has taken --within seconds. So a
long run can be put together of short ones.

Prints JSON on standard output and tables on standard error. Exit code 0: the bounds hold; 1: not
all.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from known_answers import CaseFailed, conclude, judged, parser
from loaderscope.profiler.record.session.session import RUN_VARIABLE
from overhead_peers import HERE, environment
from tune_cases import LOOPS
from tune_cases.loop import Loop

LIMIT_S = 180.0
TRAINING_S = 180.0
OF_BEST, OF_BEST_SHARE, OF_OWN = 0.95, 0.9, 0.97
DECIDE_S, DECIDE_MEDIAN_S, LOST, MEDIANS = 60.0, 20.0, 1.10, 3.0
FINALISTS = 3
PEER = ["loadtune==0.3.0"]
NAMES = ("num_workers", "prefetch_factor", "pin_memory")


def side(
    python: str, mode: str, loop: Loop, *arguments: Any, limit_s: float = LIMIT_S
) -> dict[str, Any]:
    """What one process found."""
    with tempfile.TemporaryDirectory(prefix="tune-") as folder, tempfile.TemporaryFile("w+") as log:
        env = {**os.environ, "LOADERSCOPE_DIR": folder, "PYTHONHASHSEED": "0"}
        env.pop(RUN_VARIABLE, None)
        command = [python, str(HERE / "tune_side.py"), mode, loop.name, *map(json.dumps, arguments)]
        process = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
        )
        try:
            said, _ = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise CaseFailed(f"{mode} did not end within {limit_s:.0f} s") from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # workers too, if they were left
            process.wait()
        if process.returncode:
            log.seek(0)
            raise CaseFailed(
                f"{mode}: " + (log.read().strip().rpartition("\n")[2] or str(process.returncode))
            )
        found = json.loads(said.strip().splitlines()[-1])
        assert isinstance(found, dict)
        return found


def plain(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the grid has of them, so that equal ones are equal."""
    found = {"num_workers": 0, "prefetch_factor": 2, "pin_memory": False, **settings}
    if found["prefetch_factor"] is None:
        found["prefetch_factor"] = 2
    kept = (
        {"persistent_workers": True}
        if found["num_workers"] and found.get("persistent_workers")
        else {}
    )
    return {
        name: found[name] for name in NAMES if found["num_workers"] or name != "prefetch_factor"
    } | kept


def measure(loop: Loop, options: Namespace, before: Mapping[str, Any]) -> dict[str, Any]:
    """One loop. What `before` has is not measured again."""
    found: dict[str, Any] = {
        "about": loop.about,
        "healthy": loop.healthy,
        "held_out": loop.held_out,
    }
    found["grid"] = before.get("grid") or side(sys.executable, "grid", loop, options.quick)
    found["tuned"] = side(sys.executable, "tuned", loop, 0)
    if not options.skip_loadtune:
        found["loadtune"] = before.get("loadtune") or beside(loop)
    named = {
        "own": plain(loop.own),
        "tuned": plain(found["tuned"]["found"]),
        **(
            {"loadtune": plain(peers)}
            if (peers := (found.get("loadtune") or {}).get("found"))
            else {}
        ),
        **{
            f"grid-{at}": plain(each["settings"])
            for at, each in enumerate(found["grid"]["entries"][:FINALISTS])
        },
    }
    entries = list({json.dumps(each): each for each in named.values()}.values())
    in_turns = side(sys.executable, "turns", loop, entries)
    rates = {name: in_turns["rates"][entries.index(settings)] for name, settings in named.items()}
    found["turns"] = {name: {"settings": named[name], "rates": of} for name, of in rates.items()}
    found |= figures(found, rates)
    return found


def beside(loop: Loop) -> dict[str, Any]:
    """What loadtune finds; its failure is no failure of ours."""
    try:
        return side(environment(HERE / ".env-loadtune", PEER), "loadtune", loop)
    except (CaseFailed, subprocess.CalledProcessError) as error:
        return {"error": str(error)[:300], "found": None}


def figures(found: Mapping[str, Any], rates: Mapping[str, list[float]]) -> dict[str, Any]:
    """Ratios are taken within a round. The best of the grid is chosen by every second round and
    compared in the others: of some that are as good, the one that is highest in a round is so by
    chance in part, and in that round alone."""
    of_grid = [name for name in rates if name.startswith("grid") or name == "own"]
    best = max(of_grid, key=lambda name: median(rates[name][::2]))
    middle = {name: median(of[1::2]) for name, of in rates.items()}

    def over(one: str, other: str) -> float:
        return round(
            median(a / b for a, b in zip(rates[one][1::2], rates[other][1::2], strict=True)), 4
        )

    tuned = found["tuned"]
    # Seconds that as many batches take with the best; the rest of three minutes at the rate of the
    # turns.
    until, spent = tuned["batches_until_decided"], tuned["decide_s"] or tuned["seconds"]
    rest = max(0.0, TRAINING_S - until / middle[best])
    start = found["grid"]["worker_start_ms"]
    beside_ms, there = tuned["longest_beside_ms"], tuned["median_there_ms"]
    return {
        "best": found["turns"][best]["settings"],
        "of_best": over("tuned", best),
        "of_own": over("tuned", "own"),
        "own_of_best": over("own", best),
        "lost": round((spent + rest * middle[best] / middle["tuned"]) / TRAINING_S, 4),
        "loadtune_of_best": over("loadtune", best) if "loadtune" in rates else None,
        "longest_bound_ms": there and round(MEDIANS * there + start, 1),
        "longest_within": beside_ms is None or beside_ms <= MEDIANS * there + start,
        # A loader whose ordinary steps are as long owes nothing to the switch.
        "longest_as_ordinary": beside_ms is None or beside_ms <= tuned["longest_ordinary_ms"],
        "same_batches": tuned["in_order"] and tuned["same_values"],
    }


def in_earnest(loop: Loop, seconds: float, found: Mapping[str, Any]) -> dict[str, Any]:
    """A training of so long, tuned from its start, between two of half as long with the best
    settings: a machine that grows slower or faster meanwhile moves both."""
    best = next(each for each in found["turns"].values() if each["settings"] == found["best"])
    half = max(1, int(median(best["rates"]) * seconds / 2))

    def with_best() -> float:
        return float(
            side(sys.executable, "whole", loop, found["best"], half, limit_s=2 * seconds + LIMIT_S)[
                "seconds"
            ]
        )

    before = with_best()
    tuned = side(sys.executable, "tuned", loop, seconds, limit_s=seconds + LIMIT_S)
    after = with_best()
    best_s = tuned["batches"] * (before + after) / (2 * half)
    return {
        "tuned_s": tuned["seconds"],
        "batches": tuned["batches"],
        "found": tuned["found"],
        "decide_s": tuned["decide_s"],
        "halves_s": [round(before, 2), round(after, 2)],
        "best_s": round(best_s, 2),
        "lost": round(tuned["seconds"] / best_s, 4),
    }


def summed_up(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The table of bounds, over these loops."""
    done = {name: found for name, found in results.items() if "of_best" in found}
    if not done:
        return {"loops": 0, "failed": sorted(results), "pass": False}
    decided = [found["tuned"]["decide_s"] or float("inf") for found in done.values()]
    lost_in_earnest = [
        found["whole"]["lost"] for found in done.values() if "lost" in found.get("whole", {})
    ]
    below = {name: found["of_best"] for name, found in done.items() if found["of_best"] < OF_BEST}
    slower = {name: found["of_own"] for name, found in done.items() if found["of_own"] < OF_OWN}
    changed = [
        name
        for name, found in done.items()
        if found["healthy"] and found["tuned"]["found"] != found["tuned"]["own"]
    ]
    lost = {name: found["lost"] for name, found in done.items() if found["lost"] > LOST}
    longest = [
        name
        for name, found in done.items()
        if not (found["longest_within"] or found["longest_as_ordinary"])
    ]
    others = [name for name, found in done.items() if not found["same_batches"]]
    reached = {
        "of_best": 1 - len(below) / len(done) >= OF_BEST_SHARE,
        "of_own": not slower,
        "decide": max(decided) <= DECIDE_S and median(decided) <= DECIDE_MEDIAN_S,
        "lost": not lost and all(each <= LOST for each in lost_in_earnest),
        "longest": not longest,
        "same_batches": not others,
    }
    return {
        "loops": len(done),
        "failed": {name: found["failed"] for name, found in results.items() if "failed" in found},
        "below_best": below,
        "median_of_best": round(median(found["of_best"] for found in done.values()), 4),
        "slower_than_own": slower,
        "healthy_changed": changed,
        "decide_s": {"median": median(decided), "longest": max(decided)},
        "lost": {
            "median": round(median(found["lost"] for found in done.values()), 4),
            "above": lost,
        },
        "lost_in_earnest": lost_in_earnest,
        "longest_step_beyond": longest,
        "longest_step_beyond_strictly": [
            name for name, found in done.items() if not found["longest_within"]
        ],
        "other_batches": others,
        "loadtune": of_peer([found for found in done.values() if found.get("loadtune")]),
        "reached": reached,
        "pass": all(reached.values()) and len(done) == len(results),
    }


def of_peer(done: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    """What loadtune did; where it found nothing, the user's own settings are taken to stay."""
    if not done:
        return None
    peers = [found["loadtune"] for found in done]
    rates = [
        (found["loadtune_of_best"] or found["own_of_best"], found["own_of_best"]) for found in done
    ]
    return {
        "loops": len(done),
        "failed": sum(bool(each.get("error")) for each in peers),
        "found_something": sum(bool(each.get("found")) for each in peers),
        "at_95_of_best": sum(rate >= OF_BEST for rate, _ in rates),
        "slower_than_own": sum(rate < OF_OWN * own for rate, own in rates),
        "sampler_lost": sum(each.get("sampler_kept") is False for each in peers),
        "median_s": median([each["seconds"] for each in peers if "seconds" in each] or [0.0]),
    }


def short(settings: Mapping[str, Any] | None) -> str:
    if settings is None:
        return "-"
    plainly = plain(settings)
    ahead = f"×{plainly['prefetch_factor']}" if plainly["num_workers"] else ""
    rest = f"{' pin' if plainly['pin_memory'] else ''}{' kept' if plainly.get('persistent_workers') else ''}"
    return f"{plainly['num_workers']}{ahead}{rest}"


def told(found: Mapping[str, Any]) -> list[str]:
    return [" | ".join(cell for cell in row(found) if cell)]


def row(found: Mapping[str, Any]) -> list[str]:
    if "of_best" not in found:
        return [f"failed: {found.get('failed', '')[:80]}"]
    tuned, peers = found["tuned"], found.get("loadtune") or {}
    kept = {True: "kept", False: "lost"}.get(peers.get("sampler_kept"), "-")
    return [
        "healthy" if found["healthy"] else "",
        short(tuned["own"]),
        short(found["best"]),
        f"{found['own_of_best']:.2f}",
        short(tuned["found"]),
        f"{found['of_best']:.2f}",
        f"{tuned['decide_s']} s",
        f"{len(tuned['trials'])} tried",
        f"{found['lost']:.2f}",
        f"{tuned['longest_beside_ms']} of {found['longest_bound_ms']}",
        "same" if found["same_batches"] else "OTHER BATCHES",
        short(peers.get("found")),
        f"{found['loadtune_of_best'] or found['own_of_best']:.2f}" if peers else "-",
        f"{peers.get('seconds')} s",
        kept,
    ]


def show(results: Mapping[str, Mapping[str, Any]], summary: Mapping[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(stderr=True, width=170)
    table = Table(
        *(
            "loop",
            "",
            "own",
            "best",
            "own/best",
            "tuned",
            "of best",
            "decided",
            "",
            "lost",
            "longest, ms",
            "batches",
        ),
        *("loadtune", "of best", "in", "sampler"),
    )
    for name, found in results.items():
        table.add_row(name, *row(found))
    console.print(table)
    for part, values in summary.items():
        console.print(f"{part}: {values}", markup=False)


def read_kept(path: Path | None) -> dict[str, dict[str, Any]]:
    """The latest of each loop."""
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {each.pop("name"): each for each in lines}


def main() -> int:
    asked = parser(__doc__, LOOPS)
    asked.add_argument("--skip-loadtune", action="store_true", help="leave out the other tool")
    asked.add_argument(
        "--kept",
        type=Path,
        metavar="FILE",
        help="keep each loop's figures there, and go on from them",
    )
    asked.add_argument(
        "--within", type=float, default=float("inf"), metavar="SECONDS", help="begin no loop later"
    )
    asked.add_argument(
        "--anew", action="store_true", help="tune again what is kept already; the grid stays"
    )
    asked.add_argument(
        "--whole",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="train for so long in earnest too",
    )
    options = asked.parse_args()
    kept = read_kept(options.kept)
    began = time.perf_counter()

    def time_left() -> bool:
        return time.perf_counter() - began <= options.within

    def one(loop: Loop) -> dict[str, Any]:
        before = kept.get(loop.name, {})
        measured = "of_best" in before and not options.anew
        if measured and (not options.whole or "lost" in before.get("whole", {})):
            return before
        if not time_left():
            return before if measured else {"failed": "not begun: no time was left"}
        found = before if measured else measure(loop, options, before)
        if options.whole and time_left():
            found["whole"] = in_earnest(loop, options.whole, found)
        if options.kept is not None:
            with options.kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"name": loop.name, **found}) + "\n")
        return found

    done = judged(
        LOOPS, options, one, lambda loop: {"healthy": loop.healthy, "held_out": loop.held_out}, told
    )
    results = done["results"]
    parts = {"all": lambda found: True, "held_out": lambda found: found.get("held_out")}
    summary = {
        name: summed_up({k: f for k, f in results.items() if holds(f)})
        for name, holds in parts.items()
    }
    show(results, summary)
    conclude("tune", options, done, summary=summary)
    return 0 if summary["all"]["pass"] else 1


if __name__ == "__main__":
    sys.exit(main())
