"""The screens: which panels they have, and how these lie at different sizes."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ..advisors.schema.report_model import Recommendation
from .draw import advice, batches, machine, overview, trials, workers
from .draw import code_screen as code
from .panel import Panel
from .snapshot import AdviceView, Snapshot


class View(Container):
    """One screen. `show` hands the snapshot to its panels."""

    DEFAULT_CSS = "View { height: 1fr; width: 1fr; }"

    def show(self, snapshot: Snapshot) -> None:
        for panel in self.query(Panel):
            panel.show(snapshot)


class Overview(View):
    """Where the time goes, and what to change."""

    DEFAULT_CSS = """
    Overview { overflow-y: scroll; }
    Overview #verdict { height: 5; text-wrap: wrap; }
    """

    def compose(self) -> ComposeResult:
        yield Panel("Verdict", overview.verdict, id="verdict")
        yield Panel("What to change", overview.advice)
        yield Panel("Pace", overview.pace, id="pace")
        yield Panel("Causes of waiting", overview.waiting)
        yield Panel("Stages of a batch", overview.stages)


class Advice(View):
    """Each recommendation with its evidence; what would not help."""

    DEFAULT_CSS = """
    Advice Horizontal { height: 1fr; }
    Advice OptionList { width: 34; height: 1fr; padding: 0 1; background: $background; }
    Advice OptionList, Advice OptionList:focus { border: none; border-right: solid $secondary; }
    Advice OptionList > .option-list--option-highlighted { background: $panel-lighten-1;
                                                           text-style: bold; }
    Advice OptionList:focus > .option-list--option-highlighted { background: $panel-lighten-1;
                                                                 text-style: bold; color: $text; }
    Advice OptionList:ansi > .option-list--option-highlighted { text-style: bold reverse; }
    Advice VerticalScroll { width: 1fr; padding: 0 1; }
    Advice #detail { width: 1fr; height: auto; }
    """

    def compose(self) -> ComposeResult:
        self._advice = AdviceView()
        self._targets: list[advice.Target] = []
        with Horizontal():
            yield OptionList(id="entries")
            with VerticalScroll():
                yield Static("", id="detail", markup=False)

    def show(self, snapshot: Snapshot) -> None:
        if snapshot.advice == self._advice:
            return
        options, before = self.query_one(OptionList), _rule(self.target)
        self._advice, found = snapshot.advice, advice.entries(snapshot.advice)
        self._targets = [target for target, _ in found]
        options.clear_options()
        options.add_options(Option(line, disabled=target is None) for target, line in found)
        rules = [_rule(target) for target in self._targets]
        if found:
            options.highlighted = rules.index(before) if before and before in rules else 1
        self._detail()

    @property
    def target(self) -> advice.Target:
        """What is looked at."""
        number = self.query_one(OptionList).highlighted
        return self._targets[number] if number is not None else None

    def on_option_list_option_highlighted(self) -> None:
        self._detail()
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def on_resize(self) -> None:
        self._detail()

    def _detail(self) -> None:
        width = max(20, self.size.width - 38)
        shown = advice.detail(self._advice, self.target, width)
        self.query_one("#detail", Static).update(shown)


def _rule(target: advice.Target) -> str | None:
    return target.rule if isinstance(target, Recommendation) else target


class Workers(View):
    """A lane a worker."""

    DEFAULT_CSS = """
    Workers #legend { border: none; }
    Workers VerticalScroll { height: 1fr; }
    """

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Panel("Lanes: the newest batches", workers.timeline, id="lanes")
        yield Panel("", workers.legend, id="legend")


class System(View):
    """The machine."""

    DEFAULT_CSS = """
    System VerticalScroll { height: 1fr; }
    """

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Panel("Machine", machine.meters, id="meters")


class Batches(View):
    """Every stage with its percentiles, and the slowest batches."""

    DEFAULT_CSS = """
    Batches VerticalScroll { height: 1fr; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("s", "sort", "Sort")]

    by = 0

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Panel("Stages", batches.stages)
            yield Panel(self._title(), batches.slowest, id="slowest")

    def action_sort(self) -> None:
        self.by = (self.by + 1) % len(batches.STAGES)
        panel = self.query_one("#slowest", Panel)
        panel.border_title = self._title()
        panel.draw_with(partial(batches.slowest, by=batches.STAGES[self.by]))

    def _title(self) -> str:
        return f"Slowest batches by {batches.STAGES[self.by]}"


class Code(View):
    """Which functions and lines the time goes to."""

    DEFAULT_CSS = """
    Code VerticalScroll { height: 1fr; }
    """

    def compose(self) -> ComposeResult:
        yield Panel("Stacks", code.status, id="stacks")
        with VerticalScroll():
            yield Panel("Inside the stages", code.inside, id="inside")


class Trials(View):
    """The settings that are tried on the loader while it is at work."""

    DEFAULT_CSS = """
    Trials VerticalScroll { height: 1fr; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "app.tuning('keep')", "Keep"),
        Binding("b", "app.tuning('back')", "Put back"),
        Binding("x", "app.tuning('stop')", "Stop"),
    ]

    def compose(self) -> ComposeResult:
        yield Panel("Tuning", trials.status, id="trying")
        with VerticalScroll():
            yield Panel("Trials", trials.table, id="tried")


VIEWS: tuple[type[View], ...] = (Overview, Advice, Workers, System, Batches, Code, Trials)
