"""The source of the loop over a loader, from the frame that iterates."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from loaderscope.profiler.record.inspect.inspect_source import MAX_LINES, loop_at

LOOP = """\
def train(loader):
    {statement}
        step(batch)

        # indented less than its `if`
        stop()
    return None
"""


class Looking:
    """Iterates once, after it has looked at the frame that begins to."""

    found: Any = None

    def __iter__(self) -> Any:
        frame = sys._getframe(1)
        self.found = loop_at(frame.f_code.co_filename, frame.f_lineno)
        return iter([1])


def looked_at(folder: Path, source: str) -> tuple[str, ...]:
    file, looking = folder / "train.py", Looking()
    file.write_text(source)
    names: dict[str, Any] = {"step": print, "stop": list}
    exec(compile(source, str(file), "exec"), names)
    names["train"](looking)
    return tuple(looking.found)


def test_the_loop_as_it_is_written(tmp_path: Path) -> None:
    found = looked_at(tmp_path, LOOP.format(statement="for batch in loader:"))
    assert found[:2] == ("for batch in loader:", "    step(batch)")
    assert found[-1] == "    stop()"


@pytest.mark.parametrize(
    "source",
    [
        "def train(loader):\n    return list(loader)\n",
        LOOP.format(statement="for batch in loader:" + "\n        step(batch)" * MAX_LINES),
    ],
)
def test_another_statement_or_a_long_one(tmp_path: Path, source: str) -> None:
    assert looked_at(tmp_path, source) == ()
