"""After how many epochs converting pays: the formula against counting."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from loaderscope.advisors.storage_probe.payoff import (
    MAX_EPOCHS,
    EpochTimes,
    pays_after,
)

seconds = st.integers(0, 50).map(float)


@given(seconds, seconds, seconds, seconds, seconds)
def test_it_is_the_first_epoch_after_which_less_time_was_spent(
    convert: float, first: float, later: float, new_first: float, new_later: float
) -> None:
    """Asserts that the formula gives the epoch that counting one by one gives, for any times."""
    before, after = EpochTimes(first, later), EpochTimes(new_first, new_later)

    def total_s(times: EpochTimes, epochs: int) -> float:
        return times.first_s + (epochs - 1) * times.later_s

    counted = next(
        (n for n in range(1, 200) if convert + total_s(after, n) < total_s(before, n)), None
    )
    assert pays_after(convert, before, after) == counted


def test_what_would_pay_after_all_time_never_pays() -> None:
    assert pays_after(1e9, EpochTimes(2, 2), EpochTimes(1, 1)) is None
    assert pays_after(MAX_EPOCHS - 0.5, EpochTimes(2, 2), EpochTimes(1, 1)) == MAX_EPOCHS
