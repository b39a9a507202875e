"""What is drawn of a script's output, and of courses of values."""

import pytest

from loaderscope.reports.words.curves import resampled
from loaderscope.tui.draw.marks import course
from loaderscope.tui.scrollback import MAX_COLUMNS, MAX_LINES, Scrollback


def fed(*parts: bytes) -> Scrollback:
    found = Scrollback()
    for part in parts:
        found.feed(part)
    return found


def plain(found: Scrollback, count: int = 100) -> list[str]:
    return [line.plain for line in found.lines(count)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"one\r\ntwo\n", ["one", "two", ""]),
        (b"long line\r\x1b[Kx", ["x"]),
        (b"a\n\x1b[1A\rz", ["z", ""]),
        (b"a\tb", ["a    b"]),
        (b"\x1b]52;c;c3RvbGVu\x1b\\shown", ["shown"]),
        (b"\x1bP1$r\x1b\\shown\x1b[?1049h\x1b[?1000h", ["shown"]),
        ("caf\u00e9 \u2588\n".encode(), ["caf\u00e9 \u2588", ""]),
        (b"\xff", ["\ufffd"]),
        ("x\u202ey".encode(), ["x\ufffdy"]),
    ],
)
def test_what_is_shown(data: bytes, expected: list[str]) -> None:
    assert plain(fed(data)) == expected
    assert plain(fed(*(data[n : n + 1] for n in range(len(data))))) == expected


def test_colours_become_styles_and_nothing_becomes_markup() -> None:
    (line,) = fed(b"\x1b[1;31mred\x1b[0m [b]x[/b] \x1b[38;5;208mo\x1b[48;2;1;2;3mb").lines(1)
    assert line.plain == "red [b]x[/b] ob"
    assert [(span.start, span.end, str(span.style)) for span in line.spans] == [
        (0, 3, "ansi_red bold"),
        (13, 14, "rgb(255,135,0)"),
        (14, 15, "rgb(255,135,0) on rgb(1,2,3)"),
    ]


def test_several_progress_bars_stay_in_place() -> None:
    found = fed(b"\n\n")
    for step in range(50):
        found.feed(b"\x1b[A\x1b[A\rfirst %d\x1b[K\n\rsecond %d\x1b[K\n\r" % (step, step))
    assert plain(found)[-3:] == ["first 49", "second 49", ""]
    assert len(plain(found)) == 3


def test_memory_is_bounded() -> None:
    found = fed(b"".join(b"line %d\n" % n for n in range(10_000)), b"x" * 100_000)
    assert len(plain(found, 10_000)) == MAX_LINES + 1
    assert plain(found, 2)[0] == "line 9999"
    assert len(plain(found, 1)[0]) == MAX_COLUMNS
    long = fed(b"\x1b[31mx" * 100_000)
    assert len(long._lines[0]) < MAX_COLUMNS + 10


def test_hostile_numbers_do_no_harm() -> None:
    assert plain(fed(b"\x1b[999999999999B\x1b[99999999999A\x1b[99999999999Cx")) == ["x"]
    assert plain(fed(b"\x1b[38;5m\x1b[38;2;1m\x1b[;;;mok")) == ["ok"]


def test_a_course_is_drawn_in_eighths() -> None:
    assert course([0, 1, 2, 4], 4, top=4) == "▁▂▄█"
    # What was not measured is a gap, and zero a floor.
    assert course([None, 0.0, 5.0], 3) == " ▁█"

    # More values than room become means.
    for values, means in (([0, 2, 4, 6], [1, 5]), ([1], [1, 1]), ([], [])):
        assert resampled(values, 2)[1].tolist() == means
