"""Every key does what help says it does, on a dashboard of a fixed run."""

import platform
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import ContentSwitcher, HelpPanel

from builders import RunBuilder
from dashboard_samples import CODE, advised, on_dashboard, press, ranks, train, with_dashboard
from loaderscope.tui.app import Dashboard
from loaderscope.tui.panel import Banner
from screen_text import screen_text


@pytest.fixture
def path(runs_dir: Path) -> Path:
    return ranks(runs_dir)[0].path


@on_dashboard()
async def test_screens_by_click_and_help_by_its_key(app: Dashboard, pilot: Pilot[None]) -> None:
    await pilot.click("Tabs", offset=(16, 0))
    assert app.query_one(ContentSwitcher).current == "view1"
    await press(app, pilot, "question_mark")
    words = screen_text(app)
    assert all(word in words for word in ("Workers", "Loader", "Rank", "Copy", "Quit"))
    await press(app, pilot, "question_mark")
    assert not app.screen.query(HelpPanel)


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
async def test_code_is_copied(app: Dashboard, pilot: Pilot[None]) -> None:
    await press(app, pilot, "c")
    assert app.clipboard == CODE
    app.copy_to_clipboard("nothing")
    app.snapshot = replace(app.snapshot, advice=advised(recommendations=()))
    await pilot.press("c")
    assert app.clipboard == "nothing"


@on_dashboard()
async def test_themes_and_the_end(app: Dashboard, pilot: Pilot[None]) -> None:
    for theme in ("ansi-dark", "ansi-light", "textual-light"):
        app.theme = theme
        await pilot.pause()
        assert "input-bound" in screen_text(app)
    await pilot.press("q")
    await pilot.pause()
    assert not app.is_running or app._exit


@on_dashboard()
async def test_a_run_removed_while_shown_stays(app: Dashboard, pilot: Pilot[None]) -> None:
    shutil.rmtree(app._path)
    await press(app, pilot)
    assert app.snapshot.state == "removed" and "directory was removed" in screen_text(app)
    assert "input-bound" in screen_text(app)
    for key in ("2", "3", "4", "5", "6", "1", "l"):
        await press(app, pilot, key)


def test_a_run_that_died_says_so(runs_dir: Path) -> None:
    run = RunBuilder(runs_dir)
    train(run, ended=False, host=platform.node(), pid=2**22 + 1, boot_id=None)

    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        assert app.query_one(Banner).display and "the run died" in screen_text(app)

    with_dashboard(run.path, act)


def test_an_empty_run_waits(runs_dir: Path) -> None:
    async def act(app: Dashboard, pilot: Pilot[None]) -> None:
        for key in (*"123456", *"clr", "1"):
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
