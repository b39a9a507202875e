"""What tuning found, in text: what to write into the code, and what was tried."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from ...advisors.assemble.tried import tuning_of
from ...advisors.schema.report_model import LoaderReport
from ...advisors.schema.tuning_model import Tuning
from ...profiler.store.run.run import Run
from ..words.tuned_words import tried_heading, tried_lines, tuned_lead
from .layout import heading, indented


def render_tuned(run: Run, width: int, color: bool, unicode: bool) -> str:
    """A paragraph for each loader that was tuned; a sentence where none was."""
    tuned = [(loader.name, loader.tuning) for loader in run.loaders if loader.tuning is not None]
    if not tuned:
        return "Tuned: no loader\n" if run.loaders else ""
    told = [each for each in tuned if each[1].follows is None] or tuned  # one rank decides for all
    return "".join(f"{line}\n" for name, each in told for line in _lines(name, tuning_of(each)))


def _lines(name: str, tuning: Tuning) -> Iterator[str]:
    said, *more = tuned_lead(tuning, name)
    yield said
    yield from (f"  {line}" for line in (*more, *tried_lines(tuning)))


def lead_lines(loader: LoaderReport) -> Iterator[RenderableType]:
    """The beginning of a tuned loader's report."""
    if loader.tuning is not None:
        said, *more = tuned_lead(loader.tuning)
        yield indented(said, "bold green" if loader.tuning.proven is not None else "")
        yield from (indented(line, by=4) for line in more)


def trial_lines(loader: LoaderReport) -> Iterator[RenderableType]:
    """All else that was tried."""
    lines = list(tried_lines(loader.tuning)) if loader.tuning is not None else []
    if loader.tuning is not None and lines:
        yield heading(tried_heading(loader.tuning))
        yield from (indented(line) for line in lines)
        yield Text("")
