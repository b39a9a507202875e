"""Harmless: with Loaderscope a program sees what it sees without."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import cases

HERE = Path(__file__).parent
MODES = ("bare", "watched", "all", "still", "tuned")
# Data sets and samplers that draw or warn in the process they are in, which other settings change:
# see docs/tune.md.
BY_SETTINGS = {"nested_loader": "random", "warns": "warnings"}


def observed(mode: str, runs: Path) -> dict[str, Any]:
    """What every case shows in one process of its own, which must end cleanly and say nothing."""
    result = subprocess.run(
        [sys.executable, "-W", "default", str(HERE / "cases.py"), mode],
        env={**os.environ, "LOADERSCOPE_DIR": str(runs), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "loaderscope:" not in result.stderr, result.stderr
    assert "Exception ignored" not in result.stderr, result.stderr
    found = {}
    for line in result.stdout.splitlines():
        assert line.startswith('{"case"'), f"unexpected output: {line[:300]!r}"
        seen = json.loads(line)
        found[seen["case"]] = seen
    return found


@pytest.fixture(scope="module")
def seen(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Any]]:
    # "bare" and those of the tests that were selected.
    calls = [
        getattr(item, "callspec", None)
        for item in request.session.items
        if item.path == request.path
    ]
    asked = {
        "bare",
        *(call.params["mode"] for call in calls if call is not None and "mode" in call.params),
    }
    asked |= (
        {"still", "tuned"}
        if any("settings_change" in item.name for item in request.session.items)
        else set()
    )
    modes = [mode for mode in MODES if mode in asked]
    # Side by side: most of the time goes by in torch's own time-outs, and nothing here depends on
    # speed.
    folders = [tmp_path_factory.mktemp(mode) for mode in modes]
    with ThreadPoolExecutor() as pool:
        return dict(zip(modes, pool.map(observed, modes, folders), strict=True))


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "mode", ["watched", pytest.param("all", marks=pytest.mark.slow)]
)  # tests/harmless has both
@pytest.mark.parametrize("case", list(cases.CASES))
def test_the_same_with_and_without(seen: dict[str, dict[str, Any]], case: str, mode: str) -> None:
    bare, watched = seen["bare"][case], seen[mode][case]
    assert watched["result"] == bare["result"]
    assert watched["error"] == bare["error"]
    assert watched["warnings"] == bare["warnings"]
    assert watched["random"] == bare["random"]
    for what, count in watched["remains"].items():
        assert count <= bare["remains"][what], f"{what} left behind"


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", list(cases.CASES))
def test_the_same_while_settings_change(seen: dict[str, dict[str, Any]], case: str) -> None:
    still, tuned = seen["still"][case], seen["tuned"][case]
    for what in ("result", "error", "warnings", "random"):
        if BY_SETTINGS.get(case) != what:
            assert _of_any_worker(tuned[what]) == _of_any_worker(still[what])
    for what, count in tuned["remains"].items():
        assert count <= still["remains"][what], f"{what} left behind"


def _of_any_worker(shown: Any) -> str:
    """Which worker met an error depends on how many there are."""
    return re.sub(r"worker process \d+", "worker process", json.dumps(shown))


def test_the_cases_show_something(seen: dict[str, dict[str, Any]]) -> None:
    """The comparison above is worth something: batches were seen, errors raised, warnings given."""
    bare = seen["bare"]
    assert sum(1 for s in bare.values() if s["result"]) > 40
    assert {name for name, s in bare.items() if s["error"]} >= {
        "fails", "fails_workers", "fails_collate", "times_out", "stateful_fails",
    }  # fmt: skip
    assert bare["wrong_length_warning"]["warnings"]
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (
        2,
        7,
    ):  # which warns where there is nothing to pin for
        assert bare["pin_memory"]["warnings"]
