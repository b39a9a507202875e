"""h2d-dtype: float pictures that are 8-bit pictures."""

from pathlib import Path
from typing import Any

import pytest
import torch

from loaderscope.advisors.case.case import Case
from rule_cases import advice, asked, case_of, ran
from rule_rows import US, rows_of
from silence import silent

NAME = "h2d-dtype"


def leaf(**values: Any) -> dict[str, Any]:
    told = {"path": "[0]", "kind": "tensor", "dtype": "float32", "shape": [8, 3, 9, 9]}
    return {**told, "nbytes": 5_000_000, "whole_255ths": True, **values}


LABELS = {"path": "[1]", "kind": "tensor", "dtype": "int64", "shape": [8], "nbytes": 64}


def case(
    path, pictures, workers=2, move_us=900.0, device=None, structure="list", config=None, **columns
) -> Case:
    if workers:
        moved = {"pack_ns": round(move_us * US), "unpack_ns": round(move_us * US / 2)}
        worker = {"t_fetch_ns": lambda n, t, w: t - 10 * US, "worker": 0, "worker_pid": 4001}
        columns = {**moved, **worker, "queued_ns": 0, **columns}
    rows, epochs = rows_of(wait_ms=3.0, compute_ms=3.0, fetch_ns=1000 * US, **columns)
    dataset = {"type": "train.Faces", "name": "Faces"}
    seen = {"structure": structure, "leaves": [pictures, LABELS], "dataset": dataset}
    told = {"num_workers": workers, **(config or {})}
    facts: Any = {"config": told, "process": {"device": device}, "inspection": seen}
    return case_of(path, rows, epochs=epochs, **facts)


def test_pictures_are_sent_as_bytes(tmp_path: Path) -> None:
    seen = case(tmp_path, leaf())
    found = advice(NAME, seen)
    assert asked(seen) == [{"transfer": (0.25, 0.5)}]
    assert str(found.evidence["as uint8"]) == "1.25 MB"
    scope = ran(found.code.partition("\n\n\nloader")[0], dataset=[], collate_fn=None)
    pictures = torch.randint(0, 256, (4, 3)).float() / 255
    batch = scope["as_bytes"]([(picture, 1) for picture in pictures])
    assert batch[0].dtype == torch.uint8 and torch.equal(batch[0].float().div_(255), pictures)
    # The user's collate function stays in use.
    own = case(tmp_path / "own", leaf(path="['image']"), config={"collate_fn": "train.join"})
    code = advice(NAME, own).code
    assert "batch = join(samples)" in code and "batch['image']" in code


@pytest.mark.parametrize(("structure", "path"), [("tuple", "[0]"), ("list", "[0]['image']")])
def test_a_batch_that_cannot_be_written_to_is_made_anew(tmp_path, structure, path):
    seen = case(tmp_path, leaf(path=path), structure=structure, config={"collate_fn": "train.join"})
    picture, more = torch.arange(256).float() / 255, torch.ones(3)
    made = ({"image": picture}, [more]) if "image" in path else (picture, [more])
    join = lambda samples: made  # noqa: E731
    code = advice(NAME, seen).code.partition("\n\n\n# yours")[0]
    batch = ran(code.partition("\n\n\nloader")[0], dataset=[], join=join)["as_bytes"]([])
    found = batch[0]["image"] if "image" in path else batch[0]
    assert type(batch) is tuple and torch.equal(found, torch.arange(256).to(torch.uint8))
    assert batch[1][0] is more


def test_on_a_device_the_copy_shrinks_too(tmp_path: Path) -> None:
    seen = case(tmp_path, leaf(), workers=0, device="cuda:0", h2d_ns=900 * US)
    found = advice(NAME, seen)
    assert asked(seen) == [{"h2d": (0.25, 0.5), "pin": (0.25, 0.5)}]
    assert found.beside_loading > 0.05  # training that computes all the time waits for its copies


test_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"pictures": leaf(whole_255ths=False)},
    {"pictures": leaf(whole_255ths=None)},
    {"pictures": leaf(dtype="float64")},
    {"pictures": leaf(nbytes=10)},  # the lesser part of the batch
    {"pictures": leaf(path="[0]; import os")},
    {"pictures": leaf(), "move_us": 60.0},  # moving is a small part of the step
    {"pictures": leaf(), "workers": 0},  # nothing is handed over or copied
)
