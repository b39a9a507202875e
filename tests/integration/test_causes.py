"""Causes that stacks and source tell together, of real loops; and healthy loops that look alike."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.daemon.stack_capture.py_spy import find_py_spy
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.text.text import MOST_LINES, render_brief
from started import here, python

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="stacks are taken on Linux"),
    pytest.mark.skipif(find_py_spy() is None, reason="py-spy is not installed"),
    pytest.mark.timeout(240),
]

PROGRAM = Path(__file__).with_name("causes_programs.py")
IN_LOOP, HDF5 = "Take this out of the loop", "Read HDF5 in large contiguous slices"


def first_screen(kind: str, folder: Path) -> str:
    """The brief report of the recorded program, in one line."""
    if kind == "lists" and importlib.util.find_spec("h5py") is None:
        pytest.skip("needs h5py")
    env = here(LOADERSCOPE_DIR=str(folder), LOADERSCOPE_STACKS="eager")
    program = folder / "train.py"  # a file of the package would not count as the user's
    program.write_text(PROGRAM.read_text())
    python("-W", "ignore", program, kind, env=env, check=True)
    text = render_brief(build_report(open_run("latest", folder)), width=100)
    assert text.count("\n") <= MOST_LINES
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("kind", "title", "costs"),
    [
        ("counted", IN_LOOP, "len([each for each in self.order"),
        ("lists", HDF5, '["x"][near]'),
    ],
)
def test_the_cause_is_on_the_first_screen(
    tmp_path: Path, kind: str, title: str, costs: str
) -> None:
    said = first_screen(kind, tmp_path)
    found, _, advised = said.partition("What to do")
    assert costs in found.partition("What costs:")[2], said
    assert title in advised, said
    if title == IN_LOOP:
        assert "of all time, in the loop itself" in found
    assert "chunk" not in said


def test_a_healthy_loop_that_looks_alike_is_not_told_so(tmp_path: Path) -> None:
    said = first_screen("trains", tmp_path)
    assert IN_LOOP not in said and "chunk" not in said and "in the loop itself" not in said, said
