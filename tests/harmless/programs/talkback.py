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
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
)

from ..catalogue import DECIDES, RESTLESS, Watch, program, say
from ..data import digest

LENGTH, BATCH, EPOCHS = 144, 4, 3
SAMPLE_S = 0.0004
PER_EPOCH = LENGTH // BATCH

After = Callable[[int, Any], Any]  # what the loop does with its so manieth batch


class Samples(Dataset):
    """Each sample takes a moment; what it is made of is `read`. `held`: its attributes."""

    def __init__(self, **held: Any) -> None:
        vars(self).update(held)

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        time.sleep(SAMPLE_S)
        return index, self.read(index)

    def read(self, index: int) -> Any:
        return index


def going(loader: Any, after: After = lambda step, batch: None) -> None:
    """All epochs; what the loop does after each batch."""
    step = 0
    for _ in range(EPOCHS):
        for batch in loader:
            say("batch", digest(batch))
            step += 1
            after(step, batch)


def shuffled(data: Any, workers: int, **more: Any) -> DataLoader:
    return DataLoader(data, BATCH, shuffle=True, num_workers=workers, **more)


def talks(name: str, run: Callable[..., None], *workers: int) -> None:
    """A program for each number of workers."""
    for number in workers:

        def watched(watch: Watch, number: int = number) -> None:
            run(watch, number)

        watched.__module__ = getattr(run, "func", run).__module__
        program(f"talk/{name}-{number}", watched=(RESTLESS, DECIDES))(watched)


def both(run: Callable[[Watch, int], None]) -> None:
    """The same program, named as the function, without workers and with two."""
    talks(run.__name__.replace("_", "-"), run, 0, 2)


# Places where the loop may change what the data set reads: data sets, and what the loop does at step
# k (`change`).


class Attribute(Samples):
    level = 0

    def read(self, index: int) -> Any:
        return index * self.level

    def change(self, step: int) -> None:
        self.level += 1


class Scale:
    factor = 1

    def __call__(self, value: int) -> int:
        return value * self.factor


class Transformed(Samples):
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
    def read(self, index: int) -> Any:
        return self.function(index)


def closure() -> Any:
    level = 1

    def read(index: int) -> int:
        return index * level

    def change(step: int) -> None:
        nonlocal level
        level += 1

    return Calling(function=read), change


class Listed(Samples):
    def read(self, index: int) -> Any:
        return self.items[100 + index]

    def change(self, step: int) -> None:
        self.items[100 + step % LENGTH] += 1


class Grown(Samples):
    def read(self, index: int) -> Any:
        return index + len(self.seen)

    def change(self, step: int) -> None:
        self.seen.append(step)


class Arrays(Samples):
    def __init__(self, size: int = LENGTH) -> None:
        self.values = np.arange(size)
        self.tensor = torch.arange(size)

    def read(self, index: int) -> Any:
        return int(self.values[index]), int(self.tensor[index])

    def change(self, step: int) -> None:
        self.values[step % 5 : LENGTH : 5] += 1


class ByTensor(Arrays):
    def change(self, step: int) -> None:
        self.tensor[step % 5 :: 5] += 1


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


class Reseeded(Samples):
    def read(self, index: int) -> Any:
        return random.Random(hash((self.seed.getstate()[1][:3], index))).random()

    def change(self, step: int) -> None:
        self.seed.seed(step)


PLACES: dict[str, Callable[[], Any]] = {
    "attribute": lambda: Attribute(level=1),
    "transform": lambda: Transformed(transforms=[Scale(), Scale()]),
    "class": Classed,
    "options": ByOptions,
    "global": Globalled,
    "closure": closure,
    "item": lambda: Listed(items=[1] * 300),
    "appended": lambda: Grown(seen=collections.deque(maxlen=1000)),
    "large-array": lambda: Arrays(200_000),
    "tensor": ByTensor,
    "weights": ByModel,
    "environment": OfEnvironment,
    "file": OfFile,
    "generator": lambda: Reseeded(seed=random.Random(1)),
}

# When the loop changes it: at which steps, after a batch, or at ends of epochs.
MIDDLE = PER_EPOCH * 3 // 2
WHEN: dict[str, Callable[[int], bool]] = {
    "each": lambda step: True,
    "late": lambda step: step >= MIDDLE,
    "once": lambda step: step == MIDDLE,
}


def loop_changes(make: Callable[[], Any], when: str, watch: Watch, workers: int) -> None:
    made = make()
    data, change = made if type(made) is tuple else (made, made.change)
    loader = watch(shuffled(data, workers))
    step = 0
    for _ in range(EPOCHS):
        for batch in loader:
            say("batch", digest(batch))
            step += 1
            if when != "epoch" and WHEN[when](step):
                change(step)
        if when == "epoch":
            change(step)


for _number, (_place, _make) in enumerate(PLACES.items()):
    for _when in (*WHEN, "epoch"):
        # By turns without workers and with. A file that workers read while the loop writes it: what
        # bare workers read is chance.
        _number += 1
        _workers = _number % 2 * 2 if _place != "file" else 0
        talks(f"{_place}-{_when}", partial(loop_changes, _make, _when), _workers)


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


KINDS_DRAWN = ("torch", "numpy", "python", "late", "own-torch", "own-numpy", "own-python")


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
    def read(self, index: int) -> Any:
        return next(self.steps)


class Logging(Samples):
    def read(self, index: int) -> Any:
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


def _written(data: Any) -> None:
    held = vars(data).get("count")
    say("count", [held if isinstance(held, int) else None, type(data).__dict__.get("count")])
    if isinstance(data, Shared):
        say("shared", data.count.value)
    if isinstance(data, Logging):
        data.file.close()
    if isinstance(data, InSqlite):
        say("base", data.base.execute("select k, times from samples").fetchall())
    if isinstance(data, InArray):
        say("seen", data.seen.tolist())
    if isinstance(data, Remembering):
        say("kept", sorted(data.kept))
    if isinstance(data, Drawing):
        drawn = digest(data.torchs.get_state()), data.numpys.random()
        say("own streams", [str(data.pythons.getstate()), *drawn])
    log = None
    if os.path.exists("log"):
        with open("log") as file:
            log = sorted(file.read().split("\n"))
    say("log", log)
    say("last", os.environ.get("TALKBACK_LAST"))


FETCHES: dict[str, Callable[[], Any]] = {
    "counting": Counting,
    "numbered": Numbered,
    "counted-in-class": CountedInClass,
    "remembering": lambda: Remembering(kept={}),
    **{f"draws-{kind}": partial(Drawing, kind) for kind in KINDS_DRAWN},
    "reading-lines": ReadingLines,
    "stepping": lambda: Stepping(steps=itertools.count()),
    "logging": lambda: Logging(file=open("log", "w")),  # noqa: SIM115
    "logging-each": LoggingEach,
    "printing": Printing,
    "in-sqlite": InSqlite,
    "in-array": lambda: InArray(seen=np.zeros(LENGTH, int)),
    "in-environment": InEnvironment,
    "shared": Shared,
}
# Wrong, or not to be sent, in bare workers too.
NOT_IN_WORKERS = ("in-sqlite", "logging", "draws-own-torch")


def fetch_changes(make: Callable[[], Any], watch: Watch, workers: int) -> None:
    data = make()
    going(watch(shuffled(data, workers)))
    _written(data)


for _name, _make in FETCHES.items():
    _workers = (0,) if _name in NOT_IN_WORKERS else (0, 2)
    talks(f"fetch-{_name}", partial(fetch_changes, _make), *_workers)


# Collate functions.


class Cutting:
    """Cuts to a length that the loop raises, as curricula of sequences do."""

    length = 1

    def __call__(self, samples: list[Any]) -> Any:
        return [(index, list(range(index))[: self.length]) for index, _ in samples]


class Batched:
    """Counts the batches that it makes."""

    made = 0

    def __call__(self, samples: list[Any]) -> Any:
        self.made += 1
        return torch.tensor([index for index, _ in samples]), self.made


@both
def collate_raised(watch: Watch, workers: int) -> None:
    cutting = Cutting()

    def longer(step: int, batch: Any) -> None:
        cutting.length += step > 40

    going(watch(shuffled(Samples(), workers, collate_fn=cutting)), longer)


@both
def collate_counts(watch: Watch, workers: int) -> None:
    counting = Batched()
    going(watch(shuffled(Samples(), workers, collate_fn=counting)))
    say("made", counting.made)


# Samplers.


class Drawn(Sampler[Any]):
    """As long as the data, with indices from `drawn`."""

    def __len__(self) -> int:
        return LENGTH

    def __iter__(self) -> Iterator[Any]:
        for k in range(LENGTH):
            yield self.drawn(k)


def sampled(watch: Watch, workers: int, sampler: Any) -> Any:
    return watch(DataLoader(Samples(), BATCH, sampler=sampler, num_workers=workers))


def in_batches(watch: Watch, workers: int, sampler: Any) -> Any:
    return watch(DataLoader(Samples(), batch_sampler=sampler, num_workers=workers))


class Mining(Sampler[Any]):
    """Draws hard samples more often: each batch anew by weights that the loop writes."""

    def __init__(self) -> None:
        self.weights = torch.ones(LENGTH)
        self.draw = torch.Generator().manual_seed(3)

    def __len__(self) -> int:
        return PER_EPOCH

    def __iter__(self) -> Iterator[Any]:
        for _ in range(PER_EPOCH):
            yield torch.multinomial(self.weights, BATCH, generator=self.draw).tolist()


@both
def mining(watch: Watch, workers: int) -> None:
    sampler = Mining()

    def write(step: int, batch: Any) -> None:
        sampler.weights[batch[0]] += torch.rand(BATCH)

    going(in_batches(watch, workers, sampler), write)


LOSSES: list[float] = []


class Adapting(BatchSampler):
    """Makes batches larger as the loss falls."""

    def __iter__(self) -> Iterator[Any]:
        order = iter(self.sampler)
        while batch := list(
            itertools.islice(order, self.batch_size + sum(loss < 0.5 for loss in LOSSES[-3:]))
        ):
            yield batch


@both
def adapting(watch: Watch, workers: int) -> None:
    LOSSES.clear()
    sampler = Adapting(RandomSampler(range(LENGTH)), BATCH, False)
    going(
        in_batches(watch, workers, sampler), lambda step, batch: LOSSES.append(float(torch.rand(1)))
    )


class Curriculum(Drawn):
    level = 24

    def drawn(self, k: int) -> int:
        return k % self.level


@both
def curriculum(watch: Watch, workers: int) -> None:
    sampler = Curriculum()

    def harder(step: int, batch: Any) -> None:
        sampler.level = 24 + step // 4

    going(sampled(watch, workers, sampler), harder)


class Resumable(Drawn):
    """Knows how far it is, for checkpoints, and which epoch it is in."""

    position = epoch = 0

    def __iter__(self) -> Iterator[int]:
        while self.position < LENGTH:
            yield (self.position * 7 + self.epoch) % LENGTH
            self.position += 1
        self.position = 0
        self.epoch += 1


@both
def resumable(watch: Watch, workers: int) -> None:
    sampler = Resumable()
    loader = sampled(watch, workers, sampler)
    going(loader, lambda step, batch: say("position", [sampler.epoch, sampler.position]))


class DrawingSampler(Drawn):
    """Draws from the stream of the training itself."""

    def drawn(self, k: int) -> int:
        return int(torch.randint(LENGTH, ()))


@both
def sampler_draws(watch: Watch, workers: int) -> None:
    loader = sampled(watch, workers, DrawingSampler())
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


@both
def bucketing(watch: Watch, workers: int) -> None:
    sampler = Bucketing()
    going(in_batches(watch, workers, sampler))
    say("asked", sampler.asked)


class Eager(Drawn):
    """Draws when it is asked for an iterator, not when that is asked for an index."""

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(LENGTH).tolist())


@both
def eager_sampler(watch: Watch, workers: int) -> None:
    loader = in_batches(watch, workers, BatchSampler(Eager(), BATCH, False))
    pairs(loader, watch(DataLoader(Samples(), None, sampler=Eager(), num_workers=workers)))


def pairs(ones: Any, others: Any) -> None:
    for _ in range(EPOCHS):
        for one, other in zip(ones, others, strict=False):
            say("batch", digest([one, other]))


@both
def subset_sampler(watch: Watch, workers: int) -> None:
    """Active learning: samples are labelled between rounds."""
    sampler = SubsetRandomSampler(list(range(60)))
    loader = sampled(watch, workers, sampler)
    for epoch in range(EPOCHS):
        for batch in loader:
            say("batch", digest(batch))
        sampler.indices.extend(range(60 + 20 * epoch, 80 + 20 * epoch))


@both
def subset(watch: Watch, workers: int) -> None:
    """A subset whose indices the loop swaps."""
    part = Subset(Samples(), list(range(LENGTH)))

    def swap(step: int, batch: Any) -> None:
        if step > 50:
            at, held = step % LENGTH, part.indices
            held[0], held[at] = held[at], held[0]

    going(watch(DataLoader(part, BATCH, num_workers=workers)), swap)


# Several loaders, and loops that are not `for batch in loader`.


@both
def zipped(watch: Watch, workers: int) -> None:
    pairs(watch(shuffled(Samples(), workers)), watch(shuffled(Samples(), workers)))


@both
def fixmatch(watch: Watch, workers: int) -> None:
    """Two iterators, begun anew as each comes to its end; steps are counted."""
    loaders = [
        watch(shuffled(Subset(Samples(), range(60)), workers)),
        watch(shuffled(Samples(), workers)),
    ]
    begun = [iter(loader) for loader in loaders]

    def following(which: int) -> Any:
        try:
            return next(begun[which])
        except StopIteration:
            begun[which] = iter(loaders[which])
            return next(begun[which])

    weights = torch.rand(3)
    for _ in range(EPOCHS * PER_EPOCH):
        both_ = digest([following(0), following(1)])
        say("batch", [both_, torch.rand(1).item(), weights.tolist()])


@both
def model_after_iter(watch: Watch, workers: int) -> None:
    loader = watch(shuffled(Samples(), workers))
    for _ in range(EPOCHS):
        batches = iter(loader)
        model = torch.nn.Linear(2, 2)
        say("model", digest(list(model.parameters())))
        for batch in batches:
            say("batch", digest(batch))


def _one_generator() -> torch.Generator:
    return torch.Generator().manual_seed(11)


@both
def steps_counted(watch: Watch, workers: int) -> None:
    """It never asks past the last batch."""
    loader = watch(shuffled(Samples(), workers, generator=_one_generator()))
    for _ in range(EPOCHS):
        batches = iter(loader)
        for _ in range(len(loader)):
            say("batch", digest(next(batches)))
    say("generator", digest(loader.generator.get_state()))


@both
def one_generator(watch: Watch, workers: int) -> None:
    """Two loaders and the loop draw from one generator."""
    drawn_from = _one_generator()
    ones, others = (watch(shuffled(Samples(), workers, generator=drawn_from)) for _ in range(2))
    for _ in range(EPOCHS):
        for one, other in zip(ones, others, strict=False):
            say("batch", [digest([one, other]), torch.rand(1, generator=drawn_from).item()])


@both
def left_early(watch: Watch, workers: int) -> None:
    drawn_from = _one_generator()
    loader = watch(shuffled(Samples(), workers, generator=drawn_from))
    for most in (30, 17, 36, 5):
        for batch in itertools.islice(loader, most):
            say("batch", [digest(batch), torch.rand(1).item()])
    say("generator", digest(drawn_from.get_state()))


@both
def replacement(watch: Watch, workers: int) -> None:
    drawn_from = _one_generator()
    sampler = RandomSampler(range(LENGTH), replacement=True, generator=drawn_from)
    loader = sampled(watch, workers, sampler)
    going(loader, lambda step, batch: say("noise", torch.rand(1, generator=drawn_from).item()))


@both
def noise(watch: Watch, workers: int) -> None:
    """A GAN: the loop draws from the global stream with each batch, and a validation loader is
    iterated in between."""
    loader, validation = (watch(shuffled(Samples(), workers)) for _ in range(2))

    def step_(step: int, batch: Any) -> None:
        say("noise", torch.randn(3).tolist())
        if step % 30 == 0:
            for held_out in validation:
                say("held out", digest(held_out))

    going(loader, step_)


@both
def rebuilt(watch: Watch, workers: int) -> None:
    """A loader anew for each epoch, of data that is each time another."""
    for epoch in range(EPOCHS + 1):
        data = Arrays()
        data.change(epoch)
        for batch in watch(shuffled(data, workers)):
            say("batch", [digest(batch), torch.rand(1).item()])


@both
def endless(watch: Watch, workers: int) -> None:
    loader = watch(shuffled(Samples(), workers))
    batches = itertools.chain.from_iterable(iter(lambda: loader, None))
    for _ in range(EPOCHS * PER_EPOCH + 7):
        say("batch", [digest(next(batches)), torch.rand(1).item()])


@both
def set_epoch(watch: Watch, workers: int) -> None:
    """As usual: the data set is told the epoch between epochs, and workers are kept."""
    data = Attribute(level=1)
    loader = watch(shuffled(data, workers, persistent_workers=workers > 0))
    for epoch in range(EPOCHS + 1):
        data.level = epoch + 1
        for batch in loader:
            say("batch", digest(batch))


@both
def counted_batches(watch: Watch, workers: int) -> None:
    loader = watch(shuffled(Samples(), workers))
    for _ in range(EPOCHS):
        batches = iter(loader)
        for batch in batches:
            say("batch", [digest(batch), batches._num_yielded, len(batches), len(loader)])


@both
def child_trains_on(watch: Watch, workers: int) -> None:
    loader = watch(shuffled(Samples(), workers))

    def fork(step: int, batch: Any) -> None:
        if step != PER_EPOCH + 26:
            return
        child = os.fork()
        if child == 0:
            torch.manual_seed(5)
            for again in loader:
                say("of child", digest(again))
            os._exit(7)
        say("child", os.waitpid(child, 0)[1])

    going(loader, fork)


# Batches that are not what a worker could send.

ODD: dict[str, Callable[[torch.Tensor], Any]] = {
    "history": lambda numbers: torch.ones(2, requires_grad=True) * numbers.float().mean(),
    "lock": lambda numbers: threading.Lock(),
    "function": lambda numbers: lambda: numbers,
    "stepped": lambda numbers: (number for number in numbers.tolist()),
}


class Odd:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, samples: list[Any]) -> Any:
        numbers = torch.tensor([index for index, _ in samples])
        return numbers, ODD[self.kind](numbers)


def odd(kind: str, watch: Watch, workers: int) -> None:
    loader = watch(shuffled(Samples(), workers, collate_fn=Odd(kind)))
    for _ in range(EPOCHS):
        for numbers, _ in loader:
            say("batch", digest(numbers))


for _kind in ODD:
    talks(f"odd-{_kind}", partial(odd, _kind), 0)


class Views(Samples):
    """Samples are views of one tensor."""

    def __init__(self) -> None:
        self.values = torch.arange(LENGTH * 4.0).reshape(LENGTH, 4)

    def __getitem__(self, index: int) -> Any:
        time.sleep(SAMPLE_S * BATCH)
        return self.values[index]


@both
def in_place(watch: Watch, workers: int) -> None:
    """The loop normalises its batches in place, which are the data set's own memory without
    workers."""
    data = Views()

    def halve(step: int, batch: Any) -> None:
        if step > 60:
            batch.mul_(0.5)

    going(watch(DataLoader(data, None, num_workers=workers)), halve)
    say("data", digest(data.values))


class OneBuffer(Samples):
    def __getitem__(self, index: int) -> Any:
        time.sleep(SAMPLE_S * BATCH)
        self.buffer.fill_(index)
        return self.buffer


def one_buffer(watch: Watch, workers: int) -> None:
    data = OneBuffer(buffer=torch.zeros(4))
    kept = []
    for batch in watch(DataLoader(data, None, sampler=SequentialSampler(range(LENGTH)))):
        kept.append(batch)
        say("batch", digest(kept[-2:]))
    say("buffer", digest(data.buffer))


talks("one-buffer", one_buffer, 0)  # in bare workers it may be filled again before it is sent


class Failing(Samples):
    """Some samples cannot be read, which the loop passes over."""

    def read(self, index: int) -> Any:
        if index % 29 == 3:
            raise ValueError(f"sample {index} is damaged")
        return index


def passes_over_errors(sampler: Callable[[], Any], watch: Watch, workers: int) -> None:
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


talks(
    "errors-passed-random", partial(passes_over_errors, lambda: RandomSampler(range(LENGTH))), 0, 2
)
talks("errors-passed-resumable", partial(passes_over_errors, Resumable), 0, 2)
