"""Elements read one by one and chains of operations: found in each form, the code gives the same."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from loaderscope.advisors.case.case import Case
from loaderscope.advisors.code.hot.element_code import elements_code, elements_of
from loaderscope.advisors.code.hot.operation_chains import operation_chain
from rule_cases import case_of
from rule_rows import main_loop
from stored_sets import Sized
from written_sets import with_getitem

each_holder = pytest.mark.parametrize("numpy", [False, True], ids=["tensor", "array"])


def read_by(folder: Path, base: type, body: str, *given: Any) -> tuple[Any, Case]:
    dataset = with_getitem(base, body, math=math, torch=torch, SCALE=2.0)(*given)
    loader = DataLoader(dataset, batch_size=2)
    return dataset, case_of(folder, main_loop(20, 0.1), loader=loader)


def same(one: Any, other: Any) -> None:
    torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


class Held(Sized):
    def __init__(self, numpy: bool) -> None:
        super().__init__(12)
        values = torch.rand(12, 5, generator=torch.Generator().manual_seed(0))
        cube = torch.rand(12, 2, 3, generator=torch.Generator().manual_seed(1))
        whole = torch.arange(60).reshape(12, 5)
        self.t, self.c, self.n = (x.numpy() if numpy else x for x in (values, cube, whole))


REWRITTEN = {
    "a chain": "return torch.tensor([float(self.t[i][j]) for j in range(5)])",
    "a comma": '"""A sum."""\ntotal = 0.0\nfor j in range(5):\n    total += self.t[i, j].item() ** 2\nreturn total',
    "into a list": "out = []\nfor j in range(5):\n    out.append(int(self.n[i][j]) + 1)\nreturn torch.tensor(out)",
    "to lists": "return [self.t[i, j].tolist() for j in range(5)]",
    "a row": "row = self.t[i % 7]\nreturn [min(max(row[k].item(), 0.25), 0.75) for k in range(len(row))]",
    "over a row": "return [math.sqrt(float(x)) for x in self.t[i]]",
    "counted": "found = {}\nfor k, x in enumerate(self.t[i]):\n    found[k] = x.item()\nreturn found",
    "while": "k = 0\nwhile k < 4 and float(self.t[i][k]) < 0.9:\n    k += 1\nreturn k",
    "deep": "return sum(float(self.c[i][a][b]) * float(self.t[i, b]) for a in range(2) for b in range(3))",
}
BY_HAND = {
    "not unwrapped": "return sum(self.t[i, j] * 2 for j in range(5))",
    "written": "row = self.t[i]\nfor j in range(5):\n    row[j] = float(row[j]) * 1.0\nreturn row",
    "of its module": "return [float(self.t[i][j]) * SCALE for j in range(5)]",
    "flat": "return [float(self.t[j][0]) for j in range(12)]",
}
NONE = {
    "a row at once": "return [float(x) for x in self.t[i].tolist()]",
    "batched": "return [self.c[i][k].sum() for k in range(2)]",
    "picked": "return [self.t[self.n[i]].mean() for _ in range(2)]",
}


@each_holder
@pytest.mark.parametrize("form", [*REWRITTEN, *BY_HAND, *NONE])
def test_each_form_is_found_and_its_code_gives_the_same(tmp_path, form, numpy):
    dataset, case = read_by(tmp_path, Held, {**REWRITTEN, **BY_HAND, **NONE}[form], numpy)
    if form in NONE:
        assert elements_of(case) is None
        return
    before = [dataset[n] for n in range(12)]

    code = elements_code(case)

    if form in REWRITTEN:
        exec(compile(code, "<pasted>", "exec"), {"dataset": dataset})
        assert "_values" in code and type(dataset).__getitem__.__name__ == "rows_at_once"
        after = [dataset[n] for n in range(12)]
        assert str(after) == str(before) and [type(x) for x in after] == [type(x) for x in before]
    else:
        lines = code.splitlines()
        assert code.startswith("# By hand") and all(line.startswith("#") for line in lines)


class Tensors(Sized):
    """Each sample is a tensor made of a list; some numbers are none, infinite or at a limit."""

    def __init__(self, numpy: bool, dtype: torch.dtype = torch.float32) -> None:
        super().__init__(6)
        values = torch.randn(6, 7, generator=torch.Generator().manual_seed(0)).to(dtype)
        values[1, :5] = torch.tensor([math.nan, math.inf, -math.inf, 0.25, 0.0])
        self.t, self.wide, self.few = values, torch.rand(6, 7).double(), 4
        if numpy:
            self.t, self.wide = values.numpy(), self.wide.numpy()
            self.t.flags.writeable = False  # as of a memory-mapped file


LISTED = {
    "limited": "return torch.tensor([min(max(float(x), 0.25), 0.75) for x in self.t[i]])",
    "leaky": "row = self.t[i]\n"
    "return torch.tensor([row[j].item() if row[j].item() > 0 else -row[j].item() * 0.1 for j in range(3)])",
    "two": "return torch.tensor([float(x) for x in self.t[i]]), torch.tensor([float(x) * 2 for x in self.wide[i]])",
    "last used": "out = []\nfor j in range(4):\n    out.append(self.t[i][j].item())\nreturn torch.tensor(out), j",
    "placed": "return torch.tensor([float(self.t[i][j]) * j for j in range(7)])",
}


@each_holder
@pytest.mark.parametrize("form", LISTED)
def test_a_tensor_of_numbers_is_made_of_a_list(tmp_path, form, numpy):
    dataset, case = read_by(tmp_path, Tensors, LISTED[form], numpy)
    before = [dataset[n] for n in range(6)]

    code = elements_code(case)
    exec(compile(code, "<pasted>", "exec"), {"dataset": dataset})

    assert "tolist" in code
    after = [dataset[n] for n in range(6)]
    same(after, before)
    found = elements_of(case)
    assert found is not None and found[1].left_us is not None
    assert found[1].left_us[0] < found[1].left_us[1]
    for each in after:  # memory of its own
        for tensor in each if isinstance(each, tuple) else (each,):
            if isinstance(tensor, torch.Tensor):
                tensor.fill_(7)
    same([dataset[n] for n in range(6)], before)


def test_a_long_row_is_not_made_a_list_for_some_of_it(tmp_path: Path) -> None:
    dataset = with_getitem(Held, REWRITTEN["a chain"], torch=torch)(False)
    dataset.t = torch.zeros(2, 200_000)
    case = case_of(tmp_path, main_loop(20, 0.1), loader=DataLoader(dataset, batch_size=2))
    assert elements_code(case).startswith("# By hand")


TANH = "y = 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))"
TANH_IN_TWO = "inner = x + 0.044715 * x.pow(3)\ny = 0.5 * x * (1 + (0.8 * inner).tanh())"


def source(text: str) -> tuple[str, ...]:
    lines = ("x = self.values[index]", *text.split("\n"), "return y")
    return ("def __getitem__(self, index):", *(f"        {line}" for line in lines))


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        (TANH, 'approximate="tanh"'),
        (TANH_IN_TWO, "tanh"),
        ("y = x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))", "gelu(x)"),
        ("y = ((x / 255 - 0.5) / 0.25).clamp(-2, 2) * 1.5", None),
        ("y = np.sqrt(np.abs(x - x.mean())) * np.exp(-x) + 1", None),
    ],
)
def test_a_chain_is_seen(text: str, operator: str | None) -> None:
    found = operation_chain(source(text))
    assert found is not None and found.operations >= 4
    assert found.lines == {*text.split("\n")}
    assert (found.operator is None) is (operator is None)
    assert (operator or "") in (found.operator or "")
    best, worst = found.left
    assert 0 < best < worst < 1
    code = found.code("__getitem__ of Rows")
    assert code.startswith("# By hand") and all(line.startswith("#") for line in code.splitlines())
    assert ("torch.compile" in code) is (operator is None)


@pytest.mark.parametrize(
    "text",
    [
        "y = x * 2 + 1",
        "y = torch.tanh(x)",
        "a = index * 3 + 4\ny = x[a : a + 5 * 2]",
        "y = math.exp(1) * math.sqrt(2) * math.pi / 3 * x",
        "y = sum(math.tanh(v) * 0.5 + v**3 - 2 * v / 7 for v in x)",
        "y = (",
        "pass",
    ],
)
def test_what_is_none(text: str) -> None:
    assert operation_chain(source(text)) is None
    assert operation_chain(()) is None and operation_chain(("x = 1",)) is None
