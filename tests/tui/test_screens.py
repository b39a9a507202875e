"""Screens of a fixed run. To accept a change: LOADERSCOPE_UPDATE_GOLDEN=1 pytest tests/tui"""

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import pytest

from builders import RunBuilder
from dashboard_samples import HOSTILE, advised, dashboard, live_dashboard, refresh, sampled, train
from inside_samples import CODE, FETCH, NO_CODE, hostile_code, hostile_storage
from loaderscope.profiler.store.run.follow import Follower
from loaderscope.tui.draw import code_screen as code
from loaderscope.tui.panel import SCREENS, TRIALS, Panel
from loaderscope.tui.snapshot import AdviceView, Snapshot, advice_of, snapshot_of
from screen_text import check_golden, screen_text


async def screens_of(path: Path, size: tuple[int, int]) -> tuple[dict[str, str], str]:
    """The text of each screen by its name, and the first as SVG."""
    app = dashboard(path)
    found = {}
    async with app.run_test(size=size) as pilot:
        await refresh(app, pilot)
        svg = re.sub(r"@font-face \{.*?\}\s*", "", app.export_screenshot(), flags=re.DOTALL)
        for number, name in enumerate(SCREENS[:TRIALS], 1):
            await pilot.press(str(number))
            await pilot.pause()
            found[name] = screen_text(app)
        assert app.snapshot.problem is None
    return found, svg


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=["80x24", "200x60"])
def test_screens(size: tuple[int, int], run: RunBuilder) -> None:
    screens, svg = asyncio.run(screens_of(run.path, size))
    for name, text in screens.items():
        check_golden(f"{name.lower()}_{size[0]}.txt", text)
    if size == (80, 24):
        check_golden("overview_80.svg", svg)


async def overview_beside_output(path: Path, size: tuple[int, int]) -> tuple[str, list[str]]:
    """The first screen of `run --live`, and the rows of Pace that are seen."""
    app = live_dashboard(path)
    async with app.run_test(size=size) as pilot:
        await refresh(app, pilot)
        panel = app.query_one("#pace", Panel)
        seen = panel.region.intersection(app.query_one("#view0").region)
        rows = panel.render().plain.splitlines()[: seen.height - 1] if panel.display else []
        return screen_text(app), rows


@pytest.mark.parametrize("size", [(80, 24), (130, 42), (200, 60)], ids="{0[0]}x{0[1]}".format)
def test_pace_has_its_rows_beside_the_output_of_a_script(size, run):
    words, rows = asyncio.run(overview_beside_output(run.path, size))
    labels = ["batches/s", "samples/s", "wait share", "queue"]
    assert [row.split("  ")[0] for row in rows if row[:1].isalpha()] == labels
    assert "epoch 1" in words and all(label in words for label in labels)
    if size == (130, 42):
        check_golden("live_130.txt", words)


def test_nothing_of_the_run_is_markup(runs_dir: Path) -> None:
    run = RunBuilder(runs_dir, argv=[HOSTILE])
    train(run, name=HOSTILE)
    sampled(run)
    screens, _ = asyncio.run(screens_of(run.path, (120, 40)))
    assert all("<script>[b]red[/b]" in words for words in screens.values())
    assert not any("\x1b" in words for words in screens.values())


def snapshot(advice: AdviceView | None = None) -> Snapshot:
    return Snapshot("run", (), "finished", advice=advice or advised())


@pytest.mark.parametrize("width", [1, 20, 40, 80, 200])
def test_lines_are_no_wider_than_their_room_where_there_is_some(width: int) -> None:
    drawn = code.inside(snapshot(), width).plain
    assert width < 60 or all(len(row) <= width for row in drawn.split("\n"))


@pytest.mark.parametrize(
    ("advice", "said"),
    [
        (None, "2,410 samples in 2 bursts"),
        (advised(code=NO_CODE), "py-spy is not installed: pip install"),
        (advised(code=None), "no stacks were taken (see loaderscope stacks)"),
        (AdviceView(), "no advice yet"),
        (advised(code=replace(CODE, reason="30 % may")), "30 % may"),
    ],
)
def test_status(advice, said):
    (row,) = code.status(snapshot(advice), 80).plain.split("\n")
    assert said in row


def test_nothing_known_is_said() -> None:
    stage = replace(CODE, stages={"fetch": replace(FETCH, samples=0)})
    for found in (None, stage):
        said = code.inside(snapshot(advised(code=found, storage=None)), 80).plain
        assert said == "no functions or files were seen"


def test_hostile_texts_are_only_texts() -> None:
    advice = advised(code=hostile_code(HOSTILE), storage=hostile_storage(HOSTILE))
    drawn = code.inside(snapshot(advice), 120)
    assert "<script>[b]red" in drawn.plain and "\x1b" not in drawn.plain


def test_snapshots_merge_no_stacks(run: RunBuilder) -> None:
    """They are made twice a second; what stacks show comes with the advice, each five seconds."""
    follower = Follower(run.path)
    follower.poll()
    found, recorded = snapshot_of(follower, None, AdviceView())
    assert found.loader is not None and recorded is not None and found.place is not None
    assert not code.code_stages(found.loader.report.code)
    assert advice_of(recorded, found.place).report is not None
