"""The report as JSON: `Report.to_json`, in the shape every other format has."""

from __future__ import annotations

from ...advisors.schema.report_model import Report


def render_json(report: Report) -> str:
    """JSON text, ending with a newline; `Report.from_json` reads it back."""
    return report.to_json() + "\n"
