"""DataLoader calls as code."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.loader_code import DROP, Source, identifier, loader_call, loader_code
from rule_cases1 import case_of, main_loop, workers_config


@pytest.mark.parametrize(
    ("told", "name"),
    [("train.Rows", "Rows"), ("Rows", "Rows"), (None, "x"), ("a.<lambda>", "x"), ("class", "x"), ("a b", "x"),
     ("main.<locals>.join", "join"), ("ﬁle", "x"), ("a;b", "x")],
)  # fmt: skip
def test_identifier(told: str | None, name: str) -> None:
    assert identifier(told, "x") == name


def call(path: Path, config: dict[str, Any], **changes: Any) -> str:
    return loader_call(case_of(path, main_loop(30, fetch=1.0), config=config), **changes)


@pytest.mark.parametrize(
    ("config", "changes", "code"),
    [
        ({}, {}, "DataLoader(dataset, batch_size=4, shuffle=True)"),
        ({"sampler": "torch.utils.data.sampler.SequentialSampler"}, {}, "DataLoader(dataset, batch_size=4)"),
        ({"sampler": "train.Own"}, {}, "DataLoader(dataset, batch_size=4, sampler=sampler)"),
        ({"batch_sampler": "train.Own", "batch_size": None}, {}, "DataLoader(dataset, batch_sampler=batch_sampler)"),
        ({}, {"num_workers": 2}, "DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2)"),
        (workers_config(2, prefetch_factor=8), {"num_workers": 0},
         "DataLoader(dataset, batch_size=4, shuffle=True, num_workers=0)"),
        ({"collate_fn": "train.join"}, {}, "DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=join)"),
        ({"collate_fn": "train.Joiner"}, {}, "DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=collate_fn)"),
        ({"collate_fn": "f.<lambda>"}, {}, "DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=collate_fn)"),
        ({}, {"batch_sampler": Source("mine(3)")}, "DataLoader(dataset, batch_sampler=mine(3))"),
        ({"drop_last": True}, {"drop_last": DROP}, "DataLoader(dataset, batch_size=4, shuffle=True)"),
        ({"batch_size": None}, {"shuffle": DROP}, "DataLoader(dataset, batch_size=None)"),
    ],
)  # fmt: skip
def test_loader_call(tmp_path: Path, config: dict[str, Any], changes: dict[str, Any], code: str) -> None:
    assert call(tmp_path, config, **changes) == code


def test_a_long_call_has_an_argument_a_line(tmp_path: Path) -> None:
    config = workers_config(4, pin_memory=True, drop_last=True, persistent_workers=True, prefetch_factor=4)
    code = loader_code(case_of(tmp_path, main_loop(30, fetch=1.0), config=config))
    assert code.startswith("loader = DataLoader(\n    dataset,\n    batch_size=4,\n") and code.endswith("\n)")
    ast.parse(code)


def test_hostile_values_are_literals(tmp_path: Path) -> None:
    code = call(tmp_path, {"batch_size": "1); import os; (", "prefetch_factor": "x", "num_workers": 2})
    assert ast.parse(code).body[0].value.keywords[0].value.value == "1); import os; ("  # type: ignore[attr-defined]


def test_other_objects_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="use Source"):
        call(tmp_path, {}, generator=object())
