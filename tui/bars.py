"""The lines above and below the screens: which run, which screen, which moment."""

from __future__ import annotations

from textual.content import Content
from textual.events import Click, MouseDown, MouseMove, MouseUp
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from ..reports.words.units import duration
from .draw.marks import BAD, DIM, FAIR, GOOD, MARK, STATES, Part, fitted, line, text
from .snapshot import Snapshot

SCREENS = ("Overview", "Advice", "Workers", "System", "Batches", "Code", "Trials")
TRIALS = len(SCREENS) - 1  # of a loader whose settings are tried alone

_ENDINGS = {
    "finished": "the run has ended",
    "interrupted": "the run was interrupted (Ctrl-C)",
    "crashed": "the run died: all it recorded until then is here",
    "removed": "the run's directory was removed: this is what was seen last",
    "unreadable": "the run cannot be read",
    "unknown": "recorded on another machine: only that one can tell whether it lives",
}


class TopLine(Widget):
    """Run, state, and the loader looked at."""

    DEFAULT_CSS = (
        "TopLine { height: 1; background: $panel; padding: 0 1; } TopLine:ansi { "
        "background: ansi_default; }"
    )

    snapshot: reactive[Snapshot | None] = reactive(None)

    class LoaderClicked(Message):
        """The loader's name was clicked."""

    def render(self) -> Content:
        s = self.snapshot
        if s is None:
            return line(("Loaderscope", f"bold {MARK}"), ("  opening the run…", DIM))
        width = self.content_size.width
        style = STATES.get(s.state, "")
        right = self._loader(s)
        command = " ".join(s.argv) or s.run_id
        room = width - len(right) - 16 - len(s.state) - 3
        left = Content.assemble(
            ("Loaderscope", f"bold {MARK}"),
            "  ",
            fitted(text(command), max(0, room)).rstrip(),
            "  ",
            ("● ", style),
            (s.state, f"bold {style}"),
        )
        return Content.assemble(
            left, " " * max(1, width - left.cell_length - len(right)), (right, "bold")
        )

    def _loader(self, s: Snapshot) -> str:
        choice = s.choice
        if choice is None:
            return ""
        rank = f"rank {choice.rank} · " if choice.rank is not None else ""
        several = f" ({s.chosen + 1}/{len(s.choices)})" if len(s.choices) > 1 else ""
        return f"{rank}{text(choice.name, max(8, self.content_size.width // 3))}{several}"

    def on_click(self, event: Click) -> None:
        if event.x > self.size.width * 2 // 3:
            self.post_message(self.LoaderClicked())


class Tabs(Widget):
    """The screens by number and name."""

    DEFAULT_CSS = "Tabs { height: 1; padding: 0 1; }"

    current = reactive(0)
    advice = reactive(0)
    trials = reactive(False)

    class Chosen(Message):
        """A screen was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def _labels(self) -> list[str]:
        counts = {1: f" {self.advice}" if self.advice else ""}
        names = SCREENS if self.trials or self.current == TRIALS else SCREENS[:TRIALS]
        return [
            f" {number} {name}{counts.get(number - 1, '')} " for number, name in enumerate(names, 1)
        ]

    def render(self) -> Content:
        return line(
            *(
                (label, "bold reverse" if number == self.current else "")
                for number, label in enumerate(self._labels())
            )
        )

    def on_click(self, event: Click) -> None:
        at = event.x - 1
        for number, label in enumerate(self._labels()):
            if 0 <= at < len(label):
                self.post_message(self.Chosen(number))
            at -= len(label)


class Scrubber(Widget):
    """The time line of the run: a click or a drag goes to that moment, the right end is the
    newest."""

    DEFAULT_CSS = "Scrubber { height: 1; padding: 0 1; }"

    snapshot: reactive[Snapshot | None] = reactive(None)
    playing = reactive(False)
    frozen = reactive(False)

    class Moved(Message):
        """To this share of the run's time; 1 is the newest."""

        def __init__(self, share: float) -> None:
            super().__init__()
            self.share = share

    _LEFT = 12
    _RIGHT = 24

    def render(self) -> Content:
        s = self.snapshot
        if s is None:
            return Content("")
        if s.problem is not None and s.times is None:
            return line((fitted(text(s.problem), self.content_size.width).rstrip(), BAD))
        if s.times is None:
            return line((_ENDINGS.get(s.state, "waiting for the first batch"), DIM))
        begin, end, at = s.times.begin_ns, s.times.end_ns, s.times.at_ns
        track = max(1, self.content_size.width - self._LEFT - self._RIGHT)
        share = 1.0 if at is None else (at - begin) / max(1, end - begin)
        knob = round(min(1.0, max(0.0, share)) * (track - 1))
        passed = duration(((end if at is None else at) - begin) / 1e9)
        word, style = self._word(s, at)
        parts: list[Part] = [
            (f"{word:<{self._LEFT}}", style),
            ("━" * knob, MARK),
            ("●", f"bold {MARK}"),
            ("─" * (track - knob - 1), DIM),
            (f"  {passed} of {duration((end - begin) / 1e9)}"[: self._RIGHT], ""),
        ]
        return Content.assemble(*parts)

    def _word(self, s: Snapshot, at: int | None) -> tuple[str, str]:
        if self.playing:
            return "▶ playing", f"bold {GOOD}"
        if at is not None:
            return ("⏸ paused" if self.frozen else "◀ looking"), f"bold {FAIR}"
        return (
            ("● live", f"bold {GOOD}")
            if s.state == "live"
            else (f"■ {s.state}", f"bold {STATES.get(s.state, '')}")
        )

    def _share(self, x: int) -> float:
        track = max(1, self.content_size.width - self._LEFT - self._RIGHT)
        return min(1.0, max(0.0, (x - 1 - self._LEFT) / max(1, track - 1)))

    def on_mouse_down(self, event: MouseDown) -> None:
        self.capture_mouse()
        self.post_message(self.Moved(self._share(event.x)))

    def on_mouse_move(self, event: MouseMove) -> None:
        if event.button:
            self.post_message(self.Moved(self._share(event.x)))

    def on_mouse_up(self, event: MouseUp) -> None:
        self.release_mouse()


def _said(s: Snapshot) -> str:
    if s.problem:
        return text(s.problem)
    return " ".join(filter(None, [*map(text, s.missing), _ENDINGS.get(s.state, "")]))


class Banner(Widget):
    """Says what is missing, or that the run ended, died or was removed; not there while it lives
    and all is well."""

    DEFAULT_CSS = "Banner { height: 1; padding: 0 1; display: none; }"

    snapshot: reactive[Snapshot | None] = reactive(None)

    def watch_snapshot(self, snapshot: Snapshot | None) -> None:
        self.display = bool(snapshot is not None and _said(snapshot))

    def render(self) -> Content:
        s = self.snapshot
        if s is None:
            return Content("")
        said = _said(s)
        return line(("■ ", STATES.get(s.state, "")), (said, f"bold {STATES.get(s.state, '')}"))
