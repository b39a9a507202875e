"""What to change, as cards; what tuning found; and what would not help."""

from collections.abc import Iterator

from ...advisors.schema.report_model import LoaderReport, Recommendation
from ...profiler.base.metadata import clean
from ..words.advice_words import PlanRow, effect_text, plan_rows, plan_summary
from ..words.sentences import nothing_to_change
from ..words.tuned_words import tried_lines, tuned_lead
from .blocks import Block, Card, Code, Folded, Pairs, Part, Sentence, bullets, sentences

MAX_CODE = 20_000


def tuned_blocks(loader: LoaderReport) -> list[Block]:
    """What tuning came to, at the head of a tuned loader's report."""
    if not loader.tuning:
        return []
    said, *more = tuned_lead(loader.tuning)
    proven = loader.tuning.proven
    return [Sentence(said, "good" if proven else ""), *sentences(more)]


def advice_parts(loader: LoaderReport) -> Iterator[Part]:
    """All that the rules and tuning said of a loader."""
    rows = plan_rows(loader)
    cards: list[Block] = [card(row, full=True) for row in rows]
    yield Part([*cards, *sentences([plan_summary(loader)], "strong")], "What to change")
    if not rows:
        yield Part(sentences([nothing_to_change(loader)], "strong"))
    yield Part([_rejected(each) for each in loader.rejected], "What would not help")
    if loader.tuning:
        other = "" if loader.tuning.best is None else "else "
        yield Part(bullets(list(tried_lines(loader.tuning))), f"What {other}was tried")


def card(row: PlanRow, full: bool = False) -> Card:
    """One step, or what the plan leaves out: in full, or its title in one line."""
    effect, ending, left_out = row.effect, row.left_out or row.effort, row.left_out is not None
    if not full:
        effect = effect.removeprefix("predicted ").partition("; predicted")[0]
        ending = ending.partition(":")[0]
    inside = body(row.advice) if full else []
    return Card(row.advice, effect, ending, inside, row.number, left_out, not full)


def _rejected(advice: Recommendation) -> Card:
    """What would not help, without its code."""
    blocks = [each for each in body(advice, "Evidence against") if not isinstance(each, Code)]
    return Card(advice, effect_text(advice), "", blocks)


def body(advice: Recommendation, evidence: str = "Evidence") -> list[Block]:
    """Why, the evidence, the code to paste, and what to mind."""
    rows = [(name, str(value)) for name, value in advice.evidence.items()]
    # Its lines as they are, without control characters.
    code = "\n".join(line.rstrip() for line in _lines(advice.change.code.expandtabs(4)))
    return [
        Sentence(advice.why),
        *([Pairs(rows, f"{evidence}: {advice.title}", inline=True)] if rows else []),
        *([Code(code, advice.title)] if code.strip() else []),
        *_patch(advice),
        *sentences([advice.caveat and f"But: {advice.caveat}"]),
    ]


def _lines(text: str) -> list[str]:
    """Without control characters but for tabs."""
    return [
        "\t".join(clean(part, MAX_CODE) for part in line.split("\t"))
        for line in text.strip("\n")[:MAX_CODE].split("\n")
    ]


def _patch(advice: Recommendation) -> list[Block]:
    """The same change as a patch of the user's own source."""
    if advice.change.diff is None:
        return []
    said = "Not tried: loaderscope fix tries it. Apply it with patch -p1 in your project's folder."
    # Its tabs and spaces are part of the source.
    code = Code("\n".join(_lines(advice.change.diff)), f"patch of {advice.title}")
    return [Folded("As a patch of your source", [Sentence(said, "dim"), code])]
