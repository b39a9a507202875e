"""Keys and definitions, over the dashboard."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ..reports.words.glosses import GLOSSES
from .draw.marks import MARK, line, lines

KEYS = (
    ("1 … 7", "Overview, Advice, Workers, System, Batches, Code, Trials (or click)"),
    ("l   r", "the next loader; the same loader in the next rank or process"),
    ("space", "live: hold what is shown, and go on; a finished run: play it"),
    ("← →", "back and on in time (with Shift: far; or , . < >); a click or drag on the time line"),
    ("home end", "the beginning; the newest (also n)"),
    ("c", "copy the recommendation's code"),
    ("+ -", "Workers: zoom the lanes"),
    ("s", "Batches: sort the slowest by another time; Code: take stacks of a live run now"),
    ("k b x", "Trials: keep what is tried now; put the code's settings back; try no more"),
    ("o", "with run --live: the script's output beside, alone, or away"),
    ("t", "dark or light; Ctrl-P has more themes, and goes to any screen or loader"),
    ("q", "leave; with run --live the script goes on, its output here"),
)

_TERMS = (
    (
        "stall share",
        "part of the loop's time in which the device (or the loop) had nothing to do for want of "
        "data",
    ),
    ("headroom", "how much faster training would be if loading were free: no advice can give more"),
    (
        "used",
        "how busy what does this stage is: the workers together, the pin thread, the device, the "
        "loop",
    ),
    (
        "of step",
        "the stage's time over the loop's time; stages that run side by side may exceed 100 %",
    ),
    ("queue", "batches ready, of those that may be made ahead (workers x prefetch_factor)"),
    ("itself", "Code: the function's own share of its stage; the bar counts what it calls too"),
    ("ranks", "Workers: a cell a rank of the job, darker the longer it waits for its data"),
    ("head of line", "the loop waits for one batch while a later one is ready: order costs time"),
)


class HelpScreen(ModalScreen[None]):
    """Closed by Escape, q, ? or a click outside."""

    CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll { width: 90%; max-width: 100; height: auto; max-height: 90%;
                                border: round $primary; background: $surface; padding: 0 2; }
    HelpScreen Static { height: auto; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,h", "dismiss", "Close")
    ]

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = "Help (Escape closes it)"
            yield Static(_content(), markup=False)

    def on_click(self) -> None:
        self.dismiss()


def _content() -> Content:
    stages = [(name, meaning) for name, _, meaning in GLOSSES.values() if name.strip()]
    rows = []
    for title, pairs in (("Keys", KEYS), ("Words", (*_TERMS, *stages))):
        rows.append(line((title, "bold underline")))
        rows += [line((f"{word:<14}", f"bold {MARK}"), meaning) for word, meaning in pairs]
    return lines(rows)
