"""Loops that fail in every place where a user's code runs: `python traceback_programs.py
bare|watched`.

Prints each traceback as the user reads it; two of them show the stack that the data set finds
itself in.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from torch.utils.data import DataLoader, Dataset, IterableDataset

import loaderscope

WATCHED = sys.argv[1] == "watched"


class Failing(Dataset[int]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> int:
        if index == 3:
            raise ValueError("bad")
        return index


class Stack(Failing):
    def __getitem__(self, index: int) -> int:
        if index == 3:
            frames = traceback.extract_stack()[:-1]
            raise ValueError(
                " | ".join(f"{os.path.basename(f.filename)}:{f.lineno}:{f.name}" for f in frames)
            )
        return index


class NoStream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        raise ValueError("no stream")


class Quoting(Failing):
    def __getitem__(self, index: int) -> int:
        raise ValueError(
            f'  File "{os.path.dirname(loaderscope.__file__)}/profiler/watch.py", line 1, in '
            "watch\n    x"
        )


class FailingSampler:
    def __init__(self, given: int) -> None:
        self.given = given

    def __len__(self) -> int:
        return 6

    def __iter__(self) -> Iterator[int]:
        if not self.given:
            raise ValueError("sampler")
        return self.drawn()

    def drawn(self) -> Iterator[int]:
        yield from range(self.given)
        raise ValueError("sampler")


def failing_collate(samples: list[Any]) -> Any:
    raise ValueError("collate")


def run(name: str, make: Callable[[], Any]) -> None:
    print("=====", name)
    try:
        loader = make()
        if WATCHED:
            loaderscope.watch(loader)
        for _ in loader:
            pass
    except ValueError:
        print(traceback.format_exc())


for workers in (0, 1):
    run(f"sample, {workers} workers", partial(DataLoader, Failing(), num_workers=workers))
    run(f"stack, {workers} workers", partial(DataLoader, Stack(), num_workers=workers))
    run(f"quoting, {workers} workers", partial(DataLoader, Quoting(), num_workers=workers))
    run(f"stream, {workers} workers", partial(DataLoader, NoStream(), num_workers=workers))
    run(
        f"collate, {workers} workers",
        partial(DataLoader, Failing(), collate_fn=failing_collate, num_workers=workers),
    )
    run(
        f"single, {workers} workers",
        partial(DataLoader, Failing(), batch_size=None, num_workers=workers),
    )
    for given in (0, 1, 4):
        sampler = FailingSampler(given)
        run(
            f"sampler, {given}, {workers} workers",
            partial(DataLoader, Failing(), sampler=sampler, num_workers=workers),
        )
