"""The ranks of a job on the dashboard: who waits for data is seen at a glance."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from builders import MS, RunBuilder, epoch_row, loop
from dashboard_samples import press, with_dashboard
from loaderscope.profiler.store.run.loader_summary import read_summaries
from loaderscope.profiler.store.run.rank_waits import EVERY_NS, RankWaits
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.summary import write_summary
from loaderscope.tui.app import Dashboard
from rank_cases import job
from screen_text import screen_text


def test_the_heat_map_shows_every_rank_and_names_the_slowest(runs_dir: Path) -> None:
    run = RunBuilder(runs_dir)
    job(run, slow=9, ranks=12)

    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        await press(app, pilot, "3")
        words = screen_text(app)
        assert "Ranks: waiting for data" in words
        assert "Rank 9 waits longest for data: 94 % of its step time; median 6.2 %" in words
        (row,) = (line for line in words.splitlines() if line.count("▒▒") == 11)
        assert row.split() == ["0", "▒▒◂▒▒", *["▒▒"] * 7, "██", "▒▒", "▒▒"]
        await press(app, pilot, "r")
        assert "▒▒ ▒▒◂" in screen_text(app)
        await press(app, pilot, "left")  # another moment: nothing of the other ranks is known of it
        assert "Ranks: waiting" not in screen_text(app)

    with_dashboard(run.path, act, (100, 40))


def test_what_a_rank_waits_now(runs_dir: Path) -> None:
    """Of one that goes on the newest steps of the epoch; of one that has ended all; nothing of one
    that is damaged."""
    run = RunBuilder(runs_dir)
    for number in range(3):
        rows = [*loop(600, 1, 9), *loop(400, 6, 4, epoch=1, start_ns=10**13, first_wait_ms=5000)]
        made = run.process(pid=4000 + number, rank=number, world_size=8, ended=number == 1)
        made.loader(rows, epochs=[epoch_row(rows)])
    write_summary(run.path / "p4001-0")
    for segment in (run.path / "p4002-0").glob("batches*.seg"):
        segment.write_bytes(b"junk" * 2000)
    clock = [0]
    waits = RankWaits(lambda: clock[0])
    opened = open_run(run.path)
    process, loader = opened.processes[0], opened.processes[0].loaders[0]
    found = waits.of(opened, process, loader)
    (summary,) = read_summaries(run.path / "p4001-0") or ()
    wait = summary.mean("wait_ns") or 0.0
    assert wait == pytest.approx((599 * 1 + 399 * 6) / 998 * MS)
    assert [each.share for each in found] == [
        pytest.approx(0.6),
        pytest.approx(wait / (10 * MS), rel=1e-3),
        None,
    ]
    assert waits.of(opened, process, loader) is found
    clock[0] += EVERY_NS
    again = waits.of(opened, process, loader)
    assert again == found and again is not found
