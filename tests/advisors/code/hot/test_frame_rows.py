"""What stands in for a DataFrame or a Series gives what pandas gives, in each form in which people
read rows."""

from __future__ import annotations

import copy
import pickle
import warnings
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
from written_sets import ways, with_getitem

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
    "labels twice": pd.DataFrame(NUMBERS, index=[3, 0, 3, 1, 0, 2]),
    "labels twice, in order": pd.DataFrame(NUMBERS, index=[0, 0, 1, 2, 3, 3]),
    "labels twice, without an order": pd.DataFrame(NUMBERS, index=[3, "0", 3, 1, 0, "0"]),
    "names twice": pd.DataFrame([[1, 2.0, 3]] * N, columns=["a", "b", "b"]),
    "two levels": pd.DataFrame(NUMBERS, index=pd.MultiIndex.from_product([[0, 1, 2], [0, 1]])),
}
FEATURES = ["a", "b"]
# `f` is the frame, `i` the index.
FORMS = ways(
    """
    f.iloc[i]["a"] | f.iloc[i].label | (f.iloc[i].name, f.iloc[i].size, f.iloc[i].shape) |
    (f.iloc[i].row, f.row[i], f.iloc[i].frame, f.frame.iloc[i]) | f.iloc[i].path |
    f.iloc[i].to_numpy() | f.iloc[i].to_numpy(dtype=np.float32) | f.iloc[i].values |
    f.iloc[i].values[:-1].astype(np.float32) | f.iloc[i].astype("float32").values |
    f.iloc[i].tolist() | f.iloc[i].to_list()[0] | f.iloc[i].to_dict() | dict(f.iloc[i]) |
    {**f.iloc[i]} | list(f.iloc[i]) | list(f.iloc[i].items()) |
    [value + 0 for value in f.iloc[i][["a"]]] | [*f.iloc[i]][-1] |
    (len(f.iloc[i]), "a" in f.iloc[i], "zz" in f.iloc[i]) | f.iloc[i].get("a") |
    f.iloc[i].get("zz", 3) | f.iloc[i]["zz"] | f.iloc[i].zz | np.array(f.iloc[i]) |
    np.asarray(f.iloc[i], dtype=np.float64) | torch.tensor(f.iloc[i].values.astype(np.float32)) |
    torch.from_numpy(f.iloc[i].to_numpy(dtype="float32")) |
    torch.tensor([f.iloc[i][name] for name in FEATURES]) | f.iloc[i][FEATURES].values |
    f.iloc[i][1:].values | f.iloc[i].drop("label").values | f.iloc[i].iloc[0] |
    f.iloc[i].index.tolist() | f.iloc[i, 0] | f.iloc[i, -1] | f.iloc[i, 1:].values |
    f.iloc[i, :-1].to_numpy() | np.array([f.iloc[i, 1:]]) | f.iloc[i, [0, 1]].values |
    f.iloc[i : i + 3].values | f.iloc[[i]].values | f.iloc[np.int64(i)]["a"] | f.iloc[-1]["a"] |
    f.iloc[N]["a"] | f.loc[i]["a"] | f.loc[i].label | f.loc[i, "a"] | f.loc[i, FEATURES].values |
    f.loc[i, "zz"] | f.loc[str(i), "label"] | f.loc[-1] | f.at[i, "label"] | f.iat[i, 2] |
    f["a"][i] | f["a"].iloc[i] | f["a"].loc[i] | f["a"].values[i] | f["a"].to_numpy()[i] | f.a[i] |
    f.label.iloc[i] | f.path.iloc[i] | f[FEATURES].iloc[i].values | f[FEATURES].values[i] |
    f[i : i + 2].values | f.values[i] | f.to_numpy()[i] | f.index[i] |
    (len(f), f.shape, list(f.columns), list(f), "a" in f) | f.iloc[i]["a"] * 2 |
    (f.iloc[i] == 2).to_numpy() | (f[FEATURES].iloc[i] / 2).to_numpy() | (f["a"] > 2).to_numpy() |
    f[f["a"] > 2]["a"].to_numpy() | f["a"].isin([1, 2]).to_numpy() |
    (len(f["a"]), list(f["a"]), f["a"].max(), f["label"].unique().tolist()) | f[("a")].sum()
    """
)


def answer(form: str, frame: Any, index: int) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pandas' own, of forms that it will drop
            return eval(form, globals(), {"f": frame, "i": index})
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
    differ = [
        (form, n)
        for form in FORMS
        for n in (0, 3)
        if not alike(answer(form, frame, n), answer(form, stand_in, n))
    ]
    assert not differ


@pytest.mark.parametrize("name", ["a", "path"])
def test_a_series_alone_too(name: str) -> None:
    series = FRAMES["texts too"][name]
    stand_in = NAMES["stand_in"](series)
    asked = (
        "f.iloc[i] | f[i] | f.loc[i] | f.values[i] | len(f) | f.to_numpy()[i] | f.at[i] | f[N] |"
        "f[i : i + 2].tolist()"
    )
    for form in ways(asked):
        assert alike(answer(form, series, 2), answer(form, stand_in, 2)), form


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


ROW = "row = self.frame.iloc[i]\n"
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
    "return self.frame.loc[i, self.features].values.astype('float32')",
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
