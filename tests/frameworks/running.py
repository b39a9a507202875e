"""Programs of frameworks, run as their users run them: bare, and under `loaderscope run`."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from started import ran

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = 240


def installed(package: str) -> bool:
    outermost = importlib.util.find_spec(package.partition(".")[0])
    return outermost is not None and importlib.util.find_spec(package) is not None


def needs(*packages: str) -> None:
    """Skips where a framework is not installed."""
    for package in packages:
        if not installed(package):
            pytest.skip(f"{package} is not installed")


def result(output: str) -> list[str]:
    return re.findall(r"RESULT (\S+)", output)


def bare(*command: str) -> list[str]:
    return result(_run([*command]).stdout)


def output_of(*arguments: str) -> str:
    done = _run([sys.executable, *arguments])
    return done.stdout + done.stderr


def recorded(runs: Path, *command: str, **environ: str) -> tuple[Run, Report, list[str]]:
    """The run, its report, and the program's result."""
    done = _run(
        [sys.executable, "-m", "loaderscope", "run", "-q", "--runs", str(runs), *command], **environ
    )
    run = open_run("latest", runs)
    return run, build_report(run), result(done.stdout)


def runs_in(folder: Path) -> list[Path]:
    """The runs in a folder of runs, each once."""
    return [path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()]


def program(name: str, *arguments: str) -> list[str]:
    """Its path and arguments; FOLDER is an empty folder, FILE a file that is not there."""
    folder = tempfile.mkdtemp()
    meaning = {"FOLDER": folder, "FILE": os.path.join(folder, "meeting")}
    return [str(PROGRAMS / name), *(meaning.get(each, each) for each in arguments)]


def slurm_task(rank: int, local_rank: int, node: int, a_node: str) -> dict[str, str]:
    """What srun tells one of two tasks. `a_node`: how many are on each node."""
    job = {"JOB_ID": "77", "STEP_ID": "0", "STEP_NUM_TASKS": "2", "STEP_TASKS_PER_NODE": a_node}
    own = {"PROCID": rank, "LOCALID": local_rank, "NODEID": node}
    return {f"SLURM_{name}": str(value) for name, value in {**job, **own}.items()}


def _run(command: list[str], **environ: str) -> subprocess.CompletedProcess[str]:
    scripts = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    env = {**os.environ, "PATH": scripts, "CUDA_VISIBLE_DEVICES": "", **environ}
    done = ran(command, env=env, timeout=SECONDS)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done
