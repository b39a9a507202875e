"""Every key does what help says it does, on a dashboard of a fixed run."""

from __future__ import annotations

import platform
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import ContentSwitcher, OptionList

from builders import T0, RunBuilder
from dashboard_samples import (
    CODE,
    REPORT,
    advised,
    on_dashboard,
    press,
    refresh,
    sampled,
    train,
    with_dashboard,
)
from loaderscope.advisors.schema.report_model import LoaderReport, Recommendation
from loaderscope.experiment.git import project_folder
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.stacks.stack_samples import StackCapture
from loaderscope.tui.app import Dashboard
from loaderscope.tui.help import KEYS, HelpScreen
from loaderscope.tui.panel import Banner, Scrubber
from loaderscope.tui.screens import Advice, Workers
from screen_text import screen_text


@pytest.fixture
def path(runs_dir: Path) -> Path:
    run = RunBuilder(runs_dir)
    train(run, rank=0, world_size=2)
    process = run.process(pid=4001, rank=1, world_size=2)
    process.loader([], config={"num_workers": 4}, name="Pictures")
    sampled(run)
    return run.path


async def wait_for(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    while not holds():
        await pilot.pause(0.02)
    await pilot.pause()


@on_dashboard()
async def test_screens_by_click_and_help_by_its_key(app: Dashboard, pilot: Pilot[None]) -> None:
    await pilot.click("Tabs", offset=(16, 0))
    assert app.query_one(ContentSwitcher).current == "view1"
    await pilot.press("question_mark")
    assert isinstance(app.screen, HelpScreen)
    at = app._at_ns
    await pilot.press("left", "space", "l")  # the dashboard's keys rest meanwhile
    assert app._at_ns == at
    for close in ("escape", "q"):  # it opens again
        await pilot.press(close)
        assert not isinstance(app.screen, HelpScreen)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)
    told = " ".join(keys for keys, _ in KEYS)
    assert all(
        key in told
        for key in ["space", "home", "end", "c", "d", "s", "t", "q", "o", "l", "r", "+", "-"]
    )


@on_dashboard((120, 30))
async def test_loaders_and_ranks_switch(app: Dashboard, pilot: Pilot[None]) -> None:
    assert "rank 0 · Pictures (1/3)" in screen_text(app)
    await press(app, pilot, "l")
    assert "rank 0 · Validation (2/3)" in screen_text(app)
    await press(app, pilot, "l", "r")
    for _ in range(2):
        assert "rank 1 · Pictures (3/3)" in screen_text(app)
        await press(app, pilot, "l")  # the only one of its process


@on_dashboard()
async def test_the_time_line_goes_back_and_on(app: Dashboard, pilot: Pilot[None]) -> None:
    def batches() -> int:
        assert app.snapshot.loader is not None
        return app.snapshot.loader.report.batches

    assert batches() == 400
    await press(app, pilot, "left")
    assert "◀ looking" in screen_text(app)
    before = batches()
    assert 390 < before < 400
    await press(app, pilot, "shift+left", "shift+left")
    assert 290 < batches() < before - 50
    await press(app, pilot, "home")
    assert batches() == 1
    await press(app, pilot, *["right"] * 3)
    assert 1 < batches() < 20
    await press(app, pilot, "end")
    assert batches() == 400
    await pilot.mouse_down("Scrubber", offset=(40, 0))
    await pilot.mouse_up("Scrubber", offset=(40, 0))
    await refresh(app, pilot)
    assert 100 < batches() < 300


@on_dashboard()
async def test_space_plays_a_finished_run(app: Dashboard, pilot: Pilot[None]) -> None:
    app._player.pause()
    await press(app, pilot, "space")
    assert app.query_one(Scrubber).playing and app.reader._request.at_ns == T0
    app._play()
    assert app.reader._request.at_ns == T0 + 500_000_000
    await press(app, pilot, "space")
    assert not app.query_one(Scrubber).playing


@on_dashboard()
async def test_code_is_copied(app: Dashboard, pilot: Pilot[None]) -> None:
    await press(app, pilot, "c")
    assert app.clipboard == CODE
    app.copy_to_clipboard("")
    await press(app, pilot, "2")
    await press(app, pilot, "down", "down")
    view = app.view
    assert isinstance(view, Advice)
    assert isinstance(view.target, Recommendation) and view.target.rule == "pin-memory"
    await press(app, pilot, "c")
    assert app.clipboard == CODE
    app.copy_to_clipboard("nothing")
    await press(app, pilot, "down")
    assert view.target == "h2d-copies" and "copies were not seen" in screen_text(app)
    await press(app, pilot, "c")
    assert app.clipboard == "nothing"


@on_dashboard()
async def test_advice_is_shown_as_a_patch(app: Dashboard, pilot: Pilot[None]) -> None:
    asked: list[str] = []

    def made(run: Path, report: LoaderReport, advice: Recommendation) -> str:
        assert run == app._path and report.name == "Pictures"
        asked.append(advice.rule)
        return "--- a/data.py\n+++ b/data.py\n-workers=[bold]0\n+workers=8\n"

    app.diff = made
    await press(app, pilot, "d")
    assert not asked  # another screen
    await press(app, pilot, "2", "d")
    await wait_for(pilot, lambda: "+workers=8" in screen_text(app))
    assert "-workers=[bold]0" in screen_text(app) and CODE not in screen_text(app)
    await press(app, pilot, "d")
    assert "+workers=8" not in screen_text(app) and asked == ["num-workers"]
    await press(app, pilot, "d", "down")  # what is looked at now has another patch
    await wait_for(pilot, lambda: not app.jobs.threads)
    assert "+workers=8" not in screen_text(app)


def test_a_patch_that_cannot_be_made_says_why(path: Path) -> None:
    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        await press(app, pilot, "2", "d")
        await wait_for(pilot, lambda: "no patch: its code is to be" in screen_text(app))

    # Starts git: --fast skips the test here, while in the job's thread it would wait for ever.
    project_folder(Path.cwd())
    with_dashboard(path, act)


@on_dashboard()
async def test_advice_keeps_what_is_looked_at_when_it_is_worked_out_again(
    app: Dashboard, pilot: Pilot[None]
) -> None:
    await press(app, pilot, "2", "down")
    view = app.view
    assert isinstance(view, Advice)
    for first, row in ((1, 1), (0, 2)):  # the advice above it goes, and comes again
        changed = advised(recommendations=REPORT.recommendations[first:])
        view.show(replace(app.snapshot, advice=changed))
        assert isinstance(view.target, Recommendation)
        assert view.target.rule == "distributed-sampler"
        assert app.query_one(OptionList).highlighted == row


def seen_live(app: Dashboard) -> None:
    """The run as if it were live: its own state follows from processes, which a made-up run has
    not."""
    app.snapshot = replace(app.snapshot, state="live")


@on_dashboard()
async def test_s_takes_stacks_of_a_live_run(app: Dashboard, pilot: Pilot[None]) -> None:
    """One that ended shows what was recorded, and what cannot be taken says why."""
    taken = StackCapture(0, 0, 1, 25.0, False, "asked", (), (), {4000: 200, 5000: 199}, {})
    refused = UsageError("not permitted: see \x1b[2J doctor")
    outcomes = [taken, refused, ZeroDivisionError("x")]
    asked: list[Path] = []
    go = threading.Event()

    def take(path: Path) -> StackCapture:
        asked.append(path)
        assert go.wait(100)
        found = outcomes[len(asked) - 1]
        if isinstance(found, Exception):
            raise found
        return found

    app.take = take
    await press(app, pilot, "6")
    shown = screen_text(app)
    assert "2,410 samples in 2 bursts" in shown and "held in 31 % of them" in shown
    assert "recorded; stacks can be taken of a live run only" in shown
    await press(app, pilot, "s")
    assert "stacks can be taken of a live run only" in screen_text(app) and not app.jobs.threads
    seen_live(app)
    await pilot.press("s", "s")  # once is enough
    await pilot.pause()
    assert "taking stacks…" in screen_text(app)
    go.set()
    for said in ("taken: 399 samples of 2 processes", "not permitted: see", "no stacks: Zero"):
        await wait_for(pilot, lambda: not app.jobs.threads)
        assert said in screen_text(app)
        seen_live(app)
        if len(asked) < len(outcomes):
            await pilot.press("s")
    assert asked == [app._path] * 3


@on_dashboard()
async def test_zoom_order_themes_the_palette_and_the_end(
    app: Dashboard, pilot: Pilot[None]
) -> None:
    await press(app, pilot, "3")
    before = screen_text(app)
    await press(app, pilot, "plus")
    assert screen_text(app) != before
    await press(app, pilot, "minus")
    assert screen_text(app) == before
    await press(app, pilot, *["minus"] * 20)
    assert isinstance(app.view, Workers) and app.view.zoom == 0
    await press(app, pilot, "5")
    for stage in ("fetch", "collate", "compute", "wait"):
        await press(app, pilot, "s")
        assert f"Slowest batches by {stage}" in screen_text(app)
    await press(app, pilot, "1", "t")
    assert not app.current_theme.dark
    for theme in ("ansi-dark", "ansi-light", "textual-dark"):
        app.theme = theme
        await pilot.pause()
        assert "input-bound" in screen_text(app)
    titles = [command.title for command in app.get_system_commands(app.screen)]
    assert {"Show Workers", "Loader Validation, rank 0"} <= set(titles)
    await pilot.press("ctrl+p")
    await pilot.press(*"Show Workers")
    await pilot.pause(1)
    await pilot.press("enter")
    await pilot.pause()
    assert app.query_one(ContentSwitcher).current == "view2"
    await pilot.press("q")
    await pilot.pause()
    assert not app.is_running or app._exit


@on_dashboard()
async def test_a_run_removed_while_shown_stays(app: Dashboard, pilot: Pilot[None]) -> None:
    shutil.rmtree(app._path)
    app.reader._follower._look_due_ns = 0
    await refresh(app, pilot)
    assert app.snapshot.state == "removed" and "directory was removed" in screen_text(app)
    assert "input-bound" in screen_text(app)
    for key in ("2", "3", "4", "5", "6", "1", "left", "space", "l"):
        await press(app, pilot, key)


def test_a_run_that_died_says_so(runs_dir: Path) -> None:
    run = RunBuilder(runs_dir)
    train(run, ended=False, host=platform.node(), pid=2**22 + 1, boot_id=None)

    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        assert app.query_one(Banner).display
        assert "the run died" in screen_text(app)

    with_dashboard(run.path, act)


def test_an_empty_run_waits(runs_dir: Path) -> None:
    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        for key in (*"123456", "left", "space", *"clr", "home", "s", "1"):
            await press(app, pilot, key)
        assert "Waiting for the first batch" in screen_text(app)

    with_dashboard(RunBuilder(runs_dir).path, act, (80, 24))


@pytest.mark.parametrize("size", [(20, 6), pytest.param((240, 70), marks=pytest.mark.slow)])
def test_it_draws_at_any_size_and_through_a_storm_of_them(path, size):
    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        for number in range(1, 7):
            await press(app, pilot, str(number))
        for step in range(30):
            columns, rows = size[0] - step * 7 % 40, size[1] - step * 3 % 9
            await pilot.resize_terminal(max(1, columns), max(1, rows))
        await pilot.resize_terminal(80, 24)
        await press(app, pilot, "1")
        assert "input-bound" in screen_text(app)

    with_dashboard(path, act, size)
