"""What `loaderscope stacks` prints: the hottest functions and the user's own lines of every
stage."""

from __future__ import annotations

from collections.abc import Iterator

from ...advisors.schema.report_model import Code, Report
from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ..document.blocks import Bullets, Part, Section, sentences
from ..document.inside import stage_blocks
from ..document.report import title_of
from ..words.inside import basis_text, code_stages, why_no_stacks
from .draw import print_sections
from .text import MAX_LOADERS


def render_stacks(
    report: Report, run: Run, width: int = 80, color: bool = False, unicode: bool = True
) -> str:
    """The stages of every loader of which there are samples. Raises UsageError, with the reason, if
    there are none."""
    several = len(report.loaders) > 1
    sections = [
        Section(title_of(loader, several), list(_parts(loader.code)))
        for loader in report.loaders
        if loader.code is not None and code_stages(loader.code)
    ]
    if not sections:
        raise UsageError(f"this run holds no stacks: {why_no_stacks(report, run)}")
    return print_sections(sections[:MAX_LOADERS], width, color, unicode)


def _parts(code: Code) -> Iterator[Part]:
    shares = "shares of a stage, with the range that holds them 19 times in 20"
    yield Part("", sentences([f"{basis_text(code)}; {shares}"], "dim"))
    for name, stage in code_stages(code):
        yield Part(clean(name, 40), stage_blocks(name, code, stage))
    yield Part("", [Bullets([code.reason])] if code.reason else [])
