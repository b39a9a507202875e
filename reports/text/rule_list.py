"""The rules behind the advice, as a table that fits the terminal, and one rule's documentation."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ...advisors.rules import Rule
from .layout import indented
from .terminal import fitting_width, printed

MAX_WIDTH = 120
SUMMARIES_BESIDE_FROM = 72
_KIND_STYLES = {"speed": "dim", "correctness": "red", "safety": "yellow"}


def render_rules(
    rules: Sequence[Rule], width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """One paragraph a rule: its name, its kind, and what it looks for."""
    table = Table.grid(padding=(0, 2))
    below: list[RenderableType] = []
    left = max((len(rule.name) for rule in rules), default=0) + 2
    for rule in rules:
        kind = Text(rule.kind, style=_KIND_STYLES[rule.kind])
        table.add_row(rule.name, kind, rule.summary)
        below += [Text.assemble(f"{rule.name:<{left}}", kind), indented(rule.summary)]
    listed = [table] if width >= SUMMARIES_BESIDE_FROM else below
    end = Text("\nOne rule in full: loaderscope rules NAME")
    return printed((*listed, end), fitting_width(width, MAX_WIDTH), color, unicode)


def render_rule(rule: Rule, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """The rule's name and kind, and its documentation as it is written, whatever the width."""
    title = Text.assemble((rule.name, "bold"), f" ({rule.kind})\n")
    written = Text(rule.doc, no_wrap=True, overflow="ignore")
    return printed((title, Group(written)), width, color, unicode)
