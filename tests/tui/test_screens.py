"""Every screen of a fixed run at two sizes, as SVG. To accept a change: LOADERSCOPE_UPDATE_GOLDEN=1
pytest tests/tui"""

from __future__ import annotations

import asyncio
import html
import os
import re
from pathlib import Path

import pytest

from builders import RunBuilder
from dashboard_samples import HOSTILE, dashboard, live_dashboard, refresh, sampled, train
from loaderscope.tui.bars import SCREENS, TRIALS
from loaderscope.tui.panel import Panel

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("LOADERSCOPE_UPDATE_GOLDEN") == "1"


def text_of(svg: str) -> str:
    """The words on a screen."""
    return html.unescape(re.sub(r"<[^>]+>", "\n", svg)).replace("\xa0", " ")


async def screens_of(path: Path, size: tuple[int, int]) -> dict[str, str]:
    app = dashboard(path)
    found = {}
    async with app.run_test(size=size) as pilot:
        await refresh(app, pilot)
        for number, name in enumerate(SCREENS[:TRIALS], 1):
            await pilot.press(str(number))
            await pilot.pause()
            found[name] = re.sub(
                r"@font-face \{.*?\}\s*", "", app.export_screenshot(), flags=re.DOTALL
            )
        assert app.snapshot is not None
        assert app.snapshot.problem is None
    return found


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids=["80x24", "200x60"])
def test_screens(size: tuple[int, int], runs_dir: Path) -> None:
    run = RunBuilder(runs_dir)
    train(run)
    sampled(run)
    for name, svg in asyncio.run(screens_of(run.path, size)).items():
        path = GOLDEN / f"{name.lower()}_{size[0]}.svg"
        if UPDATE:
            path.parent.mkdir(exist_ok=True)
            path.write_text(svg)
        assert svg == path.read_text(), f"{path.name} has changed: look at it, then update it"


async def overview_beside_output(path: Path, size: tuple[int, int]) -> tuple[str, list[str]]:
    """The first screen of `run --live` as SVG, and the rows of Pace that are seen."""
    app = live_dashboard(path)
    async with app.run_test(size=size) as pilot:
        await refresh(app, pilot)
        panel = app.query_one("#pace", Panel)
        seen = panel.region.intersection(app.query_one("#view0").region)
        rows = panel.render().plain.splitlines()[: seen.height - 1] if panel.display else []
        svg = re.sub(r"@font-face \{.*?\}\s*", "", app.export_screenshot(), flags=re.DOTALL)
    return svg, rows


@pytest.mark.parametrize(
    "size", [(80, 24), (100, 30), (130, 42), (200, 60)], ids="{0[0]}x{0[1]}".format
)
def test_pace_has_its_rows_beside_the_output_of_a_script(
    size: tuple[int, int], runs_dir: Path
) -> None:
    run = RunBuilder(runs_dir)
    train(run)
    sampled(run)
    svg, rows = asyncio.run(overview_beside_output(run.path, size))
    assert [row.split("  ")[0] for row in rows if row[:1].isalpha()] == [
        "batches/s",
        "samples/s",
        "wait share",
    ]
    words = text_of(svg)
    assert "epoch 1" in words and all(
        label in words for label in ("batches/s", "samples/s", "wait share")
    )
    path = GOLDEN / f"live_{size[0]}.svg"
    if UPDATE:
        path.write_text(svg)
    assert svg == path.read_text(), f"{path.name} has changed: look at it, then update it"


def test_nothing_of_the_run_is_markup(runs_dir: Path) -> None:
    run = RunBuilder(runs_dir, argv=[HOSTILE])
    train(run, name=HOSTILE)
    sampled(run)
    for svg in asyncio.run(screens_of(run.path, (120, 40))).values():
        words = text_of(svg)
        assert "<script>[b]red[/b]" in words
        assert "\x1b" not in words
