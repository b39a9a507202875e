"""docs/harmless.md: each promise has tests that are there, each program stands for a promise."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path

from harmless import catalogue

ROOT = Path(__file__).parents[2]
PROGRAMS = catalogue.programs()


def promises() -> dict[str, list[str]]:
    """Promise → what holds it."""
    found = {}
    for line in (ROOT / "docs/harmless.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        title = cells[0].startswith("**") or cells[0] == "promise"
        if line.startswith("| ") and len(cells) == 2 and not title:
            found[cells[0]] = re.findall(r"`([^`]+)`", cells[1])
    return found


def test_every_promise_is_held_by_something_that_exists() -> None:
    assert len(promises()) > 20
    for promise, holders in promises().items():
        assert holders, promise
        for holder in holders:
            path, _, function = holder.partition("::")
            if function:
                assert f"def {function}(" in (ROOT / path).read_text(), holder
            else:
                assert any(fnmatchcase(name, holder) for name in PROGRAMS), (promise, holder)


def test_every_program_holds_a_promise() -> None:
    patterns = [holder for holders in promises().values() for holder in holders]
    held = {name for name in PROGRAMS if any(fnmatchcase(name, each) for each in patterns)}
    assert held == set(PROGRAMS)


def test_every_test_of_the_folder_is_named_or_runs_programs() -> None:
    named = " ".join(holder for holders in promises().values() for holder in holders)
    for path in Path(__file__).parent.glob("test_*.py"):
        if path.name not in ("test_programs.py", Path(__file__).name):
            for function in re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE):
                assert f"tests/harmless/{path.name}::{function}" in named, function
