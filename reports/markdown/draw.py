"""Draws blocks as Markdown for a GitHub issue or a CI comment: tables, fenced code, and no text
that is obeyed; and the report, of a size that GitHub takes."""

import re
from collections.abc import Iterable, Iterator, Sequence

from ...advisors.schema.report_model import Report
from ...profiler.base.metadata import clean
from ..document.blocks import (
    Bar,
    Block,
    Bullets,
    Card,
    Cell,
    Code,
    Folded,
    Pairs,
    Section,
    Sentence,
    Table,
)
from ..document.report import report_sections

ENTITIES = {c: f"&#{ord(c)};" for c in "<>&@#|"}  # tags, mentions, issue numbers, table cells
_MEANT = re.compile(r"[\\`*_\[\]~$]")
_BEGINS_A_LIST = re.compile(r"^(\d+)([.)])(?=\s|$)|^([-+=])(?=[-+=\s]|$)")

MARKS = {"lead": "**", "strong": "**", "warning": "**", "good": "**"}
# GitHub refuses a comment of more than 65,536 characters; what is around this report needs room
# too.
MAX_BYTES = 60_000
SMALL = 1000
LEFT_OUT = "\n> Some parts did not fit here: `loaderscope report --format html` has them all.\n"


def escaped(text: str) -> str:
    """Text that reads as it is, wherever it stands: no tag, emphasis, link, mention, table border
    or list."""
    line = _MEANT.sub(lambda match: "\\" + match[0], clean(text))
    line = "".join(ENTITIES.get(c, c) for c in line)
    line = (
        line.replace("\\\\", "&#92;").replace("://", "&#58;//").replace("www.", "www&#46;")
    )  # bare links
    return _BEGINS_A_LIST.sub(lambda m: f"{m[1]}\\{m[2]}" if m[1] else f"\\{m[3]}", line)


def fenced(code: str) -> str:
    """A code block whose fence no line of the code can close."""
    longest = max((len(run) for run in re.findall(r"`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code}\n{fence}\n"


def pieces(sections: Iterable[Section]) -> Iterator[str]:
    """The document in pieces, each of which can be left out; a heading is with what it heads."""
    for section in sections:
        verdict = f": {section.verdict}" if section.verdict else ""
        heading = f"## {escaped(section.title)}{verdict}\n\n" if section.title else ""
        for part in section.parts:
            heading += f"### {escaped(part.title)}\n\n" if part.title and part.blocks else ""
            for block in part.blocks:
                drawn = _block(block)
                if drawn:
                    yield heading + drawn
                    heading = ""


def _block(block: Block) -> str:
    match block:
        case Sentence(text, style):
            mark = MARKS.get(style, "")
            return f"{mark}{escaped(text)}{mark}\n"
        case Bullets(lines):
            return "".join(f"- {escaped(line)}\n" for line in lines)
        case Pairs(rows):
            return _table(("", ""), (":---", ":---"), rows)
        case Code(code):
            return fenced(code)
        case Table(columns, rows):
            shown = [at for at, each in enumerate(columns) if each.everywhere]
            heads = [columns[at].head for at in shown]
            rules = ["---:" if columns[at].kind == "number" else ":---" for at in shown]
            cells = [[row[at] for at in shown] for row in rows if not isinstance(row, str)]
            return _table(heads, rules, cells)
        case Card():
            return _card(block)
        case Folded(title, blocks):
            return _folded(title, "\n".join(map(_block, blocks)))
    return ""


def _table(heads: Sequence[str], rules: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    cells = [[_cell(each).strip() for each in row] for row in rows]
    return "".join(f"| {' | '.join(each)} |\n" for each in ([*heads], [*rules], *cells))


def _cell(cell: Cell) -> str:
    return "" if isinstance(cell, Bar) else escaped(cell if isinstance(cell, str) else cell.text)


def _card(card: Card) -> str:
    advice = card.advice
    topic = f"{advice.kind}: " if advice.kind != "speed" else ""
    ends = ", ".join(filter(None, (card.effect, card.ending)))
    effect = f" — {escaped(ends)}" if ends else ""
    body = "\n".join(filter(None, map(_block, card.body)))
    if card.number is None:
        return _folded(f"{advice.title} ({advice.rule}){' — ' * bool(ends)}{ends}", body)
    title = f"**{card.number}. {topic}{escaped(advice.title)}**"
    return f"{title}{effect} (rule {escaped(advice.rule)})\n\n{body}"


def _folded(title: str, body: str) -> str:
    """`body` behind a title that opens it; the title is HTML there, which Markdown leaves alone."""
    shown = "".join(ENTITIES.get(c, c) for c in clean(title))
    return f"<details><summary>{shown}</summary>\n\n{body}\n</details>\n"


def render_markdown(report: Report) -> str:
    """GitHub-flavoured Markdown of at most MAX_BYTES UTF-8 bytes: what does not fit is left out,
    and it says so."""
    parts = list(pieces(report_sections(report)))
    sizes = [len(part.encode("utf-8", "replace")) + 1 for part in parts]
    room = MAX_BYTES - len(LEFT_OUT.encode())
    kept = set()
    # A long piece never costs a short one.
    for at in sorted(range(len(parts)), key=lambda at: (sizes[at] > SMALL, at)):
        if sizes[at] <= room:
            kept.add(at)
            room -= sizes[at]
    shown = "\n".join(parts[at] for at in sorted(kept))
    return shown + ("" if len(kept) == len(parts) else LEFT_OUT)
