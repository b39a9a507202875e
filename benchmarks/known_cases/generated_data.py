"""Data sets and samplers of generated cases, as people write them."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from .materials import decoded


class Sized(Dataset):
    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


class Rows(Sized):
    def __init__(self, length: int, width: int) -> None:
        super().__init__(length)
        self.values = torch.randn(length, width)
        self.labels = torch.arange(length) % 10

    def __getitem__(self, index: Any) -> Any:
        return self.values[index], self.labels[index]


class Computing(Sized):
    def __init__(self, length: int, kilobytes: int) -> None:
        super().__init__(length)
        self.kilobytes = kilobytes

    def __getitem__(self, index: int) -> Any:
        return decoded(self.kilobytes)[:1024], index % 10


class Waiting(Sized):
    def __init__(self, length: int, milliseconds: float) -> None:
        super().__init__(length)
        self.milliseconds = milliseconds

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.milliseconds / 1e3)
        return torch.zeros(32), index % 10


class Lists(Sized):
    def __init__(self, length: int, width: int) -> None:
        super().__init__(length)
        self.width = width

    def __getitem__(self, index: int) -> Any:
        return np.full(self.width, index, dtype=np.float32)


def joined_slowly(samples: list[Any]) -> torch.Tensor:
    return torch.tensor([sample.tolist() for sample in samples])


class Batches(Sized):
    """Costs next to nothing to fetch."""

    def __init__(self, length: int, fields: int) -> None:
        super().__init__(length)
        self.fields = fields

    def __getitems__(self, indices: list[int]) -> Any:
        return (
            [torch.full((8,), float(n)) for n in range(self.fields)]
            if self.fields
            else torch.zeros(1)
        )

    def __getitem__(self, index: Any) -> Any:
        return torch.zeros(1)


def many_fields(samples: list[torch.Tensor]) -> dict[str, torch.Tensor]:
    return {f"field{n}": sample for n, sample in enumerate(samples)}


class Large(Sized):
    """A batch that is one NumPy array."""

    def __init__(self, length: int, megabytes: float) -> None:
        super().__init__(length)
        self.source = np.ones(round(megabytes * 1e6 / 4), dtype=np.float32)

    def __getitems__(self, indices: list[int]) -> Any:
        return self.source + float(indices[0])

    def __getitem__(self, index: int) -> Any:
        return self.source[:1]


class OwnOrder(Sampler[int]):
    """An order drawn number by number in Python."""

    def __init__(self, length: int, tries: int) -> None:
        self.length, self.tries = length, tries

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        rng = random.Random(0)
        for _ in range(self.length):
            yield min(rng.randrange(self.length) for _ in range(self.tries))


class Elements(Sized):
    """Values of a row, read one by one and limited; `form` is a class below, "whole" the
    engineer's."""

    def __new__(cls, length: int, width: int, form: str, numpy: bool) -> Any:
        return object.__new__(ELEMENT_FORMS.get(form, Whole))

    def __init__(self, length: int, width: int, form: str, numpy: bool) -> None:
        super().__init__(length)
        self.width = width
        values = torch.rand(length, width, generator=torch.Generator().manual_seed(0))
        self.values = values.numpy() if numpy else values


class Whole(Elements):
    def __getitem__(self, index: int) -> Any:
        return torch.as_tensor(self.values[index]).clamp(0.25, 0.75)


class Chained(Elements):
    def __getitem__(self, index: int) -> Any:
        return torch.tensor(
            [min(max(float(self.values[index][j]), 0.25), 0.75) for j in range(self.width)]
        )


class Comma(Elements):
    def __getitem__(self, index: int) -> Any:
        out = []
        for j in range(self.width):
            out.append(min(max(self.values[index, j].item(), 0.25), 0.75))  # noqa: PERF401 - as people write it
        return torch.tensor(out)


class Local(Elements):
    def __getitem__(self, index: int) -> Any:
        row = self.values[index]
        return torch.tensor([min(max(row[j].item(), 0.25), 0.75) for j in range(len(row))])


class Over(Elements):
    def __getitem__(self, index: int) -> Any:
        return torch.tensor([min(max(float(x), 0.25), 0.75) for x in self.values[index]])


ELEMENT_FORMS: dict[str, type[Elements]] = {
    each.__name__: each for each in (Chained, Comma, Local, Over)
}


class Frame(Sized):
    """Two values and a label out of a DataFrame's row; `form` None is the engineer's."""

    def __new__(cls, length: int, columns: int, texts: bool, form: str | None) -> Any:
        return object.__new__(ROW_FORMS[form] if form else OfArrays)

    def __init__(self, length: int, columns: int, texts: bool, form: str | None) -> None:
        import pandas as pd

        super().__init__(length)
        values = {f"c{n}": np.random.default_rng(n).random(length) for n in range(columns)}
        more = {"path": [f"{n}.png" for n in range(length)]} if texts else {}
        self.frame = pd.DataFrame({**values, "label": np.arange(length) % 10, **more})


class OfArrays(Frame):
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.values = self.frame[["c0", "c1"]].to_numpy()
        self.labels = self.frame["label"].to_numpy()

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(self.values[index]), int(self.labels[index])


class ByName(Frame):
    def __getitem__(self, index: int) -> Any:
        row = self.frame.iloc[index]
        return torch.tensor([row["c0"], row["c1"]]), int(row["label"])


class ByAttribute(Frame):
    def __getitem__(self, index: int) -> Any:
        row = self.frame.loc[index]
        return torch.tensor([row.c0, row.c1]), int(row.label)


class ToNumpy(Frame):
    def __getitem__(self, index: int) -> Any:
        values = self.frame.iloc[index].to_numpy()
        return torch.tensor([float(values[0]), float(values[1])]), int(values[2])


class Cells(Frame):
    def __getitem__(self, index: int) -> Any:
        return torch.tensor([self.frame.iloc[index, 0], self.frame.iloc[index, 1]]), int(
            self.frame["label"][index]
        )


ROW_FORMS: dict[str, type[Frame]] = {
    each.__name__: each for each in (ByName, ByAttribute, ToNumpy, Cells)
}
