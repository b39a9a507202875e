"""Elements read one by one, as people write it: found in each form, and read from lists wherever that is the same."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from loaderscope.advisors.code.hot.element_code import elements_code, elements_of
from rule_cases import case_of
from rule_rows import main_loop

SCALE = 2.0


class Held(Dataset[Any]):
    def __init__(self, numpy: bool) -> None:
        values = torch.rand(12, 5, generator=torch.Generator().manual_seed(0))
        cube = torch.rand(12, 2, 3, generator=torch.Generator().manual_seed(1))
        whole = torch.arange(60).reshape(12, 5)
        self.t, self.c, self.n = (x.numpy() if numpy else x for x in (values, cube, whole))

    def __len__(self) -> int:
        return 12


class ChainedFloat(Held):
    def __getitem__(self, index: int) -> Any:
        return torch.tensor([float(self.t[index][j]) for j in range(5)])


class Comma(Held):
    def __getitem__(self, i: int) -> Any:
        """A sum."""
        total = 0.0
        for j in range(5):
            total += self.t[i, j].item() ** 2
        return total


class IntoList(Held):
    def __getitem__(self, i: int) -> Any:
        out = []
        for j in range(5):
            out.append(int(self.n[i][j]) + 1)  # noqa: PERF401 - as people write it
        return torch.tensor(out)


class ToList(Held):
    def __getitem__(self, i: int) -> Any:
        return [self.t[i, j].tolist() for j in range(5)]


class Local(Held):
    def __getitem__(self, i: int) -> Any:
        row = self.t[i % 7]
        return [min(max(row[k].item(), 0.25), 0.75) for k in range(len(row))]


class Over(Held):
    def __getitem__(self, i: int) -> Any:
        return [math.sqrt(float(x)) for x in self.t[i]]


class Counted(Held):
    def __getitem__(self, i: int) -> Any:
        found = {}
        for k, x in enumerate(self.t[i]):
            found[k] = x.item()
        return found


class While(Held):
    def __getitem__(self, i: int) -> Any:
        k = 0
        while k < 4 and float(self.t[i][k]) < 0.9:
            k += 1
        return k


class Deep(Held):
    def __getitem__(self, i: int) -> Any:
        return sum(float(self.c[i][a][b]) * float(self.t[i, b]) for a in range(2) for b in range(3))


class Unwrapped(Held):
    def __getitem__(self, i: int) -> Any:
        return sum(self.t[i, j] * 2 for j in range(5))


class Written(Held):
    def __getitem__(self, i: int) -> Any:
        row = self.t[i]
        for j in range(5):
            row[j] = float(row[j]) * 1.0
        return row


class OfItsModule(Held):
    def __getitem__(self, i: int) -> Any:
        return [float(self.t[i][j]) * SCALE for j in range(5)]


class Flat(Held):
    def __getitem__(self, i: int) -> Any:
        return [float(self.t[j][0]) for j in range(12)]


class RowAtOnce(Held):
    def __getitem__(self, i: int) -> Any:
        return [float(x) for x in self.t[i].tolist()]


class Batched(Held):
    def __getitem__(self, i: int) -> Any:
        return [self.c[i][k].sum() for k in range(2)]


class Picked(Held):
    def __getitem__(self, i: int) -> Any:
        return [self.t[self.n[i]].mean() for _ in range(2)]


REWRITTEN = [ChainedFloat, Comma, IntoList, ToList, Local, Over, Counted, While, Deep]
BY_HAND = [Unwrapped, Written, OfItsModule, Flat]
NONE = [RowAtOnce, Batched, Picked]


@pytest.mark.parametrize("numpy", [False, True], ids=["tensor", "array"])
@pytest.mark.parametrize("kind", [*REWRITTEN, *BY_HAND, *NONE])
def test_each_form_is_found_and_its_code_gives_the_same(tmp_path: Path, kind: type[Held], numpy: bool) -> None:
    class Own(kind):  # type: ignore[misc, valid-type]  # the advice changes a class
        __getitem__ = kind.__getitem__  # type: ignore[attr-defined]

    dataset = Own(numpy)
    case = case_of(tmp_path, main_loop(20, 0.1), loader=DataLoader(dataset, batch_size=2))
    if kind in NONE:
        assert elements_of(case) is None
        return
    before = [dataset[n] for n in range(12)]

    code = elements_code(case)

    if kind in REWRITTEN:
        exec(compile(code, "<pasted>", "exec"), {"dataset": dataset})
        assert "_values" in code and Own.__getitem__.__name__ == "rows_at_once"
        after = [dataset[n] for n in range(12)]
        assert str(after) == str(before) and [type(x) for x in after] == [type(x) for x in before]
    else:
        assert code.startswith("# By hand") and all(line.startswith("#") for line in code.splitlines())


def test_a_long_row_is_not_made_a_list_for_some_of_it(tmp_path: Path) -> None:
    dataset = ChainedFloat(False)
    dataset.t = torch.zeros(2, 200_000)
    case = case_of(tmp_path, main_loop(20, 0.1), loader=DataLoader(dataset, batch_size=2))
    assert elements_code(case).startswith("# By hand")
