"""How a stage's samples are divided among the user's own lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from loaderscope.advisors.stacks.stage_parts import parts_of
from rule_cases import case_of
from rule_rows import main_loop
from stack_cases import seen

GET = "Rows.__getitem__ rows.py:4"


@pytest.mark.parametrize(
    ("stacks", "expected"),
    [
        # One piece of what a line calls takes most of it: that piece.
        (
            [
                (f"{GET} > Rows.load rows.py:9", 60),
                (f"{GET} > Rows.load rows.py:10", 20),
                ("Rows.__getitem__ rows.py:5", 20),
            ],
            [("rows.py:9", None, 0.6), ("rows.py:10", None, 0.2), ("rows.py:5", None, 0.2)],
        ),
        # None does: the call.
        (
            [(f"{GET} > Words.encode words.py:{line}", 20) for line in (1, 2, 3)]
            + [("Rows.__getitem__ rows.py:5", 40)],
            [("rows.py:4", "Words.encode words.py:1", 0.6), ("rows.py:5", None, 0.4)],
        ),
        # To name the line in which all happens would say nothing.
        (
            [
                (f"{GET} > Words.encode words.py:{line}", n)
                for line, n in ((1, 40), (2, 35), (3, 25))
            ],
            [("words.py:1", None, 0.4), ("words.py:2", None, 0.35), ("words.py:3", None, 0.25)],
        ),
        # A function that calls itself counts once.
        (
            [(f"{GET} > walk rows.py:9 > walk rows.py:9 > loads std/json.py:7", 100)],
            [("rows.py:9", "json loads", 1.0)],
        ),
    ],
)
def test_a_line_is_divided_where_a_piece_of_it_takes_most(
    tmp_path: Path, stacks: list[tuple[str, int]], expected: list[tuple[str, str | None, float]]
) -> None:
    stage = seen(case_of(tmp_path, main_loop(40, fetch=4.0)), *stacks).code_stage("fetch")
    assert stage is not None
    found = [(each.place, each.call, each.share.mid) for each in parts_of(stage)]
    assert found == expected
