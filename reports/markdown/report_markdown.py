"""The report as Markdown of a size that GitHub takes."""

from __future__ import annotations

from ...advisors.schema.report_model import Report
from ...profiler.store.run.run import Run
from ..document.assistant import assistant_sections
from ..document.report import report_sections
from .draw import pieces

# GitHub refuses a comment of more than 65,536 characters; what is around this report needs room
# too.
MAX_BYTES = 60_000
SMALL = 1000
MAX_LOADERS = 32
LEFT_OUT = "\n> Some parts did not fit here: `loaderscope report --format html` has them all.\n"

ASSISTANT_LINES = 150


def render_for_assistant(report: Report, run: Run | None = None) -> str:
    """What is needed to write a change, in at most ASSISTANT_LINES lines: what does not fit is left
    out."""
    kept: list[str] = []
    for piece in pieces(assistant_sections(report, run)):
        if "\n".join([*kept, piece]).count("\n") <= ASSISTANT_LINES:
            kept.append(piece)
    return "\n".join(kept)


def render_markdown(report: Report, max_bytes: int = MAX_BYTES) -> str:
    """GitHub-flavoured Markdown of at most `max_bytes` UTF-8 bytes: what does not fit is left out,
    and it says so."""
    parts = list(pieces(report_sections(report, MAX_LOADERS)))
    sizes = [len(part.encode("utf-8", "replace")) + 1 for part in parts]
    room = max_bytes - len(LEFT_OUT.encode())
    kept = set()
    # A long piece never costs a short one.
    for at in sorted(range(len(parts)), key=lambda at: (sizes[at] > SMALL, at)):
        if sizes[at] <= room:
            kept.add(at)
            room -= sizes[at]
    shown = "\n".join(parts[at] for at in sorted(kept))
    return shown + ("" if len(kept) == len(parts) else LEFT_OUT)
