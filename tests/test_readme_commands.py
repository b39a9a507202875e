"""Every command of the README, of some pages and of `--help` runs as written."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from loaderscope.cli import cli
from loaderscope.profiler.daemon.stack_capture.py_spy import find_py_spy
from started import going_on, python, ran
from terminal import in_a_terminal

NEEDED = sys.platform == "linux" and shutil.which("bash") is not None
pytestmark = [
    pytest.mark.skipif(not NEEDED, reason="needs bash on Linux"),
    pytest.mark.timeout(400),
]

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
WITH_COMMANDS = ("assistants", "fix", "index", "probe-storage", "try", "tune")
PAGES = [ROOT / "docs" / f"{name}.md" for name in WITH_COMMANDS]
PATIENCE_S = 300
OLDER = "20250131-091500-abc123"  # as the examples call a run

TRAIN = """\
import argparse
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset


class Rows(TensorDataset):
    def __init__(self):
        super().__init__(torch.rand(2000, 8), torch.arange(2000))


class Files(Dataset):
    def __init__(self):
        self.paths = sorted(Path("data/train").iterdir())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.frombuffer(bytearray(self.paths[index].read_bytes()), dtype=torch.uint8)


def make_loader():
    return DataLoader(Rows(), batch_size=100, shuffle=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.0)
    asked, _ = parser.parse_known_args()
    loader, end = make_loader(), time.monotonic() + asked.seconds
    for epoch in range(10**9):
        if epoch >= 2 and time.monotonic() >= end:
            break
        for x, y in loader:
            pass
        for bytes_ in DataLoader(Files(), batch_size=4):
            pass
"""

# What the README and the help leave open, and what stands for it here.
OPEN = {
    " [RUN]": "",
    " [NAME]": " num-workers",
    " A B": " main.run branch.run",
    "torchrun … ": "torchrun --nproc-per-node 1 ",
    "loaderscope try ": "loaderscope try --yes --budget 2 ",
}

# By verb and options: a line of what it prints, or of the file it writes.
PRINTS = (
    (r"report .*-o (?P<file>\S+)", r"Rows|traceEvents|schema"),
    (r"report --format (html|json|perfetto|md)|\| gh ", r"Rows|traceEvents"),
    (r"stacks", r"of the time|fetch|no stacks"),
    (r"report --advice", r"predicted ×|\[\w+-[\w-]+\]"),
    (r"fix", r"made at|no patch for|there is no advice|recommends nothing|say --yes to run it"),
    (r"try", r"same.batches"),
    (r"tune", r"Tuned \w+: "),
    (r"run --quiet", r""),
    (r"(run|report)\b", r"steady\s+batches|too short"),
    (r"top", r"Overview|batches"),
    (r"probe-storage", r"LMDB|lmdb"),
    (r"compare", r"throughput|batches/s|no difference"),
    (r"size", r"loading to be no limit|\"needs\""),
    (r"rules num-workers", r"What it looks for"),
    (r"rules", r"num-workers"),
    (r"list", OLDER[:13]),
    (r"merge", r"loaderscope report"),
    (r"demo", r"What to do|faster"),
    (r"doctor", r"py-spy|torch"),
)


def _as_shell(text: str) -> str:
    """The command in a line of the README or of the help, without the words that explain it."""
    command = re.split(r"\s{2,}", text.strip())[0]
    for told, here in OPEN.items():
        command = command.replace(told, here)
    return command


def written_commands() -> Iterator[str]:
    """Of indented blocks and the table, where `verb …` is short for `loaderscope …`."""
    for page in (README, *PAGES):
        for line in page.read_text().splitlines():
            if line.startswith("    loaderscope "):
                yield _as_shell(line)
    for line in README.read_text().splitlines():
        if line.startswith("| `loaderscope "):
            row = re.findall(r"`([^`]+)`", line)
            first = _as_shell(row[0])
            yield first
            for text in row[1:]:
                if text.startswith("run "):
                    yield _as_shell(f"loaderscope {text}")
                elif text.startswith("--"):
                    yield _as_shell(f"{first} {text}")
            if "--format" in line:
                for name in filter(str.isalpha, row[1:]):
                    yield f"{first} --format {name}" + " -o tables" * (name == "parquet")


def help_commands() -> Iterator[str]:
    for command in [cli, *cli.commands.values()]:
        with click.Context(command) as context:
            for line in command.get_help(context).splitlines():
                if line.strip().startswith("loaderscope "):
                    yield _as_shell(line)


COMMANDS = list(dict.fromkeys([*written_commands(), *help_commands()]))


def test_the_commands_are_found() -> None:
    pages = {path for path in ROOT.glob("docs/*.md") if "\n    loaderscope " in path.read_text()}
    assert pages == set(PAGES)
    assert {command.split()[1] for command in COMMANDS} == set(cli.commands)
    for words in ("torchrun --nproc-per-node 2 train.py", "-m package.train"):
        assert f"loaderscope run {words}" in COMMANDS


@dataclass(frozen=True)
class Here:
    """Where a command runs, and where its runs are."""

    folder: Path
    runs: Path

    def environment(self, **more: str) -> dict[str, str]:
        """The `loaderscope` command is on the PATH, and nothing else of its environment."""
        return {
            **os.environ,
            "LOADERSCOPE_DIR": str(self.runs),
            "LOADERSCOPE_STACKS": "0",
            "TERM": "xterm-256color",
            "PATH": f"{self.folder / 'bin'}:/usr/local/bin:/usr/bin:/bin",
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            **more,
        }


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """The folder of the commands, with a run of `train.py`, as an older one and by name."""
    folder = tmp_path_factory.mktemp("readme")
    for script in (folder / "train.py", folder / "package" / "train.py"):
        script.parent.mkdir(exist_ok=True)
        script.write_text(TRAIN)
    (folder / "package" / "__init__.py").touch()
    (folder / "data" / "train").mkdir(parents=True)
    for number in range(40):
        (folder / "data" / "train" / f"{number}.bin").write_bytes(bytes([number]) * 4000)
    _changed(folder)
    (folder / "bin").mkdir()
    commands = {"loaderscope": f'exec "{sys.executable}" -m loaderscope "$@"', "gh": "cat"}
    for name, text in commands.items():
        (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / "bin" / name).chmod(0o755)
    here = Here(folder, folder / "runs")
    call = ["loaderscope", "run", "--quiet", "train.py", "--seconds", "6"]
    env = here.environment(LOADERSCOPE_STACKS="eager")
    subprocess.run(call, cwd=folder, env=env, check=True, timeout=PATIENCE_S)
    (newest,) = here.runs.iterdir()
    named = (folder / f"{name}.run" for name in ("main", "branch", "node0", "node1"))
    for copy in (here.runs / OLDER, *named):
        shutil.copytree(newest, copy)
        facts = json.loads((copy / "run.json").read_text())
        (copy / "run.json").write_text(json.dumps({**facts, "id": OLDER}))
    return here


def _changed(folder: Path) -> None:
    """What `try` compares: a commit, a patch, and two folders."""
    for name in ("old", "new"):
        shutil.copytree(folder / "data", folder / name / "data")
        (folder / name / "train.py").write_text(TRAIN)
    lines = ("--- train.py", "+++ train.py", "@@ -1,2 +1,2 @@", "-import argparse")
    lines += ("+import argparse  # new", " import time")
    (folder / "change.diff").write_text("\n".join(lines) + "\n")
    for arguments in (["init", "-q"], ["add", "train.py"], ["commit", "-qm", "first"]):
        named = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
        subprocess.run(named, cwd=folder, check=True)


@pytest.fixture
def here(prepared: Here, tmp_path: Path) -> Here:
    """The same with runs of the test's own: what one command records is not another's latest."""
    return Here(prepared.folder, Path(shutil.copytree(prepared.runs, tmp_path / "here")))


@contextmanager
def training(here: Here) -> Iterator[None]:
    """A run that goes on meanwhile."""
    call = ["loaderscope", "run", "--quiet", "train.py", "--seconds", "600"]
    with going_on(call, here.runs, cwd=here.folder, env=here.environment()):
        yield


# Commands of a verb; `make test-slow` runs the rest, and the demo: tests/test_demo.py runs that for less.
AT_MOST = {"demo": 0, "run": 1, "stacks": 1, "try": 1, "tune": 1}


def written() -> Iterator[Any]:
    seen: Counter[str] = Counter()
    for command in COMMANDS:
        verb = command.split()[1]
        seen[verb] += 1
        slow = seen[verb] > AT_MOST.get(verb, 2)
        yield pytest.param(command, marks=[pytest.mark.slow] if slow else [])


@pytest.mark.parametrize("command", list(written()))
def test_it_runs_as_written(here: Here, command: str) -> None:
    verb = command.removeprefix("loaderscope ")
    expected = next(
        e for p, e in PRINTS if re.match(p, verb) or (p[0] != "(" and re.search(p, verb))
    )
    bash, env = ["bash", "-o", "pipefail", "-c", command], here.environment()
    if verb.startswith("top") or "--live" in verb:
        code, text = in_a_terminal(bash, "Rows|Files", here.folder, env, PATIENCE_S)
        assert code == 0, text[-2000:]
        assert re.search("Rows|Files", text)
        return
    live = verb.startswith("stacks") and OLDER[:8] not in verb
    if "stacks" in verb and find_py_spy() is None:
        pytest.skip("py-spy is not installed")
    with training(here) if live else nullcontext():
        done = ran(bash, cwd=here.folder, env=env, timeout=PATIENCE_S)
    # There may be no patch for these runs; tests/integration/test_fix_command.py has one with.
    said_why = done.returncode == 2 and verb.startswith("fix")
    assert done.returncode == 0 or said_why, done.stderr
    assert "Traceback" not in done.stderr
    written = re.search(r" -o (\S+)", command)
    text = done.stdout + done.stderr
    if written and written[1] != "-":
        path = here.folder / written[1]
        if path.is_dir():
            text, expected = " ".join(map(str, path.iterdir())), r"batches|run\.json"
        else:
            text = path.read_text(errors="replace")
    assert re.search(expected, text), text[-3000:]


def test_the_readmes_python_runs(here: Here) -> None:
    _, begin, rest = README.read_text().partition("    import loaderscope\n")
    block = textwrap.dedent(begin + re.split(r"\n(?=\S)", rest)[0])
    # An epoch of 2,000 batches: of one of 20, 19 are steady, and a prediction needs 20.
    made = "from train import DataLoader, Rows\nloader = DataLoader(Rows(), batch_size=1)\n"
    (here.folder / "own.py").write_text(f"{made}{block}\n")
    done = python("own.py", cwd=here.folder, env=here.environment(), timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert '"name": "Rows"' in done.stdout
