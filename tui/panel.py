"""Parts of the screen that are drawn from a snapshot in the room there is: panels, and the lines
above them, which say which run and which screen."""

from collections.abc import Callable

from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Size
from textual.reactive import reactive
from textual.widget import Widget

from .draw.marks import MARK, STATES, fitted, line, text
from .snapshot import Snapshot

# Of a snapshot in so many columns.
Draw = Callable[[Snapshot, int], Content]

SCREENS = ("Overview", "Advice", "Workers", "System", "Batches", "Code", "Trials")
TRIALS = len(SCREENS) - 1  # of a loader whose settings are tried alone
_ENDINGS = {
    "finished": "the run has ended",
    "interrupted": "the run was interrupted (Ctrl-C)",
    "failed": "the run ended in an error of its own",
    "crashed": "the run died: this is what it recorded until then",
    "removed": "the run's directory was removed: this is the last state seen",
    "unreadable": "the run cannot be read",
    "unknown": "recorded on another machine; only that machine knows whether it is alive",
}


class Panel(Widget):
    """A titled part of a screen, as high as what it draws. Draws again only when there is another
    snapshot or another size; shows only what changed."""

    DEFAULT_CSS = """
    Panel { border-top: solid $secondary; border-title-style: bold; border-title-color: $text;
            padding: 0 1; height: auto; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, title: str, draw: Draw, id: str | None = None) -> None:
        super().__init__(id=id)
        self.border_title = Content(title)
        self._draw = draw
        self._snapshot: Snapshot | None = None
        self._content = Content("")

    def show(self, snapshot: Snapshot) -> None:
        """Draw this snapshot."""
        self._snapshot = snapshot
        self.again()

    def again(self) -> None:
        """Draw what is shown in another room."""
        width = self.content_size.width
        if self._snapshot is None or width <= 0:
            return
        before, self._content = self._content, self._draw(self._snapshot, width)
        if not before.is_same(self._content):
            taller = self._content.plain.count("\n") != before.plain.count("\n")
            self.refresh(layout=taller)

    def on_resize(self, event: Resize) -> None:
        self.again()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # Not what the base class measures: it would wrap a line that is one column too long on its
        # way to a new size.
        return self._content.plain.count("\n") + 1

    def render(self) -> Content:
        return self._content


class Bar(Panel):
    """One line of the whole width."""

    DEFAULT_CSS = """
    Bar { height: 1; border: none; }
    #top { background: $panel; }
    #top:ansi { background: ansi_default; }
    """

    def __init__(self, draw: Draw, id: str | None = None) -> None:
        super().__init__("", draw, id)


def top_line(s: Snapshot, width: int) -> Content:
    """Run, state, and the loader looked at."""
    style, right = STATES.get(s.state, ""), _loader(s, width)
    command = text(" ".join(s.argv) or s.run_id)
    room = width - len(right) - 19 - len(s.state)
    left = line(
        ("Loaderscope", f"bold {MARK}"),
        f"  {fitted(command, room).rstrip()}  ",
        ("● ", style),
        (s.state, f"bold {style}"),
    )
    gap = max(1, width - left.cell_length - len(right))
    return left.pad_right(gap) + Content.styled(right, "bold")


def _loader(s: Snapshot, width: int) -> str:
    if not s.place:
        return ""
    loader, places = s.loaders[s.place], list(s.loaders)
    rank = f"rank {loader.rank} · " if loader.rank is not None else ""
    several = f" ({places.index(s.place) + 1}/{len(places)})" if len(places) > 1 else ""
    return f"{rank}{text(loader.name, max(8, width // 3))}{several}"


class Tabs(Bar):
    """The screens by number and name."""

    current = reactive(0)

    def __init__(self) -> None:
        super().__init__(self._tabs)

    def _tabs(self, s: Snapshot, width: int) -> Content:
        report = s.advice.report
        count = f" {len(report.recommendations)}" if report and report.recommendations else ""
        tuned = s.tuning or self.current == TRIALS
        self._labels = [
            f" {number} {name}{count if name == 'Advice' else ''} "
            for number, name in enumerate(SCREENS[: None if tuned else TRIALS], 1)
        ]
        return line(
            *(
                (label, "bold reverse" if number == self.current else "")
                for number, label in enumerate(self._labels)
            )
        )

    def watch_current(self) -> None:
        self.again()

    async def on_click(self, event: Click) -> None:
        at = event.x - 1
        for number, label in enumerate(self._labels):
            if 0 <= at < len(label):
                await self.run_action(f"app.look({number})")
            at -= len(label)


class Banner(Bar):
    """Says what is missing, or that the run ended, died or was removed; not there while it lives
    and all is well."""

    DEFAULT_CSS = "Banner { display: none; }"

    def __init__(self) -> None:
        super().__init__(_banner)

    def show(self, snapshot: Snapshot) -> None:
        self.display = bool(_said(snapshot))
        super().show(snapshot)


def _banner(s: Snapshot, width: int) -> Content:
    style = STATES.get(s.state, "")
    return line(("■ ", style), (_said(s), f"bold {style}"))


def _said(s: Snapshot) -> str:
    said = [s.problem] if s.problem else [*s.missing, _ENDINGS.get(s.state)]
    return " ".join(text(each) for each in said if each)
