"""The dashboard: keys, the choice of screen, loader and moment. Reading happens in `reader`,
drawing in `draw`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Footer

from ..profiler.store.run.follow import Follower, Place
from ..profiler.store.run.take_stacks import take_stacks
from ..profiler.store.run.tuning import Wish as Asked
from ..profiler.store.run.tuning import ask
from .bars import SCREENS, TRIALS, Banner, Scrubber, Tabs, TopLine
from .help import HelpScreen
from .reader import INTERVAL_S, Post, Reader
from .screens import SIZES, VIEWS, Advice, Code, View
from .snapshot import Choice, Snapshot
from .snapshot_builder import Wish
from .stack_requests import Take, Taken, Taker
from .themes import DARK, LIGHT, fitting

# One press of an arrow key moves so much of the run; playing lasts about a minute, but never goes
# faster than life on a short run.
STEP_SHARE = 0.01
LEAP_SHARE = 0.1
PLAY_TICKS = 120


class Fresh(Message):
    """There is a new snapshot. A newer one takes its place, so that a slow terminal never lags
    behind."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Fresh)


class Took(Message):
    """Taking stacks has ended."""

    def __init__(self, taken: Taken) -> None:
        super().__init__()
        self.taken = taken


class Dashboard(App[None]):
    """Shows one run; `reader` makes what reads it, given where snapshots go; `take` takes stacks of
    a live run."""

    TITLE = "Loaderscope"
    ENABLE_COMMAND_PALETTE = True
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 (as Textual declares it)
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]  # noqa: RUF012 (as Textual declares it)

    CSS = (
        SIZES
        + """
    Screen { layout: vertical; overflow: hidden; }
    #body { height: 1fr; }
    #screens { height: 1fr; width: 1fr; }
    Footer { height: 1; }
    """
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"look({n - 1})", name, show=False) for n, name in enumerate(SCREENS, 1)),
        Binding("q", "quit", "Quit"),
        Binding("question_mark,h", "help", "Help", key_display="?"),
        Binding("space", "pause", "Hold", key_display="space", priority=True),
        Binding("left,comma", f"move(-{STEP_SHARE})", "Time", key_display="← →", priority=True),
        Binding("right,full_stop", f"move({STEP_SHARE})", "On", show=False, priority=True),
        Binding(
            "shift+left,less_than_sign",
            f"move(-{LEAP_SHARE})",
            "Far back",
            show=False,
            priority=True,
        ),
        Binding(
            "shift+right,greater_than_sign",
            f"move({LEAP_SHARE})",
            "Far on",
            show=False,
            priority=True,
        ),
        Binding("home", "go(0)", "Beginning", show=False, priority=True),
        Binding("end,n", "go(1)", "Newest", key_display="end", show=False, priority=True),
        Binding("l", "next_loader", "Loader"),
        Binding("r", "next_rank", "Rank"),
        Binding("c", "copy", "Copy"),
        Binding("t", "theme", "Theme", show=False),
    ]

    _ONLY_ON_MAIN = frozenset(
        {
            "pause",
            "move",
            "go",
            "look",
            "next_loader",
            "next_rank",
            "copy",
            "help",
            "stacks",
            "tuning",
        }
    )

    def __init__(
        self, path: Path, reader: Callable[[Post], Reader] | None = None, take: Take = take_stacks
    ) -> None:
        super().__init__()
        self._path = path
        self._take = take
        self._taker: Taker | None = None
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = fitting(os.environ)
        self.reader = (
            reader(self._post) if reader is not None else Reader(Follower(path), self._post)
        )
        self.snapshot: Snapshot | None = None
        self.draw_s: list[
            float
        ] = []  # what the newest refreshes cost this thread, for the benchmark
        self._place: Place | None = None
        self._at_ns: int | None = None
        self._playing = False

    def compose(self) -> ComposeResult:
        yield TopLine()
        yield Tabs()
        yield Banner()
        with Container(id="body"):
            yield from self.compose_body()
        yield Scrubber()
        yield Footer(compact=True)

    def compose_body(self) -> ComposeResult:
        """The screens; with a script's output beside them where there is one."""
        with ContentSwitcher(initial="view0", id="screens"):
            for number, view in enumerate(VIEWS):
                yield view(id=f"view{number}")

    def on_mount(self) -> None:
        self._player = self.set_interval(INTERVAL_S, self._play)
        self.reader.start()

    def on_unmount(self) -> None:
        self.reader.stop()

    def end_work(self) -> None:
        """After `run`: no thread of the dashboard is left. What they are at is given up."""
        self.reader.end()
        if self._taker is not None:
            self._taker.end()

    @property
    def view(self) -> View:
        """The screen looked at."""
        return self.query_one(f"#view{self.query_one(Tabs).current}", View)

    def _post(self, snapshot: Snapshot) -> None:
        self.post_message(Fresh(snapshot))

    def on_fresh(self, message: Fresh) -> None:
        began = time.perf_counter()
        s = self.snapshot = message.snapshot
        self.query_one(TopLine).snapshot = s
        self.query_one(Scrubber).snapshot = s
        self.query_one(Banner).snapshot = s
        self.query_one(Tabs).advice = len(s.advice.recommendations)
        self.query_one(Tabs).trials = s.tuning is not None
        self.view.show(s)
        self.draw_s = [*self.draw_s[-99:], time.perf_counter() - began]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the dashboard do nothing while help or the palette is open."""
        return not (action in self._ONLY_ON_MAIN and len(self.screen_stack) > 1)

    def action_look(self, number: int) -> None:
        """Show another screen."""
        if number == TRIALS and (self.snapshot is None or self.snapshot.tuning is None):
            self.notify("No settings are tried on this loader: loaderscope tune does.", timeout=3)
            return
        self.query_one(Tabs).current = number
        self.query_one(ContentSwitcher).current = f"view{number}"
        if self.snapshot is not None:
            self.view.show(self.snapshot)
        focusable = [each for each in self.view.query("*") if each.focusable]
        self.set_focus(focusable[0] if focusable else None)

    def on_tabs_chosen(self, message: Tabs.Chosen) -> None:
        self.action_look(message.number)

    def on_top_line_loader_clicked(self) -> None:
        self.action_next_loader()

    def on_scrubber_moved(self, message: Scrubber.Moved) -> None:
        self.action_go(message.share)

    def action_go(self, share: float) -> None:
        """Look at the moment at this share of the run's time; 1 is the newest, and stays so."""
        times = self.snapshot.times if self.snapshot is not None else None
        if times is None:
            return
        self._playing = False
        if share >= 1:
            self._wish(None)
        else:
            self._wish(times.begin_ns + int(max(0.0, share) * (times.end_ns - times.begin_ns)))

    def action_move(self, share: float) -> None:
        """Forward or back by a share of the run's time."""
        times = self.snapshot.times if self.snapshot is not None else None
        if times is None:
            return
        at = times.end_ns if self._at_ns is None else self._at_ns
        if self._at_ns is None and share > 0:
            return
        self.action_go((at - times.begin_ns) / max(1, times.end_ns - times.begin_ns) + share)

    def action_pause(self) -> None:
        """Hold what is shown, or go on: with the newest while the run lives, else by playing."""
        s = self.snapshot
        if s is None or s.times is None:
            return
        if self._playing:
            self._playing = False
            self._wish(self._at_ns)
        elif self._at_ns is None and s.state == "live":
            self._wish(s.times.end_ns)
        elif s.state == "live":
            self._wish(None)
        else:
            self._playing = True
            self._wish(s.times.begin_ns if self._at_ns is None else self._at_ns)

    def _play(self) -> None:
        times = self.snapshot.times if self.snapshot is not None else None
        if not self._playing or times is None or self._at_ns is None:
            return
        step = max(int(INTERVAL_S * 1e9), (times.end_ns - times.begin_ns) // PLAY_TICKS)
        if self._at_ns + step >= times.end_ns:
            self._playing = False
            self._wish(None)
        else:
            self._wish(self._at_ns + step)

    def _wish(self, at_ns: int | None) -> None:
        self._at_ns = at_ns
        scrubber = self.query_one(Scrubber)
        scrubber.playing = self._playing
        scrubber.frozen = (
            at_ns is not None and self.snapshot is not None and self.snapshot.state == "live"
        )
        self.reader.wish(Wish(self._place, at_ns))

    def action_next_loader(self) -> None:
        """The next loader of the same process; after the last one, the first."""
        choice = self._asked_for()
        if choice is not None:
            self._next(
                [each for each in self._choices() if each.place.process == choice.place.process],
                choice,
            )

    def action_next_rank(self) -> None:
        """The same loader in the next process."""
        choice = self._asked_for()
        if choice is not None:
            self._next(
                [each for each in self._choices() if each.place.loader == choice.place.loader],
                choice,
            )

    def _asked_for(self) -> Choice | None:
        """The loader asked for last, though it may not be drawn yet: keys may come faster than
        snapshots."""
        shown = self.snapshot.choice if self.snapshot is not None else None
        return next((each for each in self._choices() if each.place == self._place), shown)

    def _choices(self) -> tuple[Choice, ...]:
        return self.snapshot.choices if self.snapshot is not None else ()

    def _next(self, among: list[Choice], now: Choice) -> None:
        if len(among) < 2:
            self.notify("There is no other one.", timeout=2)
            return
        self.choose(among[(among.index(now) + 1) % len(among)].place)

    def choose(self, place: Place) -> None:
        """Look at this loader, newest batches first."""
        self._place = place
        self._playing = False
        self._wish(None)

    def action_copy(self) -> None:
        """Copy the code of the recommendation looked at (of the best one on the other screens)."""
        view = self.view
        found = view.recommendation() if isinstance(view, Advice) else None
        if found is None and self.snapshot is not None and not isinstance(view, Advice):
            found = next(iter(self.snapshot.advice.recommendations), None)
        if found is None or not found.change.code:
            self.notify("There is no code to copy here.", timeout=2)
            return
        self.copy_to_clipboard(found.change.code)
        self.notify(f"The code of {found.rule} is on the clipboard.", timeout=3, markup=False)

    def action_stacks(self) -> None:
        """Take stacks of the run now, beside everything else."""
        if self._taker is not None:
            return
        code = self.query_one(Code)
        if self.snapshot is None or self.snapshot.state != "live":
            code.say(Taken(False, "stacks can be taken of a live run only"))
            return
        code.say(Taken(None, "taking stacks…"))
        self._taker = Taker(self._path, lambda taken: self.post_message(Took(taken)), self._take)
        self._taker.start()

    def on_took(self, message: Took) -> None:
        self._taker = None
        self.query_one(Code).say(message.taken)
        self.reader.advise_soon()

    def action_tuning(self, wish: Asked) -> None:
        """Ask the process that tries settings to keep, to put back, or to stop."""
        s = self.snapshot
        tuning = s.tuning if s is not None and s.state == "live" else None
        if tuning is None or (
            tuning.tuned.decided and (wish != "back" or tuning.tuned.chosen == tuning.tuned.own)
        ):
            self.notify("There is nothing to change any more.", timeout=3)
            return
        try:
            ask(self._path / tuning.place.process, tuning.place.loader, wish)
        except OSError as error:
            self.notify(
                f"The run directory cannot be written: {error.strerror or error}",
                timeout=5,
                markup=False,
            )
            return
        self.notify("Asked: it happens after the window now at work.", timeout=3)

    def action_theme(self) -> None:
        """Dark or light."""
        dark = self.current_theme.dark
        if self.current_theme.ansi:
            self.theme = "ansi-light" if dark else "ansi-dark"
        else:
            self.theme = LIGHT.name if dark else DARK.name

    def action_help(self) -> None:
        self.push_screen(HelpScreen())

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The command palette (Ctrl-P): the screens, every loader, and Textual's own."""
        yield from super().get_system_commands(screen)
        for number, name in enumerate(SCREENS):
            yield SystemCommand(
                f"Show {name}", f"Screen {number + 1}", lambda n=number: self.action_look(n)
            )
        for choice in self._choices():
            rank = f"rank {choice.rank}" if choice.rank is not None else f"process {choice.pid}"
            name = choice.name.replace("[", "(")  # the palette reads markup
            yield SystemCommand(
                f"Loader {name}, {rank}", "Look at this one", lambda p=choice.place: self.choose(p)
            )
        yield SystemCommand("Newest", "Show the newest batches", lambda: self.action_go(1))
        yield SystemCommand("Copy the change", "The recommendation's code", self.action_copy)
