"""The effect of advice and the limit of a loader, in words."""

from __future__ import annotations

from ...advisors.schema.figures import times
from ...advisors.schema.report_model import Range, Recommendation


def effect_text(advice: Recommendation) -> str:
    """'predicted ×1.8 (1.5–2.1)', after what was measured, if it was; nothing where speed does not change."""
    if advice.measured_range is not None:
        return f"{tried_text(advice.measured_range, advice.measured_s)}; predicted {predicted_text(advice.predicted)}"
    if advice.measured is not None:
        return f"measured {times(advice.measured)}"
    if advice.predicted.low == advice.predicted.high == 1.0:
        return ""
    return f"predicted {predicted_text(advice.predicted)}"


def tried_text(found: Range, seconds: float | None) -> str:
    """'proved ×1.63 (1.55–1.70) in 14 s'; 'measured ×1.02 (0.97–1.05) in 8 s' where it is no gain for certain."""
    took = f" in {seconds:.0f} s" if seconds else ""
    return f"{'proved' if found.low > 1.0 else 'measured'} {predicted_text(found)}{took}"


def predicted_text(predicted: Range) -> str:
    """'×1.8 (1.5–2.1)': the likely factor, and where it lies four times in five."""
    wide = predicted.high - predicted.low >= 0.3
    low, high = (times(value, wide)[1:] for value in (predicted.low, predicted.high))
    middle = times(predicted.mid, wide)
    return middle if low == high else f"{middle} ({low}–{high})"
