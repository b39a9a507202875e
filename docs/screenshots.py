"""Draws the pictures of the README anew: the dashboard and the HTML report of a real run.

    python docs/screenshots.py        (or: make screenshots)

Trains the demonstration's small model through its badly configured loader, then opens what was
recorded. Needs Chromium, as the browser tests do.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
WAYS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SIZE = (124, 38)  # columns and rows of the terminal

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
    for epoch in range(4):
        for x, y in loader:
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimiser.step()
"""


async def dashboard(run: Path) -> str:
    """The overview of the dashboard, as SVG."""
    from loaderscope.tui.app import Dashboard

    app = Dashboard(run)
    async with app.run_test(size=SIZE) as pilot:
        for _ in range(100):
            await pilot.pause(0.1)
            if app.snapshot is not None and "batched-getitems" in app.export_screenshot():
                break
        return app.export_screenshot()


def main() -> int:
    from playwright.sync_api import sync_playwright

    from loaderscope.advisors.assemble.build_report import build_report
    from loaderscope.profiler.store.run.run_reader import open_run
    from loaderscope.reports.html.html_report import render_html

    chromium = next(filter(None, map(shutil.which, WAYS)), None)
    if chromium is None:
        print("Chromium is needed: apt-get install chromium", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOADERSCOPE_DIR"] = folder
        script = Path(folder, "train.py")
        script.write_text(SCRIPT)
        command = [sys.executable, "-m", "loaderscope", "run", "--quiet", "train.py"]
        subprocess.run(command, check=True, cwd=folder)
        run = open_run("latest")
        page, screen = Path(folder, "report.html"), Path(folder, "dashboard.svg")
        content = render_html(build_report(run), run)
        page.write_text(content if isinstance(content, str) else content.decode())
        screen.write_text(asyncio.run(dashboard(run.path)))
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for source, target, height in (
                (screen, "dashboard.png", 822),
                (page, "report.png", 1000),
            ):
                shot = browser.new_page(viewport={"width": 1280, "height": height})
                shot.goto(source.as_uri())
                shot.wait_for_timeout(1500)
                if source is screen:
                    shot.locator("svg").first.screenshot(path=str(HERE / target))
                else:
                    shot.screenshot(path=str(HERE / target))
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
