"""What a report says to whoever writes the change: it is short, and has the source of what costs."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from inside_samples import spot
from loaderscope.advisors.schema.report_model import CodeStage, Finding, Range, Report
from loaderscope.cli import main
from loaderscope.profiler.base.host import host_name
from loaderscope.profiler.store.inspection import Attribute, Inspection, Leaf, Part
from loaderscope.profiler.store.run.run import Run
from loaderscope.reports.markdown.draw import ASSISTANT_LINES, render_for_assistant
from report_samples import advice, full_report, full_run, hostile_report

SOURCE = """\
import json


class Rows:
    def __getitem__(self, index):
        def inner():
            return 1

        table = json.loads(self.text)
        return table[index]
"""
COST = 9  # the line
ONE = Range(1.0, 1.0, 1.0)


def recorded_here(run: Run, **inspected: object) -> Run:
    """The run as if this machine had recorded it just now."""
    first, *others = run.processes
    loader = replace(first.loaders[0], inspection=Inspection(**inspected))  # type: ignore[arg-type]
    facts: Any = {"host": host_name(), "unix_ns": time.time_ns()}
    process = replace(first, loaders=(loader, *first.loaders[1:]), **facts)
    return replace(run, processes=(process, *others))


def with_cost(report: Report, file: Path, line: int) -> Report:
    """The report, in which a line of that file is what costs."""
    loader, *others = report.loaders
    found = spot("__getitem__", str(file), line, 0.9, 0.95)
    stage = CodeStage(500, None, (found,), (found,), {}, ())
    assert loader.code is not None
    cost = Finding("fetch", "table = json.loads(self.text)", f"data.py:{line}", None, ONE, 0.9, ONE)
    code = replace(loader.code, stages={"fetch": stage})
    run = replace(report.run, argv=("train.py", "--name", "a b"))
    loaders = (replace(loader, findings=(cost,), code=code), *others)
    return replace(report, loaders=loaders, run=run)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "data.py"
    file.write_text(SOURCE)
    old = time.time() - 3600
    os.utime(file, (old, old))
    return file


def test_the_function_of_the_line_that_costs_the_data_and_the_command(source, tmp_path):
    held = Attribute("text", "text", "str")
    data = Part(name="Rows", length=60_000, attributes=(held,))
    leaf = Leaf("['image']", "tensor", "float32", (32, 3, 224, 224))
    run = recorded_here(full_run(tmp_path / "runs", batches=60), dataset=data, leaves=(leaf,))
    text = render_for_assistant(with_cost(full_report(run), source, COST), run)
    assert f"# {source}, line 5\ndef __getitem__(self, index):\n" in text
    assert "    table = json.loads(self.text)  # <- here\n" in text
    assert "import json\n" not in text  # the function alone
    assert "Data set Rows, 60,000 samples" in text and "32 × 3 × 224 × 224" in text
    assert "loaderscope try --patch change.diff --yes --format json train.py --name 'a b'\n" in text
    assert "in the same order" in text and "Use 8 workers" in text
    assert text.count("\n") <= ASSISTANT_LINES


@pytest.mark.parametrize("how", ["changed since", "no Python", "gone", "no function"])
def test_source_that_may_not_be_that_of_the_run_is_not_shown(how, source, tmp_path):
    run = recorded_here(full_run(tmp_path / "runs", batches=60))
    if how == "changed since":
        os.utime(source, (time.time() + 60, time.time() + 60))
    elif how == "no Python":
        source = source.rename(tmp_path / "data.txt")
    elif how == "gone":
        source.unlink()
    line = 1 if how == "no function" else COST
    text = render_for_assistant(with_cost(full_report(run), source, line), run)
    assert "<- here" not in text and "What costs" in text


def test_it_stays_short_and_is_no_markup_whatever_the_run_holds(tmp_path: Path) -> None:
    run = full_run(tmp_path / "runs", batches=60)
    report = full_report(run)
    change = replace(advice().change, code="x = 1\n" * 500)
    many = tuple(advice(f"Advice {n}", change=change) for n in range(40))
    long = replace(report, loaders=(replace(report.loaders[0], recommendations=many),))
    assert render_for_assistant(long, run).count("\n") <= ASSISTANT_LINES
    hostile = render_for_assistant(hostile_report(report), run)
    assert hostile.count("\n") <= ASSISTANT_LINES
    tokens = MarkdownIt("commonmark").enable("table").parse(hostile)
    kinds = {each.type for token in tokens for each in (token, *(token.children or ()))}
    assert "fence" in kinds and not any(kind.startswith("html") for kind in kinds)
    assert "no loader was recorded" in render_for_assistant(replace(report, loaders=()))


def test_on_the_command_line(tmp_path, runs_dir, capsys):
    full_run(runs_dir, batches=60)
    assert main(["report", "--format", "md", "--for-assistant"]) == 0
    assert "loaderscope try --patch change.diff" in capsys.readouterr().out
    assert main(["report", "--for-assistant"]) == 2
    assert "say --format md" in capsys.readouterr().err
