"""What is said of a job's ranks, in every format that people read."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import RunBuilder
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import LoaderReport, Report
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.formats import render_report
from loaderscope.reports.words.loaders import rank_sentences, who
from rank_cases import job, rank


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Report, Run]:
    run = RunBuilder(tmp_path_factory.mktemp("job"))
    job(run, slow=2)
    opened = open_run(run.path)
    report = build_report(opened, advice=False)
    section = report.loaders[0]
    assert section.ranks is not None and section.ranks.slowest is not None
    place = {"function": "Augment.__call__", "file": "/home/me/data.py", "line": 31}
    ranks = replace(section.ranks, slowest=replace(section.ranks.slowest, **place))
    report = replace(report, loaders=(replace(section, ranks=ranks),))
    assert Report.from_json(report.to_json()) == report
    return report, opened


SAID = (
    "Rank 2’s fetch takes 150 ms per batch, the others’ 10.0 ms: Augment.__call__ at data.py:31. "
    "Every step waits for it: 140 ms of 160 ms, in all ranks."
)


@pytest.mark.parametrize("format_", ["text", "md", "html"])
def test_every_format_says_it_once(recorded: tuple[Report, Run], format_: str) -> None:
    shown = render_report(format_, *recorded, width=100)
    assert isinstance(shown, str)
    flat = " ".join(shown.replace("\\", "").split())
    assert flat.count(SAID) == 1 and "4 ranks, figures of rank 2" in flat


def one(tmp_path: Path, waits: list[float], **more: float) -> LoaderReport:
    run = RunBuilder(tmp_path)
    for number, wait_ms in enumerate(waits):
        rank(run, number, wait_ms=wait_ms, step_ms=100, fetch_ms=wait_ms, **more)  # type: ignore[arg-type]
    return build_report(open_run(run.path), advice=False).loaders[0]


def test_what_is_said_where_none_is_slow(tmp_path: Path) -> None:
    assert rank_sentences(one(tmp_path / "alike", [10, 10, 11])) == [
        "No rank delays the others with its loading.",
        "Of 4 ranks, 1 was not recorded with this loader.",
    ]
    assert rank_sentences(one(tmp_path / "few", [10, 90, 10, 10], batches=5)) == []
    alone = one(tmp_path / "alone", [10])
    assert rank_sentences(alone) == []
    assert who(alone, several=True) == "rank 0"
