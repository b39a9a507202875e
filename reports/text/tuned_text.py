"""What tuning found, in text: what to write into the code, and what was tried."""

from __future__ import annotations

from ...advisors.assemble.tried import tuning_of
from ...profiler.store.run.run import Run
from ..words.tuned_words import tried_lines, tuned_lead


def render_tuned(run: Run, width: int, color: bool, unicode: bool) -> str:
    """A paragraph for each loader that was tuned; a sentence where none was."""
    tuned = [(loader.name, loader.tuning) for loader in run.loaders if loader.tuning is not None]
    if not tuned:
        return "Tuned: no loader\n" if run.loaders else ""
    lines = []
    for name, each in [one for one in tuned if one[1].follows is None] or tuned:
        tuning = tuning_of(each)  # of the rank that decided for all
        said, *more = tuned_lead(tuning, name)
        lines += [said, *(f"  {line}" for line in (*more, *tried_lines(tuning)))]
    return "".join(f"{line}\n" for line in lines)
