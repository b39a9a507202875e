"""What benchmarks rest on: what the casebook counts as right and how it compares scripts, and that
cases of known_answers.py, drawn from a seed, can be built from their name."""

import importlib.util
import time
from pathlib import Path

import pytest
from torch.utils.data import DataLoader

import loaderscope

BENCHMARKS = Path(loaderscope.__file__).resolve().parent / "benchmarks"
SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    dataset = TensorDataset(torch.arange(32.0) + {first})
    loader = DataLoader(dataset, batch_size=4)
    while True:
        for batch in loader:
            pass
"""
EIGHT = "loader = DataLoader(dataset, batch_size=8)"
FACTS = {"lines": ["slow.py:3"], "calls": ["collate"], "rules": ["sampler"], "same_batches": True}
FACTS |= {"healthy": False, "advice": "every sample|open"}


@pytest.fixture(scope="module")
def importable():
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(BENCHMARKS)
        yield


@pytest.fixture(scope="module")
def casebook(importable):
    """By its path: a clone may have the same name."""
    spec = importlib.util.spec_from_file_location("casebook_runner", BENCHMARKS / "casebook.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def script(tmp_path):
    def written(name="slow.py", first=0):
        (tmp_path / name).write_text(SCRIPT.format(first=first))
        return tmp_path / name

    return written


@pytest.mark.parametrize(
    ("place", "stage", "call", "right"),
    [
        ("slow.py:3", "fetch", None, True),
        ("slow.py:4", "fetch", "read", False),
        (None, "collate", "stack", True),
    ],
)
def test_the_leading_finding_is_right_by_its_line_or_call(casebook, place, stage, call, right):
    lead = {"place": place, "stage": stage, "text": "x = f()", "call": call}
    other = {"place": "slow.py:3", "stage": "fetch", "text": None, "call": None}
    assert casebook.finding_right(FACTS, {"findings": [lead, other]}) is right
    assert not casebook.finding_right(FACTS, {"findings": []})


@pytest.mark.parametrize(
    ("rule", "title", "right"),
    [
        ("sampler", "Draw the indices at once", True),
        ("hot-function", "Do once what is the same for every sample: open(path)", True),
        ("hot-function", "Make each sample once, and store it: open(path)", False),
    ],
)
def test_the_first_step_is_right_by_its_rule_or_title(casebook, rule, title, right):
    result = {"plan": [{"rule": rule, "title": title}, {"rule": "sampler", "title": "…"}]}
    assert casebook.advice_right(FACTS, result) is right
    assert not casebook.advice_right({**FACTS, "healthy": True}, result)
    assert casebook.advice_right({**FACTS, "healthy": True}, {"plan": []})


def test_scripts_are_the_same_if_their_batches_are(casebook, script, tmp_path):
    slow, fast, other = script(), script("fast.py"), script("other.py", 1)
    found = [casebook.contents(path, tmp_path) for path in (slow, fast, other)]
    assert found[0] == found[1] != found[2]
    assert casebook.contents(slow, tmp_path, EIGHT) != found[0]


def test_scripts_run_in_turns_with_what_is_pasted(casebook, script, tmp_path):
    pasted = {"slow": "", "advised": EIGHT, "broken": "loader = no_such_name"}
    slow = script()
    found = casebook.in_turns({name: (slow, code) for name, code in pasted.items()}, tmp_path)
    assert found["samples_per_s"].keys() == {"slow", "advised"}
    assert min(found["samples_per_s"].values()) > 0
    assert "no_such_name" in found["failed"]["broken"]


def test_code_is_pasted_once(casebook, script, tmp_path):
    """The script's own name is bound to the new loader from its second epoch on."""
    code, size = EIGHT.replace("8", "loader.batch_size * 2"), 20 * casebook.RATE.size
    with casebook.script("count", script(), tmp_path, code) as (process, told):
        while told.stat().st_size < size:
            assert process.poll() is None
            time.sleep(0.02)
        handed = list(casebook.RATE.iter_unpack(told.read_bytes()[:size]))
    assert {samples for _, samples in handed} == {8.0}


def test_a_case_is_known_by_its_name(importable):
    from known_cases import generated

    cases = generated.held_out(3, 40)
    assert len(cases) == 40
    others = generated.held_out(4, 40)
    assert {case.about for case in cases.values()} == {case.about for case in others.values()}
    assert generated.named("points") is None
    for name, case in cases.items():
        again = generated.named(name)
        facts = [(each.about, each.causes, each.fix) for each in (again, case)]
        assert again.name == name and facts[0] == facts[1]


@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_loops_as_found_and_as_an_engineer_leaves_them_give_as_many_samples(importable, number):
    pytest.importorskip("pandas")
    from known_cases import generated

    case = generated.generated(3, number)
    sides = [case.build(), case.build(**case.fix)]
    shapes = set()
    for loader in (side.loader for side in sides):
        alone = {"batch_size": loader.batch_size, "sampler": loader.sampler}
        batch = next(iter(DataLoader(loader.dataset, collate_fn=loader.collate_fn, **alone)))
        one = batch[0] if isinstance(batch, list | tuple) else batch
        shapes.add((len(loader.dataset), one.shape))
    ((_, shape),) = shapes
    assert shape[0] == sides[0].size


def test_code_that_changes_nothing_is_by_hand(importable):
    import known_answers

    assert known_answers.by_hand("import os\n\n\ndef store():\n    pass\n\n\n# By hand: write it\n")
    assert not known_answers.by_hand("loader = DataLoader(dataset)\n")
