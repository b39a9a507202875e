"""Cases that benchmarks/known_answers.py draws from a seed can be built from their name."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import loaderscope


@pytest.fixture(scope="module")
def drawn() -> Any:
    folder = str(Path(loaderscope.__file__).resolve().parent / "benchmarks")
    sys.path.insert(0, folder)
    try:
        import known_answers
        from known_cases import generated
    finally:
        sys.path.remove(folder)
    return generated, known_answers


def test_a_case_is_known_by_its_name(drawn: Any) -> None:
    generated, _ = drawn
    cases = generated.held_out(3, 40)
    assert len(cases) == 40
    assert {case.about for case in cases.values()} == {
        case.about for case in generated.held_out(4, 40).values()
    }
    assert generated.named("points") is None
    for name, case in cases.items():
        again = generated.named(name)
        assert (again.name, again.about) == (name, case.about)
        assert (again.causes, again.fix) == (case.causes, case.fix)


@pytest.mark.parametrize("seed", [3, 4])
def test_loops_as_found_and_as_an_engineer_leaves_them_give_as_many_samples(drawn, seed):
    pytest.importorskip("pandas")
    generated, _ = drawn
    for case in (generated.generated(seed, number) for number in (0, 1, 2, 5)):
        found, fixed = case.build(), case.build(**case.fix)
        assert len(found.loader.dataset) == len(fixed.loader.dataset)
        batches = [next(iter(alone(training.loader))) for training in (found, fixed)]
        one, other = (each[0] if isinstance(each, list | tuple) else each for each in batches)
        assert one.shape == other.shape and one.shape[0] == found.size


def alone(loader: Any) -> Any:
    return torch.utils.data.DataLoader(
        loader.dataset,
        batch_size=loader.batch_size,
        sampler=loader.sampler,
        collate_fn=loader.collate_fn,
    )


def test_code_that_changes_nothing_is_by_hand(drawn: Any) -> None:
    _, known_answers = drawn
    assert known_answers.by_hand("import os\n\n\ndef store():\n    pass\n\n\n# By hand: write it\n")
    assert not known_answers.by_hand("loader = DataLoader(dataset)\n")
