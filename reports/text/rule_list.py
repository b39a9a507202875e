"""The rules behind the advice, as a table that fits the terminal, and one rule's documentation."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from ...advisors.rules import Rule
from .paint import paint

MIN_WIDTH = 40
_KIND_STYLES = {"speed": "dim", "correctness": "red", "safety": "yellow"}


def render_rules(rules: Sequence[Rule], width: int = 80, color: bool = False) -> str:
    """One paragraph a rule: its name, its kind, and what it looks for."""
    width = max(MIN_WIDTH, min(width, 120))
    left = max((len(rule.name) for rule in rules), default=0) + 2
    beside = width >= left + 13 + 30
    lines = []
    for rule in rules:
        kind = paint(f"{rule.kind:<13}", _KIND_STYLES[rule.kind], color)
        if beside:
            summary = textwrap.wrap(rule.summary, width - left - 13) or [""]
            lines.append(f"{rule.name:<{left}}{kind}{summary[0]}")
            lines += [" " * (left + 13) + line for line in summary[1:]]
        else:
            lines.append(f"{rule.name:<{left}}{kind}".rstrip())
            lines += textwrap.wrap(rule.summary, width, initial_indent="  ", subsequent_indent="  ")
    return "\n".join([*lines, "", "One rule in full: loaderscope rules NAME"]) + "\n"


def render_rule(rule: Rule, color: bool = False) -> str:
    """The rule's name and kind, and its documentation as it is written."""
    return f"{paint(rule.name, 'bold', color)} ({rule.kind})\n\n{rule.doc}\n"
