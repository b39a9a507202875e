"""The effect of advice and the limit of a loader, in words."""

from __future__ import annotations

from ...advisors.schema.figures import times
from ...advisors.schema.report_model import Range, Recommendation
from ...advisors.schema.tuning_model import certain

SHORT_S = 5.0  # of trying: about as long as the shortest trial that can tell anything


def effect_text(advice: Recommendation) -> str:
    """'predicted ×1.8 (1.5–2.1)', after what was measured, if it was; nothing where speed does not
    change."""
    if advice.measured_range is not None:
        # Older reports do not say how a trial ended.
        outcome = advice.tried or ("proven" if advice.measured_range.low > 1 else "not faster")
        tried = tried_text(advice.measured_range, advice.measured_s, outcome)
        return f"{tried}; predicted {predicted_text(advice.predicted)}"
    if advice.measured is not None:
        return f"measured {times(advice.measured)}"
    if advice.predicted.low == advice.predicted.high == 1.0:
        return ""
    return f"predicted {predicted_text(advice.predicted)}"


def tried_text(found: Range, seconds: float | None, outcome: str | None) -> str:
    """'proved ×1.63 (1.55–1.70) in 14 s'; 'measured ×0.31 (0.30–0.32) in 8 s' of what is no gain;
    'too short to tell: ×0.47 (0.02–14) in 1 s', 'not certain: ×1.06 (0.99–1.13) in 25 s' of what is
    neither."""
    if certain(outcome, found):
        verb = "proved" if outcome == "proven" else "measured"
    else:
        verb = "too short to tell:" if seconds is not None and seconds < SHORT_S else "not certain:"
    return f"{verb} {predicted_text(found)}" + (f" in {seconds:.0f} s" if seconds else "")


def predicted_text(predicted: Range) -> str:
    """'×1.8 (1.5–2.1)': the likely factor, and where it lies four times in five."""
    wide = predicted.high - predicted.low >= 0.3
    low, high = (times(value, wide)[1:] for value in (predicted.low, predicted.high))
    middle = times(predicted.mid, wide)
    return middle if low == high else f"{middle} ({low}–{high})"
