"""`loaderscope stacks` on runs that have ended: what was recorded, or one sentence. Live runs:
tests/integration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from builders import RUN_ID, RunBuilder, epoch_row, loop
from inside_samples import CODE, NO_CODE, hostile_code
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Report
from loaderscope.cli import cli, main
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.document.inside import stack_sections
from loaderscope.reports.text.draw import print_sections

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run(runs_dir: Path) -> Run:
    builder = RunBuilder(runs_dir)
    rows = loop(60, wait_ms=5, fetch_ns=4_000_000)
    builder.process().loader(rows, epochs=[epoch_row(rows)])
    return open_run(builder.path)


def report_of(run: Run, **changed: object) -> Report:
    report = build_report(run, advice=False)
    return replace(report, loaders=(replace(report.loaders[0], **changed),))


def fails(capsys: Capture, *args: str) -> str:
    assert main(list(args)) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize("args", [(), (RUN_ID,), ("-o", "never.json")])
def test_a_run_without_stacks_says_so(run: Run, capsys: Capture, args: tuple[str, ...]) -> None:
    assert "this run holds no stacks: " in fails(capsys, "stacks", *args)
    assert not Path("never.json").exists()


@pytest.mark.parametrize("args", [("--native",), ("--seconds", "2")])
def test_a_run_that_ended_cannot_be_asked(run: Run, capsys: Capture, args: tuple[str, ...]) -> None:
    assert f"the run {RUN_ID} is finished: stacks can be taken of a live run only" in fails(
        capsys, "stacks", *args
    )


@pytest.mark.parametrize("args", [("nope",), ("--seconds", "0"), ("--seconds", "x")])
def test_wrong_arguments(run: Run, capsys: Capture, args: tuple[str, ...]) -> None:
    assert fails(capsys, "stacks", *args).startswith("loaderscope: ")


def test_help() -> None:
    result = CliRunner().invoke(cli, ["stacks", "--help"])
    assert "speedscope" in result.output and "Examples" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    verbs = CliRunner().invoke(cli, ["--help"]).output
    assert verbs.index("\n  report ") < verbs.index("\n  stacks ") < verbs.index("\n  compare ")


def test_stages_with_their_functions(run: Run) -> None:
    text = print_sections(stack_sections(report_of(run, code=CODE), run), 80)
    assert text.splitlines()[0] == "Pictures"
    assert "71 % (66–75 %) PIL ImageFile.load ImageFile.py:425 patches.py:41" in " ".join(
        text.split()
    )
    assert "innermost: PIL 73 %, your own code 16 %, libz 11 %" in text
    assert text.index("\nfetch\n") < text.index("\ncollate\n")
    wide = print_sections(stack_sections(report_of(run, code=CODE), run), 120)
    assert "itself" in wide and "itself" not in text and "█" in wide


def test_no_stage_is_a_reason(run: Run) -> None:
    with pytest.raises(UsageError, match="pip install py-spy"):
        stack_sections(report_of(run, code=NO_CODE), run)


@pytest.mark.parametrize("width", [40, 80, 140])
def test_hostile_texts_are_only_texts(run: Run, width: int) -> None:
    report = report_of(run, code=hostile_code("[red]\x1b[2J" + "x" * 200))
    text = print_sections(stack_sections(report, run), width)
    assert all(line.isprintable() and len(line) <= width for line in text.splitlines())
    assert print_sections(
        stack_sections(report_of(run, code=CODE), run), width, unicode=False
    ).isascii()
