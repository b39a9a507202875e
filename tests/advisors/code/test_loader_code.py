"""DataLoader calls as code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.code_text import Source, identifier, with_imports
from loaderscope.advisors.code.loader_code import DROP, loader_code
from rule_cases import case_of, workers_config
from rule_rows import main_loop


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("train.Rows", "Rows"),
        ("Rows", "Rows"),
        (None, "x"),
        ("a.<lambda>", "x"),
        ("class", "x"),
        ("a b", "x"),
        ("main.<locals>.join", "join"),
        ("ﬁle", "x"),
        ("a;b", "x"),
    ],
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


@pytest.mark.parametrize(
    ("config", "changes", "code"),
    [
        ({}, {}, "DataLoader(dataset, batch_size=4, shuffle=True)"),
        (
            {"sampler": "torch.utils.data.sampler.SequentialSampler"},
            {},
            "DataLoader(dataset, batch_size=4)",
        ),
        ({"sampler": "train.Own"}, {}, "DataLoader(dataset, batch_size=4, sampler=sampler)"),
        (
            {"batch_sampler": "train.Own", "batch_size": None},
            {},
            "DataLoader(dataset, batch_sampler=batch_sampler)",
        ),
        ({}, {"num_workers": 2}, "DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2)"),
        (
            workers_config(2, prefetch_factor=8),
            {"num_workers": 0},
            "DataLoader(dataset, batch_size=4, shuffle=True, num_workers=0)",
        ),
        (
            {"collate_fn": "train.join"},
            {},
            "DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=join)",
        ),
        (
            {"collate_fn": "train.Joiner"},
            {},
            "DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=collate_fn)",
        ),
        (
            {"collate_fn": "f.<lambda>"},
            {},
            "DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=collate_fn)",
        ),
        ({}, {"batch_sampler": Source("mine(3)")}, "DataLoader(dataset, batch_sampler=mine(3))"),
        # A loader that was given batches keeps them; their size changes in a batch sampler of
        # torch's own.
        (
            GIVEN,
            {"num_workers": 2},
            "DataLoader(dataset, batch_sampler=batch_sampler, num_workers=2)",
        ),
        (
            GIVEN,
            {"batch_size": 32},
            "DataLoader(\n    dataset,\n"
            "    batch_sampler=BatchSampler(batch_sampler.sampler, batch_size=32, "
            "drop_last=False),\n)",
        ),
        (
            GIVEN,
            {"sampler": Source("sampler")},
            "DataLoader(dataset, batch_sampler=BatchSampler(sampler, batch_size=8, drop_last=False))",
        ),
        (
            {**GIVEN, "batching": None, "batch_size": None},
            {},
            "DataLoader(dataset, batch_sampler=batch_sampler)",
        ),
        (
            {"batching": "none", "batch_size": None, "sampler_path": "sampler.sampler"},
            {},
            "DataLoader(dataset, batch_size=None, sampler=sampler)",
        ),
        ({"sampler_plain": False}, {}, "DataLoader(dataset, batch_size=4, sampler=sampler)"),
        (
            {"generator": True},
            {},
            "DataLoader(dataset, batch_size=4, shuffle=True, generator=generator)",
        ),
        (
            {"multiprocessing_context": "spawn", "num_workers": 2},
            {},
            "DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2, "
            "multiprocessing_context='spawn')",
        ),
        ({"loader": STATEFUL}, {}, "StatefulDataLoader(dataset, batch_size=4, shuffle=True)"),
        ({"loader": "train.Loader"}, {}, "Loader(dataset, batch_size=4, shuffle=True)"),
        (
            {
                "worker_init_fn": "partial(lightning.fabric.utilities.seed.pl_worker_init_function)",
                "num_workers": 2,
            },
            {},
            "DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2)",
        ),
        (
            {"collate_fn": "train.Joiner.join"},
            {},
            "DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=collate_fn)",
        ),
        (
            {"collate_fn": "train.default_collate"},
            {},
            "DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=collate_fn)",
        ),
        (
            {"drop_last": True},
            {"drop_last": DROP},
            "DataLoader(dataset, batch_size=4, shuffle=True)",
        ),
        ({"batch_size": None}, {"shuffle": DROP}, "DataLoader(dataset, batch_size=None)"),
    ],
)
def test_loader_call(
    tmp_path: Path, config: dict[str, Any], changes: dict[str, Any], code: str
) -> None:
    assert call(tmp_path, config, **changes) == code


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {"made_by": "accelerate", "sampler_plain": False},
            "Accelerate makes this loader out of yours",
        ),
        (
            {"made_by": "lightning", "sampler_plain": False},
            "Lightning gives this loader its sampler",
        ),
        (
            {"own_constructor": True, "loader": "train.Tokens"},
            "Tokens has a constructor of its own",
        ),
        (
            {"loader": "other.DataLoader", "own_constructor": True},
            "DataLoader has a constructor of its own",
        ),
    ],
)
def test_a_call_that_is_not_known_is_changed_by_hand(
    tmp_path: Path, config: dict[str, Any], said: str
) -> None:
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


@pytest.mark.parametrize(
    ("code", "complete"),
    [
        (
            "loader = DataLoader(dataset)",
            "from torch.utils.data import DataLoader\n\nloader = DataLoader(dataset)",
        ),
        (
            "import torch\n\nx = default_convert(1)\n",
            "import torch\nfrom torch.utils.data import default_convert\n\nx = default_convert(1)\n",
        ),
        (
            "from torch.utils.data import DataLoader\n\nloader = StatefulDataLoader(Sampler())\n",
            "from torchdata.stateful_dataloader import StatefulDataLoader\nfrom torch.utils.data "
            "import Sampler\n\n"
            "loader = StatefulDataLoader(Sampler())\n",
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


@pytest.mark.parametrize(
    ("config", "begin"),
    [
        (
            workers_config(
                4, pin_memory=True, drop_last=True, persistent_workers=True, prefetch_factor=4
            ),
            "loader = DataLoader(\n    dataset,\n    batch_size=4,\n",
        ),  # a long one has an argument a line
        (
            {
                "sampler_plain": False,
                "generator": True,
                "collate_fn": "train.Joiner",
                "loader": "train.Loader",
            },
            "# yours, as in your own call: Loader, sampler, collate_fn, generator\nloader = Loader(",
        ),
    ],
)
def test_a_call_is_laid_out_and_names_what_must_be_at_hand(
    tmp_path: Path, config: dict[str, Any], begin: str
) -> None:
    code = loader_code(case_of(tmp_path, main_loop(30, fetch=1.0), config=config))
    assert code.startswith(begin) and code.endswith(")") and ast.parse(code)


def test_hostile_values_are_literals(tmp_path: Path) -> None:
    evil = "1); import os; ("
    code = call(tmp_path, {"batch_size": evil, "prefetch_factor": "x", "num_workers": 2})
    assert ast.parse(code).body[0].value.keywords[0].value.value == evil  # type: ignore[attr-defined]


def test_other_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="use Source"):
        call(tmp_path, {}, generator=object())
