"""The screen of trials: what it shows, and what its keys ask for."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from builders import RunBuilder
from dashboard_samples import Act, advised, ranks, recommendation, refresh, tuning, with_dashboard
from loaderscope.advisors.schema.report_model import Finding, Range
from loaderscope.profiler.store.run.tuning import asked
from loaderscope.tui.app import Dashboard, Fresh
from loaderscope.tui.draw import advice, trials
from loaderscope.tui.panel import Tabs
from loaderscope.tui.snapshot import Snapshot
from screen_text import check_golden, screen_text


def told(run: RunBuilder, **facts: Any) -> None:
    (run.path / "p4000-0" / "tune0.json").write_text(json.dumps(tuning(**facts)))


def with_trials(run: RunBuilder, act: Act, size: Any = (100, 30), state: str = "live") -> None:
    async def whole(app: Dashboard, pilot: Pilot[None]) -> None:
        app.post_message(Fresh(replace(app.snapshot, state=state)))
        await pilot.pause()
        await pilot.press("7")
        await pilot.pause()
        await act(app, pilot)

    with_dashboard(run.path, whole, size)


@pytest.mark.parametrize("size", [(80, 24), (130, 42)], ids="{0[0]}x{0[1]}".format)
def test_golden_screen(run: RunBuilder, size: tuple[int, int]) -> None:
    told(run)

    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        check_golden(f"trials_{size[0]}.txt", screen_text(app))

    with_trials(run, act, size)


def snapshot_of(run: RunBuilder, state: str = "live", **facts: Any) -> Snapshot:
    told(run, **facts)
    found: list[Snapshot] = []

    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        found.append(app.snapshot)

    with_trials(run, act, state=state)
    return found[0]


def test_it_fits_whatever_its_width(run: RunBuilder) -> None:
    s = snapshot_of(run)
    for width in (78, 200):
        assert all(len(row) <= width for row in trials.table(s, width).plain.splitlines())
    drawn = " ".join(trials.table(s, 128).plain.split())
    assert all(words in drawn for words in ("not tried", "may take", "num_workers=7 to be tried"))


def test_ends_in_words(run: RunBuilder) -> None:
    done = snapshot_of(run, decided=True, said="num_workers=8 is faster, and stays", waiting=[])
    said = trials.status(done, 78).plain.splitlines()
    assert said[0] == "num_workers=8 is faster, and stays"
    over = snapshot_of(run, state="crashed")
    assert len(trials.status(over, 78).plain.splitlines()) == 2
    assert "not certain: ×1.8 (1.4–2.3)" in " ".join(trials.table(over, 98).plain.split())
    own = snapshot_of(
        run, decided=True, chosen=tuning()["own"], trials=[], waiting=[], said="nothing to gain"
    )
    assert "the code's own settings" in trials.status(own, 78).plain
    assert trials.table(own, 78).plain == "nothing was tried"


def test_a_follower_shows_the_trials_of_the_rank_that_decides(runs_dir: Path) -> None:
    built, process = ranks(runs_dir)
    told(built)
    (process.path / "tune0.json").write_text(json.dumps(tuning(follows=0)))

    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        await pilot.press("r")
        await refresh(app, pilot)
        s = app.snapshot
        assert s.place is not None and s.loaders[s.place].rank == 1 and s.tuning is not None
        assert len(s.tuning.trials) == 4 and "decided by rank 0" in trials.status(s, 78).plain
        await pilot.press("k")
        await pilot.pause()

    with_trials(built, act)
    assert asked(process.path, 0) is None


@pytest.mark.parametrize(
    ("key", "state", "command"),
    [*zip("kbx", ["live"] * 3, ("keep", "back", "stop"), strict=True), ("kbx", "finished", None)],
)
def test_keys_ask_where_something_can_change(run, key, state, command):
    told(run)

    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        await pilot.press(*key)
        await pilot.pause()

    with_trials(run, act, state=state)
    assert asked(run.path / "p4000-0", 0) == command
    assert asked(run.path / "p4000-0", 0) is None


def test_an_untuned_loader_has_no_such_screen(run: RunBuilder) -> None:
    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        tabs = app.query_one(Tabs)
        assert tabs.current == 0 and "Trials" not in str(tabs.render())
        app.action_tuning("keep")

    with_trials(run, act)
    assert asked(run.path / "p4000-0", 0) is None


def test_advice_says_what_costs_and_what_was_proved_beside_what_was_predicted() -> None:
    ends = {"measured": 1.63, "measured_range": Range(1.55, 1.63, 1.70), "measured_s": 14.2}
    tried = recommendation("num-workers", "Use 8 workers", 1.4, 1.7, 1.8, tried="proven", **ends)
    share, free = Range(0.9, 0.95, 1.0), Range(8, 9, 10)
    found = Finding("fetch", "gc.collect()", "data.py:6", None, share, 0.9, free)
    told = advised(recommendations=(tried,), findings=(found,))
    shown = Snapshot("run", (), "live", advice=told)
    both = "proved ×1.63 (1.55–1.70) in 14 s; predicted ×1.7 (1.4–1.8)"
    assert both in " ".join(advice.full(shown, 120).plain.split())
    costs, change, *_ = advice.brief(shown, 78).plain.splitlines()
    assert costs == "What costs: `gc.collect()` data.py:6, 95 % of fetch; without it ×9.0."
    assert "proved ×1.63 (1.55–1.70) in 14 s" in change
