"""Parts of the screen that are drawn from a snapshot by pure functions, in the room there is."""

from __future__ import annotations

from collections.abc import Callable

from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.widget import Widget

from .snapshot import Snapshot

# Of a snapshot in so many columns and rows.
Draw = Callable[[Snapshot, int, int], Content]


class Drawn(Widget):
    """Draws again only when there is another snapshot, another size or another way to draw; shows
    only what changed.

    With the class `auto`, it is as high as what it draws.
    """

    DEFAULT_CSS = "Drawn.auto { height: auto; }"

    def __init__(self, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._snapshot: Snapshot | None = None
        self._content = Content("")

    def draw(self, s: Snapshot, width: int, height: int) -> Content:
        raise NotImplementedError

    def show(self, snapshot: Snapshot) -> None:
        """Draw this snapshot."""
        self._snapshot = snapshot
        self.again()

    def again(self) -> None:
        """Draw what is shown in another way or another room."""
        width, height = self.content_size
        if self._snapshot is None or width <= 0:
            return
        before, self._content = self._content, self.draw(self._snapshot, width, height)
        if not before.is_same(self._content):
            taller = self._content.plain.count("\n") != before.plain.count("\n")
            self.refresh(layout=taller and self.has_class("auto"))

    def on_resize(self, event: Resize) -> None:
        self.again()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # Not what the base class measures: it would wrap a line that is one column too long on its
        # way to a new size.
        return self._content.plain.count("\n") + 1

    def render(self) -> Content:
        return self._content


class Panel(Drawn):
    """A titled part of a screen."""

    DEFAULT_CSS = """
    Panel { border-top: solid $secondary; border-title-style: bold; border-title-color: $text;
            padding: 0 1; height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self, title: str, draw: Draw, *, auto: bool = False, id: str = "") -> None:
        super().__init__(id or None, "auto" if auto else None)
        self.border_title = Content(title)
        self._draw = draw

    def draw(self, s: Snapshot, width: int, height: int) -> Content:
        return self._draw(s, width, height)

    def draw_with(self, draw: Draw) -> None:
        """Draw in another way from now on."""
        self._draw = draw
        self.again()
