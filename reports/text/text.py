"""The report in full for a terminal."""

from __future__ import annotations

from ...advisors.schema.report_model import Report
from ..document.report import report_sections
from .draw import print_sections

MAX_LOADERS = 32


def render_text(report: Report, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """All of the report: the verdict first, then where the time went."""
    return print_sections(report_sections(report, MAX_LOADERS), width, color, unicode)
