"""Whatever data a loader has, code that is advised for it gives the same batches, or there is none."""

from __future__ import annotations

import ast
import inspect
import json
import tempfile
import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, example, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from loaderscope.advisors.case.advice import Advice
from loaderscope.advisors.code.collating import of_lists
from loaderscope.advisors.code.method import Method
from loaderscope.advisors.code.rewritten import rewritten
from loaderscope.advisors.code.shapes import changing, shape_of
from loaderscope.advisors.rules import all_rules
from loaderscope.profiler.record.inspect.inspect_attributes import describe
from loaderscope.profiler.record.inspect.inspect_samples import inspect_samples
from loaderscope.profiler.store.sampled_fetches import SampledFetches
from storage_cases import looked, stored_case
from stored_sets import Sized
from written_sets import ways, with_getitem

EXAMPLES = settings(
    max_examples=100,
    phases=(Phase.explicit, Phase.generate),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
LENGTH = 10  # batches of four, the last of two
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def plain(value: Any) -> Any:
    """What a value holds, to be compared: types and shapes too."""
    if isinstance(value, torch.Tensor):
        return type(value).__name__, str(value.dtype), tuple(value.shape), repr(value.tolist())
    if isinstance(value, np.ndarray | np.generic):
        return type(value).__name__, str(value.dtype), value.shape, repr(value.tolist())
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value).__name__, [plain(each) for each in value]
    return type(value).__name__, repr(value)


# What is made of `self` in a method, and how it is used.
MADE = ways(
    """
    made = json.loads(self.text) | made = sorted(self.names) | made = [v for v in self.numbers] |
    made = {name: n for n, name in enumerate(self.names)} | made = np.cumsum(self.numbers) |
    made = torch.tensor(self.numbers) | made = self.text.split() | made = list(self.names) |
    made = np.random.rand(3) | made = iter(self.numbers) | made = self.changing() |
    made = [[v] for v in self.numbers] | made = open(self.path) |
    made = bytearray(self.text, 'ascii') |
    with open(self.path) as file:\n    made = file.readlines() |
    with open(self.path) as file:\n    made = file.readlines()\nindex += file.closed |
    file = open(self.path)\nfor _ in range(2):\n    made = file.readline() |
    file = open(self.path)\nhead = file.readline()\nmade = file.readline() |
    file = open(self.path)\nmade = file.readline() + file.readline() |
    file = open(self.path)\nmade = file.readlines() | made = self.names.index(self.names[index]) |
    made = self.numbers.index(self.numbers[index]) | made = self.names[index] in self.names |
    made = index not in self.numbers | print(index, file=self.log) |
    made = print(index, file=self.log) | if index:\n    print(index, file=self.log) |
    made = self.array[:][index] | made = self.array[index][:] |
    made = np.array(self.numbers)[:][index] | made = [self.array[:][index], index] |
    made = json.loads(self.text)[index % 4] | made = sorted(self.names)[index] |
    made = json.loads('[[1], [2]]')[index % 2] | made = np.tile(self.numbers, (2, 1))[index % 2] |
    made = list(map(list, self.names))[index] |
    made = torch.tensor([self.numbers, self.numbers])[index % 2]
    """
)
USED = ways(
    """
    use = made | use = made[index % len(made)] | use = made[1:3] |
    made.append(index)\nuse = len(made) | made[0] = index\nuse = made[0] | use = made + made |
    row = made[0:2]\nrow += row\nuse = row | use = np.asarray(made) | use = list(made) |
    use = next(made) | use = len(str(made)) | made += made\nuse = len(made) |
    use = [made[0]]\nuse[0].append(index) | use = made.pop() | use = self.kept(made) |
    for each in made:\n    use = each | use = made[0]\nuse *= 2 | use = 0 | use = made.mean() |
    del made[0]\nuse = made | use = [*made] | use = made[::-1] | first, *use = made |
    self.text = str(index)\nuse = made | use = lambda: made\nuse = use()
    """
)
RETURNED = ("return use", "return index, use", "return {'use': use}", "return [use, self.array[0]]")
NAMES = st.lists(st.text("abc", max_size=2), min_size=LENGTH, max_size=LENGTH)
NUMBERS = st.lists(st.integers(-3, 3), min_size=LENGTH, max_size=LENGTH) | st.lists(
    st.floats(-3, 3, width=32), min_size=LENGTH, max_size=LENGTH
)


class Base(Sized):
    """What the generated methods use; `changing` gives something else each time."""

    def __init__(self, names: list[str], numbers: list[Any], folder: Path) -> None:
        super().__init__(LENGTH)
        self.names, self.numbers, self.calls, self.held = names, numbers, 0, []  # type: ignore[var-annotated]
        self.array, self.text = np.arange(LENGTH * 3.0).reshape(LENGTH, 3), "[1, 2, 3, 4]"
        self.path, self.log = folder / "file.txt", (folder / "log").open("a")
        self.path.write_text("one\ntwo\nthree\n")

    def changing(self) -> list[int]:
        self.calls += 1
        return [self.calls] * 4

    def kept(self, value: Any) -> int:
        self.held.append(value)
        return len(self.held)


HELPERS = [
    textwrap.dedent(inspect.getsource(each)).splitlines() for each in (Base.changing, Base.kept)
]


def asked(dataset: Any, order: list[int]) -> list[Any]:
    """What the samples hold in two epochs, collated at once; an error is its place."""
    torch.manual_seed(0)
    np.random.seed(0)
    found = []
    for index in order * 2:
        try:
            found.append(plain(dataset[index]))
        except Exception:  # a generated method may well be wrong
            found.append(None)
    return found


@EXAMPLES
@given(
    st.sampled_from(MADE),
    st.sampled_from(USED),
    st.sampled_from(RETURNED),
    NAMES,
    NUMBERS,
    st.permutations(range(LENGTH)),
)
def test_a_method_without_its_waste_gives_the_same_samples(
    tmp_path: Path, made: str, used: str, returned: str, names: Any, numbers: Any, order: Any
) -> None:
    lines = "\n".join([made, used, returned]).split("\n")
    source = ["def __getitem__(self, index):", *(f"    {line}" for line in lines)]
    scope = {**globals(), "json": json}
    exec("\n".join(source), scope)
    old, new = (
        type("Own", (Base,), {"__getitem__": scope["__getitem__"]})(names, numbers, tmp_path)
        for _ in range(2)
    )
    kinds = {name: describe(value)["kind"] for name, value in vars(old).items()}
    held = kinds | dict.fromkeys(changing(map(Method, [source, *HELPERS])), "")
    for line in made.split("\n"):
        shape = shape_of(Method(source), line.strip(), held=held)
        method = shape and rewritten(source, line.strip(), shape.key, held, copies=True)
        if method is not None:
            exec(ast.unparse(method), scope)
            type(new).__getitem__ = scope["__getitem__"]
            assert asked(old, order) == asked(new, order), ast.unparse(method)


def arrays(shape: tuple[int, ...], dtype: Any) -> Any:
    return st.builds(
        lambda n: (np.arange(np.prod(shape, dtype=int)) % 7 + n).reshape(shape).astype(dtype),
        st.integers(0, 3),
    )


DTYPES = st.sampled_from(
    ["float32", "float64", "int64", "int32", "uint8", "bool", "float16", "uint16"]
)
SHAPES = st.sampled_from([(), (0,), (1,), (3,), (2, 3)])
KINDS = st.sampled_from(
    [
        *("arrays", "tensors", "own", "lists", "numbers", "texts"),
        *("none", "ragged", "types", "scalars", "nested"),
    ]
)


class Own(torch.Tensor): ...


@st.composite
def columns(draw: Any) -> list[Any]:
    """One field of LENGTH samples: alike, or not."""
    dtype, shape = draw(DTYPES), draw(SHAPES)
    alike = [draw(arrays(shape, dtype)) for _ in range(LENGTH)]
    kind, numbers = draw(KINDS), range(LENGTH)
    assume(kind != "tensors" or dtype != "uint16")
    others = {
        "tensors": lambda: [torch.from_numpy(np.array(each)) for each in alike],
        "own": lambda: [torch.zeros(3).as_subclass(Own) for _ in alike],
        "lists": lambda: [each.tolist() for each in alike],
        "numbers": lambda: [draw(st.integers(0, 9)) for _ in numbers],
        "texts": lambda: [draw(st.text("ab", max_size=3)) for _ in numbers],
        "nested": lambda: [{"x": each, "n": [n, n + 1]} for n, each in enumerate(alike)],
    }
    if kind in others:
        return others[kind]()
    odd = {
        "none": None,
        "ragged": np.ones(5, dtype),
        "types": alike[0].astype("float64"),
        "scalars": alike[0].reshape(-1)[:1].sum(),
    }
    if kind in odd:
        alike[draw(st.integers(0, LENGTH - 1))] = odd[kind]
    return alike


COLLATES = (
    "return torch.tensor([s.tolist() for s in samples])",
    "return torch.tensor([s for s in samples])",
    "return torch.tensor([s[0] for s in samples])",
    "xs = [x for x, _ in samples]\nreturn torch.tensor(xs)",
    "xs, ys = zip(*samples)\nreturn torch.tensor(xs), torch.tensor(ys)",
    "xs, ys = zip(*samples)\nreturn torch.FloatTensor(xs), len(xs), ys",
    "xs = []\nfor s in samples:\n    xs.append(s['x'].tolist())\nreturn {'x': torch.tensor(xs), 'n': len(samples)}",
    "xs = [s['x'] for s in samples]\nreturn torch.as_tensor(xs, dtype=torch.float64) / 2",
    "xs = [s['x'] for s in samples if s is not None]\nreturn torch.tensor(xs)",
    "return torch.nn.utils.rnn.pad_sequence([torch.tensor(s) for s in samples])",
    "xs = [s['x'].tolist() for s in samples]\nxs[0] = xs[-1]\nreturn torch.tensor(xs)",
    "return torch.LongTensor([s['x'] for s in samples])",
    "return torch.Tensor([s.tolist() for s in samples]).sum()",
)


@EXAMPLES
@example(COLLATES[0], "one", [np.zeros(0, np.uint8)] * LENGTH, [0] * LENGTH)  # becomes float32
@given(st.sampled_from(COLLATES), st.sampled_from(["one", "tuple", "dict"]), columns(), columns())
def test_a_collate_function_without_lists_gives_the_same_batches(body, structure, xs, ys):
    samples = {
        "one": xs,
        "tuple": [*zip(xs, ys, strict=True)],
        "dict": [{"x": x, "y": y} for x, y in zip(xs, ys, strict=True)],
    }[structure]
    source = ["def join(samples):", *(f"    {line}" for line in body.split("\n"))]
    code = of_lists(source, inspect_samples(list(samples)))
    if not code:
        return
    scope: dict[str, Any] = {"torch": torch}
    exec("\n".join([*source, code]), scope)
    for batch in (samples[:4], samples[8:], samples):
        try:
            before = plain(scope["join"](list(batch)))
        except (TypeError, ValueError):  # no batch would be recorded
            return
        assert plain(scope["stack_samples"](list(batch))) == before, code


FORMS = ways(
    """
    return self.x[index] | return self.x[index], self.y[index] |
    return {'x': self.x[index], 'y': self.y[index]} | return [self.x[index], index] |
    return self.x[index], {'y': self.y[index], 'n': 1} |
    x = self.x[index]\nreturn torch.as_tensor(x), self.y[index] |
    return torch.tensor(self.x[index]) | return self.x[-1 - index] |
    x = self.x[index]\nreturn x + x | return torch.from_numpy(self.x[index]).float() |
    return torch.tensor([float(v) for v in self.x[index]]) | return float(self.x[index].sum()) |
    made = sorted(self.x, key=repr)\nreturn made[index] | return self.x[index], str(index)
    """
)


HELD_AS = ("list", "array", "tensor")


def kept(column: list[Any], how: str) -> Any:
    """A field as a data set keeps it: as a list, or as one array where it can be one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if how == "array":
                return np.stack(column)
            if how == "tensor":
                return torch.stack([torch.as_tensor(each) for each in column])
        except (TypeError, ValueError, RuntimeError):
            pass
    return column


@EXAMPLES
@given(st.sampled_from(FORMS), columns(), columns(), st.sampled_from(HELD_AS), st.booleans())
def test_all_code_that_rules_write_gives_the_same_batches(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    xs: Any,
    ys: Any,
    how: str,
    small: bool,
) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    monkeypatch.chdir(folder)

    class Held(Sized):
        def __init__(self) -> None:
            super().__init__(LENGTH)
            self.x, self.y = kept(xs, how), kept(ys, how)

    cls = with_getitem(Held, form, "Held", "index", torch=torch, np=np)
    loader = DataLoader(cls(), 4)
    try:
        before = [plain(batch) for batch in loader]
    except Exception:  # no loader of it would be recorded
        return
    fetch_ms = 0.1 if small else 20.0
    case = stored_case(folder, loader, idle=0.0, fetch_ms=fetch_ms, compute_ms=0.1)
    case = looked(
        case, SampledFetches(fields=inspect_samples([loader.dataset[n] for n in range(4)]))
    )
    for rule in all_rules():
        for advice in rule.examine(case):
            if not isinstance(advice, Advice) or advice.rejected or advice.params.get("batch_size"):
                continue
            own = type("Held", (cls,), {})()
            names = {"dataset": own, "loader": loader, "sampler": loader.sampler}
            exec(compile(advice.code, "<pasted>", "exec"), names)
            found = names["loader"]
            if found is loader and own.__class__.__getitem__ is cls.__getitem__:
                continue
            changed = found if found is not loader else DataLoader(own, 4)
            changed.num_workers, changed.timeout = 0, 0  # type: ignore[union-attr]
            assert [plain(batch) for batch in changed] == before, (rule.name, advice.code)
