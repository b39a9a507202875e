"""Damaged runs, in every format and on every screen: an answer that can be read, or one sentence;
never a traceback.

`make test` tries RUNS directories, each in all quick formats and in one of those that take long.
More, in every format: LOADERSCOPE_FUZZ=5000 pytest tests/reports/test_fuzz_formats.py. A directory
that fails is `damaged(files, SEED)`.
"""

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from damaged_runs import damaged, files_of, record, write_files
from html_page import Page
from loaderscope import cli
from loaderscope.advisors.assemble import build_report as reporting
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.store.run import run_reader
from loaderscope.profiler.store.run.follow import Follower
from loaderscope.tui.draw import advice, batches, machine, overview, workers
from loaderscope.tui.draw import code_screen as code
from loaderscope.tui.reader import Reader
from loaderscope.tui.snapshot import Snapshot

RUNS, BLOCK = 160, 8
ASKED = int(os.environ.get("LOADERSCOPE_FUZZ", "0"))
ID = "20250131-091500-abc123"

DRAWN = (
    *(overview.verdict, overview.pace, overview.stages, advice.brief, advice.full),
    *(overview.waiting, workers.timeline),
    *(machine.meters, batches.stages, batches.slowest, code.status, code.inside),
)


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that is damaged. Recorded once."""
    return record(tmp_path_factory.mktemp("recorded") / "runs")


@pytest.fixture
def read_once(monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    """Each directory is read, and each report built, once: the formats only draw it."""
    kept: dict[Any, Any] = {}

    def once(where: Any, name: str, key: Callable[..., Any]) -> None:
        make = getattr(where, name)

        def made(*args: Any, **how: Any) -> Any:
            at = key(*args, **how)
            if at not in kept:
                kept[at] = make(*args, **how)
            return kept[at]

        monkeypatch.setattr(where, name, made)

    once(run_reader, "open_run", lambda run="latest", *_: str(run))
    once(reporting, "build_report", lambda run, *_, advice=True, **more: (id(run), advice))
    return kept


def strict_json(text: str) -> Any:
    """JSON without NaN and Infinity, which no other reader takes."""
    return json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} in JSON"))


def is_report(text: str) -> None:
    strict_json(text)
    assert Report.from_json(text).to_json() + "\n" == text


def is_html(text: str) -> None:
    assert text.startswith("<!DOCTYPE html>") and not Page(text).left_open


def is_text(text: str) -> None:
    assert text.strip()
    for word in text.replace("(", " ").replace(")", " ").replace("×", " ").split():
        assert word.lower().strip("+-,;:%") not in ("nan", "inf", "infinity"), text


def is_trace(text: str) -> None:
    for event in strict_json(text)["traceEvents"]:
        assert event["ph"] == "M" or (event["ts"] >= 0 and event.get("dur", 0) >= 0)


def are_tables(folder: Path) -> None:
    for name in ("batches", "epochs", "machine", "process", "gpu"):
        table = pyarrow.parquet.read_table(folder / f"{name}.parquet")
        strict_json(table.schema.metadata[b"loaderscope.report"].decode())
        for column in table.columns:
            if pyarrow.types.is_floating(column.type):
                known = (value for value in column.to_pylist() if value is not None)
                assert all(map(math.isfinite, known))


def replayed(path: Path) -> None:
    """What `loaderscope top` reads and draws: each loader, without its threads."""
    reader = Reader(Follower(path), lambda snapshot: None)
    snapshot = reader.step()
    assert snapshot is not None
    for place in list(snapshot.loaders)[:3]:
        reader.view(place)
        shown = reader.step()
        reader.advisor.finish()
        drawn(shown)
    drawn(reader.step())


def drawn(snapshot: Snapshot | None) -> None:
    assert snapshot is not None and snapshot.advice.problem is None
    narrow = [(30, overview.stages), (30, workers.timeline)]
    for width, draw in [*((80, each) for each in DRAWN), *narrow]:
        if text := draw(snapshot, width).plain.strip():
            is_text(text)


def checked(capsys: Any, check: Callable[[str], object], *arguments: str) -> None:
    """What the command printed is as it should be, or it said in one sentence why it cannot."""
    code_ = cli.main(arguments)
    out, err = capsys.readouterr()
    if code_ == 0:
        assert err == ""
        check(out)
    else:
        assert code_ == 2 and out == ""
        assert err.startswith("loaderscope: ") and err.count("\n") == 1 and len(err) > 20


def quick(capsys: Any, run: str, pristine: str) -> None:
    for format_, check in {"text": is_text, "md": is_text, "json": is_report}.items():
        checked(capsys, check, "report", run, "--format", format_)
    checked(capsys, is_text, "stacks", run)
    checked(capsys, strict_json, "compare", run, pristine, "--format", "json")
    listed: list[str] = []
    checked(capsys, listed.append, "list")
    assert ID in listed[0]


LONG = ("html", "perfetto", "parquet", "compare", "top")


def long(capsys: Any, name: str, run: str, pristine: str, tables: Path) -> None:
    """A format that takes a tenth of a second or more."""
    if name == "top":
        replayed(Path(run))
    elif name == "parquet":
        written = ("report", run, "--format", "parquet", "-o", str(tables))
        checked(capsys, lambda text: are_tables(tables), *written)
    elif name == "compare":
        for format_, check in {"html": is_html, "text": is_text, "md": is_text}.items():
            checked(capsys, check, "compare", run, pristine, "--format", format_)
    else:
        check = is_html if name == "html" else is_trace
        checked(capsys, check, "report", run, "--format", name)


# The rest of them is `make test-slow`'s.
BLOCKS = [
    pytest.param(block, marks=[pytest.mark.slow] if block >= BLOCK and not ASKED else [])
    for block in range(0, ASKED or RUNS, BLOCK)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_damaged_runs(block, pristine, tmp_path, read_once, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    files = files_of(pristine)
    for seed in range(block, block + BLOCK):
        for known in [key for key in read_once if key != str(pristine)]:
            del read_once[known]
        folder = tmp_path / str(seed)
        run, out = folder / "runs" / ID, folder / "out"
        for made in (out, run):
            made.mkdir(parents=True)
        monkeypatch.setenv("LOADERSCOPE_DIR", str(run.parent))
        write_files(damaged(files, seed), run)
        names = LONG if ASKED else [LONG[seed % len(LONG)]]
        try:
            quick(capsys, str(run), str(pristine))
            for name in names:
                long(capsys, name, str(run), str(pristine), out / "new" / "tables")
        except BaseException:
            print(f"damaged(files, {seed})")
            raise
        shutil.rmtree(folder)
