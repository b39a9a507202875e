"""What `doctor` found, and the fix for what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from ...profiler.doctor import Check
from ..document.blocks import Cell, Column, Sentence, Styled, Table
from .draw import print_blocks

_MARKS = {True: ("ok", "good"), False: ("missing", "bad"), None: ("no", "dim")}


def render_findings(
    findings: Sequence[Check], width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """One finding a paragraph, then how many can be fixed."""
    rows: list[tuple[Cell, ...]] = []
    for each in findings:
        rows.append((Styled(*_MARKS[each.ok]), f"{each.name}: {each.finding}"))
        if each.mend and each.ok is not True:
            rows.append(("", Styled(f"→ {each.mend}", "strong")))
    missing = sum(each.ok is False for each in findings)
    said = "Everything that this machine has can be measured."
    if missing:
        said = f"{missing} of {len(findings)} checks can be fixed (see →)."
    table = Table((Column("", "name"), Column("")), rows)
    return print_blocks([table], [Sentence(said)], width=width, color=color, unicode=unicode)
