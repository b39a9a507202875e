"""The sixth screen: the hottest functions and lines by stage, the transforms, and what is read."""

from __future__ import annotations

from textual.content import Content

from ...advisors.schema.report_model import LoaderReport
from ...reports.document.inside import inside_parts
from ...reports.words.inside import basis_text, code_stages
from ..reader import Taken
from ..snapshot import Snapshot
from .marks import BAD, DIM, FAIR, GOOD, dim, line, lines, needs_advice, no_advice, parts, text

_TAKEN = {None: FAIR, True: GOOD, False: BAD}


def status(s: Snapshot, width: int, height: int, taken: Taken | None = None) -> Content:
    """What the figures rest on, or why there are none; and what came of taking stacks."""
    report = s.advice.report
    if not report:
        first = no_advice(s.advice)
    else:
        code = report.code
        basis = basis_text(code) if code and code_stages(code) else ""
        why = text(code.reason) if code and code.reason else ""
        basis = basis or ("" if why else "no stacks were taken")
        first = line((f"{basis}  " if basis else "", DIM), (why, FAIR))
    if taken:
        second = (text(taken.said), f"bold {_TAKEN[taken.done]}")
    elif s.state == "live":
        second = ("s takes stacks now", DIM)
    else:
        second = ("recorded; stacks can be taken of a live run only", DIM)
    return lines([first, line(second)])


@needs_advice
def inside(report: LoaderReport, width: int, height: int) -> Content:
    """Each stage with its hottest functions and lines, the transforms, and what is read."""
    found = list(inside_parts(report, ""))
    return parts(found, width) if found else dim("no functions, transforms or files were seen")
