"""Random batches are compared as distributions, with few false alarms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from loaderscope.experiment.distributions import distributions_differ
from loaderscope.experiment.fingerprint import fingerprint, rows_of


def batches(seed: int, change: Callable[[Any], Any] = lambda x: x, count: int = 64) -> list[Any]:
    """Random crops and a random length, as augmentation makes them."""
    drawn = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        length = int(torch.randint(8, 16, (), generator=drawn))
        images = torch.rand(16, 3, length, generator=drawn)
        labels = torch.randint(0, 10, (16,), generator=drawn)
        found.append({"image": change(images), "label": labels, "name": ["a"] * 16})
    return found


def differ(one: list[Any], other: list[Any]) -> str | None:
    rows = [[rows_of(each) for each in side] for side in (one, other)]
    parts = [[fingerprint(each) for each in side] for side in (one, other)]
    return distributions_differ(rows[0], rows[1], parts)


def test_other_draws_of_the_same_distribution_are_no_difference() -> None:
    assert [differ(batches(2 * n), batches(2 * n + 1)) for n in range(12)] == [None] * 12


def test_lists_of_random_lengths_are_no_difference() -> None:
    def boxes(seed: int) -> list[Any]:
        drawn = torch.Generator().manual_seed(seed)
        counts = torch.poisson(torch.full((64,), 3.0), generator=drawn).int().tolist()
        return [[torch.rand(4, generator=drawn) for _ in range(count)] for count in counts]

    assert [differ(boxes(2 * n), boxes(2 * n + 1)) for n in range(12)] == [None] * 12
    assert differ([], boxes(1)) is None


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda x: x * 0.5, "means of rows: on average 0.5"),
        (lambda x: 0.5 + (x - 0.5) * 0.5, "standard deviations of rows"),
        (lambda x: x.double(), "float32 became ['image'] Tensor float64"),
        (lambda x: x[:, :2], "size of ['image'], dimension 1: on average 3 became 2"),
        (lambda x: x[..., : x.shape[-1] // 2], "size of ['image'], dimension 2"),
        (lambda x: x * float("nan"), "means of rows"),
        (lambda x: x.numpy(), "became ['image'] ndarray float32"),
        (lambda x: [x], "became"),
    ],
)
def test_another_distribution_is_named(change: Callable[[Any], Any], named: str) -> None:
    found = differ(batches(1), batches(2, change))
    assert found is not None and named in found and "image" in found
