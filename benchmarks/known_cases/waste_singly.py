"""Work in `__getitem__` that is done one by one, through a search, through another process, or for
nothing. As in `waste_making`, `better` gives the same samples."""

from __future__ import annotations

import itertools
import multiprocessing
import pickle
import random
import socket
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch

from .waste_making import LENGTH, Made, folder, planted


class RowsById(Made):
    """A DataFrame compared as a whole to find one row."""

    def __init__(self) -> None:
        super().__init__()
        import pandas as pd

        keys = np.random.default_rng(1).permutation(60_000)
        self.people = pd.DataFrame({"key": keys, "age": keys % 90})
        self.ages = dict(zip(self.people.key.tolist(), self.people.age.tolist(), strict=True))

    def __getitem__(self, index: int) -> Any:
        person = self.people[self.people.key == index]
        return self.values[index], int(person.age.iloc[0])

    def better(self, index: int) -> Any:
        return self.values[index], self.ages[index]


class PlaceInList(Made):
    """A list searched for the place of a name."""

    def __init__(self) -> None:
        super().__init__()
        self.names = [f"name {k}" for k in range(20_000)]
        self.places = {name: place for place, name in enumerate(self.names)}

    def __getitem__(self, index: int) -> Any:
        key = f"name {index * 39}"
        label = self.names.index(key)
        return self.values[index], label

    def better(self, index: int) -> Any:
        return self.values[index], self.places[f"name {index * 39}"]


class Blocked(Made):
    """A list searched for whether a name is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.blocked = [f"user {k}" for k in range(20_000)]
        self.fast = frozenset(self.blocked)

    def __getitem__(self, index: int) -> Any:
        user = f"user {index * 50}"
        hidden = user in self.blocked
        return self.values[index], hidden

    def better(self, index: int) -> Any:
        return self.values[index], f"user {index * 50}" in self.fast


class Walked(Made):
    """A generator walked from its beginning to the sample."""

    def records(self) -> Iterator[int]:
        total = 0
        for k in range(LENGTH * 8):
            total += k % 7
            yield total

    def __init__(self) -> None:
        super().__init__()
        self.totals = [*self.records()]

    def __getitem__(self, index: int) -> Any:
        record = next(itertools.islice(self.records(), index * 8, None))
        return self.values[index], record

    def better(self, index: int) -> Any:
        return self.values[index], self.totals[index * 8]


class Scanned(Made):
    """Records gone through until the right one is met."""

    def __init__(self) -> None:
        super().__init__()
        self.records = [{"key": k, "age": k % 90} for k in range(8_000)]
        self.by_key = {each["key"]: each for each in self.records}

    def __getitem__(self, index: int) -> Any:
        age = 0
        for record in self.records:
            if record["key"] == index * 15:
                age = record["age"]
                break
        return self.values[index], age

    def better(self, index: int) -> Any:
        return self.values[index], self.by_key[index * 15]["age"]


class Grown(Made):
    """A tensor that grows by torch.cat, row by row."""

    def __getitem__(self, index: int) -> Any:
        rows = torch.empty(0, 64)
        for step in range(120):
            rows = torch.cat([rows, torch.from_numpy(self.values[(index + step) % LENGTH])[None]])
        return rows

    def better(self, index: int) -> Any:
        return torch.from_numpy(self.values[(index + np.arange(120)) % LENGTH])


class Pixels(Made):
    """A picture in a DataFrame read pixel by pixel."""

    def __init__(self) -> None:
        super().__init__()
        import pandas as pd

        self.pictures = pd.DataFrame(self.values)

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([self.pictures.iloc[index, k] for k in range(64)])

    def better(self, index: int) -> Any:
        return torch.from_numpy(self.values[index])


class Negatives(Made):
    """Negatives drawn one by one, until enough are none of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.owned = [{(k * 7 + n) % 5_000 for n in range(4_000)} for k in range(LENGTH)]
        self.free = [sorted({*range(5_000)} - owned) for owned in self.owned]

    def __getitem__(self, index: int) -> Any:
        drawn: list[int] = []
        while len(drawn) < 200:
            item = random.randrange(5_000)
            if item not in self.owned[index]:
                drawn.append(item)
        return torch.tensor(drawn)

    def better(self, index: int) -> Any:
        return torch.tensor(random.sample(self.free[index], 200))


class Histogram(Made):
    """Values counted one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.levels = np.random.default_rng(2).integers(0, 16, (LENGTH, 3_000))

    def __getitem__(self, index: int) -> Any:
        counts = np.zeros(16, np.int64)
        for level in self.levels[index]:
            counts[level] += 1
        return torch.from_numpy(counts)

    def better(self, index: int) -> Any:
        return torch.from_numpy(np.bincount(self.levels[index], minlength=16))


class ListOfArrays(Made):
    """A tensor made of a list of arrays."""

    def __getitem__(self, index: int) -> Any:
        rows = [self.values[(index + step) % LENGTH] for step in range(60)]
        return torch.tensor(rows)

    def better(self, index: int) -> Any:
        return torch.from_numpy(self.values[(index + np.arange(60)) % LENGTH])


class Logged(Made):
    """A line printed, and flushed, for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.log = (folder() / "log.txt").open("w")

    def __getitem__(self, index: int) -> Any:
        print("sample", index, self.values[index], file=self.log, flush=True)
        return self.values[index]

    def better(self, index: int) -> Any:
        return self.values[index]


class BackAndForth(Made):
    """An array made into a list, and the list into a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.pictures = np.random.default_rng(3).random((LENGTH, 4_096)).astype(np.float32)

    def __getitem__(self, index: int) -> Any:
        return torch.tensor(self.pictures[index].tolist())

    def better(self, index: int) -> Any:
        return torch.from_numpy(self.pictures[index])


class Pickled(Made):
    """A template copied through pickle for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.template = {f"key{k}": [k, {"x": k}] for k in range(800)}

    def __getitem__(self, index: int) -> Any:
        sample = pickle.loads(pickle.dumps(self.template))
        sample["index"] = index
        return self.values[index], len(sample)

    def better(self, index: int) -> Any:
        return self.values[index], len({**self.template, "index": index})


@cache
def shared() -> Any:
    return multiprocessing.Manager().list([np.zeros(3_000, np.float32) for _ in range(LENGTH)])


class Proxied(Made):
    """Samples in a list of a Manager's process."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = shared()
        self.own = list(self.rows)

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(self.rows[index])

    def better(self, index: int) -> Any:
        return torch.from_numpy(self.own[index])


@cache
def port() -> int:
    """A server on this machine that answers with a row of bytes."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            asked, _ = listening.accept()
            with asked:
                asked.recv(64)
                asked.sendall(b"x" * 4_096)

    threading.Thread(target=serve, daemon=True).start()
    return int(listening.getsockname()[1])


class Served(Made):
    """Samples asked for from a server on this machine."""

    def __init__(self) -> None:
        super().__init__()
        self.address = ("127.0.0.1", port())

    def asked(self, index: int) -> bytes:
        with socket.create_connection(self.address) as server:
            server.sendall(b"%d" % index)
            return b"".join(iter(lambda: server.recv(65_536), b""))

    def __getitem__(self, index: int) -> Any:
        row = self.asked(index)
        return torch.frombuffer(bytearray(row), dtype=torch.uint8)

    def better(self, index: int) -> Any:
        return torch.full((4_096,), 120, dtype=torch.uint8)


CASES = (
    planted("row-by-id", RowsById, "self.people.key == index", needs=("pandas",)),
    planted("place-in-list", PlaceInList, "self.names.index(key)"),
    planted("in-a-list", Blocked, "user in self.blocked"),
    planted("generator-walked", Walked, "self.records()"),
    planted("records-scanned", Scanned, "for record in self.records", held_out=True),
    planted("cat-in-a-loop", Grown, "torch.cat("),
    planted("pixels-of-a-frame", Pixels, ".iloc[index, k]", needs=("pandas",)),
    planted("negatives-singly", Negatives, "random.randrange"),
    planted("counted-singly", Histogram, "self.levels[index]", held_out=True),
    planted("tensor-of-arrays", ListOfArrays, "torch.tensor(rows)", held_out=True),
    planted("printed-each", Logged, "print("),
    planted("back-and-forth", BackAndForth, ".tolist()"),
    planted("copied-by-pickle", Pickled, "pickle.loads(", held_out=True),
    planted("managers-list", Proxied, "self.rows[index]"),
    planted("local-server", Served, "server.recv", "num-workers", held_out=True),
)
