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
    ("l   r", "next loader; same loader in the next rank or process"),
    ("space", "live run: pause the screen, or go on; finished run: play it"),
    ("← →", "back and forward in time (Shift: faster; also , . < >); or drag the time line"),
    ("home end", "first batches; newest batches (also n)"),
    ("c", "copy the recommendation's code"),
    ("d", "Advice: the recommendation as a patch of your source, not tried; or its code again"),
    ("+ -", "Workers: zoom the lanes"),
    ("s", "Batches: sort by another time; Code: take stacks of a live run now"),
    ("k b x", "Trials: keep the settings on trial; put the code's own back; stop trying"),
    ("o", "run --live: show the script's output below, alone, or not at all"),
    ("t", "dark or light theme; Ctrl-P: more themes, screens and loaders"),
    ("q", "quit; with run --live the script goes on and prints to the terminal"),
)

_TERMS = (
    ("stall share", "share of the loop's time in which the device (or the loop) waited for data"),
    ("headroom", "speed-up if loading were free: the upper bound of all advice"),
    ("used", "how busy the stage is: all workers together, the pin thread, the device or the loop"),
    ("of step", "stage time / loop time; more than 100 % if workers run in parallel"),
    ("queue", "batches that are ready, of at most workers x prefetch_factor"),
    ("itself", "Code: the function's own share of its stage; the bar includes its callees"),
    ("ranks", "Workers: one cell per rank; darker means longer waits for data"),
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
