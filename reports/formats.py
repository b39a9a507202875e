"""The formats by name, as the command line has them: what each makes of a report, and how it
reaches a file."""

from collections.abc import Callable
from pathlib import Path

from ..advisors.schema.report_model import Report
from ..profiler.base.errors import UsageError
from ..profiler.base.metadata import clean
from ..profiler.store.run.run import Run
from .compare.compare_model import Comparison
from .document.comparison import comparison_sections
from .export.perfetto import render_perfetto
from .export.tables import render_parquet
from .html.html_report import fill, render_html
from .markdown.draw import pieces, render_markdown

# Not for a terminal: megabytes of markup, or a folder.
FILE_ONLY = {
    "html": "report.html",
    "perfetto": "trace.json",
    "parquet": "tables",
}
# Files are read by people too; a terminal's width says nothing about them.
FILE_WIDTH = 100

Content = str | bytes | dict[str, bytes]

_OF_A_RUN: dict[str, Callable[[Report, Run], Content]] = {
    "html": render_html,
    "perfetto": render_perfetto,
    "parquet": render_parquet,
}


def render_report(
    format_: str,
    report: Report,
    run: Run,
    width: int = FILE_WIDTH,
    color: bool = False,
    full: bool = True,
) -> Content:
    """The report as "parquet": the files of a folder; in any other format of the command line's: a
    text.

    `width`, `color` and `full` (all that is known, not only what matters) are for
    people's text alone. Raises UsageError where an optional package is missing, or where a run
    holds nothing of what is asked for.
    """
    if format_ == "json":
        return report.to_json() + "\n"
    if format_ == "md":
        return render_markdown(report)
    if format_ in _OF_A_RUN:
        return _OF_A_RUN[format_](report, run)
    from .text.text import render_brief, render_text

    return (render_text if full else render_brief)(report, width, color)


def render_comparison(
    format_: str,
    comparison: Comparison,
    width: int = FILE_WIDTH,
    color: bool = False,
) -> str:
    """The comparison as "text", "json", "md" or "html". Raises UsageError where an optional package
    is missing."""
    if format_ == "json":
        return comparison.to_json() + "\n"
    sections = list(comparison_sections(comparison))
    if format_ == "md":
        return "\n".join(pieces(sections))
    if format_ == "html":
        runs = f"{comparison.before} and {comparison.after}"
        return fill(runs, "Two runs compared", sections, {})
    from .text.draw import print_sections

    return print_sections(sections, width, color)


def write_content(content: Content, path: Path) -> None:
    """A text or bytes into the file `path`, several files into the folder `path`. Raises UsageError
    where it cannot be done."""
    try:
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8", newline="\n")
            return
        if isinstance(content, bytes):
            path.write_bytes(content)
            return
        path.mkdir(parents=True, exist_ok=True)
        for name, data in content.items():
            (path / name).write_bytes(data)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError(f"{clean(path)} cannot be written: {clean(reason)}") from error
