"""The dashboard: keys, the choice of screen, loader and moment. Reading happens in `reader`,
drawing in `draw`."""

from pathlib import Path
from typing import ClassVar, Literal

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.widgets import ContentSwitcher, Footer, HelpPanel

from ..profiler.store.run.follow import Follower, Place
from ..profiler.store.run.tuning import TuneCommand, ask
from .panel import SCREENS, TRIALS, Banner, Bar, Tabs, top_line
from .reader import Reader
from .screens import View, views
from .snapshot import Snapshot


class Fresh(Message):
    """There is a new snapshot. A newer one takes its place, so that a slow terminal never lags
    behind."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Fresh)


class Dashboard(App[None]):
    """Shows one run."""

    TITLE = "Loaderscope"

    CSS = """
    Screen { layout: vertical; overflow: hidden; }
    #body { height: 1fr; }
    #screens { height: 1fr; width: 1fr; }
    Footer { height: 1; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"look({n - 1})", name, show=False) for n, name in enumerate(SCREENS, 1)),
        Binding("q", "quit", "Quit"),
        Binding("question_mark,h", "help", "Help", key_display="?"),
        Binding("l", "next('process')", "Loader"),
        Binding("r", "next('loader')", "Rank"),
        Binding("c", "copy", "Copy"),
    ]

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.reader = Reader(Follower(path), lambda found: self.post_message(Fresh(found)))
        self.snapshot = Snapshot(path.name, (), "opening")
        self._tabs = Tabs()
        self._place: Place | None = None

    def compose(self) -> ComposeResult:
        yield Bar(top_line, id="top")
        yield self._tabs
        yield Banner()
        with Container(id="body"):
            yield from self.compose_body()
        yield Footer(compact=True)

    def compose_body(self) -> ComposeResult:
        """The screens; with a script's output beside them where there is one."""
        with ContentSwitcher(initial="view0", id="screens"):
            for number, view in enumerate(views()):
                view.id = f"view{number}"
                yield view

    def on_mount(self) -> None:
        self._show(self.snapshot)
        self.reader.start()

    def on_unmount(self) -> None:
        self.reader.stop()

    def end_work(self) -> None:
        """After `run`: no thread of the dashboard is left. What they are at is given up."""
        self.reader.end()

    @property
    def view(self) -> View:
        """The screen looked at."""
        return self.query_one(f"#view{self._tabs.current}", View)

    def on_fresh(self, message: Fresh) -> None:
        if self.query(View):  # none once the dashboard is being closed
            self._show(message.snapshot)

    def _show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        for bar in self.query(Bar):
            bar.show(snapshot)
        self.view.show(snapshot)

    def action_look(self, number: int) -> None:
        """Show another screen."""
        if number == TRIALS and not self.snapshot.tuning:
            self.notify("This loader is not being tuned. To tune it: loaderscope tune.")
            return
        self._tabs.current = number
        self.query_one(ContentSwitcher).current = f"view{number}"
        self.view.show(self.snapshot)
        self.set_focus(self.view)

    def action_next(self, within: Literal["process", "loader"]) -> None:
        """The next loader of the same process, or the same loader in the next process; after the
        last one, the first."""
        places = list(self.snapshot.loaders)
        # The one asked for last may not be drawn yet: keys may come faster than snapshots.
        now = self._place if self._place in places else self.snapshot.place
        among = [each for each in places if now and getattr(each, within) == getattr(now, within)]
        if not now or len(among) < 2:
            self.notify("There is no other loader or rank.")
        else:
            self._place = among[(among.index(now) + 1) % len(among)]
            self.reader.view(self._place)

    def action_copy(self) -> None:
        """Copy the code of the best recommendation that has some."""
        report = self.snapshot.advice.report
        advised = report.recommendations if report else ()
        found = next((each for each in advised if each.change.code), None)
        if not found:
            self.notify("There is no code to copy here.")
            return
        self.copy_to_clipboard(found.change.code)
        self.notify(f"The code of {found.rule} is on the clipboard.", markup=False)

    def action_help(self) -> None:
        """The keys, beside the screen; or no longer."""
        if self.screen.query(HelpPanel):
            self.action_hide_help_panel()
        else:
            self.action_show_help_panel()

    def action_tuning(self, command: TuneCommand) -> None:
        """Ask the process that tries settings to keep, to put back, or to stop."""
        s = self.snapshot
        tuned = s.tuning if s.state == "live" else None
        put_back = tuned and command == "back" and tuned.chosen != tuned.own
        if not tuned or not s.place or (tuned.decided and not put_back):
            self.notify("There is nothing left to change.")
            return
        if tuned.follows is not None:
            self.notify(f"Rank {tuned.follows} decides: go there by r.")
            return
        try:
            ask(self._path / s.place.process, s.place.loader, command)
            said = "Sent. It takes effect after the current window."
        except OSError as error:
            said = f"The run directory cannot be written: {error.strerror or error}"
        self.notify(said, markup=False)
