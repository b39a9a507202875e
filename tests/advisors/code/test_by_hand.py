"""A stage that takes longer and longer is told from one that is only longer for larger batches, or
on a slower machine."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.code.by_hand import grows
from loaderscope.profiler.store.lanes.columns import Columns
from rule_cases import advice, case_of
from rule_rows import MS, main_loop
from stack_cases import seen

FETCH = [1.0 + 0.05 * n for n in range(100)]


def loop_of(fetch_ms: list[float], epochs: int = 1, **columns: Any) -> list[dict[str, Any]]:
    rows = main_loop(len(fetch_ms), compute_ms=0.2, fetch=4.0)
    for n, row in enumerate(rows):
        row |= {"fetch_ns": round(fetch_ms[n] * MS), "epoch": n * epochs // len(rows)}
        row |= {name: each(n) for name, each in columns.items()}
    return rows


@pytest.mark.parametrize("epochs", [1, 4])
def test_what_grows_over_the_run_is_said_with_its_first_and_last_time(
    tmp_path: Path, epochs: int
) -> None:
    found = case_of(tmp_path, loop_of(FETCH, epochs))
    assert grows(found, "fetch") == pytest.approx((1475, 5475), rel=0.01)
    assert grows(found, "collate") is None


def test_what_grows_within_each_epoch_is_said(tmp_path: Path) -> None:
    found = case_of(tmp_path, loop_of(FETCH[:50] * 2, 2))
    assert grows(found, "fetch") == pytest.approx((1225, 3225), rel=0.02)


def test_what_the_loop_itself_takes_may_be_unknown(tmp_path: Path) -> None:
    found = case_of(tmp_path, loop_of(FETCH))
    columns = dict(found.loader.batches) | {"compute_ns": np.full(100, -1)}
    batches = Columns(columns, found.loader.batches.rows)
    unknown = replace(found, loader=replace(found.loader, batches=batches))
    assert grows(unknown, "fetch") == grows(found, "fetch") is not None


@pytest.mark.parametrize(
    ("fetch_ms", "columns"),
    [
        ([3.0] * 100, {}),
        (FETCH[::-1], {}),
        ([1.0] * 50 + [4.0] * 50, {}),  # another phase of training, or a busy machine
        (FETCH[:40], {}),
        (FETCH, {"bytes": lambda n: 1000 + 50 * n}),  # sorted by length
        (FETCH, {"compute_ns": lambda n: round((1 + n / 25) * MS)}),  # a slower clock
    ],
)
def test_silent_where_it_does_not_or_everything_does(
    tmp_path: Path, fetch_ms: list[float], columns: dict[str, Any]
) -> None:
    assert grows(case_of(tmp_path, loop_of(fetch_ms, **columns)), "fetch") is None


def test_it_is_the_advice_about_the_line_that_takes_most(tmp_path: Path) -> None:
    stacks = (("Seen.__getitem__ /home/u/train.py:41", 100),)
    made = seen(case_of(tmp_path, loop_of(FETCH)), *stacks, text="scale = np.std(self.history)")
    found = advice("hot-function", made)
    assert found.title.endswith("longer with each batch: scale = np.std(self.history)")
    assert "at first and" in found.why and "# By hand (train.py:41): keep only" in found.code
