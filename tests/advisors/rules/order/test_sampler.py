"""sampler: slow drawing of indices."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from loaderscope.advisors.assemble.findings import findings_of
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.whatif.costs import DRAWN_AS_ARRAY
from loaderscope.profiler.store.inspection import Inspection, Part
from rule_cases import advice, asked, case_of, outcomes, ran
from rule_rows import main_loop
from silence import silent
from stack_cases import OWN as OWN_FILE
from stack_cases import seen

NAME = "sampler"
OWN = {"sampler": "train.Balanced", "dataset_len": 1000, "sampler_plain": False, "shuffle": None}


def drawn(path: Path, index: float = 5.0, config: Any = OWN) -> Case:
    return case_of(path, main_loop(100, index=index, fetch=2.0), config=config)


@pytest.mark.parametrize(("index", "left"), [(0.005, (0.02, 0.3)), (5.0, (1.6e-4, 2.4e-3))])
def test_slow_python_sampler(tmp_path: Path, index: float, left: tuple[float, float]) -> None:
    case = case_of(tmp_path, main_loop(100, 0.02, index=index, fetch=0.02), config=OWN)
    found = advice(NAME, case)
    assert found.why.startswith("Balanced takes 5.00 ") and "Balanced" in (found.caveat or "")
    assert asked(case) == [{"index": pytest.approx(left)}]
    # What it draws is its own: only its author can write that.
    assert found.code.startswith("# By hand, in Balanced: draw the order of an epoch as one array")


@pytest.mark.parametrize(("made", "fires"), [(80, True), (20, False)])
def test_a_sampler_that_makes_samples(tmp_path: Path, made: int, fires: bool) -> None:
    draws = f"Balanced.__iter__ {OWN_FILE}:9"
    makes = f"{draws} > Clips.__getitem__ {OWN_FILE}:30 > resize site/PIL/x.py:1"
    sampled = seen(drawn(tmp_path), (makes, made), (draws, 100 - made), stage="index")
    found = advice(NAME, sampled)
    assert found.title.startswith("Draw from stored sizes") == fires
    if fires:
        assert "80 % of drawing goes by in __getitem__" in found.why
    # The line that costs is the sampler's.
    assert findings_of(sampled)[0].place == "patches.py:9"


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("left = sorted(self.by_size)", "Do once what is the same for every sample: left = sorted"),
        ("left = left[8:]", "Move an offset, or use a deque"),
        ("picked = np.random.choice(left, 8, replace=False)", "Draw indices, not items of a list"),
        ("picked.append(left.pop())", "Draw all indices of an epoch at once, as an array"),
        ("picked = self.draw(left)", "Draw all indices of an epoch at once, as an array"),
    ],
)
def test_what_a_line_of_a_sampler_says(tmp_path: Path, line: str, title: str) -> None:
    source = ("def __iter__(self):", "    left = self.all()", "    for _ in range(9):")
    part = Part(name="Balanced", iter=(*source, f"        {line}", "        yield picked"))
    made = seen(drawn(tmp_path), (f"Balanced.__iter__ {OWN_FILE}:4", 90), text=line, stage="index")
    made = replace(made, loader=replace(made.loader, inspection=Inspection(sampler=part)))
    assert advice(NAME, made).title.startswith(title)


def test_torchs_own_shuffle_has_less_to_gain(tmp_path: Path) -> None:
    case = case_of(tmp_path, main_loop(100, compute_ms=0.05, index=0.02, fetch=0.02))
    outcomes(NAME, case)
    assert asked(case) == [{"index": (0.08, 0.35), "draw": DRAWN_AS_ARRAY}]


test_silent_one_step_away = silent(
    NAME, drawn, {"config": {**OWN, "dataset_kind": "iterable"}}, {"index": 0.5}
)


@pytest.mark.parametrize(("sampler", "shuffled"), [("Random", True), ("Sequential", False)])
def test_the_code_draws_every_sample_once(tmp_path: Path, sampler: str, shuffled: bool) -> None:
    case = drawn(tmp_path, config={"sampler": f"torch.x.{sampler}Sampler", "shuffle": shuffled})
    space = ran(advice(NAME, case).code, dataset=torch.arange(103))
    epochs = [torch.cat(list(space["loader"])) for _ in range(2)]
    assert len(space["loader"]) == 26
    assert all(sorted(epoch.tolist()) == list(range(103)) for epoch in epochs)
    assert torch.equal(epochs[0], epochs[1]) is not shuffled
