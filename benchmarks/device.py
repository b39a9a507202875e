"""Is the device read rightly, and what is the advice worth? Loops on the stand-in of
docs/standin.md.

    python benchmarks/device.py [--quick] [--no-measure] [--only CASE] [--json FILE] [--store
    FOLDER]

Cases are judged as those of known_answers.py. Besides, the figures recorded of the device are
compared with the stand-in's own account, and its synchronisations are counted with and without
recording. Of some loops it matters what verdict is given. A third of the cases is held out: nothing
was chosen by them.

All figures are the stand-in's: they say nothing of any GPU. Prints JSON on standard output and
tables on standard error. Exit code 0: the goals are reached; 1: not all.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from device_cases import CASES
from device_cases.case import OnDevice
from known_answers import causes_parser, judge, known_answers, summarised
from known_cases.case import Case
from loaderscope.profiler.store.run.run import LoaderRun
from loaderscope.profiler.store.run.run_reader import open_run

FIGURE_BOUND = 0.05
GAIN_BOUND = 0.15
LEAST_INSIDE = 0.75
FIRST_BATCHES = 4  # the device is noticed in them


def figures(folder: Path, recorded: dict[str, Any]) -> dict[str, Any]:
    """Recorded sums against the account's, over the batches that have both; and synchronisations
    added a block."""
    account, waits = recorded.pop("account"), recorded["synchronised_a_block"]
    found = {}
    for loader in open_run(next(folder.glob("2*"))).loaders:
        for name, true in truth(account, loader).items():
            got = loader.batches[name]
            both = np.flatnonzero((got >= 0) & (true >= 0) & (np.arange(len(got)) >= FIRST_BATCHES))
            each = found.setdefault(name, {"batches": 0, "recorded_ms": 0.0, "true_ms": 0.0})
            each["batches"] += len(both)
            each["recorded_ms"] += round(float(got[both].sum()) / 1e6, 3)
            each["true_ms"] += round(float(true[both].sum()) / 1e6, 3)
    for each in found.values():
        each["error"] = off(each)
    return {"figures": found, "synchronised_added": waits["recorded"] - waits["bare"]}


def off(figure: Mapping[str, float]) -> float | None:
    return round(figure["recorded_ms"] / figure["true_ms"] - 1, 4) if figure["true_ms"] else None


def truth(account: list[Any], loader: LoaderRun) -> dict[str, Any]:
    """A batch, by the account: time of its copies, idle time of the default stream while it was
    waited for, and that stream's time from its hand-over to the next call of next()."""
    entered = loader.batches["t_ns"]
    handed = entered + loader.batches["wait_ns"]
    left = handed + loader.batches["compute_ns"]
    copies = np.array([work[2:] for work in account if work[0] == "h2d"], np.int64).reshape(-1, 3)
    of_stream = np.array([work[2:] for work in account if work[1] == 0], np.int64).reshape(-1, 3)

    def reached(t_ns: Any) -> Any:
        """When the stream has done all that was issued until then."""
        ends = np.concatenate(([0], np.maximum.accumulate(of_stream[:, 2])))
        return np.maximum(t_ns, ends[np.searchsorted(of_stream[:, 0], t_ns)])

    took = np.concatenate(([0], np.cumsum(copies[:, 2] - copies[:, 1])))
    until, since = (took[np.searchsorted(copies[:, 0], t)] for t in (left, handed))
    known = loader.batches["compute_ns"] >= 0
    found = {
        "h2d_ns": until - since,
        "stall_ns": handed - np.minimum(handed, reached(entered)),
        "compute_device_ns": reached(left) - reached(handed),
    }
    return {name: np.where(known, values, -1) for name, values in found.items()}


def judged(case: Case, measured: bool) -> dict[str, Any]:
    assert isinstance(case, OnDevice)
    found = judge(case, measured, figures)
    return {
        **found,
        "held_out": case.held_out,
        "verdict_ok": case.verdict in (None, found["verdict"]),
    }


def concluded(results: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Errors of figures are of sums over all cases, so that a time of next to nothing counts as
    that."""
    summary = summarised(results)
    done = [found for found in results.values() if "figures" in found]
    errors = {}
    for name in done[0]["figures"] if done else ():
        sums = {
            key: sum(found["figures"][name][key] for found in done)
            for key in ("recorded_ms", "true_ms")
        }
        errors[name] = off(sums)
    held_out = summarised({name: found for name, found in results.items() if found.get("held_out")})
    summary["held_out"] = {
        key: held_out[key] for key in ("planted", "healthy", "first_right_share", "prediction")
    }
    added = sum(found["synchronised_added"] for found in done)
    gains = summary["prediction"]
    reached = {
        "figures": all(abs(error or 0.0) <= FIGURE_BOUND for error in errors.values()),
        "synchronised": added == 0,
        "verdicts": all(found["verdict_ok"] for found in done),
        "gains": (gains["median_error"] or 0.0) <= GAIN_BOUND
        and (gains["inside_share"] or 1.0) >= LEAST_INSIDE,
    }
    summary["device"] = {"errors": errors, "synchronised_added": added, "reached": reached}
    summary["pass"] = summary["pass"] and all(reached.values())
    return summary


if __name__ == "__main__":
    device = "the stand-in of docs/standin.md"
    options = causes_parser(__doc__, CASES).parse_args()
    sys.exit(known_answers("device", options, CASES, judged, concluded, device=device))
