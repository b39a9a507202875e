"""Every screen of a fixed run at two sizes, as text; of one, as SVG, for its colours. To accept a
change: LOADERSCOPE_UPDATE_GOLDEN=1 pytest tests/tui"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from builders import RunBuilder
from dashboard_samples import HOSTILE, dashboard, live_dashboard, refresh, sampled, train
from loaderscope.tui.panel import SCREENS, TRIALS, Panel
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
    for words in screens.values():
        assert "<script>[b]red[/b]" in words
        assert "\x1b" not in words
