"""The sixth screen: the hottest functions and lines by stage, and what is read."""

from textual.content import Content

from ...advisors.schema.report_model import LoaderReport
from ...reports.document.inside import inside_parts
from ...reports.words.inside import basis_text, code_stages
from .marks import DIM, FAIR, dim, line, needs_advice, parts, text


@needs_advice
def status(report: LoaderReport, width: int) -> Content:
    """What the figures rest on, or why there are none."""
    code = report.code
    basis = basis_text(code) if code and code_stages(code) else ""
    why = text(code.reason) if code and code.reason else ""
    basis = basis or ("" if why else "no stacks were taken (see loaderscope stacks)")
    return line((f"{basis}  " if basis else "", DIM), (why, FAIR))


@needs_advice
def inside(report: LoaderReport, width: int) -> Content:
    """Each stage with its hottest functions and lines, and what is read."""
    found = list(inside_parts(report, ""))
    return parts(found, width) if found else dim("no functions or files were seen")
