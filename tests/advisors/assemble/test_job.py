"""A job of several ranks: one section a loader, and the rank that holds the others up."""

from dataclasses import replace
from pathlib import Path

import pytest

from builders import MS, T0, RunBuilder, epoch_row, loop
from inside_samples import CODE
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.assemble.job import with_ranks
from loaderscope.advisors.schema.rank_model import SlowestRank
from loaderscope.advisors.schema.report_model import LoaderReport
from loaderscope.profiler.store.run.run_reader import open_run
from rank_cases import job, rank


def sections(run: RunBuilder, advice: bool = False) -> tuple[LoaderReport, ...]:
    return build_report(open_run(run.path), advice=advice).loaders


def slowest(section: LoaderReport) -> SlowestRank:
    assert section.ranks is not None and section.ranks.slowest is not None
    return section.ranks.slowest


@pytest.fixture
def run(tmp_path: Path) -> RunBuilder:
    return RunBuilder(tmp_path)


def test_the_rank_that_waits_for_data_is_the_slow_one(run: RunBuilder) -> None:
    """The others wait for it too, in a collective operation: that is inside their steps."""
    job(run, slow=2)
    (section,) = sections(run)
    slow, ranks = slowest(section), section.ranks
    assert (section.rank, section.pid, slow.rank) == (2, 4002, 2)
    assert (slow.cause, slow.cause_us, slow.others_cause_us) == ("fetch", 150_000, 10_000)
    assert (slow.lost_us, slow.others_lost_us, slow.step_us) == (150_000, 10_000, 160_000)
    assert slow.held_up and ranks is not None
    fetch = ranks.spread["fetch"]
    assert (fetch.low, fetch.median, fetch.high) == (10_000, 10_000, 150_000)
    assert (fetch.low_rank, fetch.high_rank) == (0, 2)
    waits = [(0, 10_000), (1, 10_000), (2, 150_000), (3, 10_000)]
    assert [(each.rank, each.mean_us["wait"]) for each in ranks.each] == waits


@pytest.mark.parametrize(
    ("waits", "steps", "fetches", "workers", "told"),
    [
        ((1, 30, 1), (50, 50, 50), (20, 100, 20), 2, (1, "fetch", True)),  # workers share it
        ((80, 5, 5), (100, 100, 100), (10, 10, 10), 0, (0, None, True)),  # no stage shows why
        ((10, 60), (20, 70), (10, 60), 0, (1, "fetch", False)),  # they do not step together
    ],
)
def test_who_is_slow_and_why(run, waits, steps, fetches, workers, told):
    for number, (wait, step, fetch) in enumerate(zip(waits, steps, fetches, strict=True)):
        rank(run, number, wait_ms=wait, step_ms=step, fetch_ms=fetch, workers=workers)
    slow = slowest(sections(run)[0])
    assert (slow.rank, slow.cause, slow.held_up) == told
    assert (slow.cause_us is None) == (slow.cause is None)


def test_a_loader_that_looks_ahead_holds_the_others_up_all_the_same(run: RunBuilder) -> None:
    """An epoch's second batch is asked for at once, as Accelerate does: then one wait is of two."""
    for number, wait_ms in enumerate((10, 40)):
        rows, epochs = [], []
        for epoch in range(3):
            making = {"fetch_ns": wait_ms * MS, "collate_ns": 0}
            start = T0 + epoch * 7 * 42 * MS
            one = loop(6, wait_ms, 42 - wait_ms, epoch=epoch, start_ns=start, **making)
            one[1]["t_ns"] = one[0]["t_ns"] + one[0]["wait_ns"]
            rows += one
            epochs.append(epoch_row(one))
        process = run.process(pid=4000 + number, rank=number, world_size=2)
        process.loader(rows, epochs=epochs, config={"num_workers": 0}, name="Rows")
    slow = slowest(sections(run)[0])
    assert (slow.rank, slow.cause, slow.held_up) == (1, "fetch", True)


@pytest.mark.parametrize(
    ("numbers", "waits", "how", "high"),
    [
        ((3, 1, 2), (10.3, 10.1, 10.2), {"step_ms": 40, "fetch_ms": 10}, 3),  # alike
        ((0, 1), (1, 90), {"step_ms": 100, "fetch_ms": 10, "batches": 8}, 1),  # too few batches
        # A mean wait 50 ms longer than the others', all of it from one batch of forty.
        ((0, 1, 2), (5, 5, 5), {"step_ms": 50, "fetch_ms": 5, "hiccup_ms": 2000}, 1),
    ],
)
def test_where_no_rank_is_slow(run, numbers, waits, how, high):
    hiccup_ms = how.get("hiccup_ms", 0)
    for number, wait_ms in zip(numbers, waits, strict=True):
        more = {"hiccup_ms": hiccup_ms if number == 1 else 0}
        rank(run, number, wait_ms=wait_ms, **{**how, **more})
    (section,) = sections(run)
    assert section.rank == min(numbers) and section.ranks is not None
    assert section.ranks.slowest is None and section.ranks.world_size == 4
    assert section.ranks.spread["wait"].high_rank == high


def test_loaders_are_one_by_what_they_are_not_by_their_number(run: RunBuilder) -> None:
    """Rank 0 alone validates, before it trains; its validation is a section of its own."""
    for number, names in enumerate((("validation", "train"), ("train",))):
        process = run.process(pid=4000 + number, rank=number, world_size=2)
        for name in names:
            process.loader(loop(30), name=name)
    told = [(each.name, each.rank, each.ranks is not None) for each in sections(run)]
    assert told == [("validation", 0, False), ("train", 0, True)]


def test_a_rank_that_was_started_anew_is_told_apart(run: RunBuilder) -> None:
    for pid, number in ((4000, 0), (4001, 1), (4002, 1)):
        rank(run, number, pid=pid, wait_ms=10, step_ms=40, fetch_ms=10)
    found = sections(run)
    assert [(each.pid, each.ranks is not None) for each in found] == [(4000, True), (4002, False)]


def test_advice_is_given_once_for_the_slowest(run: RunBuilder) -> None:
    job(run, slow=2)
    (section,) = sections(run, advice=True)
    told = [each.rule for each in section.recommendations]
    assert "rank-imbalance" in told and len(told) == len(set(told))
    # The line is the innermost of the user's own.
    assert section.ranks is not None
    slow = slowest(with_ranks(replace(section, code=CODE), section.ranks))
    (most,) = (spot for spot in CODE.stages["fetch"].lines if spot.total_share >= 0.5)
    assert (slow.file, slow.line, slow.function) == (most.file, most.line, most.function)
