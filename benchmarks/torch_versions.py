"""Whether one release of torch is handled: `make test-torch VERSION=2.15.0`.

In an environment of its own, with that torch (a wheel may take 5 GB and some minutes): every stage
measured, the harmless cases, spawned processes. What came of it is stored; a release that passes
belongs in `torch_parts.TRIED`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# Tests of which each torch must pass all.
TESTS = (
    "tests/integration/test_every_stage.py",
    "tests/profiler/record/transit/test_worker_loops.py",
    "tests/profiler/base/test_unknown_torch.py",
    "tests/integration/test_spawned.py",
    "tests/integration/test_harmless.py",
)
PROGRAMS = "tests/harmless"
TOOLS = ("pytest>=8", "pytest-timeout>=2.3", "hypothesis>=6.100")

VERSIONS = """
import importlib.metadata, json, platform
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
import torch
print(json.dumps({
    "torch": torch.__version__, "torchdata": version("torchdata"), "numpy": version("numpy"),
    "python": platform.python_version(), "platform": platform.platform(),
}))
"""


def environment(version: str, given: str | None) -> Path:
    """The Python of an environment with that torch: a given one as it is, else our own, made if
    need be."""
    if given:
        return Path(given).absolute() / "bin" / "python"
    folder = ROOT / f".venv-torch-{version}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if not ready.exists():
        print(f"Setting up {folder.name} (once; torch is large)", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"torch=={version}", *TOOLS, "-e", str(ROOT)], check=True)
        # Not every torch has a torchdata; without it, only its loader is left out.
        subprocess.run([*install, f"torch=={version}", "torchdata>=0.8"], check=False)
        ready.touch()
    return python


def run_tests(python: Path, names: list[str], patience_s: float) -> tuple[int, ElementTree.Element]:
    """(pytest's exit code, what it wrote of each test)."""
    with tempfile.TemporaryDirectory() as folder:
        # The repository's root is the package, whatever its folder is called.
        (Path(folder) / "loaderscope").symlink_to(ROOT)
        written = Path(folder) / "results.xml"
        command = [
            str(python),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-o",
            "junit_family=xunit1",
        ]
        command += [f"--junitxml={written}", *names]
        environ = {**os.environ, "PYTHONPATH": folder}
        done = subprocess.run(command, cwd=ROOT, env=environ, timeout=patience_s, check=False)
        return done.returncode, ElementTree.parse(written).getroot()


def outcomes(results: ElementTree.Element) -> dict[str, Any]:
    """Numbers of tests, those that did not pass with the reason, and the stages that were
    measured."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failed: dict[str, str] = {}
    skipped: dict[str, int] = {}
    stages: dict[str, list[str]] = {}
    for case in results.iter("testcase"):
        how, why = _how(case)
        counts[how] += 1
        if how == "failed":
            failed[f"{case.get('classname')}::{case.get('name')}"] = why
        elif how == "skipped":
            skipped[why] = skipped.get(why, 0) + 1
        stages.update(dict(_stages(case)))
    return {**counts, "failures": failed, "skips": skipped, "stages": stages}


def _how(case: ElementTree.Element) -> tuple[str, str]:
    for child in case:
        if child.tag in ("failure", "error"):
            return "failed", (child.get("message") or "")[:400]
        if child.tag == "skipped":
            return "skipped", (child.get("message") or "")[:200]
    return "passed", ""


def _stages(case: ElementTree.Element) -> Iterator[tuple[str, list[str]]]:
    for each in case.iter("property"):
        if each.get("name") == "stages":
            yield (
                (case.get("name") or "").partition("[")[2].rstrip("]"),
                (each.get("value") or "").split(","),
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version", help="of torch, as pip knows it")
    parser.add_argument("--env", help="an environment that is there, in place of one of our own")
    parser.add_argument("--store", type=Path, help="the folder to write the result to")
    parser.add_argument("--note", help="what else to say of it in the result")
    parser.add_argument(
        "--programs", action="store_true", help=f"{PROGRAMS} too: some minutes more"
    )
    parser.add_argument("--patience", type=float, default=3600, help="seconds for the tests")
    options = parser.parse_args()
    python = environment(options.version, options.env)
    found = json.loads(
        subprocess.run(
            [str(python), "-c", VERSIONS], capture_output=True, text=True, check=True
        ).stdout
    )
    if not str(found["torch"]).startswith(options.version):
        parser.error(f"{python} has torch {found['torch']}, not {options.version}")
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    tests = [*TESTS, *([PROGRAMS] if options.programs else [])]
    code, results = run_tests(python, tests, options.patience)
    result = {
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip(),
        **found,
        **outcomes(results),
    }
    if options.note:
        result["note"] = options.note
    text = json.dumps(result, indent=2, sort_keys=False) + "\n"
    print(text, end="")
    if options.store:
        options.store.mkdir(parents=True, exist_ok=True)
        (options.store / f"torch-{found['torch'].partition('+')[0]}.json").write_text(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
