"""Every format of a few reports, against golden files, and what holds for each of them.

To accept a change: LOADERSCOPE_UPDATE_GOLDEN=1 pytest tests/reports/test_golden.py
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from builders import RunBuilder, epoch_row, loop, opened
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.formats import render_report
from loaderscope.reports.text.text import render_text
from report_samples import EVIL_CODE, full_report, full_run, hostile_report, recorded, reported
from screen_text import check_golden

OBEYED = "[bold red]\x1b[2J\x1b]0;title\x07[link=x]y[/]" + "x" * 300


def full(runs: Path) -> Run:
    """Training with workers and a device. `hostile`: every text of its report is markup."""
    return full_run(runs, batches=60)


def computing(runs: Path) -> Run:
    """No workers, nearly no waiting, no system sampler, two ranks."""
    builder = RunBuilder(runs)
    times = {"index_ns": 9_000, "fetch_ns": 300_000, "collate_ns": 40_000}
    for rank in range(2):
        rows = loop(150, wait_ms=0.4, compute_ms=40, **times)
        process = builder.process(pid=4000 + rank, rank=rank, world_size=2, local_world_size=2)
        process.loader(rows, epochs=[epoch_row(rows)], name="Tabular")
    return open_run(builder.path)


def too_short(runs: Path) -> Run:
    return recorded(runs, loop(3, wait_ms=5, compute_ms=1), kind="iterable", config={}, name="it")


def empty(runs: Path) -> Run:
    builder = RunBuilder(runs)
    builder.process()
    return open_run(builder.path)


def obeyed(runs: Path) -> Run:
    """Texts that a terminal would obey, and too long for any."""
    config = {"batch_size": "[blink]", "sampler": "a.\u202eb"}
    return opened(runs, loop(30, wait_ms=5), name=OBEYED, notes=[OBEYED], config=config)


def case(name: str, runs: Path) -> tuple[Report, Run]:
    run = CASES[name](runs)
    report = full_report(run) if name in ("full", "hostile") else reported(run)
    return hostile_report(report) if name == "hostile" else report, run


CASES = {each.__name__: each for each in (full, computing, too_short, empty, obeyed)}
CASES["hostile"] = full
GOLDENS = (
    *((name, "text") for name in CASES),
    *((name, "brief") for name in ("full", "computing", "empty")),
    *((name, format_) for name in ("full", "empty", "hostile") for format_ in ("md", "html")),
)


def rendered(name: str, format_: str, runs: Path) -> str:
    """The document; of HTML, what is in its body besides scripts."""
    kind, full = ("text", False) if format_ == "brief" else (format_, True)
    text = render_report(kind, *case(name, runs), width=80, full=full)
    assert isinstance(text, str)
    if format_ == "html":
        text = text.partition("<header>")[2].partition("<script")[0]
        text = "\n".join(line for line in text.splitlines() if line.strip()) + "\n"
    return text


@pytest.mark.parametrize(("name", "format_"), GOLDENS)
def test_golden(tmp_path: Path, name: str, format_: str) -> None:
    if format_ == "html":
        pytest.importorskip("jinja2")
    check_golden(f"{name}.{format_}", rendered(name, format_, tmp_path), "reports")


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("name", CASES)
def test_no_line_is_wider_than_asked_and_nothing_is_obeyed(tmp_path, name, width):
    report, _ = case(name, tmp_path)
    text = render_text(report, width)
    code = {each.strip() for each in EVIL_CODE.splitlines()}
    lines = [line for line in text.splitlines() if line.strip() not in code]
    assert max(map(cell_len, lines)) <= width
    assert all(line.isprintable() for line in text.splitlines())
    colored = render_text(report, width, color=True)
    assert not re.search(r"\x1b(?!\[[0-9;]*m)", colored)
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored).split() == text.split()


def test_loaders_that_find_no_room_are_counted(tmp_path: Path) -> None:
    report = reported(too_short(tmp_path))
    names = [f"Rows of {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(40)]
    many = tuple(replace(report.loaders[0], name=name) for name in names)
    text = render_text(replace(report, loaders=many))
    assert "40 loaders" in text and "… and 8 more loaders" in text
    alike = render_text(replace(report, loaders=report.loaders * 40))
    assert "39 loaders like it" in alike and "more loaders:" not in alike


def test_missing_stages_do_not_matter(tmp_path: Path) -> None:
    """A report read from JSON may lack stages that this version knows."""
    report = reported(computing(tmp_path))
    (loader,) = report.loaders
    loader = replace(loader, stages={"wait": loader.stages["wait"]})
    assert "inside next()" in render_text(replace(report, loaders=(loader,)))
