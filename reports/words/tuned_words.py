"""What tuning found and tried, in words."""

from collections.abc import Iterator

from ...advisors.assemble.tried import tuning_of
from ...advisors.schema.tuning_model import SettingsTrial, Tuning
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ...profiler.store.run.tuning import Tuned, changed_words
from .advice_words import predicted_text, tried_text

NOT_TUNED = "not tuned: "


def tuned_lead(tuning: Tuning, name: str = "") -> list[str]:
    """What it came to, what proves it, and what to write into the code. `name`: the loader's, if it
    is to be said."""
    said, best = clean(tuning.said, 300), tuning.best
    if said.startswith(NOT_TUNED):
        return [f"{clean(name, 60) + ' is n' if name else 'N'}{said[1:]}"]
    about = f"Tuned {clean(name, 60)}" if name else "Tuned"
    lines = [f"{about}: {said}"]
    if best:
        if not tuning.decided:
            changed = changed_words(tuning.own, best.settings)
            lines = [f"{about}: {changed} is faster; the loop ended before all was tried"]
        lines.append(_effect(best))
        lines.append(
            f"to keep it, write: DataLoader(…, {changed_words(tuning.own, best.settings)})"
        )
    return lines


def tuned_text(run: Run) -> str:
    """A paragraph for each loader that was tuned; a sentence where none was."""
    tuned = [(loader.name, loader.tuning) for loader in run.loaders if loader.tuning]
    if not tuned:
        return "Tuned: no loader\n" if run.loaders else ""
    lines = []
    for name, each in [one for one in tuned if one[1].follows is None] or tuned:
        tuning = tuning_of(each)  # of the rank that decided for all
        said, *more = tuned_lead(tuning, name)
        lines += [said, *(f"  {line}" for line in (*more, *tried_lines(tuning)))]
    return "".join(f"{line}\n" for line in lines)


def said_at_end(name: str, tuned: Tuned) -> str:
    """The message at the end of a program that tunes in its code, without failed trials."""
    said = "; ".join(tuned_lead(tuning_of(tuned), name))
    return f"t{said[1:]}" if said.startswith("Tuned ") else said


def tried_lines(tuning: Tuning) -> Iterator[str]:
    """'tried num_workers=0: not faster; measured ×0.31 (0.30–0.32) in 9 s', for each trial but the
    one that `tuned_lead` is about."""
    for each in tuning.trials:
        if each is not tuning.best:
            settings = changed_words(tuning.own, each.settings)
            why = f" ({clean(each.why, 200)})" if each.why else ""
            found = _effect(each) or "not measured"
            said = f"tried {settings}: {_outcome(tuning, each)}"
            if each.outcome == "not tried":
                said = f"not tried: {settings}"
            yield f"{said}; {found}{why}"


def _outcome(tuning: Tuning, trial: SettingsTrial) -> str:
    """What was held against other settings than the code's own names them: it may be faster than
    those all the same."""
    outcome = clean(trial.outcome or "the script ended before it was decided", 100)
    base = changed_words(tuning.own, trial.base) if trial.base else ""
    return f"{outcome} than {base}" if outcome == "not faster" and base else outcome


def _effect(trial: SettingsTrial) -> str:
    """'proved ×1.63 (1.55–1.70) in 14 s; predicted ×1.7 (1.4–1.8)', as far as it is known."""
    found = []
    if trial.measured:
        found.append(tried_text(trial.measured, trial.seconds, trial.outcome))
    if trial.predicted:
        found.append(f"predicted {predicted_text(trial.predicted)}")
    return "; ".join(found)
