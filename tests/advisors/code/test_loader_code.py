"""DataLoader calls as code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.code_text import Source, identifier, with_imports
from loaderscope.advisors.code.loader_code import DROP, LINE, loader_code
from rule_cases import case_of, workers_config
from rule_rows import main_loop


@pytest.mark.parametrize(
    ("told", "name"),
    [("train.Rows", "Rows"), ("Rows", "Rows"), ("main.<locals>.join", "join")]
    + [(told, "x") for told in (None, "a.<lambda>", "class", "a b", "ﬁle", "a;b")],
)
def test_identifier(told: str | None, name: str) -> None:
    assert identifier(told, "x") == name


def call(path: Path, config: dict[str, Any], **changes: Any) -> str:
    code = loader_code(case_of(path, main_loop(30, fetch=1.0), config=config), **changes)
    return code.rpartition("loader = ")[2]


GIVEN = {
    "batching": "batch_sampler",
    "batch_size": 8,
    "batch_sampler": "torch.utils.data.sampler.BatchSampler",
    "sampler": "torch.utils.data.sampler.RandomSampler",
    "sampler_plain": True,
    "shuffle": True,
}
STATEFUL = "torchdata.stateful_dataloader.stateful_dataloader.StatefulDataLoader"
SEED = "partial(lightning.fabric.utilities.seed.pl_worker_init_function)"
IN_ORDER = {"sampler": "torch.utils.data.sampler.SequentialSampler"}
FOUR = "batch_size=4, shuffle=True"
INNER = "BatchSampler(batch_sampler.sampler, batch_size=32, drop_last=False)"


@pytest.mark.parametrize(
    ("config", "changes", "code"),
    [
        ({}, {}, FOUR),
        (IN_ORDER, {}, "batch_size=4"),
        ({"sampler": "train.Own"}, {}, "batch_size=4, sampler=sampler"),
        ({"batch_sampler": "t.Own", "batch_size": None}, {}, "batch_sampler=batch_sampler"),
        ({}, {"num_workers": 2}, f"{FOUR}, num_workers=2"),
        (workers_config(2, prefetch_factor=8), {"num_workers": 0}, f"{FOUR}, num_workers=0"),
        ({"collate_fn": "train.join"}, {}, f"{FOUR}, collate_fn=join"),
        ({"collate_fn": "train.Joiner"}, {}, f"{FOUR}, collate_fn=collate_fn"),
        ({"collate_fn": "f.<lambda>"}, {}, f"{FOUR}, collate_fn=collate_fn"),
        ({"collate_fn": "train.Joiner.join"}, {}, f"{FOUR}, collate_fn=collate_fn"),
        ({"collate_fn": "train.default_collate"}, {}, f"{FOUR}, collate_fn=collate_fn"),
        ({}, {"batch_sampler": Source("mine(3)")}, "batch_sampler=mine(3)"),
        # A loader that was given batches keeps them; their size changes in a batch sampler of
        # torch's own.
        (GIVEN, {"num_workers": 2}, "batch_sampler=batch_sampler, num_workers=2"),
        (GIVEN, {"batch_size": 32}, f"batch_sampler={INNER}"),
        (
            GIVEN,
            {"sampler": Source("sampler")},
            "batch_sampler=BatchSampler(sampler, batch_size=8, drop_last=False)",
        ),
        ({**GIVEN, "batching": None, "batch_size": None}, {}, "batch_sampler=batch_sampler"),
        (
            {"batching": "none", "batch_size": None, "sampler_path": "sampler.sampler"},
            {},
            "batch_size=None, sampler=sampler",
        ),
        ({"sampler_plain": False}, {}, "batch_size=4, sampler=sampler"),
        ({"generator": True}, {}, f"{FOUR}, generator=generator"),
        (
            {"multiprocessing_context": "spawn", "num_workers": 2},
            {},
            f"{FOUR}, num_workers=2, multiprocessing_context='spawn'",
        ),
        ({"worker_init_fn": SEED, "num_workers": 2}, {}, f"{FOUR}, num_workers=2"),
        ({"drop_last": True}, {"drop_last": DROP}, FOUR),
        ({"batch_size": None}, {"shuffle": DROP}, "batch_size=None"),
    ],
)
def test_loader_call(tmp_path, config, changes, code):
    line = f"DataLoader(dataset, {code})"
    if len(line) > LINE:
        line = f"DataLoader(\n    dataset,\n    {code},\n)"
    assert call(tmp_path, config, **changes) == line


@pytest.mark.parametrize(("loader", "name"), [(STATEFUL, "StatefulDataLoader"), ("t.Own", "Own")])
def test_a_class_of_ones_own_is_called_by_its_name(tmp_path: Path, loader: str, name: str) -> None:
    assert call(tmp_path, {"loader": loader}) == f"{name}(dataset, {FOUR})"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"made_by": "accelerate", "sampler_plain": False}, "Accelerate makes this loader out of"),
        (
            {"made_by": "lightning", "sampler_plain": False},
            "Lightning gives this loader its sampler",
        ),
        ({"loader": "train.Tokens"}, "Tokens has a constructor of its own"),
        ({"loader": "other.DataLoader"}, "DataLoader has a constructor of its own"),
    ],
)
def test_a_call_that_is_not_known_is_changed_by_hand(tmp_path, config, said):
    config = {"own_constructor": "loader" in config, **config}
    case = case_of(tmp_path, main_loop(30, fetch=1.0), config=config)
    code = loader_code(case, num_workers=2, worker_init_fn=DROP)
    first, *changes = code.splitlines()
    assert said in first
    assert changes == ["#     num_workers=2", "#     leave out worker_init_fn"]
    assert not ast.parse(code).body  # pasted, it changes nothing
    assert loader_code(case) == "# The loader stays as it is."


def test_batches_of_the_users_own_change_by_hand(tmp_path: Path) -> None:
    config = {**GIVEN, "batch_sampler": "train.Buckets"}
    case = case_of(tmp_path, main_loop(30, fetch=1.0), config=config)
    assert "your batch sampler" in loader_code(case, batch_size=32)
    assert loader_code(case, num_workers=1) == (
        "# yours, as in your own call: batch_sampler\n"
        "loader = DataLoader(dataset, batch_sampler=batch_sampler, num_workers=1)"
    )


DATA, STATE = "from torch.utils.data import", "from torchdata.stateful_dataloader import"


@pytest.mark.parametrize(
    ("code", "complete"),
    [
        ("x = DataLoader(dataset)", f"{DATA} DataLoader\n\nx = DataLoader(dataset)"),
        (
            "import torch\n\nx = default_convert(1)\n",
            f"import torch\n{DATA} default_convert\n\nx = default_convert(1)\n",
        ),
        (
            f"{DATA} DataLoader\n\nx = StatefulDataLoader(Sampler())\n",
            f"{STATE} StatefulDataLoader\n{DATA} Sampler\n\nx = StatefulDataLoader(Sampler())\n",
        ),
        ("def default_collate(x):\n    return x\ny = default_collate(1)\n", None),
        ("# DataLoader stays\n", None),
        ("not code (", None),
    ],
)
def test_code_imports_what_it_uses(code: str, complete: str | None) -> None:
    found = with_imports(code)
    assert sorted(found.splitlines()) == sorted((complete or code).splitlines())
    assert with_imports(found) == found


def test_a_call_is_laid_out_and_names_what_must_be_at_hand(tmp_path: Path) -> None:
    more = {"pin_memory": True, "drop_last": True, "persistent_workers": True, "prefetch_factor": 4}
    long = call(tmp_path / "long", workers_config(4, **more))  # an argument a line
    assert long.startswith("DataLoader(\n    dataset,\n    batch_size=4,\n") and ast.parse(long)
    own = {
        "sampler_plain": False,
        "generator": True,
        "collate_fn": "t.Joiner",
        "loader": "t.Loader",
    }
    case = case_of(tmp_path / "own", main_loop(30, fetch=1.0), config=own)
    note = "# yours, as in your own call: Loader, sampler, collate_fn, generator\n"
    assert loader_code(case).startswith(f"{note}loader = Loader(") and ast.parse(loader_code(case))


def test_hostile_values_are_literals(tmp_path: Path) -> None:
    evil = "1); import os; ("
    code = call(tmp_path, {"batch_size": evil, "prefetch_factor": "x", "num_workers": 2})
    assert ast.parse(code).body[0].value.keywords[0].value.value == evil  # type: ignore[attr-defined]


def test_other_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="use Source"):
        call(tmp_path, {}, generator=object())
