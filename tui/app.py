"""The dashboard: keys, the choice of screen, loader and moment. Reading happens in `reader`,
drawing in `draw`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.screen import Screen
from textual.widgets import ContentSwitcher, Footer

from ..advisors.schema.report_model import Recommendation
from ..profiler.store.run.follow import Follower, Place
from ..profiler.store.run.take_stacks import take_stacks
from ..profiler.store.run.tuning import TuneCommand, ask
from . import ascii
from .help import HelpScreen
from .panel import SCREENS, TRIALS, Banner, Bar, Scrubber, Tabs, TopLine
from .reader import INTERVAL_S, Diff, Jobs, Reader, Take, Taken, diff_of, taken
from .screens import SIZES, VIEWS, Advice, Code, View
from .snapshot import Snapshot, ViewRequest
from .themes import DARK, LIGHT, fitting

# One press of an arrow key moves so much of the run; playing lasts about a minute, but never goes
# faster than life on a short run.
STEP_SHARE, LEAP_SHARE = 0.01, 0.1
PLAY_TICKS = 120


class Fresh(Message):
    """There is a new snapshot. A newer one takes its place, so that a slow terminal never lags
    behind."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Fresh)


def _hidden(keys: str, action: str, name: str, display: str | None = None) -> Binding:
    return Binding(keys, action, name, show=False, key_display=display, priority=True)


class Dashboard(App[None]):
    """Shows one run. `take` takes stacks of a live run, `diff` makes advice a patch."""

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
        Binding("question_mark,h", "push_screen('help')", "Help", key_display="?"),
        Binding("space", "pause", "Hold", key_display="space", priority=True),
        Binding("left,comma", f"move(-{STEP_SHARE})", "Time", key_display="← →", priority=True),
        _hidden("right,full_stop", f"move({STEP_SHARE})", "On"),
        _hidden("shift+left,less_than_sign", f"move(-{LEAP_SHARE})", "Far back"),
        _hidden("shift+right,greater_than_sign", f"move({LEAP_SHARE})", "Far on"),
        _hidden("home", "go(0)", "Beginning"),
        _hidden("end,n", "go(1)", "Newest", "end"),
        Binding("l", "next('process')", "Loader"),
        Binding("r", "next('loader')", "Rank"),
        Binding("c", "copy", "Copy"),
        Binding("d", "diff", "Diff", show=False),
        Binding("t", "theme", "Theme", show=False),
    ]

    def __init__(self, path: Path) -> None:
        super().__init__()
        if ascii.needed():
            self._filters.append(ascii.Ascii())  # the last to see what is drawn
        self.jobs = Jobs(self.call_later)
        self.take: Take = take_stacks
        self.diff: Diff = diff_of
        self._path = path
        self.install_screen(HelpScreen(), "help")
        self.register_theme(DARK)
        self.register_theme(LIGHT)
        self.theme = fitting(os.environ)
        self.reader = Reader(Follower(path), lambda found: self.post_message(Fresh(found)))
        self.snapshot = Snapshot(path.name, (), "opening")
        self._tabs, self._scrubber = Tabs(), Scrubber()
        self._place: Place | None = None
        self._at_ns: int | None = None

    def compose(self) -> ComposeResult:
        yield TopLine()
        yield self._tabs
        yield Banner()
        with Container(id="body"):
            yield from self.compose_body()
        yield self._scrubber
        yield Footer(compact=True)

    def compose_body(self) -> ComposeResult:
        """The screens; with a script's output beside them where there is one."""
        with ContentSwitcher(initial="view0", id="screens"):
            for number, view in enumerate(VIEWS):
                yield view(id=f"view{number}")

    def on_mount(self) -> None:
        self._player = self.set_interval(INTERVAL_S, self._play)
        self._show(self.snapshot)
        self.reader.start()

    def on_unmount(self) -> None:
        self.reader.stop()

    def end_work(self) -> None:
        """After `run`: no thread of the dashboard is left. What they are at is given up."""
        self.reader.end()
        self.jobs.end()

    @property
    def view(self) -> View:
        """The screen looked at."""
        return self.query_one(f"#view{self._tabs.current}", View)

    def on_fresh(self, message: Fresh) -> None:
        self._show(message.snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        for bar in self.query(Bar):
            bar.show(snapshot)
        self.view.show(snapshot)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of time do nothing while help or the palette is open."""
        return not (action in ("pause", "move", "go") and len(self.screen_stack) > 1)

    def action_look(self, number: int) -> None:
        """Show another screen."""
        if number == TRIALS and not self.snapshot.tuning:
            self.notify("This loader is not being tuned. To tune it: loaderscope tune.")
            return
        self._tabs.current = number
        self.query_one(ContentSwitcher).current = f"view{number}"
        self.view.show(self.snapshot)
        self.set_focus(next((each for each in self.view.query("*") if each.focusable), None))

    def action_go(self, share: float) -> None:
        """Look at the moment at this share of the run's time; 1 is the newest, and stays so."""
        times = self.snapshot.times
        if times:
            passed = int(max(0.0, share) * (times.end_ns - times.begin_ns))
            self._view_at(times.begin_ns + passed if share < 1 else None)

    def action_move(self, share: float) -> None:
        """Forward or back by a share of the run's time."""
        times = self.snapshot.times
        if times:
            at = times.end_ns if self._at_ns is None else self._at_ns
            now = (at - times.begin_ns) / max(1, times.end_ns - times.begin_ns)
            self.action_go(now + share)

    def action_pause(self) -> None:
        """Hold what is shown, or go on: with the newest while the run lives, else by playing."""
        times, at = self.snapshot.times, self._at_ns
        if not times:
            return
        if self._scrubber.playing:
            self._view_at(at)
        elif self.snapshot.state == "live":
            self._view_at(times.end_ns if at is None else None)
        else:
            self._view_at(times.begin_ns if at is None else at, playing=True)

    def _play(self) -> None:
        times = self.snapshot.times
        if not self._scrubber.playing or not times or self._at_ns is None:
            return
        at = self._at_ns
        at += max(int(INTERVAL_S * 1e9), (times.end_ns - times.begin_ns) // PLAY_TICKS)
        over = at >= times.end_ns
        self._view_at(None if over else at, playing=not over)

    def _view_at(self, at_ns: int | None, playing: bool = False) -> None:
        self._at_ns = at_ns
        self._scrubber.playing = playing
        self.reader.view(ViewRequest(self._place, at_ns))

    def action_next(self, within: Literal["process", "loader"]) -> None:
        """The next loader of the same process, or the same loader in the next process; after the
        last one, the first."""
        places = [each.place for each in self.snapshot.choices]
        if not places:
            return
        # The one asked for last may not be drawn yet: keys may come faster than snapshots.
        now = self._place if self._place in places else places[self.snapshot.chosen]
        among = [each for each in places if getattr(each, within) == getattr(now, within)]
        if len(among) < 2:
            self.notify("There is no other loader or rank.")
        else:
            self.choose(among[(among.index(now) + 1) % len(among)])

    def choose(self, place: Place) -> None:
        """Look at this loader, newest batches first."""
        self._place = place
        self._view_at(None)

    def action_copy(self) -> None:
        """Copy the code of the recommendation looked at (of the best one on the other screens)."""
        view, report = self.view, self.snapshot.advice.report
        best = next(iter(report.recommendations), None) if report else None
        found = view.target if isinstance(view, Advice) else best
        if not isinstance(found, Recommendation) or not found.change.code:
            self.notify("There is no code to copy here.")
            return
        self.copy_to_clipboard(found.change.code)
        self.notify(f"The code of {found.rule} is on the clipboard.", markup=False)

    def action_diff(self) -> None:
        """Show the recommendation looked at as a patch, or its code again."""
        view, report = self.view, self.snapshot.advice.report
        advice = view.target if isinstance(view, Advice) else None
        if not isinstance(view, Advice) or not report or not isinstance(advice, Recommendation):
            self.notify("There is no advice here to show as a patch.")
        elif view.patch:
            view.say(advice, None)
        elif self.jobs.start(
            "diff", lambda: self.diff(self._path, report, advice), partial(view.say, advice)
        ):
            view.say(advice, "making the patch…")

    def action_stacks(self) -> None:
        """Take stacks of the run now."""
        code = self.query_one(Code)
        if self.snapshot.state != "live":
            code.say(Taken(False, "stacks can be taken of a live run only"))
        elif self.jobs.start("stacks", lambda: taken(self._path, self.take), self._took):
            code.say(Taken(None, "taking stacks…"))

    def _took(self, found: Taken) -> None:
        self.query_one(Code).say(found)
        self.reader.advise_soon()

    def action_tuning(self, command: TuneCommand) -> None:
        """Ask the process that tries settings to keep, to put back, or to stop."""
        tuning = self.snapshot.tuning if self.snapshot.state == "live" else None
        tuned = tuning.tuned if tuning else None
        put_back = tuned and command == "back" and tuned.chosen != tuned.own
        if not tuning or (tuning.tuned.decided and not put_back):
            self.notify("There is nothing left to change.")
            return
        try:
            ask(self._path / tuning.place.process, tuning.place.loader, command)
            said = "Sent. It takes effect after the current window."
        except OSError as error:
            said = f"The run directory cannot be written: {error.strerror or error}"
        self.notify(said, markup=False)

    def action_theme(self) -> None:
        """Dark or light."""
        now = self.current_theme
        light, dark = ("ansi-light", "ansi-dark") if now.ansi else (LIGHT.name, DARK.name)
        self.theme = light if now.dark else dark

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The command palette (Ctrl-P): the screens, every loader, and Textual's own."""
        yield from super().get_system_commands(screen)
        for number, name in enumerate(SCREENS):
            yield SystemCommand(
                f"Show {name}", f"Screen {number + 1}", lambda n=number: self.action_look(n)
            )
        for choice in self.snapshot.choices:
            rank = f"rank {choice.rank}" if choice.rank is not None else f"process {choice.pid}"
            name = choice.name.replace("[", "(")  # the palette reads markup
            yield SystemCommand(
                f"Loader {name}, {rank}", "Look at this one", lambda p=choice.place: self.choose(p)
            )
