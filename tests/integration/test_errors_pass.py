"""What the user's code and signal handlers raise arrives, and looks as it does bare."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loaderscope.profiler.native import form

HERE = Path(__file__).parent


def output_of(tmp_path: Path, *args: object, pure: str = "") -> subprocess.CompletedProcess[str]:
    env = {
        **os.environ,
        "LOADERSCOPE_DIR": str(tmp_path / "runs"),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    if pure:
        env[form.PURE_VARIABLE] = pure
    result = subprocess.run(
        [sys.executable, *map(str, args)],
        env=env,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result


def sections(tmp_path: Path, mode: str, pure: str = "") -> dict[str, list[str]]:
    text = output_of(tmp_path, HERE / "traceback_programs.py", mode, pure=pure).stdout
    parts = [part.splitlines() for part in text.split("===== ")[1:]]
    return {lines[0]: lines[1:] for lines in parts}


def without_ours(lines: list[str]) -> tuple[list[str], int]:
    """The lines less the entries of ours in a traceback, and how many those were."""
    kept, ours, skipping = [], 0, False
    for line in lines:
        if line.startswith("  File "):
            skipping = "/loaderscope/profiler/" in line
            ours += skipping
        elif not line.startswith("    "):
            skipping = False
        if not skipping:
            kept.append(line)
    return kept, ours


@pytest.mark.timeout(600)
def test_tracebacks_and_stacks_are_those_of_a_bare_loop(tmp_path: Path) -> None:
    bare, watched = sections(tmp_path, "bare"), sections(tmp_path, "watched")
    assert len(bare) == 18 and all(
        any("ValueError" in line for line in lines) for lines in bare.values()
    )
    if form.native is not None:
        assert watched == bare
        return
    for name, lines in bare.items():
        if name.startswith(("stack", "quoting")):
            continue  # there the Python form is seen, or quoted
        kept, ours = without_ours(watched[name])
        assert kept == lines, name
        assert ours <= 1, name  # the frame that is still running cannot be taken out


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("workers", "count", "seed"), [(0, 30, 11), (2, 12, 12)])
def test_what_a_signal_s_handler_raises_ends_the_loop_and_not_the_recording(
    tmp_path: Path, workers: int, count: int, seed: int
) -> None:
    result = output_of(tmp_path, HERE / "signal_moments.py", workers, seed, count)
    # What a handler raises in Python's own callbacks around a fork is dropped and told there, bare
    # too.
    assert "/loaderscope/profiler/" not in result.stderr and "loaderscope:" not in result.stderr, (
        result.stderr
    )
    seen = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(seen) == count
    expected = {
        "plain": "Preempted",
        "object": "Preempted",
        "timeout": "TimeoutError",
        "leaving": "SystemExit",
    }
    dropped = result.stderr.count("Exception ignored in")
    for moment in seen:
        if moment["ended"] == "never" and dropped:
            dropped -= 1
            continue
        assert moment["ended"] == expected[moment["handler"]], moment
        assert moment["next"] == [3] * 20, moment
        assert moment["recorded"] == 20, moment
        assert moment["collecting"], moment
