"""What shows runs works without torch: a laptop that opens a cluster's run."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

import pytest

from builders import RunBuilder, loop
from started import ran
from terminal import in_a_terminal

FIRST, SECOND = "20250131-091500-abc123", "20250131-101500-abc124"
ABSENT = ("torch", "functorch")
SHOWS = (
    (["report"], "Rows"),
    (["report", "--format", "json"], '"name": "Rows"'),
    (["report", "--format", "html", "-o", "report.html"], ""),
    (["report", "--format", "perfetto", "-o", "trace.json"], ""),
    (["report", "--format", "parquet", "-o", "tables"], ""),
    (["list"], FIRST),
    (["compare", FIRST, SECOND], "before"),
    (["merge", FIRST, "-o", "merged.run"], "merged.run"),
    (["rules", "num-workers"], "What it looks for"),
    (["doctor"], "torch cannot be imported"),
)
RECORDS = (["demo"],)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of what is installed here, by links, without torch; and of two runs."""
    place = tmp_path_factory.mktemp("laptop")
    site = place / "site"
    site.mkdir()
    for kind in ("purelib", "platlib"):
        for each in Path(sysconfig.get_path(kind)).iterdir():
            link = site / each.name
            if not each.name.startswith(ABSENT) and each.suffix != ".pth" and not link.exists():
                link.symlink_to(each)
    (site / "loaderscope").symlink_to(Path(__file__).parents[1])
    (place / "train.py").write_text("import torch\n\n\ndef make_loader():\n    pass\n")
    for run in (FIRST, SECOND):
        RunBuilder(place, run).process().loader(loop(200), name="Rows")
    return place


def environment(place: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    own = {"PYTHONPATH": str(place / "site"), "LOADERSCOPE_DIR": str(place), "HOME": str(place)}
    return {**kept, **own, "TERM": "xterm-256color"}


def command(*words: str) -> list[str]:
    return [sys.executable, "-S", "-m", "loaderscope", *words]


@pytest.mark.parametrize(("words", "shown"), SHOWS, ids=[" ".join(words) for words, _ in SHOWS])
def test_it_shows(place: Path, words: list[str], shown: str) -> None:
    done = ran(command(*words), cwd=place, env=environment(place))
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    if "-o" in words:
        assert (place / words[-1]).exists()


def test_the_dashboard_opens(place: Path) -> None:
    code, text = in_a_terminal(command("top", FIRST), "Rows", place, environment(place))
    assert code == 0 and "Traceback" not in text
    assert "Rows" in text


@pytest.mark.parametrize("words", RECORDS, ids=" ".join)
def test_what_needs_torch_says_so_in_a_sentence(place: Path, words: list[str]) -> None:
    done = ran(command(*words), cwd=place, env=environment(place))
    assert done.returncode == 2
    assert "No module named 'torch'" in done.stderr
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) == 1
