"""The rules behind the advice, as a table that fits the terminal, and one rule's documentation."""

from __future__ import annotations

from collections.abc import Sequence

from ...advisors.rules import Rule
from ..document.blocks import Code, Column, Part, Section, Sentence, Styled, Table
from .draw import print_blocks, print_sections

BESIDE_FROM = 72  # columns of a terminal
_STYLES = {"speed": "dim", "correctness": "bad", "safety": "own"}


def render_rules(
    rules: Sequence[Rule], width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """One paragraph a rule: its name, its kind, and what it looks for."""
    end = Sentence("One rule in full: loaderscope rules NAME")
    if width < BESIDE_FROM:
        below = [Part(f"{each.name} {each.kind}", [Sentence(each.summary)]) for each in rules]
        return print_sections([Section("", [*below, Part("", [end])])], width, color, unicode)
    rows = [(each.name, Styled(each.kind, _STYLES[each.kind]), each.summary) for each in rules]
    table = Table((Column("", "name"), Column("", "name"), Column("")), rows)
    return print_blocks([table], [end], width=width, color=color, unicode=unicode)


def render_rule(rule: Rule, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """The rule's name and kind, and its documentation as it is written, whatever the width."""
    title = Sentence(f"{rule.name} ({rule.kind})", "strong")
    return print_blocks([title, Code(rule.doc)], width=width, color=color, unicode=unicode)
