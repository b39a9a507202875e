"""Draws the pictures of the documents anew: the dashboard of a real run, moving, and its report.

    python docs/screenshots.py        (or: make screenshots)

Trains a small model through a badly configured loader and watches it in the dashboard, then opens
what was recorded. Needs Chromium, as the browser tests do.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WAYS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZE = (116, 34)  # columns and rows of the terminal
LIVE, EVERY_S = 8, 0.7  # frames of the run as it goes on, and between two of them
SHOWN_MS = {"1": 700, "2": 3500, "6": 3000}  # a frame of each screen, by its key
MOST_BYTES = 1_000_000

SCRIPT = """
import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __init__(self):
        self.features = torch.randn(200_000, 33)
        self.labels = torch.randint(0, 10, (200_000,))

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.features[index], self.labels[index]


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(33, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Points(), 100, shuffle=True, num_workers=2, persistent_workers=True)
    for epoch in range(6):
        for x, y in loader:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
"""


async def screens(runs: Path) -> list[tuple[str, str]]:
    """(its key, SVG) of screens of the dashboard: the overview of the run that begins in this
    folder as it changes, then where to look next."""
    from loaderscope.tui.app import Dashboard

    while not (found := [*runs.glob("*/run.json")]):
        await asyncio.sleep(0.1)
    app, seen = Dashboard(found[0].parent), []
    async with app.run_test(size=SIZE) as pilot:

        async def see(key: str, word: str) -> None:
            for _ in range(300):
                drawn = app.export_screenshot()
                if word in drawn.replace("&#160;", " "):
                    break
                await pilot.pause(0.1)
            seen.append((key, drawn))

        for _ in range(LIVE):
            await see("1", "Headroom")
            await pilot.pause(EVERY_S)
        await see("1", "one lookup")
        for key, word in (("2", "class "), ("6", "Inside fetch")):
            await pilot.press(key)
            await see(key, word)
    return seen


def moving(frames: Iterable[tuple[str, bytes]]) -> bytes:
    """A GIF of these screens (key, PNG)."""
    from PIL import Image

    keys, shots = zip(*frames, strict=True)
    first, *more = (Image.open(BytesIO(each)).convert("RGB") for each in shots)
    times, made = [SHOWN_MS[key] for key in keys], BytesIO()
    first.save(made, "GIF", save_all=True, append_images=more, duration=times, loop=0)
    return made.getvalue()


def shot(browser: Any, source: Path) -> bytes:
    """A page as PNG; of one with nothing but a drawing, that."""
    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.goto(source.as_uri())
    page.wait_for_timeout(1500)
    drawing = page.locator("body > svg:only-child")
    made = drawing.screenshot() if drawing.count() else page.screenshot()
    page.close()
    return bytes(made)


def main() -> int:
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, WAYS)), None)
    if chromium is None:
        print("Chromium is needed: apt-get install chromium", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["LOADERSCOPE_DIR"] = str(folder / "runs")
        (folder / "train.py").write_text(SCRIPT)
        command = [sys.executable, "-m", "loaderscope"]
        with subprocess.Popen([*command, "run", "--quiet", "train.py"], cwd=folder):
            seen = asyncio.run(screens(folder / "runs"))
        page, screen = folder / "report.html", folder / "screen.html"
        subprocess.run([*command, "report", "--format", "html", "-o", str(page)], check=True)
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            frames = []
            for key, svg in seen:
                screen.write_text(svg)
                frames.append((key, shot(browser, screen)))
            picture = moving(frames)
            (HERE / "dashboard.gif").write_bytes(picture)
            (HERE / "report.png").write_bytes(shot(browser, page))
    print(f"docs/dashboard.gif: {len(frames)} frames, {len(picture) / 1e3:,.0f} kB")
    return int(len(picture) > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
