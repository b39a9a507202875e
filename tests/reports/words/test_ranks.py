"""What is said of a job's ranks, in every format that people read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from builders import RunBuilder
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import LoaderReport, Report
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.formats import render_report
from loaderscope.reports.words.ranks import rank_rows, rank_sentences, who
from rank_cases import job, rank


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Run]:
    run = RunBuilder(tmp_path_factory.mktemp("job"))
    job(run, slow=2)
    opened = open_run(run.path)
    report = build_report(opened, advice=False)
    section = report.loaders[0]
    assert section.ranks is not None and section.ranks.slowest is not None
    slow = replace(
        section.ranks.slowest, function="Augment.__call__", file="/home/me/data.py", line=31
    )
    return replace(
        report, loaders=(replace(section, ranks=replace(section.ranks, slowest=slow)),)
    ), opened


SLOW = (
    "Rank 2’s fetch takes 150 ms per batch, the others’ 10.0 ms: Augment.__call__ at data.py:31. "
    "Every step waits for it: 140 ms of 160 ms, in all ranks."
)


def test_the_slowest_rank_is_named_with_cause_and_line(recorded: tuple[Report, Run]) -> None:
    section = recorded[0].loaders[0]
    assert rank_sentences(section) == [SLOW]
    assert who(section, several=False) == "4 ranks, figures of rank 2"
    assert rank_rows(section) == [
        ("wait", "10.0 ms (rank 0)", "10.0 ms", "150 ms (rank 2)"),
        ("compute", "10.0 ms (rank 2)", "150 ms", "150 ms (rank 0)"),
        ("fetch", "10.0 ms (rank 0)", "10.0 ms", "150 ms (rank 2)"),
        ("collate", "100 µs", "100 µs", "100 µs"),
    ]


@pytest.mark.parametrize("format_", ["text", "md", "html"])
def test_every_format_says_it_once(recorded: tuple[Report, Run], format_: str) -> None:
    shown = render_report(format_, *recorded, width=100)
    assert isinstance(shown, str)
    flat = " ".join(shown.replace("\\", "").replace("&#39;", "'").split())
    assert flat.count("Every step waits for it") == 1
    assert (
        "data.py:31" in flat and "4 ranks, figures of rank 2" in flat and "150 ms (rank 2)" in flat
    )


def test_json_keeps_it(recorded: tuple[Report, Run]) -> None:
    report, _ = recorded
    assert Report.from_json(report.to_json()) == report


def one(tmp_path: Path, waits: list[float], **more: float) -> LoaderReport:
    run = RunBuilder(tmp_path)
    for number, wait_ms in enumerate(waits):
        rank(run, number, wait_ms=wait_ms, step_ms=100, fetch_ms=wait_ms, **more)  # type: ignore[arg-type]
    return build_report(open_run(run.path), advice=False).loaders[0]


def test_alike_ranks_and_ranks_that_are_not_there(tmp_path: Path) -> None:
    section = one(tmp_path, [10, 10, 11])
    assert rank_sentences(section) == [
        "No rank holds the others up by its data.",
        "Of 4 ranks, 1 was not recorded with this loader.",
    ]


def test_too_few_batches_say_nothing_of_who_is_slow(tmp_path: Path) -> None:
    assert rank_sentences(one(tmp_path, [10, 90, 10, 10], batches=5)) == []


def test_one_rank_alone_has_no_spread(tmp_path: Path) -> None:
    section = one(tmp_path, [10])
    assert (rank_sentences(section), rank_rows(section), who(section, several=True)) == (
        [],
        [],
        "rank 0",
    )
