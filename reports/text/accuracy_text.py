"""How good predictions were, as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from ..document.blocks import Column, Styled, Table, sentences
from ..words.accuracy import ALL, AccuracyRow, unsure_trials
from ..words.units import UNKNOWN, percent
from .draw import print_blocks

EXPLAINED = "Predictions against what tuning measured. Four in five should be in the range."


def render_accuracy(
    rows: Sequence[AccuracyRow],
    width: int = 80,
    color: bool = False,
    unicode: bool = True,
    unsure: int = 0,
) -> str:
    """A line a host and setting, then how the host's later predictions are corrected. `unsure`: the
    factor of so many further trials is not known well enough."""
    numbers = ("trials", "median error", "bias", "in the range")
    columns = (Column("host"), Column("changed"), *(Column(head, "number") for head in numbers))
    cells = [
        (
            row.host or UNKNOWN,
            Styled(row.changed, "strong" if row.changed == ALL else ""),
            f"{row.trials:,}",
            percent(row.median_error),
            f"{row.median_bias * 100:+.0f} %",
            percent(row.inside_share),
        )
        for row in rows
    ]
    left_out = f"Left out: {unsure_trials(unsure)}." if unsure else None
    learned = [
        f"Later predictions on {row.host or UNKNOWN}: factors to the power of {row.scale:.2f}, "
        f"ranges {row.width:.2f} times as wide."
        for row in rows
        if row.scale is not None
    ]
    blocks = [Table(columns, cells), *sentences((EXPLAINED, left_out), "dim"), *sentences(learned)]
    return print_blocks(blocks, width=width, color=color, unicode=unicode)
