"""The formats on the command line: into files, into pipes, and each failure in one sentence."""

import json
import sys
from pathlib import Path

import pytest

from builders import loop
from loaderscope.cli import main
from report_samples import recorded

SLOW, FAST, SHORT = "20250201-000000-aaaaaa", "20250202-000000-bbbbbb", "20250203-000000-cccccc"


@pytest.fixture(autouse=True)
def recordings(runs_dir: Path) -> None:
    for name, batches, wait_ms in ((SLOW, 60, 20.0), (FAST, 60, 1.0), (SHORT, 5, 1.0)):
        recorded(runs_dir, loop(batches, wait_ms=wait_ms, fetch_ns=4_000_000), name)


REPORT, COMPARE = f"report {SLOW}", f"compare {SLOW} {FAST}"
BEGINS = [
    (REPORT, "text", "●"),
    (REPORT, "json", "{"),
    (REPORT, "md", "## Pictures"),
    (REPORT, "perfetto", '{"traceEvents":['),
    (REPORT, "html", "<!DOCTYPE html>"),
    (COMPARE, "text", f"before {SLOW}"),
    (COMPARE, "json", "{"),
    (COMPARE, "md", "|"),
    (COMPARE, "html", "<!DOCTYPE html>"),
]


@pytest.mark.parametrize(("verb", "format_", "begin"), BEGINS)
def test_each_format_into_a_pipe_and_into_a_file(tmp_path, capsys, verb, format_, begin):
    pytest.importorskip("jinja2" if format_ == "html" else "json")
    target = tmp_path / "out"
    for where in ([], ["-o", str(target)]):
        assert main([*verb.split(), "--format", format_, *where]) == 0
        captured = capsys.readouterr()
        text = target.read_text(encoding="utf-8") if where else captured.out
        assert text.startswith(begin) and "\x1b" not in text
        assert all(name in text for name in verb.split()[2:])
        assert captured.err == "" and (captured.out == "") is bool(where)


@pytest.mark.parametrize("verb", [REPORT, COMPARE])
def test_a_page_is_not_for_a_terminal(fails, monkeypatch, verb):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    told = fails(*verb.split(), "--format", "html")
    assert "html is not for a terminal: say where it goes, such as -o " in told


def test_progress_is_for_terminals(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["report", SLOW, "--format", "json"]) == 0
    captured = capsys.readouterr()
    assert "reading the run" in captured.err
    assert json.loads(captured.out)["schema"] == 2


BELOW = "file/below cannot be written: Not a directory"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        *((f"--format {each} -o file/below", BELOW) for each in ("html", "parquet", "json")),
        ("-o .", "cannot be written: Is a directory"),
        ("--format parquet", "-o tables"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(tmp_path, fails, monkeypatch, options, says):
    pytest.importorskip("jinja2")
    pytest.importorskip("pyarrow")
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    assert says in fails("report", SLOW, *options.split())


@pytest.mark.parametrize(("format_", "package"), [("html", "jinja2"), ("parquet", "pyarrow")])
def test_a_missing_extra_is_one_sentence(tmp_path, fails, monkeypatch, format_, package):
    for name in [each for each in sys.modules if each.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    told = fails("report", SLOW, "--format", format_, "-o", str(tmp_path / "out"))
    assert f"pip install 'loaderscope[{format_}]'" in told and package in told


@pytest.mark.parametrize(
    ("runs", "factor", "code"),
    [((FAST, SLOW), "0.95", 1), ((FAST, SLOW), "0.3", 0), ((FAST, FAST), "0.95", 0)],
)
def test_compare_fails_below(capsys, runs, factor, code):
    assert main(["compare", *runs, "--fail-below", factor]) == code
    assert "throughput" in capsys.readouterr().out


def test_what_cannot_be_compared_cannot_pass(capsys) -> None:
    assert main(["compare", FAST, SHORT, "--fail-below", "0.9"]) == 2
    assert "record longer runs" in capsys.readouterr().err
    assert main(["compare", FAST, SHORT]) == 0
