"""Loops that talk back to their loader: what the loop or a fetch changes, when, and where it is
kept.

Named `talk/WHAT-WHEN-WORKERS`. All run bare, and tuned: as tuning decides, and with other settings
every two batches. What the loop changes, it changes with each batch from the first on, from the
middle of the second epoch on, once there, or between epochs.
"""

from __future__ import annotations

import collections
import itertools
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from ..catalogue import DECIDES, RESTLESS, Watch, program, say
from ..data import digest

LENGTH, BATCH, EPOCHS = 144, 4, 3
SAMPLE_S = 0.0004
PER_EPOCH = LENGTH // BATCH


class Samples(Dataset):
    """Each sample takes a moment; what it is made of is `read`."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        time.sleep(SAMPLE_S)
        return index, self.read(index)


# Places where the loop may change what the data set reads: data sets, and what the loop does at step
# k (`change`).


class Attribute(Samples):
    level = 0

    def __init__(self) -> None:
        self.level = 1

    def read(self, index: int) -> Any:
        return index * self.level

    def change(self, step: int) -> None:
        self.level += 1


class Scale:
    def __init__(self) -> None:
        self.factor = 1

    def __call__(self, value: int) -> int:
        return value * self.factor


class Transformed(Samples):
    def __init__(self) -> None:
        self.transforms = [Scale(), Scale()]

    def read(self, index: int) -> Any:
        for each in self.transforms:
            index = each(index)
        return index

    def change(self, step: int) -> None:
        self.transforms[1].factor += 1


class Classed(Samples):
    rate = 1

    def read(self, index: int) -> Any:
        return index * Classed.rate

    def change(self, step: int) -> None:
        Classed.rate += 1


class Options:  # no method of it tells whose code it is
    rate = 1


class ByOptions(Samples):
    def read(self, index: int) -> Any:
        return index * Options.rate

    def change(self, step: int) -> None:
        Options.rate += 1


RATE = 1


class Globalled(Samples):
    def read(self, index: int) -> Any:
        return scaled(index)

    def change(self, step: int) -> None:
        global RATE
        RATE += 1


def scaled(value: int) -> int:
    return value * RATE


class Calling(Samples):
    def __init__(self, function: Callable[[int], Any]) -> None:
        self.function = function

    def read(self, index: int) -> Any:
        return self.function(index)


def closure() -> Any:
    level = 1

    def read(index: int) -> int:
        return index * level

    def change(step: int) -> None:
        nonlocal level
        level += 1

    return Calling(read), change


def default() -> Any:
    held = {"level": 1}

    def read(index: int, held: dict[str, int] = held) -> int:
        return index * held["level"]

    def change(step: int) -> None:
        held["level"] += 1

    return Calling(read), change


class Listed(Samples):
    def __init__(self) -> None:
        self.items = [1] * 300

    def read(self, index: int) -> Any:
        return self.items[100 + index]

    def change(self, step: int) -> None:
        self.items[100 + step % LENGTH] += 1


class Grown(Samples):
    def __init__(self) -> None:
        self.seen: Any = collections.deque(maxlen=1000)

    def read(self, index: int) -> Any:
        return index + len(self.seen)

    def change(self, step: int) -> None:
        self.seen.append(step)


class Annotated(Samples):
    def __init__(self) -> None:
        self.annotations = [{"label": index, "box": [0, 0, index]} for index in range(LENGTH)]

    def read(self, index: int) -> Any:
        return self.annotations[index]["label"], tuple(self.annotations[index]["box"])

    def change(self, step: int) -> None:
        for each in self.annotations[:: 3 + step % 3]:
            each["label"] += 1
            each["box"][0] += 1


class Arrays(Samples):
    def __init__(self, size: int = LENGTH) -> None:
        self.values = np.arange(size)
        self.tensor = torch.arange(size)
        self.more = torch.arange(size)

    def read(self, index: int) -> Any:
        return int(self.values[index]), int(self.tensor[index]), int(self.more[index])

    def change(self, step: int) -> None:
        self.values[step % 5 : LENGTH : 5] += 1


class ByTensor(Arrays):
    def change(self, step: int) -> None:
        self.tensor[step % 5 :: 5] += 1


class ByDataOfTensor(Arrays):
    def change(self, step: int) -> None:
        self.more.data[step % 5 :: 5] += 1


class ByModel(Samples):
    def __init__(self) -> None:
        self.model = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(self.model.weight)

    def read(self, index: int) -> Any:
        with torch.no_grad():
            return self.model(torch.tensor([float(index)]))

    def change(self, step: int) -> None:
        optimizer = torch.optim.SGD(self.model.parameters(), 0.01)
        optimizer.zero_grad()
        self.model(torch.ones(1, 1)).sum().backward()
        optimizer.step()


class OfEnvironment(Samples):
    def read(self, index: int) -> Any:
        return index * int(os.environ.get("TALKBACK_RATE", "1"))

    def change(self, step: int) -> None:
        os.environ["TALKBACK_RATE"] = str(step)


class OfFile(Samples):
    def __init__(self) -> None:
        self.change(1)

    def read(self, index: int) -> Any:
        with open("level") as file:
            return index * int(file.read())

    def change(self, step: int) -> None:
        with open("level", "w") as file:
            file.write(str(step))


class Slotted:
    __slots__ = ("level",)

    def __init__(self) -> None:
        self.level = 1


class WithSlots(Samples):
    def __init__(self) -> None:
        self.held = Slotted()

    def read(self, index: int) -> Any:
        return index * self.held.level

    def change(self, step: int) -> None:
        self.held.level += 1


class Reseeded(Samples):
    def __init__(self) -> None:
        self.seed = random.Random(1)

    def read(self, index: int) -> Any:
        return random.Random(hash((self.seed.getstate()[1][:3], index))).random()

    def change(self, step: int) -> None:
        self.seed.seed(step)


PLACES: dict[str, Callable[[], Any]] = {
    "attribute": Attribute,
    "transform": Transformed,
    "class": Classed,
    "options": ByOptions,
    "global": Globalled,
    "closure": closure,
    "default": default,
    "item": Listed,
    "appended": Grown,
    "annotation": Annotated,
    "array": Arrays,
    "large-array": lambda: Arrays(200_000),
    "tensor": ByTensor,
    "data": ByDataOfTensor,
    "weights": ByModel,
    "environment": OfEnvironment,
    "file": OfFile,
    "slot": WithSlots,
    "generator": Reseeded,
}

# When the loop changes it: (step, epoch) → whether, after a batch; None for between epochs.
WHEN: dict[str, Callable[[int], bool] | None] = {
    "each": lambda step: True,
    "late": lambda step: step >= PER_EPOCH * 3 // 2,
    "once": lambda step: step == PER_EPOCH * 3 // 2,
    "epoch": None,
}


def loop_changes(
    make: Callable[[], Any], when: Callable[[int], bool] | None, workers: int
) -> Callable[[Watch], None]:
    def run(watch: Watch) -> None:
        made = make()
        data, change = made if type(made) is tuple else (made, made.change)
        loader = watch(DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers))
        step = 0
        for _ in range(EPOCHS):
            for batch in loader:
                say("batch", digest(batch))
                step += 1
                if when is not None and when(step):
                    change(step)
            if when is None:
                change(step)

    return run


for _place, _make in PLACES.items():
    for _when, _at in WHEN.items():
        # A file that workers read while the loop writes it: what bare workers read is chance.
        for _workers in (0, 2) if _place != "file" else (0,):
            program(f"talk/{_place}-{_when}-{_workers}", watched=(RESTLESS, DECIDES))(
                loop_changes(_make, _at, _workers)
            )


# What a fetch changes.


class Counting(Samples):
    """Its samples do not show it."""

    count = 0

    def read(self, index: int) -> Any:
        self.count += 1
        return index


class Numbered(Counting):
    def read(self, index: int) -> Any:
        return super().read(index), self.count


class CountedInClass(Samples):
    count = 0

    def read(self, index: int) -> Any:
        CountedInClass.count += 1
        return index


class Remembering(Samples):
    def __init__(self) -> None:
        self.kept: dict[int, int] = {}

    def read(self, index: int) -> Any:
        if index not in self.kept:
            self.kept[index] = index * index
        return self.kept[index]


class Drawing(Samples):
    """Random augmentation, of every kind of generator."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.torchs = torch.Generator().manual_seed(5)
        self.numpys = np.random.default_rng(5)
        self.pythons = random.Random(5)

    def read(self, index: int) -> Any:
        if self.kind == "late" and index < LENGTH - 12:
            return 0.0
        return {
            "torch": lambda: torch.rand(1).item(),
            "numpy": np.random.rand,
            "python": random.random,
            "late": lambda: torch.rand(1).item(),
            "own-torch": lambda: torch.rand(1, generator=self.torchs).item(),
            "own-numpy": self.numpys.random,
            "own-python": self.pythons.random,
        }[self.kind]()


class ReadingLines(Samples):
    def __init__(self) -> None:
        with open("lines", "w") as file:
            file.writelines(f"line {k}\n" for k in range(LENGTH))
        self.file = open("lines")  # noqa: SIM115

    def read(self, index: int) -> Any:
        line = self.file.readline()
        if not line:
            self.file.seek(0)
            line = self.file.readline()
        return line


class Stepping(Samples):
    def __init__(self) -> None:
        self.steps = itertools.count()

    def read(self, index: int) -> Any:
        return next(self.steps)


class Logging(Samples):
    def __init__(self) -> None:
        self.file = open("log", "w")  # noqa: SIM115

    def read(self, index: int) -> Any:
        self.file.write(f"{index}\n")
        return index


class LoggingLater(Samples):
    """Opens its file at first use; what is written stays in a buffer for a while."""

    file = None

    def read(self, index: int) -> Any:
        if self.file is None:
            self.file = open("log", "a")  # noqa: SIM115
        self.file.write(f"{index}\n")
        return index


class LoggingEach(Samples):
    def read(self, index: int) -> Any:
        with open("log", "a") as file:
            file.write(f"{index}\n")
        return index


class Printing(Samples):
    def read(self, index: int) -> Any:
        if index % 16 == 0:
            print("sample", index)
        return index


class InSqlite(Samples):
    def __init__(self) -> None:
        self.base = sqlite3.connect("base")
        self.base.execute("create table samples (k integer, times integer)")
        self.base.executemany("insert into samples values (?, 0)", [(k,) for k in range(LENGTH)])
        self.base.commit()

    def read(self, index: int) -> Any:
        self.base.execute("update samples set times = times + 1 where k = ?", (index,))
        self.base.commit()
        return self.base.execute("select times from samples where k = ?", (index,)).fetchone()[0]


class InArray(Samples):
    def __init__(self) -> None:
        self.seen = np.zeros(LENGTH, int)

    def read(self, index: int) -> Any:
        self.seen[index] += 1
        return index


class InEnvironment(Samples):
    def read(self, index: int) -> Any:
        os.environ["TALKBACK_LAST"] = str(index)
        return index


class Shared(Samples):
    def __init__(self) -> None:
        self.count = torch.multiprocessing.get_context("fork").Value("i", 0)

    def read(self, index: int) -> Any:
        with self.count.get_lock():
            self.count.value += 1
        return index


def _lines(name: str) -> Any:
    if not os.path.exists(name):
        return None
    with open(name) as file:
        return sorted(file.read().split("\n"))


def _written(data: Any) -> None:
    held = vars(data)
    say(
        "count",
        [
            held.get("count") if isinstance(held.get("count"), int) else None,
            type(data).__dict__.get("count"),
        ],
    )
    if isinstance(data, Shared):
        say("shared", data.count.value)
    if isinstance(data, Logging | LoggingLater) and data.file is not None:
        data.file.close()
    if isinstance(data, InSqlite):
        say("base", data.base.execute("select k, times from samples").fetchall())
    if isinstance(data, InArray):
        say("seen", data.seen.tolist())
    if isinstance(data, Remembering):
        say("kept", sorted(data.kept))
    if isinstance(data, Drawing):
        say(
            "own streams",
            [str(data.pythons.getstate()), digest(data.torchs.get_state()), data.numpys.random()],
        )
    say("log", _lines("log"))
    say("last", os.environ.get("TALKBACK_LAST"))


FETCHES: dict[str, Callable[[], Any]] = {
    "counting": Counting,
    "numbered": Numbered,
    "counted-in-class": CountedInClass,
    "remembering": Remembering,
    **{f"draws-{kind}": (lambda kind=kind: Drawing(kind)) for kind in
       ("torch", "numpy", "python", "late", "own-torch", "own-numpy", "own-python")},
    "reading-lines": ReadingLines,
    "stepping": Stepping,
    "logging": Logging,
    "logging-later": LoggingLater,
    "logging-each": LoggingEach,
    "printing": Printing,
    "in-sqlite": InSqlite,
    "in-array": InArray,
    "in-environment": InEnvironment,
    "shared": Shared,
}  # fmt: skip
NOT_IN_WORKERS = (
    "in-sqlite",
    "logging",
    "logging-later",
    "draws-own-torch",
)  # wrong, or not to be sent, in bare workers too


def fetch_changes(make: Callable[[], Any], workers: int) -> Callable[[Watch], None]:
    def run(watch: Watch) -> None:
        data = make()
        loader = watch(DataLoader(data, batch_size=BATCH, shuffle=True, num_workers=workers))
        for _ in range(EPOCHS):
            for batch in loader:
                say("batch", digest(batch))
        _written(data)

    return run


for _name, _data in FETCHES.items():
    for _workers in (0, 2):
        if not _workers or _name not in NOT_IN_WORKERS:
            program(f"talk/fetch-{_name}-{_workers}", watched=(RESTLESS, DECIDES))(
                fetch_changes(_data, _workers)
            )


# Collate functions.


class Cutting:
    """Cuts to a length that the loop raises, as curricula of sequences do."""

    def __init__(self) -> None:
        self.length = 1

    def __call__(self, samples: list[Any]) -> Any:
        return [(index, list(range(index))[: self.length]) for index, _ in samples]


class Plain(Samples):
    def read(self, index: int) -> Any:
        return index


class Batched:
    """Counts the batches that it makes."""

    made = 0

    def __call__(self, samples: list[Any]) -> Any:
        self.made += 1
        return torch.tensor([index for index, _ in samples]), self.made


def workers_of(*names: str) -> Callable[[Callable[[Watch, int], None]], None]:
    """The same program without workers and with two."""

    def declare(function: Callable[[Watch, int], None]) -> None:
        for name in names:
            for workers in (0, 2):

                def run(watch: Watch, workers: int = workers) -> None:
                    function(watch, workers)

                run.__module__ = function.__module__
                program(f"talk/{name}-{workers}", watched=(RESTLESS, DECIDES))(run)

    return declare


def going(loader: Any, after: Callable[[int, Any], None] = lambda step, batch: None) -> None:
    step = 0
    for _ in range(EPOCHS):
        for batch in loader:
            say("batch", digest(batch))
            step += 1
            after(step, batch)


@workers_of("collate-raised")
def collate_raised(watch: Watch, workers: int) -> None:
    cutting = Cutting()

    def longer(step: int, batch: Any) -> None:
        cutting.length += step > 40

    going(watch(DataLoader(Plain(), BATCH, True, num_workers=workers, collate_fn=cutting)), longer)


@workers_of("collate-counts")
def collate_counts(watch: Watch, workers: int) -> None:
    counting = Batched()
    going(watch(DataLoader(Plain(), BATCH, True, num_workers=workers, collate_fn=counting)))
    say("made", counting.made)


# Samplers.


class Mining(Sampler[int]):
    """Draws hard samples more often: each batch anew by weights that the loop writes."""

    def __init__(self) -> None:
        self.weights = torch.ones(LENGTH)
        self.draw = torch.Generator().manual_seed(3)

    def __len__(self) -> int:
        return PER_EPOCH

    def __iter__(self) -> Iterator[Any]:
        for _ in range(PER_EPOCH):
            yield torch.multinomial(self.weights, BATCH, generator=self.draw).tolist()


@workers_of("mining")
def mining(watch: Watch, workers: int) -> None:
    sampler = Mining()

    def write(step: int, batch: Any) -> None:
        sampler.weights[batch[0]] += torch.rand(BATCH)

    going(watch(DataLoader(Plain(), batch_sampler=sampler, num_workers=workers)), write)


LOSSES: list[float] = []


class Adapting(BatchSampler):
    """Makes batches larger as the loss falls."""

    def __iter__(self) -> Iterator[Any]:
        order = iter(self.sampler)
        while batch := list(
            itertools.islice(order, self.batch_size + sum(loss < 0.5 for loss in LOSSES[-3:]))
        ):
            yield batch


@workers_of("adapting")
def adapting(watch: Watch, workers: int) -> None:
    LOSSES.clear()
    sampler = Adapting(RandomSampler(range(LENGTH)), BATCH, False)
    going(
        watch(DataLoader(Plain(), batch_sampler=sampler, num_workers=workers)),
        lambda step, batch: LOSSES.append(float(torch.rand(1))),
    )


class Curriculum(Sampler[int]):
    level = 24

    def __len__(self) -> int:
        return LENGTH

    def __iter__(self) -> Iterator[int]:
        for k in range(LENGTH):
            yield k % self.level


@workers_of("curriculum")
def curriculum(watch: Watch, workers: int) -> None:
    sampler = Curriculum()

    def harder(step: int, batch: Any) -> None:
        sampler.level = 24 + step // 4

    going(watch(DataLoader(Plain(), BATCH, sampler=sampler, num_workers=workers)), harder)


@workers_of("curriculum-late")
def curriculum_late(watch: Watch, workers: int) -> None:
    sampler = Curriculum()

    def harder(step: int, batch: Any) -> None:
        if step > 55:
            sampler.level = step

    going(watch(DataLoader(Plain(), BATCH, sampler=sampler, num_workers=workers)), harder)


class Resumable(Sampler[int]):
    """Knows how far it is, for checkpoints, and which epoch it is in."""

    position = epoch = 0

    def __len__(self) -> int:
        return LENGTH

    def __iter__(self) -> Iterator[int]:
        while self.position < LENGTH:
            yield (self.position * 7 + self.epoch) % LENGTH
            self.position += 1
        self.position = 0
        self.epoch += 1


@workers_of("resumable")
def resumable(watch: Watch, workers: int) -> None:
    sampler = Resumable()
    loader = watch(DataLoader(Plain(), BATCH, sampler=sampler, num_workers=workers))
    going(loader, lambda step, batch: say("position", [sampler.epoch, sampler.position]))


class DrawingSampler(Sampler[int]):
    """Draws from the stream of the training itself."""

    def __len__(self) -> int:
        return LENGTH

    def __iter__(self) -> Iterator[int]:
        for _ in range(LENGTH):
            yield int(torch.randint(LENGTH, ()))


@workers_of("sampler-draws")
def sampler_draws(watch: Watch, workers: int) -> None:
    loader = watch(DataLoader(Plain(), BATCH, sampler=DrawingSampler(), num_workers=workers))
    going(loader, lambda step, batch: say("noise", torch.rand(1).item()))


class Bucketing(Sampler[Any]):
    """Its length makes the batches."""

    asked = 0

    def __len__(self) -> int:
        self.asked += 1
        self.batches = [torch.randperm(LENGTH)[:BATCH].tolist() for _ in range(PER_EPOCH)]
        return len(self.batches)

    def __iter__(self) -> Iterator[Any]:
        for _ in range(PER_EPOCH):
            yield torch.randperm(LENGTH)[:BATCH].tolist()


@workers_of("bucketing")
def bucketing(watch: Watch, workers: int) -> None:
    sampler = Bucketing()
    going(watch(DataLoader(Plain(), batch_sampler=sampler, num_workers=workers)))
    say("asked", sampler.asked)


class Eager(Sampler[int]):
    """Draws when it is asked for an iterator, not when that is asked for an index."""

    def __len__(self) -> int:
        return LENGTH

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(LENGTH).tolist())


@workers_of("eager-sampler")
def eager_sampler(watch: Watch, workers: int) -> None:
    loader = watch(
        DataLoader(Plain(), batch_sampler=BatchSampler(Eager(), BATCH, False), num_workers=workers)
    )
    single = watch(DataLoader(Plain(), None, sampler=Eager(), num_workers=workers))
    for _ in range(EPOCHS):
        for batch, one in zip(loader, single, strict=False):
            say("batch", digest([batch, one]))


@workers_of("subset-sampler")
def subset_sampler(watch: Watch, workers: int) -> None:
    """Active learning: samples are labelled between rounds."""
    sampler = SubsetRandomSampler(list(range(60)))
    loader = watch(DataLoader(Plain(), BATCH, sampler=sampler, num_workers=workers))
    for epoch in range(EPOCHS):
        for batch in loader:
            say("batch", digest(batch))
        sampler.indices.extend(range(60 + 20 * epoch, 80 + 20 * epoch))


@workers_of("weights")
def weights(watch: Watch, workers: int) -> None:
    sampler = WeightedRandomSampler(torch.ones(LENGTH), LENGTH)

    def write(step: int, batch: Any) -> None:
        sampler.weights[batch[0]] += 1

    going(watch(DataLoader(Plain(), BATCH, sampler=sampler, num_workers=workers)), write)


@workers_of("subset")
def subset(watch: Watch, workers: int) -> None:
    """A subset whose indices the loop swaps."""
    part = Subset(Plain(), list(range(LENGTH)))

    def swap(step: int, batch: Any) -> None:
        if step > 50:
            part.indices[0], part.indices[step % LENGTH] = (
                part.indices[step % LENGTH],
                part.indices[0],
            )

    going(watch(DataLoader(part, BATCH, num_workers=workers)), swap)


@workers_of("pseudo-labels")
def pseudo_labels(watch: Watch, workers: int) -> None:
    """From the second epoch on the loop writes its own labels into the data."""
    data = Arrays()

    def label(step: int, batch: Any) -> None:
        if step > PER_EPOCH:
            data.values[batch[0]] = step

    going(watch(DataLoader(ConcatDataset([data]), BATCH, True, num_workers=workers)), label)


class Replay(Samples):
    def __init__(self) -> None:
        self.buffer: list[int] = list(range(LENGTH))
        self.at = 0

    def read(self, index: int) -> Any:
        return self.buffer[index]

    def push(self, value: int) -> None:
        self.buffer[self.at] = value
        self.at = (self.at + 1) % LENGTH


@workers_of("replay")
def replay(watch: Watch, workers: int) -> None:
    data = Replay()
    going(
        watch(DataLoader(data, BATCH, True, num_workers=workers)),
        lambda step, batch: data.push(1000 + step),
    )


# Several loaders, and loops that are not `for batch in loader`.


def _plain(workers: int, **more: Any) -> DataLoader:
    return DataLoader(Plain(), BATCH, shuffle=True, num_workers=workers, **more)


@workers_of("zipped")
def zipped(watch: Watch, workers: int) -> None:
    labelled, unlabelled = watch(_plain(workers)), watch(_plain(workers))
    for _ in range(EPOCHS):
        for one, other in zip(labelled, unlabelled, strict=False):
            say("batch", digest([one, other]))


@workers_of("zipped-unlike")
def zipped_unlike(watch: Watch, workers: int) -> None:
    labelled, unlabelled = watch(_plain(workers)), watch(_plain(2 - workers))
    for _ in range(EPOCHS):
        for one, other in zip(labelled, unlabelled, strict=False):
            say("batch", digest([one, other]))


@workers_of("fixmatch")
def fixmatch(watch: Watch, workers: int) -> None:
    """Two iterators, begun anew as each comes to its end; steps are counted."""
    labelled = watch(DataLoader(Subset(Plain(), range(60)), BATCH, True, num_workers=workers))
    unlabelled = watch(_plain(workers))
    ones, others = iter(labelled), iter(unlabelled)
    weights = torch.rand(3)
    for _ in range(EPOCHS * PER_EPOCH):
        try:
            one = next(ones)
        except StopIteration:
            ones = iter(labelled)
            one = next(ones)
        try:
            other = next(others)
        except StopIteration:
            others = iter(unlabelled)
            other = next(others)
        say("batch", [digest([one, other]), torch.rand(1).item(), weights.tolist()])


@workers_of("model-after-iter")
def model_after_iter(watch: Watch, workers: int) -> None:
    loader = watch(_plain(workers))
    for _ in range(EPOCHS):
        batches = iter(loader)
        model = torch.nn.Linear(2, 2)
        say("model", digest(list(model.parameters())))
        for batch in batches:
            say("batch", digest(batch))


def _one_generator() -> torch.Generator:
    return torch.Generator().manual_seed(11)


@workers_of("steps-counted")
def steps_counted(watch: Watch, workers: int) -> None:
    """It never asks past the last batch."""
    loader = watch(_plain(workers, generator=_one_generator()))
    for _ in range(EPOCHS):
        batches = iter(loader)
        for _ in range(len(loader)):
            say("batch", digest(next(batches)))
    say("generator", digest(loader.generator.get_state()))


@workers_of("one-generator")
def one_generator(watch: Watch, workers: int) -> None:
    """Two loaders and the loop draw from one generator."""
    drawn_from = _one_generator()
    ones, others = (watch(_plain(workers, generator=drawn_from)) for _ in range(2))
    for _ in range(EPOCHS):
        for one, other in zip(ones, others, strict=False):
            say("batch", [digest([one, other]), torch.rand(1, generator=drawn_from).item()])


@workers_of("left-early")
def left_early(watch: Watch, workers: int) -> None:
    drawn_from = _one_generator()
    loader = watch(_plain(workers, generator=drawn_from))
    for most in (30, 17, 36, 5):
        for batch in itertools.islice(loader, most):
            say("batch", [digest(batch), torch.rand(1).item()])
    say("generator", digest(drawn_from.get_state()))


@workers_of("replacement")
def replacement(watch: Watch, workers: int) -> None:
    drawn_from = _one_generator()
    sampler = RandomSampler(range(LENGTH), replacement=True, generator=drawn_from)
    loader = watch(DataLoader(Plain(), BATCH, sampler=sampler, num_workers=workers))
    going(loader, lambda step, batch: say("noise", torch.rand(1, generator=drawn_from).item()))


@workers_of("noise")
def noise(watch: Watch, workers: int) -> None:
    """A GAN: the loop draws from the global stream with each batch, and a validation loader is
    iterated in between."""
    loader, validation = watch(_plain(workers)), watch(_plain(workers))

    def step_(step: int, batch: Any) -> None:
        say("noise", torch.randn(3).tolist())
        if step % 30 == 0:
            for held_out in validation:
                say("held out", digest(held_out))

    going(loader, step_)


@workers_of("rebuilt")
def rebuilt(watch: Watch, workers: int) -> None:
    """A loader anew for each epoch, of data that is each time another."""
    for epoch in range(EPOCHS + 1):
        data = Arrays()
        data.change(epoch)
        for batch in watch(DataLoader(data, BATCH, True, num_workers=workers)):
            say("batch", [digest(batch), torch.rand(1).item()])


@workers_of("endless")
def endless(watch: Watch, workers: int) -> None:
    loader = watch(_plain(workers))
    batches = itertools.chain.from_iterable(iter(lambda: loader, None))
    for _ in range(EPOCHS * PER_EPOCH + 7):
        say("batch", [digest(next(batches)), torch.rand(1).item()])


@workers_of("set-epoch")
def set_epoch(watch: Watch, workers: int) -> None:
    """As usual: the data set is told the epoch between epochs, and workers are kept."""
    data = Attribute()
    loader = watch(
        DataLoader(data, BATCH, True, num_workers=workers, persistent_workers=workers > 0)
    )
    for epoch in range(EPOCHS + 1):
        data.level = epoch + 1
        for batch in loader:
            say("batch", digest(batch))


@workers_of("counted-batches")
def counted_batches(watch: Watch, workers: int) -> None:
    loader = watch(_plain(workers))
    for _ in range(EPOCHS):
        batches = iter(loader)
        for batch in batches:
            say("batch", [digest(batch), batches._num_yielded, len(batches), len(loader)])


@workers_of("child-trains-on")
def child_trains_on(watch: Watch, workers: int) -> None:
    loader = watch(_plain(workers))
    for epoch in range(EPOCHS):
        for number, batch in enumerate(loader):
            say("batch", digest(batch))
            if number == 25 and epoch == 1:
                child = os.fork()
                if child == 0:
                    torch.manual_seed(5)
                    for again in loader:
                        say("of child", digest(again))
                    os._exit(7)
                say("child", os.waitpid(child, 0)[1])


# Batches that are not what a worker could send.


class Odd:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.weight = torch.ones(2, requires_grad=True)

    def __call__(self, samples: list[Any]) -> Any:
        numbers = torch.tensor([index for index, _ in samples])
        return numbers, {
            "history": lambda: self.weight * numbers.float().mean(),
            "lock": threading.Lock,
            "function": lambda: lambda: numbers,
            "stepped": lambda: (number for number in numbers.tolist()),
        }[self.kind]()


for _kind in ("history", "lock", "function", "stepped"):

    def _odd(watch: Watch, kind: str = _kind) -> None:
        loader = watch(DataLoader(Plain(), BATCH, True, collate_fn=Odd(kind)))
        for _ in range(EPOCHS):
            for numbers, _ in loader:
                say("batch", digest(numbers))

    program(f"talk/odd-{_kind}-0", watched=(RESTLESS, DECIDES))(_odd)


class Views(Samples):
    """Samples are views of one tensor."""

    def __init__(self) -> None:
        self.values = torch.arange(LENGTH * 4.0).reshape(LENGTH, 4)

    def __getitem__(self, index: int) -> Any:
        time.sleep(SAMPLE_S * BATCH)
        return self.values[index]


@workers_of("in-place")
def in_place(watch: Watch, workers: int) -> None:
    """The loop normalises its batches in place, which are the data set's own memory without
    workers."""
    data = Views()
    loader = watch(DataLoader(data, None, num_workers=workers))
    step = 0
    for _ in range(EPOCHS):
        for batch in loader:
            say("batch", digest(batch))
            step += 1
            if step > 60:
                batch.mul_(0.5)
    say("data", digest(data.values))


class OneBuffer(Samples):
    def __init__(self) -> None:
        self.buffer = torch.zeros(4)

    def __getitem__(self, index: int) -> Any:
        time.sleep(SAMPLE_S * BATCH)
        self.buffer.fill_(index)
        return self.buffer


@program(
    "talk/one-buffer-0", watched=(RESTLESS, DECIDES)
)  # in bare workers it may be filled again before it is sent
def one_buffer(watch: Watch) -> None:
    data = OneBuffer()
    kept = []
    for batch in watch(DataLoader(data, None, sampler=SequentialSampler(range(LENGTH)))):
        kept.append(batch)
        say("batch", digest(kept[-2:]))
    say("buffer", digest(data.buffer))


class Failing(Samples):
    """Some samples cannot be read, which the loop passes over."""

    def read(self, index: int) -> Any:
        if index % 29 == 3:
            raise ValueError(f"sample {index} is damaged")
        return index


def passes_over_errors(sampler: Callable[[], Any], workers: int) -> Callable[[Watch], None]:
    def run(watch: Watch) -> None:
        loader = watch(DataLoader(Failing(), BATCH, sampler=sampler(), num_workers=workers))
        for _ in range(EPOCHS):
            batches = iter(loader)
            while True:
                try:
                    say("batch", digest(next(batches)))
                except StopIteration:
                    break
                except ValueError as error:
                    say("error", str(error).splitlines()[-1])

    return run


SAMPLERS: dict[str, Callable[[], Any]] = {
    "random": lambda: RandomSampler(range(LENGTH)),
    "resumable": Resumable,
}
for _name, _sampler in SAMPLERS.items():
    for _workers in (0, 2):
        program(f"talk/errors-passed-{_name}-{_workers}", watched=(RESTLESS, DECIDES))(
            passes_over_errors(_sampler, _workers)
        )
