"""A training process of benchmarks/inside.py: records one case, compares its two loops, or measures
them in turn.

    python inside_side.py record | short | check | measure CASE FOLDER

Files are made below FOLDER by the first process. Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
import torch

from known_answers_side import in_turn, watched
from known_cases import (
    hot_files,
    hot_pictures,
    hot_python,
    hot_tables,
    hot_text,
    storage_containers,
    storage_files,
)
from known_cases.case import Case
from known_cases.hot_case import Hot
from known_cases.storage_case import Layout

INSIDE: dict[str, Hot | Layout] = {
    case.name: case
    for module in (
        hot_files,
        hot_pictures,
        hot_text,
        hot_tables,
        hot_python,
        storage_files,
        storage_containers,
    )
    for case in module.CASES
}

RECORD_S = 6.0  # the first burst begins after a second and takes about two
SHORT_S = 3.0
MEASURE_S = 6.0
MOST_ROUNDS = 9
CHECKED = 5  # samples


def record(case: Case, folder: str) -> dict[str, Any]:
    return watched(case.build(folder=folder), case.least_blocks, RECORD_S)


def short(case: Case, folder: str) -> dict[str, Any]:
    return watched(case.build(folder=folder), 1, SHORT_S)


def check(case: Case, folder: str) -> dict[str, Any]:
    """The greatest mean difference of a few samples of both loops."""
    tolerance = case.tolerance if isinstance(case, Hot) else 0.0
    slow = case.build(folder=folder).loader.dataset
    fast = case.build(folder=folder, **case.fix).loader.dataset
    assert len(slow) == len(fast), (len(slow), len(fast))
    difference = 0.0
    for index in np.linspace(0, len(slow) - 1, CHECKED).astype(int).tolist():
        one, other = (torch.as_tensor(dataset[index]) for dataset in (slow, fast))
        assert (one.shape, one.dtype) == (other.shape, other.dtype), (
            one.shape,
            other.shape,
            one.dtype,
            other.dtype,
        )
        difference = max(difference, (one.double() - other.double()).abs().mean().item())
    return {"difference": difference, "equal": tolerance is None or difference <= tolerance}


def measure(case: Case, folder: str) -> dict[str, Any]:
    """Both loops in turn."""
    loops = {"before": case.build(folder=folder), "better": case.build(folder=folder, **case.fix)}
    found = in_turn(loops, MEASURE_S, MOST_ROUNDS)
    return {**found, "gain": found["gain"]["better"]}


def main(args: list[str]) -> int:
    # As in known_answers_side.py: other work of this machine shall not decide what is slow.
    torch.set_num_threads(1)
    mode, name, folder = args
    found = {"record": record, "short": short, "check": check, "measure": measure}[mode](
        INSIDE[name], folder
    )
    print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
