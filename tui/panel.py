"""A part of a screen: a title, and what a pure function draws of the snapshot in the room there
is."""

from __future__ import annotations

from typing import Protocol

from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.widget import Widget

from .snapshot import Snapshot


class Draw(Protocol):
    def __call__(self, s: Snapshot, width: int, height: int) -> Content: ...


class Panel(Widget):
    """Draws again only when there is another snapshot, another size or another way to draw; shows
    only what changed.

    With `auto`, the panel is as high as what it draws.
    """

    DEFAULT_CSS = """
    Panel { border-top: solid $secondary; border-title-style: bold; border-title-color: $text;
            padding: 0 1; height: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    Panel.auto { height: auto; }
    """

    def __init__(
        self, title: str, draw: Draw, *, auto: bool = False, id: str | None = None
    ) -> None:
        super().__init__(id=id, classes="auto" if auto else None)
        self.border_title = Content(title)
        self._draw = draw
        self._auto = auto
        self._snapshot: Snapshot | None = None
        self._content = Content("")

    def show(self, snapshot: Snapshot) -> None:
        """Draw this snapshot."""
        self._snapshot = snapshot
        self._again()

    def draw_with(self, draw: Draw, title: str | None = None) -> None:
        """Draw in another way from now on."""
        self._draw = draw
        if title is not None:
            self.border_title = Content(title)
        self._again()

    def on_resize(self, event: Resize) -> None:
        self._again()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        # Not what the base class measures: it would wrap a line that is one column too long on its
        # way to a new size.
        return (
            max(1, self._content.plain.count("\n") + 1)
            if self._auto
            else super().get_content_height(container, viewport, width)
        )

    def render(self) -> Content:
        return self._content

    def _again(self) -> None:
        width, height = self.content_size
        if self._snapshot is None or width <= 0:
            return
        content = self._draw(self._snapshot, width, height)
        if content.plain == self._content.plain and content.spans == self._content.spans:
            return
        taller = content.plain.count("\n") != self._content.plain.count("\n")
        self._content = content
        self.refresh(layout=self._auto and taller)
