"""What `doctor`, `list`, `rules`, `probe-storage` print: within the width, whole, and nothing is obeyed."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from loaderscope.advisors.rules import all_rules, rule
from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.storage_probe.probe_model import LayoutTrial, StorageProbe
from loaderscope.profiler.doctor import Check
from loaderscope.profiler.store.run.run_list import RunEntry
from loaderscope.reports.document import listings
from loaderscope.reports.document.blocks import Section
from loaderscope.reports.document.machine import probe_sections
from loaderscope.reports.text.draw import print_sections
from screen_text import check_golden

EVIL = "[red]x[/red] :smile: \x1b[2J\u202e"
SHOWN = "[red]x[/red] :smile: �[2J�"
CHECKS = [
    Check("sampler", True, "the system sampler runs " + "and runs " * 20),
    Check("device events", False, EVIL, "pip install torch " + "with CUDA " * 20),
    Check("cgroup", None, "no limit"),
]
ID, OTHER = "20250131-091500-abc123", "20250131-091501-abc123"
TORN = RunEntry(OTHER, Path(), 1 << 62, (), "unreadable", 0, 0, 0, "its run.json is torn " * 20)
LIVE = RunEntry(ID, Path(), None, ("train.py", EVIL), "live", 1, 1, 787_000, None)
GAIN = SimpleNamespace(predicted=Range(2.0, 2.4, 2.8))
COSTLIEST: Any = SimpleNamespace(
    config={"variable": "train_loader"}, verdict="input-bound", recommendations=(GAIN,)
)

FIGURES: Any = (None, 1500, 2.46e10, True, 1_234_567.0, 1_234_567.0)
FILES = LayoutTrial("files", "files as they are", "encoded", "shuffled", *FIGURES)
TAR = LayoutTrial("tar-shards", "tar (webdataset)", "encoded", "in sequence", *FIGURES)
TAR = replace(TAR, gain=Range(1.5, 2.0, 2.5))
ARRAY = replace(TAR, name="array", label="mapped array", form="decoded", order="shuffled")
NEEDS = 'needs lmdb: pip install "loaderscope[storage]"'
MISSING = LayoutTrial("lmdb", "LMDB", "encoded", "shuffled", NEEDS)
WHOLE = {"whole_files": 1_500_000, "whole_bytes": 18_600_000_000, "whole_is_lower_bound": True}
SAMPLE = {"samples": 1500, "sample_bytes": 18_600_000, "decoder": "PIL", "decode_us": 94.5}
READ = {"reading_warm_share": 0.1, "reading_cold_share": 0.5, "cold_reason": None}
HOST = {"memory_bytes": 10**10, "file_system": "ext4", "rounds": 5, "seconds": 20.0}
SAID: Any = {"verdict": ("Reading is little.",), "notes": ("A note.",)}
GIVEN: Any = {**WHOLE, **SAMPLE, **READ, **HOST, **SAID, "layouts": (FILES, TAR, ARRAY, MISSING)}
PROBE = StorageProbe(source="/data/[bold]train[/bold]", suffix=".png", **GIVEN)
NO_DECODER: Any = dict.fromkeys(("decoder", "decode_us"))
BARE = replace(
    PROBE, layouts=(replace(FILES, cold=None),), cold_reason="it is a tmpfs", **NO_DECODER
)


def drawn(kind: str, width: int = 80, **how: bool) -> str:
    made: dict[str, Callable[[], list[Section]]] = {
        "findings": lambda: listings.findings(CHECKS),
        "runs": lambda: listings.run_list([(LIVE, COSTLIEST), (TORN, None)], "runs"),
        "rules": lambda: listings.rule_list(all_rules()),
        "probe": lambda: probe_sections(replace(PROBE, source=EVIL, notes=(EVIL,))),
        "one rule": lambda: listings.one_rule(rule("num-workers")),
    }
    return print_sections(made[kind](), width, **how)


LEAST = {"findings": 40, "rules": 40, "runs": 70, "probe": 80, "one rule": 120}
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
    at = lines.index(f"missing  device events: {SHOWN}")
    assert lines[at + 1].startswith("         → pip install torch with CUDA")
    assert lines[-1] == "1 of 3 checks can be fixed (see →)."
    all_ok = print_sections(listings.findings(CHECKS[:1])).splitlines()[-1]
    assert all_ok == "Everything that this machine has can be measured."


def test_names_of_runs_are_never_cut() -> None:
    assert ID in drawn("runs", 40)
    head, live, torn, where = drawn("runs", 80).splitlines()
    assert where == "in runs"
    assert head.split() == ["run", "state", "script", "loader", "verdict", "gain"]
    assert drawn("runs", 130).split()[:4] == ["run", "state", "begun", "size"]
    assert live.startswith(ID) and " live " in live
    assert live.endswith(("input-bound  ×2.4", "input-bound ×2.4")), live
    assert "train_load" in live and torn.startswith(OTHER)
    assert SHOWN in drawn("runs", 200)


@pytest.mark.parametrize(("name", "probe"), [("whole", PROBE), ("bare", BARE)])
def test_a_probe_of_storage_shows_every_figure_or_why_there_is_none(name, probe):
    text = print_sections(probe_sections(probe))
    check_golden(f"storage_probe_{name}.text", text, "reports")
    assert "…" not in text and SHOWN in drawn("probe")
