"""The seventh screen, of a loader whose settings are tried: what was, what is and what comes
next."""

from textual.content import Content

from ...advisors.schema.report_model import Range
from ...profiler.store.run.tuning import Tried, Tuned, changed_words
from ...reports.document.blocks import Column, Table
from ...reports.words.advice_words import predicted_text, tried_text
from ...reports.words.units import UNKNOWN
from ..snapshot import Snapshot
from .marks import DIM, MARK, blocks, dim, line, lines, text


def status(s: Snapshot, width: int) -> Content:
    """What tuning is at, and the settings in use."""
    tuned = s.tuning
    if not tuned:
        return dim("this loader is not being tuned (see loaderscope tune)")
    if tuned.decided or s.state != "live":
        first = line((text(tuned.said), "bold"))
    elif tuned.trials and tuned.trials[-1].outcome is None:
        first = line(("trying ", DIM), (_name(tuned, tuned.trials[-1]), f"bold {MARK}"))
    else:
        first = dim("measuring the loop as it is")
    rank = f"decided by rank {tuned.follows} · " if tuned.follows is not None else ""
    chosen = changed_words(tuned.own, tuned.chosen) or "the code's own settings"
    return lines([first, line((f"{rank}in use: ", DIM), chosen)])


def table(s: Snapshot, width: int) -> Content:
    """A row a trial: its result in words, its prediction."""
    tuned = s.tuning
    if not tuned or not (tuned.trials or tuned.waiting):
        return dim("nothing was tried" if tuned and tuned.decided else "nothing yet")
    results = [*map(_result, tuned.trials), *("to be tried" for _ in tuned.waiting)]
    rows = [
        (_name(tuned, each), result, _predicted(each))
        for each, result in zip((*tuned.trials, *tuned.waiting), results, strict=True)
    ]
    return blocks([Table((Column("settings"), Column("result"), Column("predicted")), rows)], width)


def _result(trial: Tried) -> str:
    """'proved ×1.63 (1.55–1.70) in 10 s', 'not tried: why'."""
    if trial.measured:
        return tried_text(Range(*trial.measured), trial.seconds, trial.outcome)
    said = trial.outcome or "not measured yet"
    return f"{said}: {trial.why}" if trial.why else said


def _name(tuned: Tuned, trial: Tried) -> str:
    return text(changed_words(tuned.own, trial.settings), 60)


def _predicted(trial: Tried) -> str:
    return predicted_text(Range(*trial.predicted)) if trial.predicted else UNKNOWN
