"""`loaderscope run --live`: the script and the dashboard together, the script's output in a pane of
its own."""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.widget import Widget

from ..profiler.base.metadata import clean
from ..profiler.launch import Beside, Ended, prepare, run_bare
from .app import Dashboard
from .script import Script
from .scrollback import Scrollback

# The newest output, written to the terminal again when the dashboard is left: else a traceback
# would be lost with it.
NEWEST_BYTES = 1 << 18


class Wrote(Message):
    """The script has written something, or has ended."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, Wrote)


class OutputPane(Widget):
    """The newest lines of the script's output."""

    DEFAULT_CSS = """
    OutputPane { height: 30%; min-height: 4; border-top: solid $primary; border-title-style: bold;
                 padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, script: Script, scrollback: Scrollback, lock: threading.Lock) -> None:
        super().__init__(id="output")
        self._script = script
        self._scrollback = scrollback
        self._lock = lock

    def on_mount(self) -> None:
        self.update()

    def update(self) -> None:
        """There is more to show."""
        code = self._script.code
        if code is None:
            state = "running"
        else:
            state = f"exited with {code}" if code >= 0 else f"ended by signal {-code}"
        self.border_title = Content(f"{clean(' '.join(self._script.argv), 60)} · {state}")
        self.refresh()

    def render(self) -> Content:
        height = self.content_size.height
        with self._lock:
            found = self._scrollback.lines(height + 1)
        # The cursor's own line is mostly empty: it need not take the room of one that is not.
        if found and not found[-1].plain:
            found.pop()
        return Content("\n").join(found[-height:])

    def on_resize(self, event: Resize) -> None:
        self._script.resize(self.content_size.height, self.content_size.width)


class LiveDashboard(Dashboard):
    """The dashboard of a script that it shows too."""

    CSS = (
        Dashboard.CSS
        + """
    #body.-alone #screens { display: none; }
    #body.-alone #output { height: 1fr; width: 1fr; }
    """
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "output", "Output"),
        Binding("ctrl+c", "interrupt", "Interrupt", priority=True),
    ]

    def __init__(self, script: Script) -> None:
        super().__init__(script.directory)
        self.script = script
        self._newest = b""
        self._scrollback = Scrollback()
        self._lock = threading.Lock()
        self._left = False
        self.pump = threading.Thread(target=self._pump, name="loaderscope-output", daemon=True)

    def compose_body(self) -> ComposeResult:
        yield from super().compose_body()
        yield OutputPane(self.script, self._scrollback, self._lock)

    def on_mount(self) -> None:
        self.pump.start()

    def on_wrote(self) -> None:
        self.query_one(OutputPane).update()

    def action_output(self) -> None:
        """The output beside the screens, or alone."""
        self.query_one("#body", Container).toggle_class("-alone")

    def action_interrupt(self) -> None:
        """Ctrl-C is the script's."""
        if self.script.code is None:
            self.script.interrupt()
            self.notify("Ctrl-C was sent to the script. q leaves the dashboard.")
        else:
            self.notify("The script has ended. q leaves the dashboard.")

    def leave(self) -> None:
        """The dashboard has gone: what was written last, and from now on all, goes to the
        terminal."""
        with self._lock:
            self._left = True
            _to_terminal(self._newest)

    def _pump(self) -> None:
        while data := self.script.read():
            with self._lock:
                if self._left:
                    _to_terminal(data)
                    continue
                self._newest = (self._newest + data)[-NEWEST_BYTES:]
                self._scrollback.feed(data)
            self.post_message(Wrote())
        self.script.wait()
        self.post_message(Wrote())


def run_live(argv: Sequence[str], runs: Path | None, beside: Beside) -> Ended:
    """Run a script with the dashboard. Raises as `run_command` does.

    Leaving the dashboard does not end the script: its output then goes to the terminal until it
    ends. Where no run directory can be made there is nothing to show, and the script runs as it is.
    """
    command, directory = prepare(argv, runs)
    if directory is None:
        return run_bare(command)
    columns, rows = shutil.get_terminal_size()
    script = Script(command, directory, argv, max(4, rows * 3 // 10), columns)
    app = LiveDashboard(script)
    # From before the dashboard to after it: asyncio lets a handler be that is not Python's own.
    # With its own, Ctrl-C in the moment between the dashboard's last key and its end would be a
    # cancellation that nobody notices.
    before = signal.signal(signal.SIGINT, lambda *_: script.interrupt())
    try:
        with beside(script.directory):
            app.run()
            app.leave()
            app.end_work()
            if app.pump.ident is not None:
                app.pump.join()
            code = script.wait()
        return Ended(code, script.recorded())
    finally:
        signal.signal(signal.SIGINT, before)


def _to_terminal(data: bytes) -> None:
    with suppress(OSError, ValueError):
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]
