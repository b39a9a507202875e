"""The batched form of a data set: the code written for it, run as it is, gives the very batches the
loader gave."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from loaderscope.advisors.code.batched.access import leaves, read_access
from loaderscope.advisors.code.batched.batch_access import batch_access
from loaderscope.advisors.code.batched.batch_values import NotArrays, Value
from loaderscope.advisors.code.batched.getitems_code import batched_form
from loaderscope.profiler.base.tolerant import fitted
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.store.inspection import Attribute, Inspection
from rule_cases import case_of, ran
from rule_rows import rows_of
from stored_sets import Sized
from written_sets import with_getitem

N = 53


class Arrays(Sized):
    def __init__(self) -> None:
        super().__init__(N)
        self.x = torch.randn(N, 4, 3)
        self.y = torch.randint(0, 9, (N,))
        self.w = torch.rand(N)
        self.a = np.random.rand(N, 3).astype(np.float32)
        self.b = np.arange(N, dtype=np.int16)
        self.image = np.random.randint(0, 255, (N, 5, 6, 3), dtype=np.uint8)
        self.order = torch.randperm(N)
        self.labels = [int(n) % 7 for n in range(N)]
        self.costs = [n / 3 for n in range(N)]
        self.names = [f"n{n}" for n in range(N)]
        self.rows = [torch.full((2,), n) for n in range(N)]
        self.nothing = None


# What their methods are made of.
FORMS = {
    "Pair": "return self.x[i], self.y[i]",
    "One": "return self.x[i]",
    "ListPair": "x = self.x[i]\ny = self.y[i]\nreturn [x, y]",
    "Numbered": "return self.x[i], i",
    "NumberedOtherwise": "index = int(i)\n"
    "return {'x': self.x[index], 'index': index, 'tensor': torch.tensor(index), 'number': float(index),\n"
    "        'again': self.y[int(index)]}",
    "AsDict": '"""One row."""\nreturn {"x": self.x[i], "y": self.y[i], 3: self.w[i]}',
    "DictCall": "return dict(x=self.x[i].float(), label=int(self.y[i]), cost=float(self.w[i]))",
    "NumPy": "return self.a[i], self.b[i]",
    "Mixed": "x, y = torch.from_numpy(self.a[i]), torch.tensor(self.b[i], dtype=torch.long)\n"
    "return x, y, self.y[i].item(), self.w[i].item()",
    "NamesOfPython": "len, list = self.x[i], self.labels[i]\nreturn len.clone(), int(list)",
    "Lists": "return (self.a[i], self.labels[i], self.costs[i], self.names[i], torch.tensor(self.labels[i]),\n"
    "        self.rows[i])",
    "Converted": "if torch.is_tensor(i):\n    i = i.tolist()\n"
    "image = torch.as_tensor(self.image[i]).float() / 255\n"
    "return image, torch.tensor(float(self.b[i])), bool(self.y[i])",
    "NumPyOps": "image = self.image[i].astype(np.float32) / 255.0\nreturn image, 1 - self.a[i], self.x[i] * 2",
    "Chosen": "return self.x[i, 0], self.x[i][1:, 2], self.a[i, -1], self.image[i, 1:4, 2], self.rows[i][0]",
    "ByOrder": "return self.x[self.order[i]], self.a[self.order[i]], self.names[self.order[i]]",
    "NotTransformed": "sample, label = self.a[i], self.y[i]\n"
    "if self.nothing is not None:\n    sample = self.nothing(sample)\n"
    "if self.nothing:\n    label = self.nothing(label)\nreturn sample, label",
    "Nested": "return {'in': (self.x[i], self.a[i])}, self.y[i]",
    "Reserved": "rows, source = self.x[i], self.a[i]\ntorch_ = self.y[i]\nreturn rows, source, torch_",
}
RECOGNISED = {
    name: with_getitem(Arrays, body, name, np=np, torch=torch) for name, body in FORMS.items()
}
Pair, Numbered, NumPy = (RECOGNISED[name] for name in ("Pair", "Numbered", "NumPy"))


def same(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b) and a.stride() == b.stride()
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def pasted(tmp_path: Path, loader: DataLoader[Any], **names: Any) -> DataLoader[Any]:
    rows, epochs = rows_of(samples=4)
    facts: Any = {"epochs": epochs, "loader": loader, "config": {"dataset_len": None}}
    code = batched_form(case_of(tmp_path, rows, **facts)).code
    cls = type(loader.dataset)
    return ran(code, dataset=loader.dataset, **{cls.__name__: cls, **names})["loader"]


def drawn(loader: DataLoader[Any], seed: int) -> list[Any]:
    torch.manual_seed(seed)
    return list(loader)


def assert_same_epochs(before: DataLoader[Any], after: DataLoader[Any]) -> None:
    for seed in (0, 1):
        expected, found = (drawn(loader, seed) for loader in (before, after))
        assert len(expected) == len(found) == len(before) == len(after)
        assert all(map(same, expected, found)), (expected[0], found[0])


@pytest.mark.parametrize("cls", RECOGNISED.values(), ids=RECOGNISED)
def test_the_pasted_loader_gives_the_same_batches_in_the_same_order(tmp_path, cls):
    before = DataLoader(cls(), batch_size=13, shuffle=True)  # 53 = 4 x 13 + 1: a last batch of one

    assert_same_epochs(before, pasted(tmp_path, before))


TENSORS = TensorDataset(torch.randn(N, 2), torch.arange(N))
TWICE = Subset(Subset(Pair(), range(20, 50)), torch.arange(5, 25))
WRAPPED = [TENSORS, Subset(TENSORS, [*range(0, N, 3)]), TWICE, Subset(Numbered(), [5, 3, 9, 1, 1])]


@pytest.mark.parametrize("dataset", WRAPPED, ids=lambda d: type(d).__name__)
@pytest.mark.parametrize("shuffle", [False, True])
def test_wrapped_data_sets(tmp_path: Path, dataset: Dataset[Any], shuffle: bool) -> None:
    before = DataLoader(dataset, batch_size=4, shuffle=shuffle, drop_last=shuffle)

    assert_same_epochs(before, pasted(tmp_path, before))


def test_tensors_on_a_device_are_indexed_as_they_can_be() -> None:
    lines = ("def __getitem__(self, i):", "    return self.x[i]")
    told: Any = {"shape": (9, 3), "dtype": "float32"}
    x = (Attribute("x", "tensor", "torch.Tensor", device=on, **told) for on in ("cpu", "cuda:0"))
    values = [read_access(lines, [each]).result for each in x]

    # index_select wants the rows on the device too.
    texts = [value.text for value in values if isinstance(value, Value)]
    assert texts == ["source.x.index_select(0, rows)", "source.x[rows]"]


def as_given(samples: Any) -> Any:
    return samples


@pytest.mark.parametrize("name", ["One", "ListPair", "DictCall", "Mixed", "Lists", "ByOrder"])
def test_a_collate_function_of_the_users_own_is_given_the_same_samples(tmp_path, name):
    own = with_getitem(Arrays, FORMS[name], np=np, torch=torch)
    before = DataLoader(own(), batch_size=7, collate_fn=as_given)
    expected = list(before)

    after = pasted(tmp_path, before, as_given=as_given)

    assert "__getitems__" in vars(own) and after.batch_size == 7
    assert all(map(same, expected, after)) and len(expected) == len(after)


ATTRIBUTES = (
    Attribute("x", "tensor", "torch.Tensor", shape=(9, 3), dtype="float32"),
    Attribute("y", "ndarray", "numpy.ndarray", shape=(9,), dtype="int64"),
    Attribute("words", "ndarray", "numpy.ndarray", shape=(9,), dtype="<U4"),
    Attribute("t", "callable", "function"),
    Attribute("frame", "dataframe", "pandas.DataFrame"),
)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return self.load(i)", "load"),
        ("return self.x[i + 1]", "`i . 1` is more than a lookup"),
        ("return i", "no array"),
        ("return self.frame.iloc[i]", "more than a lookup"),
        ("return self.words[i]", "`self.words.i.` is more"),
        ("if self.x[i] > 0: return 1", "`if self.x.i. > 0"),
        ("self.cache = self.x[i]\n    return self.x[i]", "`self.cache` is more"),
        ("return self.y[i] * 2", "more than a lookup"),
        ("return self.x[i].permute(1, 0)", "permute"),
        ("return self.t(self.x[i])", "`self.t.* is more"),
        ("if self.t: return self.t(self.x[i])", "`if self.t"),
        ("return self.x[i][::-1]", "::-1.` is more"),
        ("return int(self.x[i])", "`int.*` is more"),
        ("return torch.rand(3), self.x[i]", "torch.rand"),
        ("return self.x[i] * 1e999", "more than a lookup"),
        ("return (lambda: self.x[i])()", "lambda.*` is more"),
        ("return __import__('os').system('true')", "__import__"),
    ],
)
def test_what_is_more_than_a_look_up_is_left_alone(body: str, reason: str) -> None:
    lines = ("def __getitem__(self, i):", *(f"    {line.strip()}" for line in body.split("\n")))

    with pytest.raises(NotArrays, match=reason):
        read_access(lines, ATTRIBUTES)


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("def __getitem__(self, *i):", "    return self.x[i]"),
        ("@cache", "def __getitem__(self, i):", "    return self.x[i]"),
        ("x = (" * 90,),
        ("def __getitem__(self, i):", "    return " + "(" * 500 + "self.x[i]" + ")" * 500),
        ("def __getitem__(self, i):\0", "    return self.x[i]"),
        ("def __getitem__(self, i):", "    return self.x[i" + " + 1" * 4000 + "]"),
        ("def __getitem__(self, i):", *["    x = self.x[i]"] * 2000, "    return x"),
    ],
)
def test_hostile_or_torn_source_is_refused(lines: tuple[str, ...]) -> None:
    with pytest.raises(NotArrays):
        read_access(lines, ATTRIBUTES)


@given(st.lists(st.text(max_size=60), max_size=8))
def test_any_text_is_refused_or_read(lines: list[str]) -> None:
    with suppress(NotArrays):
        plan = read_access(tuple(lines), ATTRIBUTES)
        values = [*leaves(plan.result), *(value for _, value in plan.assigns)]
        assert any("source." in value.text for value in values)


def test_names_from_a_run_never_become_code() -> None:
    seen = inspect_loader(DataLoader(NumPy(), batch_size=4))
    seen["dataset"]["name"] = "x); import os  #"
    access = batch_access(fitted(seen, Inspection).dataset)
    assert "import os" not in access.expression + access.definition


def test_a_last_line_that_cannot_be_a_dict_key_is_quoted() -> None:
    lines = ("def __getitem__(self, i):", '    return {"a\\"]; import os": self.x[i]}')
    plan = read_access(lines, ATTRIBUTES)

    assert isinstance(plan.result, dict) and list(plan.result) == ['a"]; import os']
