"""What to change: in short on the first screen, in full on the second."""

from textual.content import Content

from ...advisors.schema.report_model import LoaderReport
from ...reports.document.advice import advice_parts, card
from ...reports.document.blocks import Part, sentences
from ...reports.document.stages import not_judged
from ...reports.words.advice_words import plan_rows, plan_summary
from ...reports.words.inside import what_costs
from ...reports.words.sentences import nothing_to_change
from .marks import blocks, needs_advice, parts


@needs_advice
def brief(report: LoaderReport, width: int) -> Content:
    """What costs, then the recommendations, best first, and what they come to."""
    rows = plan_rows(report)
    costs = sentences([what_costs(report)], "bad", True)
    said = plan_summary(report) if rows else nothing_to_change(report) or "Nothing is advised."
    ending = sentences([said], "strong" if rows else "dim", True)
    return blocks([*costs, *map(card, rows), *ending], width)


@needs_advice
def full(report: LoaderReport, width: int) -> Content:
    """Each recommendation with its evidence, its gain and its code, and what would not help."""
    left = Part(sentences([not_judged(report)], "dim"))
    return parts([*advice_parts(report), left], width)
