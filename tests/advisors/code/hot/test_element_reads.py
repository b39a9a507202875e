"""Elements read one by one, as people write it: found in each form, and read from lists wherever
that is the same."""

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
def test_each_form_is_found_and_its_code_gives_the_same(
    tmp_path: Path, kind: type[Held], numpy: bool
) -> None:
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
        assert code.startswith("# By hand") and all(
            line.startswith("#") for line in code.splitlines()
        )


class Tensors(Dataset[Any]):
    """Each sample is a tensor made of a list; some numbers are none, infinite or at a limit."""

    def __init__(self, numpy: bool, dtype: torch.dtype = torch.float32) -> None:
        values = torch.randn(6, 7, generator=torch.Generator().manual_seed(0)).to(dtype)
        values[1, :5] = torch.tensor([math.nan, math.inf, -math.inf, 0.25, 0.0])
        self.t, self.wide, self.few = values, torch.rand(6, 7).double(), 4
        if numpy:
            self.t, self.wide = values.numpy(), self.wide.numpy()
            self.t.flags.writeable = False  # as of a memory-mapped file

    def __len__(self) -> int:
        return 6


class Limited(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor([min(max(float(x), 0.25), 0.75) for x in self.t[i]])


class Crossed(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor([min(max(float(self.t[i][j]), 0.75), 0.25) for j in range(7)])


class Positive(Tensors):
    def __getitem__(self, i: int) -> Any:
        row = self.t[i]
        return torch.tensor([max(0.0, row[j].item()) for j in range(len(row))])


class Scaled(Tensors):
    def __getitem__(self, i: int) -> Any:
        out = []
        for x in self.t[i]:
            out.append((float(x) - 0.5) / 0.1 * 3)  # noqa: PERF401 - as people write it
        return torch.FloatTensor(out), i


class Wide(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor(
            [1 / 3 * (0.1 + abs(float(x))) for x in self.wide[i]], dtype=torch.float64
        )


class Steps(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor([1.0 if float(self.t[i][j]) > 0.25 else -1.0 for j in range(self.few)])


class Leaky(Tensors):
    def __getitem__(self, i: int) -> Any:
        row = self.t[i]
        return torch.tensor(
            [row[j].item() if row[j].item() > 0 else -row[j].item() * 0.1 for j in range(3)]
        )


class Same(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor([float(x) for x in self.wide[i]], dtype=torch.double)


class Two(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor([float(x) for x in self.t[i]]), torch.tensor(
            [float(x) * 2 for x in self.wide[i]]
        )


class WholeNumbers(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor([max(float(x), 0) for x in self.t[i]])


class Divided(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor([1 / (float(x) + 9.0) for x in self.t[i]])


class Thirds(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor(
            [0.1 if float(x) > 0 else 0.3 for x in self.wide[i]], dtype=torch.float64
        )


class BothKept(Tensors):
    def __getitem__(self, i: int) -> Any:
        names = []
        for n in range(3):
            names.append(n)  # noqa: PERF402 - as people write it
        return torch.tensor(names), torch.tensor([float(x) for x in self.t[i]]), self.few


class AlsoListed(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor([float(x) for x in self.t[i]]), [float(x) for x in self.t[i]]


class Huge(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor(
            [1e300 if float(x) > 0 else -1.0 for x in self.wide[i]], dtype=torch.float64
        )


class Placed(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor([float(self.t[i][j]) * j for j in range(7)])


class Endless(Tensors):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor([float(x) * (1e308 * 10 - 1e308 * 10) for x in self.t[i]])


class LastUsed(Tensors):
    def __getitem__(self, i: int) -> Any:
        out = []
        for j in range(4):
            out.append(self.t[i][j].item())
        return torch.tensor(out), j


AT_ONCE = [Limited, Crossed, Positive, Scaled, Wide, Steps, Leaky, Same, Two, BothKept]
LISTED = [LastUsed, Huge, Endless, WholeNumbers, Divided, Thirds, AlsoListed, Placed]


@pytest.mark.parametrize("numpy", [False, True], ids=["tensor", "array"])
@pytest.mark.parametrize("kind", [*AT_ONCE, *LISTED])
def test_a_tensor_of_numbers_is_made_of_the_whole_row(
    tmp_path: Path, kind: type[Tensors], numpy: bool
) -> None:
    class Own(kind):  # type: ignore[misc, valid-type]  # the advice changes a class
        __getitem__ = kind.__getitem__  # type: ignore[attr-defined]

    dataset = Own(numpy)
    case = case_of(tmp_path, main_loop(20, 0.1), loader=DataLoader(dataset, batch_size=2))
    before = [dataset[n] for n in range(6)]

    code = elements_code(case)
    exec(compile(code, "<pasted>", "exec"), {"dataset": dataset})

    assert ("tolist" not in code) == (kind in AT_ONCE), code
    after = [dataset[n] for n in range(6)]
    torch.testing.assert_close(after, before, rtol=0, atol=0, equal_nan=True)
    found = elements_of(case)
    assert found is not None and (found[1].operations is not None) == (kind in AT_ONCE)
    assert found[1].left_us is not None and found[1].left_us[0] < found[1].left_us[1]
    for each in after:  # memory of its own
        for tensor in each if isinstance(each, tuple) else (each,):
            if isinstance(tensor, torch.Tensor):
                tensor.fill_(7)
    torch.testing.assert_close(
        [dataset[n] for n in range(6)], before, rtol=0, atol=0, equal_nan=True
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_tensor_of_numbers_has_the_same_type(tmp_path: Path, dtype: torch.dtype) -> None:
    class Own(Scaled):
        __getitem__ = Scaled.__getitem__

    dataset = Own(False, dtype)
    case = case_of(tmp_path, main_loop(20, 0.1), loader=DataLoader(dataset, batch_size=2))
    before = [dataset[n] for n in range(6)]
    code = elements_code(case)
    exec(compile(code, "<pasted>", "exec"), {"dataset": dataset})
    assert "tolist" not in code
    torch.testing.assert_close(
        [dataset[n] for n in range(6)], before, rtol=0, atol=0, equal_nan=True
    )


def test_a_long_row_is_not_made_a_list_for_some_of_it(tmp_path: Path) -> None:
    dataset = ChainedFloat(False)
    dataset.t = torch.zeros(2, 200_000)
    case = case_of(tmp_path, main_loop(20, 0.1), loader=DataLoader(dataset, batch_size=2))
    assert elements_code(case).startswith("# By hand")
