"""worker-transfer: batches that are expensive to hand over."""

import importlib
import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from loaderscope.advisors.assemble.findings import findings_of
from loaderscope.advisors.case.case import Case
from rule_cases import advice, arguments, asked, case_of, ran, workers_config
from rule_rows import worker_loop
from silence import silent

NAME = "worker-transfer"
WIDE = {"path": "[0]", "kind": "tensor", "dtype": "torch.float64", "nbytes": 19_000_000}
TINY = {"path": "[1]['boxes']", "kind": "tensor", "dtype": "torch.float32", "nbytes": 64}


def costly(path, pack_ms=4.0, leaves=(), loop=(), **columns) -> Case:
    told = {"tensors": 2, "bytes": 1_000_000, "pickled_bytes": 2000, **columns}
    times = {"fetch_ms": 3.0, "pack_ms": pack_ms, "unpack_ms": pack_ms / 2}
    rows = worker_loop(100, wait_ms=8.0, compute_ms=1.0, **times, **told)
    seen = {"leaves": list(leaves), "loop": list(loop)}
    return case_of(path, rows, config=workers_config(2), inspection=seen)


def test_many_tiny_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = {**WIDE, "dtype": "torch.float32"}  # among many small ones, a picture is no matter
    case = costly(tmp_path, tensors=120, bytes=20_000_000, leaves=[large, *[TINY] * 9])
    found = advice(NAME, case)
    assert "small tensors" in found.title
    assert str(found.evidence["tensors per batch"]) == "120"
    assert asked(case) == [{"transfer": (0.025, 0.5)}]
    costs = {each.stage: each.text for each in findings_of(case)}
    assert costs["transfer"] == "120 tensors per batch"
    assert arguments(found.code)["collate_fn"] == "collate_packed"
    # Workers send one tensor a dtype, and the loop gets the fields as they were.
    made = "torch.full((k % 3 + 1,), k, dtype=torch.float32 if k % 2 else torch.int64)"
    fields = f"dataset = [{{f'f{{k}}': {made} for k in range(40)}} | {{'name': 'a'}}] * 800"
    (tmp_path / "packing.py").write_text(f"import torch\n{fields}\n{found.code}")
    monkeypatch.syspath_prepend(tmp_path)
    packing = importlib.import_module("packing")
    for batch in itertools.islice(packing.loader, 3):
        wanted = torch.utils.data.default_collate(packing.dataset[: len(batch["name"])])
        assert len(packing.pack(wanted)[0]) == 2 and batch.pop("name") == wanted.pop("name")
        torch.testing.assert_close(batch, wanted, rtol=0, atol=0)


def test_parts_of_large_tensors_are_cloned(tmp_path: Path) -> None:
    part = {"path": "['states'][0]", "kind": "tensor", "dtype": "float32", "nbytes": 300_000}
    case = costly(tmp_path, leaves=[{**part, "storage_bytes": 18_000_000}])
    found = advice(NAME, case)
    assert found.title.startswith("Clone parts") and "parts of 18.0 MB" in found.why
    assert next(e.text for e in findings_of(case) if e.stage == "transfer").endswith("18.0 MB")
    scope = ran(found.code.partition("\nloader")[0], dataset=[], default_collate=lambda rows: rows)
    whole = torch.arange(1000)
    (made,) = scope["collate_cloned"]([whole[:3]])
    assert made.tolist() == [0, 1, 2] and made.untyped_storage().nbytes() == 3 * 8


test_silent_one_step_away = silent(
    NAME,
    costly,
    {},
    {"tensors": 30, "leaves": [TINY]},
    {"tensors": 120, "leaves": [{**TINY, "nbytes": 10_000}]},
    {"tensors": 120, "leaves": [TINY], "pack_ms": 0.05},
    {"pickled_bytes": 200_000},
    {"leaves": [{**WIDE, "dtype": "torch.float32", "storage_bytes": 20_000_000}]},
)


def test_wide_floats_and_arrays_are_other_causes(tmp_path: Path) -> None:
    wide = advice(NAME, costly(tmp_path / "wide", bytes=20_000_000, leaves=[WIDE]))
    assert "float32" in wide.title
    data = [{f"f{k}": np.ones(2) for k in range(40)} | {"name": "a"}] * 8
    found = advice(NAME, costly(tmp_path, pickled_bytes=5_000_000))
    assert "Python objects" in found.title
    space = ran(found.code, DataLoader=torch.utils.data.DataLoader, dataset=data)
    batch = space["collate_tensors"](data)
    assert isinstance(batch["f0"], torch.Tensor) and batch["name"] == ["a"] * 8


def test_a_field_that_the_loop_does_not_read(tmp_path: Path) -> None:
    graph, x = {"path": "['graph'][0]", "kind": "other"}, {"path": "['x']", "kind": "tensor"}
    loop = ["for batch in loader:", "    step(batch['x'])"]
    told = {"leaves": [graph, {**x, "nbytes": 1000}], "loop": loop, "pickled_bytes": 5_000_000}
    found = advice(NAME, costly(tmp_path, **told))
    assert found.title.endswith("batch['graph']") and "batch['graph']" in found.code
    assert not found.by_hand and found.code.startswith("# By hand")
    graph["path"] = "['a\nimport os']"
    assert advice(NAME, costly(tmp_path / "x", **told)).code.count("\n") == 1
