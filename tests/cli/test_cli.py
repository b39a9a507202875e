"""The command line: what it prints, what it returns, and that it never shows a traceback."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from builders import RUN_ID, RunBuilder
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.rules import all_rules
from loaderscope.advisors.schema.report_model import Report
from loaderscope.cli import cli
from loaderscope.profiler.doctor import checks
from loaderscope.profiler.store.run.run_reader import open_run
from started import LOADERSCOPE, Ended, here, ran

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


def command(*args: object, cwd: Path | None = None, **env: str) -> Ended:
    return ran([*LOADERSCOPE, *args], env=here(**env), cwd=cwd)


@pytest.mark.parametrize("name", ["latest", RUN_ID, RUN_ID[:10]])
def test_report_shows_the_run_by_any_of_its_names(run, name, shows):
    out = shows("report", name)
    assert "input-bound" in out.splitlines()[0] and RUN_ID in out


def test_report_in_ten_seconds_in_full_and_one_piece_of_advice(run, shows, fails):
    brief = shows("report")
    assert "What recording cost" in shows("report", "--full")
    report = Report.from_json(shows("report", str(run.path), "--format", "json"))
    assert report.loaders[0].batches == 60
    assert len(brief.splitlines()) <= 40 and "What recording cost" not in brief
    assert "there is no advice 9" in fails("report", "--advice", "9")
    said = fails("report", "--full", "--format", "json")
    assert "--full and --advice are for text: json has all of it" in said


def test_colours_and_width_follow_the_environment(run, shows, monkeypatch):
    assert "\x1b" not in shows("report")  # not a terminal
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in shows("report")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    out = shows("report")
    assert "\x1b" not in out
    # Code to paste is never wrapped: it is left out here.
    prose = out.partition("What to do")[0] + out.partition("Where each batch's time goes")[2]
    assert max(map(len, prose.splitlines())) <= 60


def test_any_output_encoding_will_do(run: RunBuilder) -> None:
    named = '{"format": 1, "name": "Bilder \\u00e4\\u4e2d"}'
    (run.path / "p4000-0" / "loader0.json").write_text(named)
    done = command("report", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "input-bound" in done.stdout


def test_a_reader_that_has_seen_enough(run: RunBuilder) -> None:
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*LOADERSCOPE, "report"], env=here(), **pipes) as process:
        process.stdout.close()  # as head and less do
        assert process.stderr.read() == ""
    assert process.returncode == 0


@pytest.mark.parametrize("written", [b'{"format": 7}', b"\xff\xfe{", None])
def test_unreadable_directories_exit_with_2(run, fails, written):
    (run.path / "run.json").unlink()
    if written is not None:
        (run.path / "run.json").write_bytes(written)
    fails("report")


WRONG = {
    "report": ("--format xml", "latest extra", "-o /nonexistent/dir/x"),
    "compare": ("", "latest nope"),
    "compare latest latest": ("--fail-below 0", "--format parquet"),
    "run": ("", "--no-such-option", "/nonexistent/script.py"),
    "": ("list -n 0", "rules num-workers extra", "frobnicate", "--frobnicate"),
}


@pytest.mark.parametrize("verb", WRONG)
def test_wrong_arguments_exit_with_2_and_one_sentence(run, fails, verb):
    for arguments in WRONG[verb]:
        fails(*verb.split(), *arguments.split())


def test_the_code_of_a_verb_is_that_of_the_process() -> None:
    done = command("frobnicate")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1


def test_list(run, runs_dir, shows, monkeypatch):
    RunBuilder(runs_dir, "20250201-000000-ffffff", argv=["evil\x1b[2J.py"])
    (runs_dir / "20250101-000000-000000").mkdir()
    monkeypatch.setenv("COLUMNS", "100")
    *lines, where = shows("list").splitlines()
    assert where == f"in {runs_dir}"
    ids = ["20250201-000000-ffffff", RUN_ID, "20250101-000000-000000"]
    assert [line.split()[0] for line in lines[1:]] == ids
    assert "train.py --lr 0.1" in lines[2]
    assert "unreadable" in lines[3]
    assert all(line.isprintable() and len(line) <= 100 for line in lines)


def test_where_nothing_was_recorded(shows, fails) -> None:
    assert "Start here" in shows() and "loaderscope run" in shows("list")
    for verb in ("report", "top"):
        assert "nothing has been recorded" in fails(verb)


def test_help_lists_verbs_in_the_order_of_need_and_each_has_an_example(shows) -> None:
    verbs = shows("--help")
    at = [verbs.index(f"\n  {verb} ") for verb in ("top", "report", "stacks", "compare")]
    assert at == sorted(at)
    for verb in cli.commands:
        result = CliRunner().invoke(cli, [verb, "--help"])
        assert result.exit_code == 0 and "Example" in result.output
        assert f"loaderscope {verb}" in result.output
        assert max(map(len, result.output.splitlines())) <= 80


def test_doctor_names_every_check(shows) -> None:
    out = " ".join(shows("doctor").split())
    for check in checks():
        assert f"{check.name}:" in out


def test_rules_are_listed_with_their_summaries_and_printed_as_documented(shows, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    lines = shows("rules").splitlines()
    assert max(map(len, lines)) <= 120
    shown = " ".join(" ".join(lines).split())
    for rule in all_rules():
        assert f"{rule.name} {rule.kind} {rule.summary}" in shown
        out = shows("rules", rule.name)
        assert out.startswith(f"{rule.name} ({rule.kind})\n") and rule.doc in out


def test_an_unknown_rule_names_the_nearest(fails) -> None:
    near = {"numworkers": "num-workers", "getitems": "batched-getitems"}
    for name, said in {**near, "xyzzy": "`loaderscope rules` lists them"}.items():
        assert said in fails("rules", name)


@pytest.fixture
def scripts(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "plain.py").write_text("print('hello')")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code", "printed", "said"),
    [
        ("train.py --quiet -m --runs x -- 3", 3, "--quiet -m --runs x -- 3", "50 batches"),
        ("-q --runs other -m train -q 0", 0, "-q 0", ""),
        ("plain.py", 0, None, "nothing was recorded"),
    ],
)
def test_run_leaves_a_script_alone(arguments, code, printed, said, scripts, runs_dir):
    done = command("run", *arguments.split(), cwd=scripts)
    assert done.returncode == code
    assert done.stdout == (f"args {printed.split()}\n" if printed else "hello\n")
    assert said in done.stderr if said else done.stderr == ""
    found = [*runs_dir.glob("*"), *(scripts / "other").glob("*")]
    assert len(found) == (1 if printed else 0)
    for path in found:
        report = build_report(open_run(path), advice=False)
        assert (report.run.state, report.loaders[0].batches) == ("finished", 50)
