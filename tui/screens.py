"""The screens: which panels they have."""

from collections.abc import Iterator
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll

from .draw import advice, batches, machine, overview, trials, workers
from .draw import code_screen as code
from .panel import Panel
from .snapshot import Snapshot


class View(VerticalScroll):
    """One screen. `show` hands the snapshot to its panels."""

    DEFAULT_CSS = """
    View { height: 1fr; width: 1fr; scrollbar-gutter: stable; }
    View #verdict { height: 5; text-wrap: wrap; }
    """

    def show(self, snapshot: Snapshot) -> None:
        for panel in self.query(Panel):
            panel.show(snapshot)


class Trials(View):
    """The settings that are tried on the loader while it is at work."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "app.tuning('keep')", "Keep"),
        Binding("b", "app.tuning('back')", "Put back"),
        Binding("x", "app.tuning('stop')", "Stop"),
    ]


def views() -> Iterator[View]:
    """In the order of `panel.SCREENS`."""
    yield View(
        Panel("Verdict", overview.verdict, id="verdict"),
        Panel("What to change", advice.brief),
        Panel("Pace", overview.pace, id="pace"),
        Panel("Causes of waiting", overview.waiting),
        Panel("Stages of a batch", overview.stages),
    )
    yield View(Panel("Advice", advice.full))
    yield View(Panel("Lanes: the newest batches", workers.timeline))
    yield View(Panel("Machine", machine.meters))
    yield View(Panel("Stages", batches.stages), Panel("Slowest batches", batches.slowest))
    yield View(Panel("Stacks", code.status), Panel("Inside the stages", code.inside))
    yield Trials(Panel("Tuning", trials.status), Panel("Trials", trials.table))
