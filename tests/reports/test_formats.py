"""The formats on the command line: into files, into pipes, and each failure in one sentence."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from builders import RunBuilder, epoch_row, loop
from loaderscope.cli import main
from loaderscope.profiler.base.errors import UsageError
from loaderscope.reports.formats import write_content

Capture = pytest.CaptureFixture[str]
SLOW, FAST, SHORT = "20250201-000000-aaaaaa", "20250202-000000-bbbbbb", "20250203-000000-cccccc"


@pytest.fixture
def runs(runs_dir: Path) -> Path:
    for name, batches, wait_ms in ((SLOW, 60, 20.0), (FAST, 60, 1.0), (SHORT, 5, 1.0)):
        rows = loop(batches, wait_ms=wait_ms, fetch_ns=4_000_000)
        RunBuilder(runs_dir, name).process().loader(rows, epochs=[epoch_row(rows)])
    return runs_dir


def fails(capsys: Capture, *args: str) -> str:
    """The one sentence of a command that exits with 2 and prints nothing else."""
    assert main(list(args)) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    return captured.err


BEGINS = {"md": "## Pictures", "perfetto": '{"traceEvents":[', "html": "<!DOCTYPE html>"}
BEGINS |= {"text": "●", "json": "{"}


@pytest.mark.parametrize(("format_", "begin"), BEGINS.items())
def test_report(runs, tmp_path, capsys, format_, begin):
    pytest.importorskip("jinja2" if format_ == "html" else "json")
    target = tmp_path / "out"
    for where in ([], ["-o", str(target)]):
        assert main(["report", SLOW, "--format", format_, *where]) == 0
        captured = capsys.readouterr()
        text = target.read_text(encoding="utf-8") if where else captured.out
        assert text.startswith(begin) and "\x1b" not in text
        assert captured.err == "" and (captured.out == "") is bool(where)


@pytest.mark.parametrize("args", [("report", SLOW), ("compare", SLOW, FAST)])
def test_a_page_is_not_for_a_terminal(runs, capsys, monkeypatch, args):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "html is not for a terminal: say where it goes, such as -o " in fails(
        capsys, *args, "--format", "html"
    )


def test_progress_is_for_terminals_only(runs, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["report", SLOW, "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert "reading the run" in captured.err
    assert json.loads(captured.out)["schema"] == 2
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    main(["report", SLOW, "--format", "json"])
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("options", "says"),
    [
        *(
            (
                ("--format", each, "-o", "file/below"),
                "file/below cannot be written: Not a directory",
            )
            for each in ("html", "parquet", "json")
        ),
        (("-o", "."), "cannot be written: Is a directory"),
        (("--format", "parquet"), "-o tables"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(runs, tmp_path, capsys, monkeypatch, options, says):
    pytest.importorskip("jinja2")
    pytest.importorskip("pyarrow")
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    assert says in fails(capsys, "report", SLOW, *options)


@pytest.mark.parametrize(("format_", "package"), [("html", "jinja2"), ("parquet", "pyarrow")])
def test_a_missing_extra_is_one_sentence_with_its_mend(
    runs: Path, tmp_path: Path, capsys: Capture, monkeypatch: Any, format_: str, package: str
) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    told = fails(capsys, "report", SLOW, "--format", format_, "-o", str(tmp_path / "out"))
    assert f"pip install 'loaderscope[{format_}]'" in told and package in told


def test_what_no_path_can_be_is_told_too() -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_content("x", Path("a\0b"))


@pytest.mark.parametrize(
    ("format_", "begin"),
    [("text", f"before {SLOW}"), ("json", "{"), ("md", "|"), ("html", "<!DOCTYPE")],
)
def test_compare(runs: Path, tmp_path: Path, capsys: Capture, format_: str, begin: str) -> None:
    assert main(["compare", SLOW, FAST, "--format", format_]) == 0
    out = capsys.readouterr().out
    assert out.startswith(begin) and FAST in out
    assert main(["compare", SLOW, FAST, "--format", format_, "-o", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out").read_text(encoding="utf-8").startswith(begin)


@pytest.mark.parametrize(
    ("before", "after", "factor", "code"),
    [
        *((FAST, SLOW, "0.95", 1), (FAST, SLOW, "0.3", 0), (SLOW, FAST, "0.95", 0)),
        *((FAST, FAST, "0.95", 0), (SLOW, FAST, "5", 1)),
    ],
)
def test_compare_fails_below(runs, capsys, before, after, factor, code):
    assert main(["compare", before, after, "--fail-below", factor]) == code
    assert "throughput" in capsys.readouterr().out


def test_what_cannot_be_compared_cannot_pass(runs: Path, capsys: Capture) -> None:
    assert main(["compare", FAST, SHORT, "--fail-below", "0.9"]) == 2
    assert "record longer runs" in capsys.readouterr().err
    assert main(["compare", FAST, SHORT]) == 0
