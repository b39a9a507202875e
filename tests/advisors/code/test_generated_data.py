"""Whatever data a loader has, code that is advised for it gives the same batches, or there is none."""

import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from loaderscope.advisors.case.advice import Advice
from loaderscope.advisors.rules import all_rules
from loaderscope.profiler.record.inspect.inspect_samples import inspect_samples
from loaderscope.profiler.store.sampled_fetches import SampledFetches
from rule_cases import ran
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
        "arrays",
        "tensors",
        "own",
        "lists",
        "numbers",
        "texts",
        "none",
        "ragged",
        "types",
        "scalars",
        "nested",
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


HELD_AS = st.sampled_from(("list", "array", "tensor"))
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
@given(st.sampled_from(FORMS), columns(), columns(), HELD_AS, st.booleans())
def test_code_that_rules_write_gives_the_same_batches(
    tmp_path, monkeypatch, form, xs, ys, how, small
):
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
    times = {"idle": 0.0, "fetch_ms": 0.1 if small else 20.0, "compute_ms": 0.1}
    fields = inspect_samples([loader.dataset[n] for n in range(4)])
    case = looked(stored_case(folder, loader, **times), SampledFetches(fields=fields))
    for rule in all_rules():
        for advice in rule.examine(case):
            if not isinstance(advice, Advice) or advice.rejected or advice.params.get("batch_size"):
                continue
            own = type("Held", (cls,), {})()
            names = {"dataset": own, "loader": loader, "sampler": loader.sampler}
            found = ran(advice.code, **names)["loader"]
            if found is loader and own.__class__.__getitem__ is cls.__getitem__:
                continue
            changed = found if found is not loader else DataLoader(own, 4)
            changed.num_workers, changed.timeout = 0, 0
            assert [plain(batch) for batch in changed] == before, (rule.name, advice.code)
