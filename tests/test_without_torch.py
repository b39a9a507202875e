"""What shows runs works without torch: a laptop that opens a cluster's run."""

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
SHOWS = {
    "report": "Rows",
    "report --format json": '"name": "Rows"',
    "report --format html -o report.html": "",
    "report --format perfetto -o trace.json": "",
    "report --format parquet -o tables": "",
    "list": FIRST,
    f"compare {FIRST} {SECOND}": "before",
    f"merge {FIRST} -o merged.run": "merged.run",
    "rules num-workers": "What it looks for",
    "doctor": "torch cannot be imported",
}


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


@pytest.mark.parametrize("line", SHOWS)
def test_it_shows(place: Path, line: str) -> None:
    words = line.split()
    done = ran(command(*words), cwd=place, env=environment(place))
    assert done.returncode == 0, done.stderr
    assert SHOWS[line] in done.stdout
    assert "-o" not in words or (place / words[-1]).exists()


def test_the_dashboard_opens(place: Path) -> None:
    code, text = in_a_terminal(command("top", FIRST), "Rows", place, environment(place))
    assert code == 0 and "Traceback" not in text and "Rows" in text


def test_what_needs_torch_says_so_in_a_sentence(place: Path) -> None:
    done = ran(command("demo"), cwd=place, env=environment(place))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "No module named 'torch'" in done.stderr
