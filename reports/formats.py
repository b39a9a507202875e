"""The formats by name, as the command line has them: what each makes of a report, and how it
reaches a file."""

from __future__ import annotations

from pathlib import Path

from ..advisors.schema.report_model import Report
from ..profiler.base.errors import UsageError
from ..profiler.base.metadata import clean
from ..profiler.store.run.run import Run
from .compare.compare_model import Comparison

# Not for a terminal: megabytes of markup, or a folder.
FILE_ONLY = {
    "html": "report.html",
    "perfetto": "trace.json",
    "parquet": "tables",
    "speedscope": "stacks.speedscope.json",
}
# Files are read by people too; a terminal's width says nothing about them.
FILE_WIDTH = 100

Content = str | bytes | dict[str, bytes]


def render_report(
    format_: str,
    report: Report,
    run: Run,
    width: int = FILE_WIDTH,
    color: bool = False,
    unicode: bool = True,
    full: bool = True,
) -> Content:
    """The report as "parquet": the files of a folder; in any other format of the command line's: a
    text.

    `width`, `color`, `unicode` and `full` (all that is known, not only what matters) are for
    people's text alone. Raises UsageError where an optional package is missing, or where a run
    holds nothing of what is asked for.
    """
    match format_:
        case "json":
            return report.to_json() + "\n"
        case "md":
            from .markdown.report_markdown import render_markdown

            return render_markdown(report)
        case "html":
            from .html.html_report import render_html

            return render_html(report, run)
        case "perfetto":
            from .export.perfetto import render_perfetto

            return render_perfetto(report, run)
        case "speedscope":
            from .export.speedscope import render_speedscope

            return render_speedscope(report, run)
        case "parquet":
            from .export.parquet import render_parquet

            return render_parquet(report, run)
    if full:
        from .text.text import render_text

        return render_text(report, width, color, unicode)
    from .text.brief import render_brief

    return render_brief(report, width, color, unicode)


def render_comparison(
    format_: str,
    comparison: Comparison,
    width: int = FILE_WIDTH,
    color: bool = False,
    unicode: bool = True,
) -> str:
    """The comparison as "text", "json", "md" or "html". Raises UsageError where an optional package
    is missing."""
    if format_ == "json":
        return comparison.to_json() + "\n"
    from .document.comparison import comparison_sections

    sections = list(comparison_sections(comparison))
    if format_ == "md":
        from .markdown.draw import pieces

        return "\n".join(pieces(sections))
    if format_ == "html":
        from .html.html_page import fill

        runs = f"{comparison.before} and {comparison.after}"
        return fill(runs, "Two runs compared", sections, {})
    from .text.draw import print_sections

    return print_sections(sections, width, color, unicode)


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
