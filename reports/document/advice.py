"""What to change, as cards; what tuning found; and what would not help."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...advisors.schema.report_model import LoaderReport, Recommendation
from ...profiler.base.metadata import clean
from ..words.advice_words import effect_text
from ..words.plan_words import PlanRow, plan_rows, plan_summary
from ..words.sentences import nothing_to_change
from ..words.tuned_words import tried_lines, tuned_lead
from ..words.units import figure
from .blocks import (
    Block,
    Bullets,
    Card,
    Code,
    Folded,
    Pairs,
    Part,
    Sentence,
    sentences,
)

MAX_CODE = 20_000


def tuned_blocks(loader: LoaderReport) -> list[Block]:
    """What tuning came to, at the head of a tuned loader's report."""
    if loader.tuning is None:
        return []
    said, *more = tuned_lead(loader.tuning)
    proven = loader.tuning.proven is not None
    return [Sentence(said, "good" if proven else ""), *sentences(more)]


def advice_parts(loader: LoaderReport) -> Iterator[Part]:
    """All that the rules and tuning said of a loader."""
    rows = plan_rows(loader)
    cards: list[Block] = [card(row, full=True) for row in rows]
    yield Part("What to change", [*cards, *sentences([plan_summary(loader)], "strong")])
    if not rows:
        yield Part("", sentences([nothing_to_change(loader)], "strong"))
    yield Part("What would not help", list(map(_rejected, loader.rejected)))
    if loader.tuning is not None:
        other = "" if loader.tuning.best is None else "else "
        lines = list(tried_lines(loader.tuning))
        yield Part(f"What {other}was tried", [Bullets(lines)] if lines else [])


def card(row: PlanRow, full: bool = False) -> Card:
    """One step, or what the plan leaves out: in full, or its title in one line."""
    advice, effect, ending = row.advice, row.effect, row.left_out or row.effort
    if not full:
        effect = effect.removeprefix("predicted ").partition("; predicted")[0]
        ending = ending.partition(":")[0]
    return Card(
        advice.title,
        advice.kind,
        effect,
        ending,
        advice.rule,
        body(advice) if full else (),
        row.number,
        row.left_out is not None,
        not full,
    )


def card_of(advice: Recommendation) -> Card:
    """Advice that is no part of a plan: what would not help."""
    title, inside = advice.title, body(advice, "Evidence against")
    return Card(title, advice.kind, effect_text(advice), "", advice.rule, inside)


def _rejected(advice: Recommendation) -> Card:
    """Without the code, which nobody should paste."""
    shown = card_of(advice)
    return replace(shown, body=[each for each in shown.body if not isinstance(each, Code)])


def body(advice: Recommendation, evidence: str = "Evidence") -> list[Block]:
    """Why, the evidence, the code to paste, and what to mind."""
    rows = [(name, figure(value)) for name, value in advice.evidence.items()]
    code = clean_code(advice.change.code)
    return [
        Sentence(advice.why),
        *([Pairs(rows, f"{evidence}: {advice.title}", inline=True)] if rows else []),
        *([Code(code, advice.title)] if code.strip() else []),
        *_patch(advice),
        *sentences([advice.caveat and f"But: {advice.caveat}"]),
    ]


def clean_code(code: str) -> str:
    """Code to paste: its lines as they are, without control characters."""
    text = code.expandtabs(4).strip("\n")[:MAX_CODE]
    return "\n".join(clean(line, MAX_CODE).rstrip() for line in text.split("\n"))


def _patch(advice: Recommendation) -> list[Block]:
    """The same change as a patch of the user's own source."""
    if advice.change.diff is None:
        return []
    said = "Not tried: loaderscope fix tries it. Apply it with patch -p1 in your project's folder."
    code = Code(_clean_patch(advice.change.diff), f"patch of {advice.title}")
    return [Folded("As a patch of your source", [Sentence(said, "dim"), code])]


def _clean_patch(diff: str) -> str:
    """Without control characters; tabs and spaces are part of the source."""
    lines = (line.split("\t") for line in diff[:MAX_CODE].strip("\n").split("\n"))
    return "\n".join("\t".join(clean(part, MAX_CODE) for part in line) for line in lines)
