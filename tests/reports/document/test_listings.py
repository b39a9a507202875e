"""What `doctor`, `list` and `rules` print: within the width, whole, and never what a text from
elsewhere commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loaderscope.advisors.rules import all_rules, rule
from loaderscope.advisors.schema.report_model import Range
from loaderscope.profiler.doctor import Check
from loaderscope.profiler.store.run.run_list import RunEntry
from loaderscope.reports.document import listings
from loaderscope.reports.document.blocks import Section
from loaderscope.reports.text.draw import print_sections

EVIL = "[red]x[/red] :smile: \x1b[2J\u202e"
SHOWN = "[red]x[/red] :smile: �[2J�"
CHECKS = [
    Check("sampler", True, "the system sampler runs " + "and runs " * 20),
    Check("device events", False, EVIL, "pip install torch " + "with CUDA " * 20),
    Check("cgroup", None, "no limit"),
]
TORN = "its run.json is torn " * 20
ENTRIES = [
    RunEntry(
        "20250131-091500-abc123", Path(), None, ("train.py", EVIL), "live", 1, 1, 787_000, None
    ),
    RunEntry("20250131-091501-abc123", Path(), 1 << 62, (), "unreadable", 0, 0, 0, TORN),
]
COSTLIEST: Any = SimpleNamespace(
    name="Rows",
    config={"variable": "train_loader"},
    verdict="input-bound",
    recommendations=(SimpleNamespace(predicted=Range(2.0, 2.4, 2.8)),),
)


def drawn(kind: str, width: int = 80, **how: bool) -> str:
    made: dict[str, Callable[[], list[Section]]] = {
        "findings": lambda: listings.findings(CHECKS),
        "runs": lambda: listings.run_list([(ENTRIES[0], COSTLIEST), (ENTRIES[1], None)], "runs"),
        "rules": lambda: listings.rule_list(all_rules()),
        "one rule": lambda: listings.one_rule(rule("num-workers")),
    }
    return print_sections(made[kind](), width, **how)


LEAST = {"findings": 40, "rules": 40, "runs": 70, "one rule": 120}
EVERY = pytest.mark.parametrize("kind", LEAST)


@EVERY
@pytest.mark.parametrize("width", [1, 40, 70, 80, 120, 300])
def test_lines_fit_and_are_printable(kind: str, width: int) -> None:
    for line in drawn(kind, width).splitlines():
        assert len(line) <= max(width, LEAST[kind])
        assert line.isprintable() and line == line.rstrip()


@EVERY
def test_colours_and_unicode_only_where_asked_and_nothing_else_changes(kind: str) -> None:
    colored, plain = drawn(kind, color=True), drawn(kind)
    assert "\x1b[" in colored and "\x1b" not in plain
    left = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert [line.rstrip() for line in left.splitlines()] == plain.splitlines()


def test_findings_say_how_to_fix() -> None:
    lines = drawn("findings", 60).splitlines()
    assert lines[0].startswith("ok       sampler: the system sampler runs")
    at = next(n for n, line in enumerate(lines) if line.startswith("missing "))
    assert lines[at] == f"missing  device events: {SHOWN}"
    assert lines[at + 1].startswith("         → pip install torch with CUDA")
    assert lines[-1] == "1 of 3 checks can be fixed (see →)."
    all_ok = print_sections(listings.findings(CHECKS[:1])).splitlines()[-1]
    assert all_ok == "Everything that this machine has can be measured."


def test_names_of_runs_are_never_cut() -> None:
    assert "20250131-091500-abc123" in drawn("runs", 40)
    head, live, torn, where = drawn("runs", 80).splitlines()
    assert where == "in runs"
    assert head.split() == ["run", "state", "script", "loader", "verdict", "gain"]
    assert drawn("runs", 130).split()[:4] == ["run", "state", "begun", "size"]
    assert live.startswith("20250131-091500-abc123") and " live " in live
    assert live.endswith(("input-bound  ×2.4", "input-bound ×2.4")), live
    assert "train_load" in live and torn.startswith("20250131-091501-abc123")
    assert SHOWN in drawn("runs", 200)
