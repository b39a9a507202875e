"""What tuning found, in text: what to write into the code, and what was tried."""

from __future__ import annotations

from collections.abc import Iterator

from ...advisors.schema.report_model import Range
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ...profiler.store.run.tuning import Tried, Tuned, changed_words
from ..words.advice_words import predicted_text, tried_text


def render_tuned(run: Run, width: int, color: bool, unicode: bool) -> str:
    """A paragraph for each loader that was tuned; a sentence where none was."""
    tuned = [(loader.name, loader.tuning) for loader in run.loaders if loader.tuning is not None]
    if not tuned:
        return "Tuned: no loader\n" if run.loaders else ""
    told = [each for each in tuned if each[1].follows is None] or tuned  # one rank decides for all
    return "".join(f"{line}\n" for name, each in told for line in _lines(name, each))


def _lines(name: str, tuned: Tuned) -> Iterator[str]:
    yield f"Tuned {clean(name)}: {clean(tuned.said)}"
    kept = [each for each in tuned.trials if each.settings == tuned.chosen and tuned.decided]  # perhaps by hand
    proven = [each for each in tuned.trials if each.outcome == "proven"]
    best = next(reversed(kept or proven), None)
    if best is not None:
        yield f"  {_effect(best)}"
        if best.settings.get("batched"):
            yield "  to keep it, take the code of the advice batched-getitems, which the report has"
        else:
            yield f"  to keep it, write: DataLoader(…, {changed_words(tuned.own, best.settings)})"
    for each in tuned.trials:
        if each is not best:
            what = _effect(each) or "not measured"
            outcome = clean(each.outcome or "the script ended before it was decided")
            yield f"  tried {changed_words(tuned.own, each.settings)}: {outcome}; {what}" + _why(each)


def _why(tried: Tried) -> str:
    return f" ({clean(tried.why, 200)})" if tried.why else ""


def _effect(tried: Tried) -> str:
    """'proved ×1.63 (1.55–1.70) in 14 s; predicted ×1.7 (1.4–1.8)', as far as it is known."""
    found = []
    if tried.measured is not None:
        found.append(tried_text(Range(*tried.measured), tried.seconds))
    if tried.predicted is not None:
        found.append(f"predicted {predicted_text(Range(*tried.predicted))}")
    return "; ".join(found)
