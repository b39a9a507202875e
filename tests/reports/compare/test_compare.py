"""Comparing runs: known differences are found, and chance is not taken for one."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markdown_it import MarkdownIt

from builders import MS, RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.compare.compare import compare, slowest_factor
from loaderscope.reports.compare.compare_model import Comparison, Setting
from loaderscope.reports.formats import render_comparison
from report_samples import EVIL, full_run, hostile_report

Rows = list[dict[str, Any]]


def noisy(batches=400, wait_ms=5.0, compute_ms=20.0, seed=0, drift_ms=0.0, **more: Any) -> Rows:
    """A loop whose waiting and computing vary by themselves; with `drift_ms`, it gets slower."""
    random = np.random.default_rng(seed)
    rows = loop(batches, **more)
    t = rows[0]["t_ns"]
    for n, row in enumerate(rows):
        row["t_ns"] = t
        row["wait_ns"] = round(wait_ms * MS * random.exponential())
        compute = round((compute_ms * random.normal(1, 0.05) + drift_ms * n / batches) * MS)
        t += row["wait_ns"] + compute
    rows[-1]["compute_ns"] = compute
    return rows


def recorded(tmp_path: Path, name: str, rows: Rows, config: Any = None, **facts: Any) -> Run:
    builder = RunBuilder(tmp_path, name, **facts)
    builder.process().loader(rows, epochs=[epoch_row(rows)], config=config)
    return open_run(builder.path)


def compared(before: Run, after: Run) -> Comparison:
    first, second = (build_report(run, advice=False) for run in (before, after))
    return compare(first, before, second, after)


def test_a_known_difference_is_found_within_its_range(tmp_path: Path) -> None:
    before = recorded(tmp_path, "a", noisy(wait_ms=20, compute_ms=20, seed=1))
    after = recorded(tmp_path, "b", noisy(wait_ms=5, compute_ms=20, seed=2))
    (loader,) = compared(before, after).loaders
    found = loader.throughput
    assert found.real and found.factor and found.factor.low < 1.6 < found.factor.high
    assert found.factor.mid == pytest.approx(1.6, rel=0.1)
    assert found.unit == "samples/s" and found.after == pytest.approx(4 / 0.025, rel=0.05)
    assert loader.stages_us["wait"] == pytest.approx((20_000, 5_000), rel=0.2)
    assert loader.stages_us["compute"] == pytest.approx((20_000, 20_000), rel=0.05)
    assert loader.stall_share == pytest.approx((0.5, 0.2), abs=0.05)
    assert loader.verdicts == ("input-bound", "input-bound")


def test_chance_is_seldom_taken_for_a_difference(tmp_path: Path) -> None:
    """Of 60 pairs of runs that differ by chance alone, few may be called different."""
    runs = [recorded(tmp_path, f"r{n}", noisy(batches=120, wait_ms=20, seed=n)) for n in range(61)]
    differ = [compared(a, b).loaders[0].throughput for a, b in pairwise(runs)]
    assert sum(each.real is True for each in differ) <= 8
    ranges = [each.factor for each in differ if each.factor]
    assert sum(each.low <= 1 <= each.high for each in ranges) >= 52


def test_a_drifting_run_is_less_certain_than_a_steady_one(tmp_path: Path) -> None:
    other = recorded(tmp_path, "other", noisy(seed=4))

    def spread(drift_ms: float) -> float:
        run = recorded(tmp_path, f"drift {drift_ms}", noisy(seed=3, drift_ms=drift_ms))
        factor = compared(run, other).loaders[0].throughput.factor
        return factor.high - factor.low

    assert spread(15) > 1.5 * spread(0)


def test_what_nobody_would_act_on_is_no_difference(tmp_path: Path) -> None:
    before, after = (recorded(tmp_path, f"{ms}", loop(50, compute_ms=ms)) for ms in (20.0, 20.05))
    itself = compared(before, before)
    for whole, factor in ((compared(before, after), 0.998), (itself, 1.0)):
        found = whole.loaders[0].throughput
        assert (found.factor.mid, found.real) == (pytest.approx(factor, abs=1e-3), False)
    assert itself.settings == itself.loaders[0].settings == ()


def test_batches_of_other_sizes_are_compared_by_sample(tmp_path: Path) -> None:
    """Twice the samples a batch in twice the time is the same speed."""
    before = recorded(tmp_path, "a", noisy(seed=1, fetch_ns=4 * MS), config={"batch_size": 4})
    rows = noisy(wait_ms=10, compute_ms=40, seed=2, fetch_ns=8 * MS)
    for row in rows:
        row["samples"] = 8
    (loader,) = compared(before, recorded(tmp_path, "b", rows, config={"batch_size": 8})).loaders
    assert loader.throughput.unit == "samples/s" and loader.throughput.real is False
    assert loader.stages_us["fetch"] == (4000.0, 8000.0)
    assert loader.settings == (Setting("batch_size", 4, 8),)


def test_too_few_batches_are_not_compared(tmp_path: Path) -> None:
    short, long = recorded(tmp_path, "a", loop(12)), recorded(tmp_path, "b", loop(100))
    (loader,) = compared(short, long).loaders
    assert loader.throughput.factor is None and loader.throughput.real is None
    assert "fewer than 20 steady batches" in (loader.throughput.reason or "")
    assert slowest_factor(compared(short, long)) is None


def test_what_is_configured_differently_is_listed(tmp_path: Path) -> None:
    pin = {"pin_memory": False}
    before = recorded(tmp_path, "a", loop(30), {"num_workers": 0, **pin})
    facts: dict[str, Any] = {"python": "3.13.0", "argv": ["b.py"]}
    after = recorded(tmp_path, "b", loop(30), {"num_workers": 4, **pin}, **facts)
    found = compared(before, after)
    assert found.loaders[0].settings == (Setting("num_workers", 0, 4),)
    command = Setting("command", "train.py --lr 0.1", "b.py")
    assert found.settings == (command, Setting("Python", "3.12.1", "3.13.0"))


def test_loaders_are_paired_by_name_and_rank(tmp_path: Path) -> None:
    def build(run: str, *ranks: tuple[str, ...]) -> Run:
        builder = RunBuilder(tmp_path, run)
        for rank, loaders in enumerate(ranks):
            process = builder.process(pid=4000 + rank, rank=rank)
            for name in loaders:
                process.loader(loop(30), name=name)
        return open_run(builder.path)

    before = build("a", ("train", "valid"), ("train", "old name"))
    after = build("b", ("valid", "train"), ("train", "new name", "extra"))
    found = compared(before, after)
    # What both ranks have is one.
    pairs = [("train", 0), ("valid", 0), ("new name", 1)]
    assert [(each.name, each.rank) for each in found.loaders] == pairs
    assert "different names" in found.loaders[2].notes[0]
    assert (found.only_before, found.only_after) == ((), ("extra",))


def test_the_slowest_loader_decides_and_chance_does_not(tmp_path: Path) -> None:
    before = recorded(tmp_path, "a", noisy(wait_ms=5, seed=1))
    for seed, wait_ms, factor in ((2, 30, pytest.approx(0.5, abs=0.06)), (3, 5, 1.0)):
        after = recorded(tmp_path, f"{seed}", noisy(wait_ms=wait_ms, seed=seed))
        found = slowest_factor(compared(before, after))
        assert found is not None and found[1] == factor


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    runs = tmp_path_factory.mktemp("runs")
    before = full_run(runs, "before-run", 150)
    return compared(before, full_run(runs, "after-run", 150, fetch_ms=110, seed=2))


@pytest.mark.parametrize("width", [70, 100])
def test_text(comparison: Comparison, width: int) -> None:
    text = render_comparison("text", comparison, width)
    assert text.startswith("before before-run\nafter  after-run\n")
    words = " ".join(text.split())
    assert "Faster: the throughput is ×1.3" in words and "19 times in 20" in words
    assert max(map(len, text.splitlines())) <= width and "\x1b" not in text
    assert "\x1b[1mFaster" in render_comparison("text", comparison, 100, color=True)
    data = json.loads(render_comparison("json", comparison))
    assert data["schema"] == 3 and data["loaders"][0]["throughput"]["real"] is True


@pytest.mark.parametrize("format_", ["text", "md", "html"])
def test_nothing_in_common(comparison: Comparison, format_: str) -> None:
    text = render_comparison(format_, replace(comparison, loaders=(), only_before=("train",)))
    assert "Nothing to compare" in text and "only in the first run: train" in text


def test_hostile_texts_are_only_shown(tmp_path: Path) -> None:
    run = full_run(tmp_path, batches=60)
    report = hostile_report(build_report(run, advice=False))
    changed = replace(report, run=replace(report.run, argv=(EVIL + "\x1b[2J",)))
    found = compare(report, run, changed, run)
    tokens = MarkdownIt("commonmark").enable("table").parse(render_comparison("md", found))
    assert not [token for token in tokens if token.type.startswith("html")]
    assert render_comparison("text", found).replace("\n", "").isprintable()
    page = render_comparison("html", found)
    assert "&lt;script&gt;alert(&#39;owned&#39;)" in page and "<script>alert" not in page
