"""The command line: what it prints, what it returns, and that it never shows a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from builders import RUN_ID, RunBuilder, epoch_row, loop
from loaderscope.advisors.schema.report_model import Report
from loaderscope.cli import cli, main

Capture = pytest.CaptureFixture[str]

SCRIPT = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    print("args", sys.argv[1:])
    for _ in DataLoader(TensorDataset(torch.zeros(200)), batch_size=4):
        pass
    sys.exit(int(sys.argv[-1]))
"""


@pytest.fixture
def run(runs_dir: Path) -> RunBuilder:
    run = RunBuilder(runs_dir)
    rows = loop(60, wait_ms=5, fetch_ns=4_000_000)
    run.process().loader(rows, epochs=[epoch_row(rows)])
    return run


def command(*args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **env}
    call = [sys.executable, "-m", "loaderscope", *args]
    return subprocess.run(
        call, env=env, cwd=cwd, capture_output=True, text=True, timeout=250, check=False
    )


# report


@pytest.mark.parametrize("name", ["latest", RUN_ID, RUN_ID[:10]])
def test_report_shows_the_run_by_any_of_its_names(
    run: RunBuilder, name: str, capsys: Capture
) -> None:
    assert main(["report", name]) == 0
    out = capsys.readouterr().out
    assert "input-bound" in out.splitlines()[0]
    assert RUN_ID in out


def test_report_in_ten_seconds_in_full_and_one_piece_of_advice(
    run: RunBuilder, capsys: Capture
) -> None:
    assert main(["report"]) == 0
    brief = capsys.readouterr().out
    assert main(["report", "--full"]) == 0
    assert "What recording cost" in capsys.readouterr().out
    assert len(brief.splitlines()) <= 40 and "What recording cost" not in brief
    assert main(["report", "--advice", "9"]) == 2
    assert "there is no advice 9" in capsys.readouterr().err
    assert main(["report", "--full", "--format", "json"]) == 2
    assert "--full and --advice are for text: json has all of it" in capsys.readouterr().err


def test_report_as_json_is_a_report(run: RunBuilder, capsys: Capture) -> None:
    assert main(["report", str(run.path), "--format", "json"]) == 0
    report = Report.from_json(capsys.readouterr().out)
    assert report.loaders[0].batches == 60


def test_colours_and_width_follow_the_environment(
    run: RunBuilder, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["report"])
    assert "\x1b" not in capsys.readouterr().out  # not a terminal
    monkeypatch.setenv("FORCE_COLOR", "1")
    main(["report"])
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    main(["report"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    # Code to paste is never wrapped: it is left out here.
    prose = out.partition("What to do")[0] + out.partition("Where each batch's time goes")[2]
    assert max(map(len, prose.splitlines())) <= 60


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_output_encoding_will_do(run: RunBuilder, encoding: str) -> None:
    (run.path / "p4000-0" / "loader0.json").write_text(
        '{"format": 1, "name": "Bilder \\u00e4\\u4e2d"}'
    )
    done = command("report", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "input-bound" in done.stdout


@pytest.mark.parametrize("verb", ["report", "list"])
def test_a_reader_that_has_seen_enough(run: RunBuilder, verb: str) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "loaderscope", verb]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()  # as head and less do
        assert process.stderr.read() == ""
    assert process.returncode == 0


# errors


@pytest.mark.parametrize("written", [b'{"format": 7}', b"\xff\xfe{", None])
def test_unreadable_directories_exit_with_2(
    run: RunBuilder, capsys: Capture, written: bytes | None
) -> None:
    path = run.path / "run.json"
    if written is None:
        path.unlink()
    else:
        path.write_bytes(written)
    assert main(["report"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("loaderscope: ")
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [
        ["report", "nope"],
        ["report", "/nonexistent/run"],
        ["report", "--format", "xml"],
        ["report", "latest", "extra"],
        ["report", "-o", "/nonexistent/dir/x"],
        ["list", "-n", "0"],
        ["rules", "nope"],
        ["rules", "num-workers", "extra"],
        ["run"],
        ["run", "--no-such-option"],
        ["run", "/nonexistent/script.py"],
        ["frobnicate"],
        ["--frobnicate"],
    ],
)
def test_wrong_arguments_exit_with_2_and_one_sentence(run: RunBuilder, args: list[str]) -> None:
    done = command(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("loaderscope: ")
    assert len(done.stderr.strip().splitlines()) == 1


# list, help, doctor


def test_list(
    run: RunBuilder, runs_dir: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    RunBuilder(runs_dir, "20250201-000000-ffffff", argv=["evil\x1b[2J.py"])
    (runs_dir / "20250101-000000-000000").mkdir()
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["list"]) == 0
    *lines, where = capsys.readouterr().out.splitlines()
    assert where == f"in {runs_dir}"
    assert [line.split()[0] for line in lines[1:]] == [
        "20250201-000000-ffffff",
        RUN_ID,
        "20250101-000000-000000",
    ]
    assert "train.py --lr 0.1" in lines[2]
    assert "unreadable" in lines[3]
    assert all(line.isprintable() and len(line) <= 100 for line in lines)


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        ([], 0, "Start here"),
        (["list"], 0, "loaderscope run"),
        (["report"], 2, "nothing has been recorded yet"),
        (["top"], 2, "nothing has been recorded"),
    ],
)
def test_where_nothing_was_recorded(capsys: Capture, args: list[str], code: int, said: str) -> None:
    assert main(args) == code
    captured = capsys.readouterr()
    assert said in (captured.err if code else captured.out)


@pytest.mark.parametrize(
    "verb", ["run", "report", "size", "try", "list", "rules", "demo", "doctor"]
)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    result = CliRunner().invoke(cli, [verb, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"loaderscope {verb}" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_doctor_names_every_check(capsys: Capture) -> None:
    from loaderscope.profiler.doctor import checks

    assert main(["doctor"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for check in checks():
        assert f"{check.name}:" in out


# rules


def test_rules_lists_every_rule_with_its_summary(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from loaderscope.advisors.rules import all_rules

    monkeypatch.setenv("COLUMNS", "120")
    assert main(["rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    shown = " ".join(" ".join(lines).split())
    for rule in all_rules():
        assert f"{rule.name} {rule.kind} {rule.summary}" in shown


def test_one_rule_is_printed_as_documented(capsys: Capture) -> None:
    from loaderscope.advisors.rules import rule

    assert main(["rules", "num-workers"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("num-workers (speed)\n")
    assert rule("num-workers").doc in out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("numworkers", "num-workers"),
        ("getitems", "batched-getitems"),
        ("xyzzy", "`loaderscope rules` lists them"),
    ],
)
def test_an_unknown_rule_names_the_nearest(capsys: Capture, name: str, said: str) -> None:
    assert main(["rules", name]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1


# run


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize("code", [0, 3])
def test_run_leaves_the_scripts_output_and_exit_code_alone(
    script: Path, runs_dir: Path, code: int
) -> None:
    done = command("run", str(script), "--quiet", "-m", "--runs", "x", "--", str(code))
    assert done.returncode == code
    assert done.stdout == f"args ['--quiet', '-m', '--runs', 'x', '--', '{code}']\n"
    assert "50 batches" in done.stderr
    assert len(list(runs_dir.iterdir())) == 1


def test_run_quietly_into_another_folder(script: Path, tmp_path: Path) -> None:
    done = command("run", "-q", "--runs", str(tmp_path / "other"), str(script), "0")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((tmp_path / "other").iterdir())) == 1


def test_run_a_module(script: Path) -> None:
    done = command("run", "-m", "train", "-q", "0", cwd=script.parent)
    assert done.returncode == 0
    assert done.stdout == "args ['-q', '0']\n"
    assert "50 batches" in done.stderr


def test_run_a_script_without_a_loader(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text("print('hello')")
    done = command("run", str(path))
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert "nothing was recorded" in done.stderr


def test_report_of_a_recorded_run(script: Path) -> None:
    command("run", "-q", str(script), "0")
    report = json.loads(command("report", "--format", "json").stdout)
    assert report["loaders"][0]["batches"] == 50
    assert report["run"]["state"] == "finished"
    assert Path(report["run"]["argv"][0]).name == "train.py"
