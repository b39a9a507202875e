"""The factor from pairs of windows, how often its range is wrong; what a trial found, as one line."""

from typing import Any

import numpy as np
import pytest

from loaderscope.experiment.ratio import FEWEST, factor_of, is_narrow
from loaderscope.experiment.result import Difference, Range, TryResult
from loaderscope.experiment.words import tried_line, tried_lines


def pairs_of(rng: np.random.Generator, true: float, count: int, noise: float) -> list[list[float]]:
    """Windows of a loop whose own pace changes by much, which both sides share."""
    pace = rng.uniform(0.5, 3.0, count)
    both = pace[:, None] * np.array([1.0, 1.0 / true]) * np.exp(rng.normal(0, noise, (count, 2)))
    return both.tolist()


def trial(rng: np.random.Generator, true: float, noise: float, starts: int = 1) -> TryResult:
    """Pairs until the range is narrow, as in turns. The two processes differ by themselves."""
    lasting = float(np.exp(rng.normal(0, 0.005)))
    pairs = pairs_of(rng, true * lasting, 40, noise)
    for count in range(FEWEST, len(pairs) + 1):
        found = factor_of(pairs[:count], starts)
        if is_narrow(found, count):
            break
    return TryResult(same_batches=True, factor=found)


@pytest.mark.parametrize("noise", [0.005, 0.03, 0.08])
def test_a_change_of_nothing_is_hardly_ever_called_faster_or_slower(noise: float) -> None:
    rng = np.random.default_rng(1)
    found = (trial(rng, 1.0, noise) for _ in range(600))
    assert np.mean([each.faster or each.slower for each in found]) <= 0.01


@pytest.mark.parametrize("true", [1.1, 1 / 1.1, 1.5])
@pytest.mark.parametrize("noise", [0.005, 0.03])
def test_a_tenth_is_called_rightly(true: float, noise: float) -> None:
    rng = np.random.default_rng(2)
    found = [trial(rng, true, noise) for _ in range(300)]
    right = [each.faster if true > 1 else each.slower for each in found]
    assert np.mean(right) >= 0.95
    held = [each.factor.low <= true <= each.factor.high for each in found if each.factor]
    assert np.mean(held) >= 0.97


def test_the_ratio_is_that_of_whole_loops() -> None:
    """What the loop gains counts, not the mean of the windows' factors."""
    pairs = [(1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (5.0, 1.0)] * 4
    found = factor_of(pairs, 1)
    assert found is not None and found.mid == pytest.approx(2.0)
    assert found.low < 2.0 < found.high


def test_few_windows_tell_little() -> None:
    assert factor_of([(1, 1)] * (FEWEST - 1), 1) is None
    alike = factor_of([(1.1, 1.0)] * FEWEST, 1)
    assert alike is not None and alike.low < 1 < alike.high
    assert not is_narrow(alike, FEWEST)


@pytest.mark.parametrize(
    ("low", "mid", "high", "called"),
    [
        (1.01, 1.2, 1.4, "faster"),
        (0.99, 1.2, 1.4, None),
        (1.005, 1.02, 1.04, None),  # certain, but nobody would change code for it
        (0.7, 0.9, 0.99, "slower"),
        (0.97, 0.98, 0.99, None),
    ],
)
def test_what_is_called_faster(low: float, mid: float, high: float, called: str | None) -> None:
    result = TryResult(same_batches=True, factor=Range(low, mid, high))
    assert (result.faster, result.slower) == (called == "faster", called == "slower")
    assert result.holds == (called != "slower")


FASTER, NONE, SLOWER = Range(2.6, 2.9, 3.1), Range(0.97, 1.0, 1.04), Range(0.6, 0.7, 0.8)
UNSURE = "not certainly faster or slower: ×1.00 (0.97–1.04)"
OTHER = {"same_batches": False, "first_difference": Difference(1200, "other values in [0]")}
DIFFERENT = "different from batch 1,200 on: other values in [0], ×0.70 (0.60–0.80), memory +120 MB"
SAID: list[tuple[str, dict[str, Any]]] = [
    ("same batches (first 64), ×2.9 (2.6–3.1)", {"factor": FASTER}),
    (f"same batches (all 64), {UNSURE}", {"ended": True, "factor": NONE}),
    ("same batches (first 64), speed not measured, memory −5.00 MB", {"memory_bytes": -5_000_000}),
    (DIFFERENT, {**OTHER, "factor": SLOWER, "memory_bytes": 120_000_000}),
    (f"batches not compared, {UNSURE}", {"same_batches": None, "factor": NONE}),
    ("not tried: the script as it is ended", {"error": "the script as it is\nended"}),
]


@pytest.mark.parametrize(("said", "facts"), SAID)
def test_one_line(said: str, facts: dict[str, Any]) -> None:
    assert tried_line(TryResult(**{"same_batches": True, "compared": 64, **facts})) == said


def test_notes_follow_without_control_characters() -> None:
    first, second = tried_lines(TryResult(error="x", notes=("one\x1b[31m two",)))
    assert first == "not tried: x" and second.startswith("  one") and "\x1b" not in second
