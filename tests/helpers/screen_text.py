"""What a dashboard shows, as text, and the files it is compared with."""

import os
from importlib.metadata import version
from pathlib import Path

from loaderscope.tui.app import Dashboard

TESTS = Path(__file__).parents[1]
# Until then, rich gave some columns of tables another width.
SPACED = int(version("rich").partition(".")[0]) >= 15
UPDATE = os.environ.get("LOADERSCOPE_UPDATE_GOLDEN") == "1"


def screen_text(app: Dashboard) -> str:
    """The words of the screen, without spaces at the ends of lines."""
    strips = app.screen._compositor.render_strips()
    rows = ("".join(segment.text for segment in strip).rstrip() for strip in strips)
    return "\n".join(rows).rstrip("\n") + "\n"


def check_golden(name: str, found: str, folder: str = "tui") -> None:
    """Compares with a file, which LOADERSCOPE_UPDATE_GOLDEN=1 writes."""
    path = TESTS / folder / "golden" / name
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    same = found == expected if SPACED else found.split() == expected.split()
    assert same, f"{name} has changed: look at it, then update it"
