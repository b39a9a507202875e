"""What `doctor` found, and the mend for what is missing."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Protocol

from ...profiler.base.metadata import clean
from .paint import paint

_MARKS = {True: ("ok", "green"), False: ("missing", "red"), None: ("no", "dim")}
MIN_WIDTH = 40


class Finding(Protocol):
    """The shape of `profiler.doctor.Check`: `ok` is None where the machine simply has no such thing."""

    @property
    def name(self) -> str: ...
    @property
    def ok(self) -> bool | None: ...
    @property
    def finding(self) -> str: ...
    @property
    def mend(self) -> str | None: ...


def render_findings(findings: Sequence[Finding], width: int = 80, color: bool = False) -> str:
    """One finding a paragraph, then how many can be mended."""
    lines = []
    width = max(MIN_WIDTH, min(width, 100))
    for each in findings:
        mark, style = _MARKS[each.ok]
        label = paint(f"{mark:<8}", style, color)
        body = textwrap.wrap(f"{clean(each.name, 60)}: {clean(each.finding)}", width - 8) or [""]
        lines.append(f"{label}{body[0]}")
        lines += [" " * 8 + line for line in body[1:]]
        if each.mend and each.ok is not True:
            mend = textwrap.wrap(f"→ {clean(each.mend)}", width - 8, subsequent_indent="  ")
            lines += [" " * 8 + paint(line, "bold", color) for line in mend]
    missing = sum(each.ok is False for each in findings)
    lines += ["", "Everything that this machine has can be measured." if not missing else
              f"{missing} of {len(findings)} can be mended: see the arrows."]  # fmt: skip
    return "\n".join(lines) + "\n"
