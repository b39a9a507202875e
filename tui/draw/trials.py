"""The seventh screen, of a loader whose settings are tried: what was, what is and what comes
next."""

from __future__ import annotations

from textual.content import Content

from ...advisors.schema.report_model import Range
from ...profiler.store.run.tuning import Tried, Tuned, changed_words
from ...reports.document.blocks import Column, Styled, Table
from ...reports.words.advice_words import predicted_text, tried_text
from ...reports.words.units import UNKNOWN
from ..snapshot import Snapshot
from .marks import DIM, MARK, blocks, dim, line, lines, text

_OUTCOMES = {
    "proven": ("✓", "good"),
    "not faster": ("✗", "dim"),
    "undecided": ("?", "own"),
    "failed": ("!", "bad"),
}
WIDE_FROM = 100  # columns from which the number of windows has room


def status(s: Snapshot, width: int) -> Content:
    """What tuning is at, and the settings in use."""
    if not s.tuning:
        return dim("this loader is not being tuned (see loaderscope tune)")
    tuned, live = s.tuning.tuned, s.state == "live"
    trial = _at_work(tuned, live)
    if trial:
        turn = "these" if len(trial.base_rates) > len(trial.rates) else "the best so far"
        name = (_name(tuned, trial), f"bold {MARK}")
        first = line(("trying ", DIM), name, (f"   now measuring {turn}", DIM))
    elif tuned.decided or not live:
        first = line((text(tuned.said), "bold"))
    else:
        first = dim("measuring the loop as it is")
    rank = f"decided by rank {tuned.follows} · " if tuned.follows is not None else ""
    chosen = changed_words(tuned.own, tuned.chosen) or "the code's own settings"
    return lines([first, line((f"{rank}in use: ", DIM), chosen)])


def table(s: Snapshot, width: int) -> Content:
    """A row a trial: its result in words, its prediction."""
    tuned = s.tuning.tuned if s.tuning else None
    if not tuned or not (tuned.trials or tuned.waiting):
        return dim("nothing was tried" if tuned and tuned.decided else "nothing yet")
    at_work = _at_work(tuned, s.state == "live")
    columns = (
        Column("", "name"),
        Column("settings"),
        Column("result"),
        Column("predicted"),
        Column("windows", "number", WIDE_FROM),
    )
    rows = []
    for trial in tuned.trials:
        now = trial is at_work
        mark, style = ("▸", "code") if now else _OUTCOMES.get(trial.outcome or "", ("–", "dim"))
        rows.append(
            (
                Styled(mark, style),
                Styled(_name(tuned, trial), "strong" if now else ""),
                _result(trial, now),
                _predicted(trial),
                f"{len(trial.base_rates) + len(trial.rates)}",
            )
        )
    waiting = [
        ("", _name(tuned, each), "to be tried", _predicted(each), "") for each in tuned.waiting
    ]
    return blocks([Table(columns, [*rows, *waiting])], width)


def _result(trial: Tried, now: bool) -> str:
    """'proved ×1.63 (1.55–1.70) in 10 s', 'so far ×1.8 (1.4–2.3)', 'not tried: why'."""
    if not trial.measured:
        said = "not measured yet" if now else trial.outcome or "not decided"
        return f"{said}: {trial.why}" if trial.why else said
    found = Range(*trial.measured)
    return (
        f"so far {predicted_text(found)}"
        if now
        else tried_text(found, trial.seconds, trial.outcome)
    )


def _at_work(tuned: Tuned, live: bool) -> Tried | None:
    last = tuned.trials[-1] if tuned.trials else None
    return last if last and last.outcome is None and not tuned.decided and live else None


def _name(tuned: Tuned, trial: Tried) -> str:
    return text(changed_words(tuned.own, trial.settings), 60)


def _predicted(trial: Tried) -> str:
    if not trial.predicted:
        return UNKNOWN
    return predicted_text(Range(*trial.predicted))
