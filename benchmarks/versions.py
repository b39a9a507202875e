"""Whether one release of torch, one Python, or other versions of dependencies are handled.

    make test-torch VERSION=2.15.0      make test-python VERSION=3.14
    make test-lowest                    make test-newest

Each in an environment of its own (a wheel of torch may take 5 GB and some minutes). torch: every
stage measured, the harmless cases, spawned processes; a release that passes belongs in
`torch_parts.TRIED`. Python: those, and the fast tests. Dependencies: the fast tests with the lowest
versions that pyproject.toml allows, or the newest. What came of it is stored.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# Tests of which each torch, and each Python, must pass all.
TESTS = (
    "tests/integration/test_every_stage.py",
    "tests/profiler/record/transit/test_worker_loops.py",
    "tests/profiler/base/test_unknown_torch.py",
    "tests/integration/test_spawned.py",
    "tests/harmless/test_promises.py",
)
PROGRAMS = "tests/harmless"
FAST = ("--fast", "-m", "not quiet and not slow")
TOOLS = ("pytest>=8", "pytest-timeout>=2.3", "hypothesis>=6.100", "jsonschema>=4")
ALSO = ("torchdata", "prometheus-client")  # that the fast tests use
PANDAS = {"lowest": "pandas<3"}  # the next asks for a newer NumPy
EXTRAS = ("demo", "html", "parquet", "storage", "tensorboard")
PINNED = ("-c", str(ROOT / "constraints.txt"))

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


def environment(kind: str, version: str, interpreter: str) -> Path:
    """The Python of our own environment for this, made if need be."""
    folder = ROOT / f".venv-{'-'.join(filter(None, (kind, version)))}"
    python, ready = folder / "bin" / "python", folder / "ready"
    if ready.exists():
        return python
    print(f"Setting up {folder.name} (once; torch is large)", flush=True)
    subprocess.run([interpreter, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if kind == "torch":
        subprocess.run([*pip, f"torch=={version}", *TOOLS, "-e", str(ROOT)], check=True)
        # Not every torch has a torchdata; without it, only its loader is left out.
        subprocess.run([*pip, f"torch=={version}", "torchdata>=0.8"], check=False)
    elif kind == "python":
        subprocess.run([*pip, *PINNED, "-e", f"{ROOT}[dev]"], check=True)
    else:
        # torch first, and as pinned: uv leaves what is installed and allowed, and the lowest torch
        # is tried by `torch`.
        subprocess.run([*pip, *PINNED, "torch", *TOOLS, "uv>=0.5"], check=True)
        way = "lowest-direct" if kind == "lowest" else "highest"
        uv = [str(folder / "bin/uv"), "pip", "install", "--quiet", "--python", str(python)]
        extras = [word for name in EXTRAS for word in ("--extra", name)]
        asked = ["--resolution", way, "-r", str(ROOT / "pyproject.toml"), *extras]
        subprocess.run([*uv, *asked], check=True)
        # After that, or uv would leave the NumPy that these ask for.
        subprocess.run([*pip, *PINNED, *ALSO, PANDAS.get(kind, "pandas")], check=True)
        subprocess.run([*pip, "--no-deps", "-e", str(ROOT)], check=True)
    ready.touch()
    return python


def run_tests(python: Path, names: list[str], patience_s: float) -> tuple[int, ElementTree.Element]:
    """(pytest's exit code, what it wrote of each test)."""
    with tempfile.TemporaryDirectory() as folder:
        # The repository's root is the package, whatever its folder is called.
        (Path(folder) / "loaderscope").symlink_to(ROOT)
        written = Path(folder) / "results.xml"
        command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-o", "junit_family=xunit1", f"--junitxml={written}", *names]
        environ = {**os.environ, "PYTHONPATH": folder}
        done = subprocess.run(command, cwd=ROOT, env=environ, timeout=patience_s, check=False)
        return done.returncode, ElementTree.parse(written).getroot()


def outcomes(results: list[ElementTree.Element]) -> dict[str, Any]:
    """Numbers of tests, those that did not pass with the reason, and the stages that were
    measured."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failed: dict[str, str] = {}
    skipped: dict[str, int] = {}
    stages: dict[str, list[str]] = {}
    for case in (each for every in results for each in every.iter("testcase")):
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


def facts(python: Path, kind: str) -> dict[str, Any]:
    """What is installed there."""
    ask = [str(python), "-c", VERSIONS]
    found = json.loads(subprocess.run(ask, capture_output=True, text=True, check=True).stdout)
    if kind in ("lowest", "newest"):
        listing = [str(python), "-m", "pip", "list", "--format", "json", "--exclude-editable"]
        told = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
        found["packages"] = {each["name"]: each["version"] for each in json.loads(told)}
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    return {"date": time.strftime("%Y-%m-%d"), "commit": commit.stdout.strip(), **found}


def interpreter(options: argparse.Namespace) -> str:
    if options.kind != "python":
        return sys.executable
    name = options.interpreter or f"python{options.version}"
    found = shutil.which(name)
    if found is None:
        sys.exit(f"there is no {name} on the PATH: name one with --interpreter")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("torch", "python", "lowest", "newest"))
    parser.add_argument("version", nargs="?", default="", help="of torch or Python")
    parser.add_argument("--env", help="an environment that is there, in place of one of our own")
    parser.add_argument("--interpreter", help="the Python to make the environment with")
    parser.add_argument("--store", type=Path, help="the folder to write the result to")
    parser.add_argument("--note", help="what else to say of it in the result")
    parser.add_argument(
        "--programs", action="store_true", help=f"{PROGRAMS} too: some minutes more"
    )
    parser.add_argument("--patience", type=float, default=3600, help="seconds for the tests")
    options = parser.parse_args()
    if gone := [name for name in (*TESTS, PROGRAMS) if not (ROOT / name).exists()]:
        parser.error(f"there is no {', '.join(gone)}: change TESTS")
    if options.kind in ("torch", "python") and not options.version:
        parser.error(f"which {options.kind}? make test-{options.kind} VERSION=…")
    if options.env:
        python = Path(options.env).absolute() / "bin" / "python"
    else:
        python = environment(options.kind, options.version, interpreter(options))
    result = facts(python, options.kind)
    if options.version and not str(result[options.kind]).startswith(options.version):
        parser.error(f"{python} has {options.kind} {result[options.kind]}, not {options.version}")

    runs = [] if options.kind == "torch" else [list(FAST)]
    if options.kind in ("torch", "python"):
        runs.append([*TESTS, *([PROGRAMS] if options.programs else [])])
    done = [run_tests(python, names, options.patience) for names in runs]
    result |= outcomes([results for _, results in done])
    if options.note:
        result["note"] = options.note
    text = json.dumps(result, indent=2, sort_keys=False) + "\n"
    print(text, end="")
    if options.store:
        options.store.mkdir(parents=True, exist_ok=True)
        what = str(result.get(options.kind, "")).partition("+")[0] if options.version else ""
        name = "-".join(filter(None, (options.kind, what)))
        (options.store / f"{name}.json").write_text(text)
    return max(code for code, _ in done)


if __name__ == "__main__":
    sys.exit(main())
