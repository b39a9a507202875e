"""What stands in for a DataFrame or a Series gives what pandas gives, in each form in which people
read rows."""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from loaderscope.advisors.case.code_text import free_names
from loaderscope.advisors.code.hot.frame_rows import rows_code
from loaderscope.advisors.code.hot.kind import Hot
from loaderscope.advisors.code.template import whole
from rule_cases import case_of
from rule_rows import main_loop
from stored_sets import Sized
from written_sets import with_getitem

pd = pytest.importorskip("pandas")

NAMES: dict[str, Any] = {"__name__": __name__}
exec(whole("frames"), NAMES)
globals().update({name: NAMES[name] for name in ("StandIn", "Lookup", "Column", "Row", "Columns")})

N = 6
NUMBERS = {"a": np.arange(N), "b": np.linspace(0, 1, N), "label": np.arange(N) % 3}
FRAMES = {
    "numbers of two types": pd.DataFrame(NUMBERS),
    "numbers of one type": pd.DataFrame(
        {name: value.astype("float32") for name, value in NUMBERS.items()}
    ),
    "texts too": pd.DataFrame({**NUMBERS, "path": [f"{n}.png" for n in range(N)]}),
    "dates too": pd.DataFrame({**NUMBERS, "path": pd.date_range("2020-01-01", periods=N)}),
    "names of its own": pd.DataFrame(
        {**NUMBERS, "name": list("uvwxyz"), "size": 3, "row": 4, "frame": 5}
    ),
    "bools and nothing": pd.DataFrame(
        {**NUMBERS, "path": [True, None] * 3, "kind": pd.Categorical(list("ababab"))}
    ),
    "another index": pd.DataFrame(NUMBERS, index=[10, 2, 3, 0, 7, 8]),
    "texts as index": pd.DataFrame(NUMBERS, index=list("012345")),
    "names twice": pd.DataFrame([[1, 2.0, 3]] * N, columns=["a", "b", "b"]),
    "two levels": pd.DataFrame(NUMBERS, index=pd.MultiIndex.from_product([[0, 1, 2], [0, 1]])),
}
FEATURES = ["a", "b"]
# `f` is the frame, `i` the index.
FORMS: list[Callable[[Any, Any], Any]] = [
    lambda f, i: f.iloc[i]["a"],
    lambda f, i: f.iloc[i].label,
    lambda f, i: (f.iloc[i].name, f.iloc[i].size, f.iloc[i].shape),
    lambda f, i: (f.iloc[i].row, f.row[i], f.iloc[i].frame, f.frame.iloc[i]),
    lambda f, i: f.iloc[i].path,
    lambda f, i: f.iloc[i].to_numpy(),
    lambda f, i: f.iloc[i].to_numpy(dtype=np.float32),
    lambda f, i: f.iloc[i].values,
    lambda f, i: f.iloc[i].values[:-1].astype(np.float32),
    lambda f, i: f.iloc[i].astype("float32").values,
    lambda f, i: f.iloc[i].tolist(),
    lambda f, i: f.iloc[i].to_list()[0],
    lambda f, i: f.iloc[i].to_dict(),
    lambda f, i: dict(f.iloc[i]),
    lambda f, i: {**f.iloc[i]},
    lambda f, i: list(f.iloc[i]),
    lambda f, i: list(f.iloc[i].items()),
    lambda f, i: [value + 0 for value in f.iloc[i][["a"]]],
    lambda f, i: [*f.iloc[i]][-1],
    lambda f, i: (len(f.iloc[i]), "a" in f.iloc[i], "zz" in f.iloc[i]),
    lambda f, i: f.iloc[i].get("a"),
    lambda f, i: f.iloc[i].get("zz", 3),
    lambda f, i: f.iloc[i]["zz"],
    lambda f, i: f.iloc[i].zz,
    lambda f, i: np.array(f.iloc[i]),
    lambda f, i: np.asarray(f.iloc[i], dtype=np.float64),
    lambda f, i: torch.tensor(f.iloc[i].values.astype(np.float32)),
    lambda f, i: torch.from_numpy(f.iloc[i].to_numpy(dtype="float32")),
    lambda f, i: torch.tensor([f.iloc[i][name] for name in FEATURES]),
    lambda f, i: f.iloc[i][FEATURES].values,
    lambda f, i: f.iloc[i][1:].values,
    lambda f, i: f.iloc[i].drop("label").values,
    lambda f, i: f.iloc[i].iloc[0],
    lambda f, i: f.iloc[i].index.tolist(),
    lambda f, i: f.iloc[i, 0],
    lambda f, i: f.iloc[i, -1],
    lambda f, i: f.iloc[i, 1:].values,
    lambda f, i: f.iloc[i, :-1].to_numpy(),
    lambda f, i: np.array([f.iloc[i, 1:]]),
    lambda f, i: f.iloc[i, [0, 1]].values,
    lambda f, i: f.iloc[i : i + 3].values,
    lambda f, i: f.iloc[[i]].values,
    lambda f, i: f.iloc[np.int64(i)]["a"],
    lambda f, i: f.iloc[-1]["a"],
    lambda f, i: f.iloc[N]["a"],
    lambda f, i: f.loc[i]["a"],
    lambda f, i: f.loc[i].label,
    lambda f, i: f.loc[i, "a"],
    lambda f, i: f.loc[i, FEATURES].values,
    lambda f, i: f.loc[i, "zz"],
    lambda f, i: f.loc[str(i), "label"],
    lambda f, i: f.loc[-1],
    lambda f, i: f.at[i, "label"],
    lambda f, i: f.iat[i, 2],
    lambda f, i: f["a"][i],
    lambda f, i: f["a"].iloc[i],
    lambda f, i: f["a"].loc[i],
    lambda f, i: f["a"].values[i],
    lambda f, i: f["a"].to_numpy()[i],
    lambda f, i: f.a[i],
    lambda f, i: f.label.iloc[i],
    lambda f, i: f.path.iloc[i],
    lambda f, i: f[FEATURES].iloc[i].values,
    lambda f, i: f[FEATURES].values[i],
    lambda f, i: f[i : i + 2].values,
    lambda f, i: f.values[i],
    lambda f, i: f.to_numpy()[i],
    lambda f, i: f.index[i],
    lambda f, i: (len(f), f.shape, list(f.columns), list(f), "a" in f),
    lambda f, i: f.iloc[i]["a"] * 2,
    lambda f, i: (f.iloc[i] == 2).to_numpy(),
    lambda f, i: (f[FEATURES].iloc[i] / 2).to_numpy(),
    lambda f, i: (f["a"] > 2).to_numpy(),
    lambda f, i: f[f["a"] > 2]["a"].to_numpy(),
    lambda f, i: f["a"].isin([1, 2]).to_numpy(),
    lambda f, i: (len(f["a"]), list(f["a"]), f["a"].max(), f["label"].unique().tolist()),
    lambda f, i: f[("a")].sum(),
]


def answer(form: Callable[[Any, Any], Any], frame: Any, index: int) -> Any:
    """What it gives, with the type, or the error's type."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas' own, of forms that it will drop
            return form(frame, index)
    except Exception as error:
        return type(error)


def alike(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray | torch.Tensor):
        kinds = one.dtype == other.dtype and one.shape == other.shape
        return kinds and bool(
            np.array_equal(np.asarray(one).astype(str), np.asarray(other).astype(str))
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return str(one) == str(other)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # of numpy before 1.25
@pytest.mark.parametrize("kind", FRAMES)
def test_every_form_gives_what_pandas_gives(kind: str) -> None:
    frame = FRAMES[kind]
    stand_in = NAMES["stand_in"](frame)
    found = [
        (form, answer(form, frame, n), answer(form, stand_in, n)) for form in FORMS for n in (0, 3)
    ]
    differ = [
        (inspect.getsource(form), one, other) for form, one, other in found if not alike(one, other)
    ]
    assert not differ


@pytest.mark.parametrize("name", ["a", "path"])
def test_a_series_alone_too(name: str) -> None:
    series = FRAMES["texts too"][name]
    forms: list[Callable[[Any, Any], Any]] = [
        lambda s, i: s.iloc[i],
        lambda s, i: s[i],
        lambda s, i: s.loc[i],
        lambda s, i: s.values[i],
        lambda s, i: len(s),
        lambda s, i: s.to_numpy()[i],
        lambda s, i: s[i : i + 2].tolist(),
        lambda s, i: s.at[i],
        lambda s, i: s[N],
    ]
    for form in forms:
        assert alike(answer(form, series, 2), answer(form, NAMES["stand_in"](series), 2)), (
            inspect.getsource(form)
        )


def test_it_reaches_workers_and_its_arrays_stay_as_they_are() -> None:
    stand_in = NAMES["stand_in"](FRAMES["numbers of two types"])
    for sent in (pickle.loads(pickle.dumps(stand_in)), copy.deepcopy(stand_in)):
        values = sent.iloc[1].to_numpy()
        values += 100
        assert sent.iloc[1].tolist() == FRAMES["numbers of two types"].iloc[1].tolist()


class Held(Sized):
    def __init__(self) -> None:
        super().__init__(N)
        self.frame = FRAMES["texts too"]
        self.labels = FRAMES["texts too"]["label"]
        self.features = FEATURES


ROW, CALLED = (
    "row = self.frame.iloc[i]\n",
    "self.frame.loc[i, self.features].values.astype('float32')",
)
AS_IT_IS = [
    f"{ROW}return {{'x': row['b'], 'path': row.path, 'y': self.labels.iloc[i]}}",
    "values = self.frame.iloc[i].to_numpy()\nreturn values[0], values[1:3].astype('float32')",
    f"{ROW}return [row[name] for name in ('a', 'path')]",
    "return self.frame.iloc[i, 3], self.frame.loc[i, 'a'], self.frame['b'][i]",
]
BY_HAND = [
    f"names = ['a', 'b']\n{ROW}return row[names].values.astype('float32')",
    f"{ROW}return row[FEATURES].values.astype('float32')",
    "return self.frame.loc[i, FEATURES].values.astype('float32')",
    f"return {CALLED}",
    "return self.frame.iloc[i, 1:3].values.astype('float32')",
    f"{ROW}return row.drop(['path', 'label']).values.astype('float32')",
    "return self.frame.iloc[i].iloc[0]",
    f"row = self.frame.iloc[i].copy()\n{ROW}row['a'] = 3\nreturn row['a']",
    "self.frame.at[i, 'a'] += 1\nreturn self.frame.iloc[i]['a']",
]


@pytest.mark.parametrize("body", [*AS_IT_IS, *BY_HAND])
def test_code_runs_as_it_is_or_says_by_hand(tmp_path: Path, body: str) -> None:
    dataset = with_getitem(Held, body)()
    case = case_of(tmp_path, main_loop(20, 0.1), loader=DataLoader(dataset, batch_size=2))

    code = rows_code(case)

    if body in AS_IT_IS:
        before = [dataset[n] for n in range(N)]
        exec(compile(code, "<pasted>", "exec"), {"dataset": dataset})
        assert type(dataset.frame).__name__ == "Columns"
        assert all(map(alike, before, [dataset[n] for n in range(N)]))
    else:
        lines = code.splitlines()
        assert code.startswith("# By hand") and all(line.startswith("#") for line in lines)
    assert free_names(compile(code, "<pasted>", "exec", 1024)) <= {"dataset"}  # type: ignore[arg-type]


class Together(torch.utils.data.ConcatDataset[Any]):
    """Holds a frame that nothing reads by rows; has no source of its own for fetching."""

    description: Any


def test_a_frame_that_the_hot_line_does_not_read_stays(tmp_path: Path) -> None:
    dataset = Together([Sized(), Sized()])
    dataset.description = pd.DataFrame(NUMBERS)
    case = case_of(tmp_path, main_loop(20, 0.1), loader=DataLoader(dataset, batch_size=2))
    read = cast("Hot", SimpleNamespace(place="data.py:69"))

    assert "dataset.description = stand_in(" in rows_code(case)  # if nothing else is known
    code = rows_code(case, read)
    assert code.startswith("# By hand") and "data.py:69" in code and "description" not in code
