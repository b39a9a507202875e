"""The second screen: each recommendation with its evidence, its gain, its code, and what would not
help."""

from __future__ import annotations

from textual.content import Content

from ...advisors.schema.report_model import LoaderReport, Recommendation
from ...reports.document.advice import card, card_of
from ...reports.document.blocks import Block, sentences
from ...reports.words.advice_words import effect_text, plan_rows, plan_summary
from ...reports.words.sentences import nothing_to_change
from ...reports.words.units import factor
from ..snapshot import AdviceView
from .marks import DIM, FAIR, GOOD, blocks, line, no_advice, text

# What an entry stands for: advice, a rule that could not be judged, or None for a heading.
Target = Recommendation | str | None


def conclusion(report: LoaderReport) -> str:
    """What the recommendations come to together; where nothing is advised, why."""
    said = plan_summary(report) if report.recommendations else nothing_to_change(report)
    return said or ("" if report.recommendations else "Nothing is advised.")


def gain_of(each: Recommendation) -> str:
    """'×1.6–1.9', or what kind of advice it is where speed is not the point."""
    if each.kind != "speed":
        return each.kind
    if each.measured is not None:
        proved = effect_text(each).startswith("proved")
        return f"{factor(each.measured)} {'proved' if proved else 'measured'}"
    low, high = factor(each.predicted.low), factor(each.predicted.high)
    return low if low == high else f"{low}–{high.removeprefix('×')}"


def entries(advice: AdviceView) -> list[tuple[Target, Content]]:
    """What each line of the screen's list stands for, and the line."""
    if not advice.report:
        return []
    found: list[tuple[Target, Content]] = []
    for title, style, members in (
        ("Change this", f"bold {GOOD}", advice.report.recommendations),
        ("Would not help", FAIR, advice.report.rejected),
        ("Could not be judged", DIM, tuple(advice.report.unmeasured)),
    ):
        found += [(None, line((title, "bold")))] if members else []
        for each in members:
            gain, rule = ("?", each) if isinstance(each, str) else (gain_of(each), each.rule)
            found.append((each, line((f"{gain:<11} ", style), text(rule, 30))))
    return found


def detail(advice: AdviceView, target: Target, width: int) -> Content:
    """Everything that is known of one entry."""
    report = advice.report
    if not report:
        return no_advice(advice)
    if target is None:
        return blocks(sentences([conclusion(report)], "dim"), width)
    if isinstance(target, str):
        found: list[Block] = sentences([target], "strong")
        found += sentences([report.unmeasured.get(target)])
        rule = target
    else:
        rule, row = target.rule, next((r for r in plan_rows(report) if r.advice is target), None)
        shown = card_of(target) if not row else card(row, full=True)
        found = [shown, *sentences(["c copies the code; loaderscope fix makes it a patch."], "dim")]
    return blocks(
        [*found, *sentences([f"loaderscope rules {rule} explains the rule."], "dim")], width
    )
