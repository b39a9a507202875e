"""Means of a loader's steady batches with their uncertainty, from the spread between blocks of
consecutive batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...advisors.stage_model.block_error import Floats, block_sums, ratio
from ...advisors.stage_model.verdict import MINIMUM_BATCHES, Lost, lost_time
from ...profiler.store.run.run import LoaderRun


@dataclass(frozen=True)
class Mean:
    """A ratio of sums with its standard error between blocks, and the blocks' degrees of
    freedom."""

    value: float
    error: float
    freedom: int


class Side:
    """The steady batches of one loader."""

    def __init__(self, loader: LoaderRun) -> None:
        self.loader = loader
        self.lost: Lost = lost_time(loader)
        self.steady = self.lost.known & ~self.lost.first
        samples = loader.batches["samples"]
        known = bool(self.steady.any()) and bool(np.all(samples[self.steady] > 0))
        self.samples: Floats | None = samples.astype(np.float64) if known else None

    @property
    def samples_per_batch(self) -> float | None:
        return float(self.samples[self.steady].mean()) if self.samples is not None else None

    def mean(
        self, values: Floats, by_sample: bool, where: npt.NDArray[np.bool_] | None = None
    ) -> Mean | None:
        """Σ values / Σ batches (or samples) over the steady rows; None where there are too few of
        them."""
        rows = self.steady if where is None else self.steady & where
        top = values[rows]
        if len(top) < MINIMUM_BATCHES:
            return None
        below = self.samples[rows] if by_sample and self.samples is not None else np.ones(len(top))
        blocks = block_sums(top)
        value, error = ratio(blocks, block_sums(below))
        return Mean(value, error, len(blocks) - 1)


def quantile(z: float, errors: tuple[float, float], freedom: tuple[int, int]) -> float:
    """Student's t for the normal quantile `z`, with the degrees of freedom of two means (Welch and
    Satterthwaite).

    The expansion is Abramowitz and Stegun's 26.7.5; from three degrees on it is within a percent or
    two.
    """
    squares = [error**2 for error in errors]
    below = sum(square**2 / n for square, n in zip(squares, freedom, strict=True))
    n = sum(squares) ** 2 / below if below > 0 else float(sum(freedom))
    return z + (z**3 + z) / (4 * n) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
