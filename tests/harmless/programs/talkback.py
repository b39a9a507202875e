"""Loops that talk back to their loader: what the loop or a fetch changes, when, and where.

Named `talk/WHAT-WHEN-WORKERS`. All run bare, and tuned: as tuning decides, and with other settings
every two batches. The loop changes things with each batch, from the middle of the second epoch on,
once there, or between epochs.
"""

from __future__ import annotations

import itertools
import os
import random
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, Sampler, Subset

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


def place(read: Any, change: Any = None, **held: Any) -> Callable[[], Any]:
    """Makes data whose samples are `read`, and what the loop does to it at step k (`change`)."""
    return lambda: type("Place", (Samples,), {"read": read, "change": change})(**held)


def nothing(*_: Any) -> None: ...


def going(loader: Any, after: After = nothing, ended: Callable[[int], Any] = nothing) -> None:
    """All epochs; what the loop does after each batch, and when an epoch has ended."""
    step = 0
    for _ in range(EPOCHS):
        for batch in loader:
            say("batch", digest(batch))
            step += 1
            after(step, batch)
        ended(step)


def shuffled(data: Any, workers: int, **more: Any) -> DataLoader:
    return DataLoader(data, BATCH, shuffle=True, num_workers=workers, **more)


def talks(name: str, run: Callable[..., None], *workers: int) -> None:
    for number in workers:

        def watched(watch: Watch, number: int = number) -> None:
            run(watch, number)

        watched.__module__ = getattr(run, "func", run).__module__
        program(f"talk/{name}-{number}", watched=(RESTLESS, DECIDES))(watched)


def both(run: Callable[[Watch, int], None]) -> None:
    """The same program, named as the function, without workers and with two."""
    talks(run.__name__.replace("_", "-"), run, 0, 2)


# Places where the loop may change what the data set reads.


class Scale:
    factor = 1

    def __call__(self, value: int) -> int:
        return value * self.factor


class Classed(Samples):
    rate = 1

    def read(self, index: int) -> Any:
        return index * Classed.rate

    def change(self, step: int) -> None:
        Classed.rate = step


class Options:  # no method of it tells whose code it is
    rate = 1


RATE = 1


def scaled(value: int) -> int:
    return value * RATE


def closure() -> Any:
    level = 1

    def read(index: int) -> int:
        return index * level

    def change(data: Any, step: int) -> None:
        nonlocal level
        level += 1

    return place(lambda d, k: d.function(k), change, function=read)()


def read_arrays(data: Any, index: int) -> Any:
    return int(data.values[index]), int(data.tensor[index])


def change_values(data: Any, step: int) -> None:
    data.values[step % 5 : LENGTH : 5] += 1


def arrays(change: Any, size: int) -> Callable[[], Any]:
    return place(read_arrays, change, values=np.arange(size), tensor=torch.arange(size))


def by_model() -> Any:
    model = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(model.weight)

    def read(data: Any, index: int) -> Any:
        with torch.no_grad():
            return data.model(torch.tensor([float(index)]))

    def change(data: Any, step: int) -> None:
        optimizer = torch.optim.SGD(data.model.parameters(), 0.01)
        optimizer.zero_grad()
        data.model(torch.ones(1, 1)).sum().backward()
        optimizer.step()

    return place(read, change, model=model)()


def of_file() -> Any:
    Path("level").write_text("1")
    return place(
        lambda d, k: k * int(Path("level").read_text()),
        lambda d, k: Path("level").write_text(str(k)),
    )()


def read_seeded(data: Any, index: int) -> Any:
    return random.Random(hash((data.seed.getstate()[1][:3], index))).random()


PLACES: dict[str, Callable[[], Any]] = {
    "attribute": place(lambda d, k: k * d.level, lambda d, k: setattr(d, "level", k), level=1),
    "transform": place(
        lambda d, k: d.transforms[1](d.transforms[0](k)),
        lambda d, k: setattr(d.transforms[1], "factor", k),
        transforms=[Scale(), Scale()],
    ),
    "class": Classed,
    "options": place(lambda d, k: k * Options.rate, lambda d, k: setattr(Options, "rate", k)),
    "global": place(lambda d, k: scaled(k), lambda d, k: globals().update(RATE=k)),
    "closure": closure,
    "item": place(
        lambda d, k: d.items[100 + k],
        lambda d, k: d.items.__setitem__(100 + k % LENGTH, -1),
        items=[1] * 300,
    ),
    "appended": place(lambda d, k: k + len(d.seen), lambda d, k: d.seen.append(k), seen=deque()),
    "large-array": arrays(change_values, 200_000),
    "tensor": arrays(lambda d, k: d.tensor[k % 5 :: 5].add_(1), LENGTH),
    "weights": by_model,
    "environment": place(
        lambda d, k: k * int(os.environ.get("TALKBACK_RATE", "1")),
        lambda d, k: os.environ.update(TALKBACK_RATE=str(k)),
    ),
    "file": of_file,
    "generator": place(read_seeded, lambda d, k: d.seed.seed(k), seed=random.Random(1)),
}

# When the loop changes it: at which steps, after a batch, or at ends of epochs.
MIDDLE = PER_EPOCH * 3 // 2
WHEN: dict[str, Callable[[int], bool]] = {
    "each": lambda step: True,
    "late": lambda step: step >= MIDDLE,
    "once": lambda step: step == MIDDLE,
}


def loop_changes(make: Callable[[], Any], when: str, watch: Watch, workers: int) -> None:
    data = make()
    loader = watch(shuffled(data, workers))
    if when == "epoch":
        going(loader, ended=data.change)
    else:
        going(loader, lambda step, batch: data.change(step) if WHEN[when](step) else None)


for _number, (_place, _make) in enumerate(PLACES.items()):
    for _when in (*WHEN, "epoch"):
        # By turns without workers and with. What they read of a file that the loop writes is chance.
        _number += 1
        _workers = _number % 2 * 2 if _place != "file" else 0
        talks(f"{_place}-{_when}", partial(loop_changes, _make, _when), _workers)


# What a fetch changes.


def counting(data: Any, index: int) -> Any:
    """Its samples do not show it."""
    data.count += 1
    return index


def numbered(data: Any, index: int) -> Any:
    data.count += 1
    return index, data.count


class CountedInClass(Samples):
    in_class = 0

    def read(self, index: int) -> Any:
        CountedInClass.in_class += 1
        return index


# Random augmentation, of every kind of generator.
DRAWN: dict[str, Callable[[Any, int], Any]] = {
    "torch": lambda d, k: torch.rand(1).item(),
    "numpy": lambda d, k: np.random.rand(),
    "python": lambda d, k: random.random(),
    "late": lambda d, k: torch.rand(1).item() if k >= LENGTH - 12 else 0.0,
    "own-torch": lambda d, k: torch.rand(1, generator=d.torchs).item(),
    "own-numpy": lambda d, k: d.numpys.random(),
    "own-python": lambda d, k: d.pythons.random(),
}
OWN = {
    "torchs": torch.Generator().manual_seed(5),
    "numpys": np.random.default_rng(5),
    "pythons": random.Random(5),
}


def reading_lines() -> Any:
    Path("lines").write_text("".join(f"line {k}\n" for k in range(2 * EPOCHS * LENGTH)))
    return place(lambda d, k: d.file.readline(), file=open("lines"))()


def logging() -> Any:
    return place(lambda d, k: d.file.write(f"{k}\n"), file=open("log", "w"))()


def log_each(data: Any, index: int) -> Any:
    with open("log", "a") as file:
        file.write(f"{index}\n")
    return index


def printing(data: Any, index: int) -> Any:
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


def in_array(data: Any, index: int) -> Any:
    data.seen[index] += 1
    return index


def in_environment(data: Any, index: int) -> Any:
    os.environ["TALKBACK_LAST"] = str(index)
    return index


def counting_for_all(data: Any, index: int) -> Any:
    with data.shared.get_lock():
        data.shared.value += 1
    return index


def shared() -> Any:
    count = torch.multiprocessing.get_context("fork").Value("i", 0)
    return place(counting_for_all, shared=count)()


FETCHES: dict[str, Callable[[], Any]] = {
    "counting": place(counting, count=0),
    "numbered": place(numbered, count=0),
    "counted-in-class": CountedInClass,
    "remembering": place(lambda d, k: d.kept.setdefault(k, k * k), kept={}),
    **{f"draws-{kind}": place(draw, **OWN) for kind, draw in DRAWN.items()},
    "reading-lines": reading_lines,
    "stepping": place(lambda d, k: next(d.steps), steps=itertools.count()),
    "logging": logging,
    "logging-each": place(log_each),
    "printing": place(printing),
    "in-sqlite": InSqlite,
    "in-array": place(in_array, seen=np.zeros(LENGTH, int)),
    "in-environment": place(in_environment),
    "shared": shared,
}
# Wrong, or not to be sent, in bare workers too.
HERE = ("in-sqlite", "logging", "draws-own-torch")
# By the attribute, how what is left of it is told.
LEFT: dict[str, Callable[[Any], Any]] = {
    "count": int,
    "kept": sorted,
    "torchs": lambda drawn: digest(drawn.get_state()),
    "numpys": lambda drawn: drawn.random(),
    "pythons": lambda drawn: str(drawn.getstate()),
    "file": lambda file: file.close(),
    "base": lambda base: base.execute("select k, times from samples").fetchall(),
    "seen": lambda seen: seen.tolist(),
    "shared": lambda count: count.value,
}


def fetch_changes(make: Callable[[], Any], watch: Watch, workers: int) -> None:
    data = make()
    going(watch(shuffled(data, workers)))
    for name in LEFT.keys() & vars(data):
        say(name, LEFT[name](getattr(data, name)))
    say("elsewhere", [CountedInClass.in_class, os.environ.get("TALKBACK_LAST")])
    say("log", sorted(Path("log").read_text().split("\n")) if os.path.exists("log") else None)


for _name, _make in FETCHES.items():
    talks(f"fetch-{_name}", partial(fetch_changes, _make), *((0,) if _name in HERE else (0, 2)))


# Collate functions.


class Cutting:
    length = 1

    def __call__(self, samples: list[Any]) -> Any:
        return [(index, list(range(index))[: self.length]) for index, _ in samples]


class Batched:
    made = 0

    def __call__(self, samples: list[Any]) -> Any:
        self.made += 1
        return torch.tensor([index for index, _ in samples]), self.made


@both
def collate_raised(watch: Watch, workers: int) -> None:
    cutting = Cutting()
    loader = watch(shuffled(Samples(), workers, collate_fn=cutting))
    going(loader, lambda step, batch: setattr(cutting, "length", max(1, step - 40)))


@both
def collate_counts(watch: Watch, workers: int) -> None:
    batched = Batched()
    going(watch(shuffled(Samples(), workers, collate_fn=batched)))
    say("made", batched.made)


# Samplers.


class Drawn(Sampler[Any]):
    """As long as the data, with indices from `drawn`."""

    def __len__(self) -> int:
        return LENGTH

    def __iter__(self) -> Iterator[Any]:
        yield from map(self.drawn, range(LENGTH))


class Batches(Sampler[Any]):
    """Of whole batches, from `drawn`."""

    def __len__(self) -> int:
        return PER_EPOCH

    def __iter__(self) -> Iterator[Any]:
        for _ in range(PER_EPOCH):
            yield self.drawn().tolist()


class Mining(Batches):
    """Draws hard samples more often: each batch anew by weights that the loop writes."""

    def __init__(self) -> None:
        self.weights = torch.ones(LENGTH)
        self.draw = torch.Generator().manual_seed(3)

    def drawn(self) -> torch.Tensor:
        return torch.multinomial(self.weights, BATCH, generator=self.draw)


LOW: list[bool] = []  # whether the loss was, after each batch


class Adapting(BatchSampler):
    """Makes batches larger as the loss falls."""

    def __iter__(self) -> Iterator[Any]:
        order = iter(self.sampler)
        while batch := [*itertools.islice(order, self.batch_size + sum(LOW[-3:]))]:
            yield batch


class Curriculum(Drawn):
    level = 24

    def drawn(self, k: int) -> int:
        return k % self.level


class Resumable(Drawn):
    """Knows how far it is, for checkpoints, and which epoch it is in."""

    position = epoch = 0

    def __iter__(self) -> Iterator[int]:
        while self.position < LENGTH:
            yield (self.position * 7 + self.epoch) % LENGTH
            self.position += 1
        self.position = 0
        self.epoch += 1


class DrawingSampler(Drawn):
    def drawn(self, k: int) -> int:
        return int(torch.randint(LENGTH, ()))


class Bucketing(Batches):
    """Its length makes the batches."""

    asked = 0

    def __len__(self) -> int:
        self.asked += 1
        self.batches = [torch.randperm(LENGTH)[:BATCH].tolist() for _ in range(PER_EPOCH)]
        return len(self.batches)

    def drawn(self) -> torch.Tensor:
        return torch.randperm(LENGTH)[:BATCH]


class Eager(Drawn):
    """Draws when it is asked for an iterator, not when that is asked for an index."""

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(LENGTH).tolist())


def _one_generator() -> torch.Generator:
    return torch.Generator().manual_seed(11)


# The sampler, and what the loop does with it and each batch.
SAMPLERS: dict[str, tuple[Callable[[], Any], Callable[[Any, int, Any], Any]]] = {
    "mining": (Mining, lambda s, step, batch: s.weights.index_add_(0, batch[0], torch.rand(BATCH))),
    "adapting": (
        lambda: Adapting(RandomSampler(range(LENGTH)), BATCH, False),
        lambda s, step, batch: LOW.append(bool(torch.rand(1) < 0.5)),
    ),
    "curriculum": (Curriculum, lambda s, step, batch: setattr(s, "level", 24 + step // 4)),
    "resumable": (Resumable, lambda s, step, batch: say("position", [s.epoch, s.position])),
    "sampler-draws": (DrawingSampler, lambda *_: say("noise", torch.rand(1).item())),
    "bucketing": (Bucketing, lambda s, step, batch: say("asked", s.asked)),
    "replacement": (
        lambda: RandomSampler(range(LENGTH), replacement=True, generator=_one_generator()),
        lambda s, step, batch: say("noise", torch.rand(1, generator=s.generator).item()),
    ),
}


def sampled(watch: Watch, workers: int, sampler: Any) -> Any:
    if isinstance(sampler, Batches | BatchSampler):
        return watch(DataLoader(Samples(), batch_sampler=sampler, num_workers=workers))
    return watch(DataLoader(Samples(), BATCH, sampler=sampler, num_workers=workers))


def with_sampler(name: str, watch: Watch, workers: int) -> None:
    make, after = SAMPLERS[name]
    sampler = make()
    going(sampled(watch, workers, sampler), partial(after, sampler))


for _name in SAMPLERS:
    talks(_name, partial(with_sampler, _name), 0, 2)


@both
def eager_sampler(watch: Watch, workers: int) -> None:
    loader = sampled(watch, workers, BatchSampler(Eager(), BATCH, False))
    pairs(loader, watch(DataLoader(Samples(), None, sampler=Eager(), num_workers=workers)))


def pairs(ones: Any, others: Any, after: Any = nothing) -> None:
    for _ in range(EPOCHS):
        for one, other in zip(ones, others, strict=False):
            say("batch", digest([one, other]))
            after()


@both
def subset_sampler(watch: Watch, workers: int) -> None:
    """Active learning: samples are labelled between rounds."""
    sampler = torch.utils.data.SubsetRandomSampler(list(range(60)))
    label = sampler.indices.extend
    going(sampled(watch, workers, sampler), ended=lambda step: label(range(60 + step, 80 + step)))


@both
def subset(watch: Watch, workers: int) -> None:
    part = Subset(Samples(), list(range(LENGTH)))

    def swap(step: int, batch: Any) -> None:
        if step > 50:
            at, held = step % LENGTH, part.indices
            held[0], held[at] = held[at], held[0]

    going(watch(DataLoader(part, BATCH, num_workers=workers)), swap)


# Several loaders, and loops that are not `for batch in loader`.


@both
def zipped(watch: Watch, workers: int) -> None:
    pairs(*(watch(shuffled(Samples(), workers)) for _ in range(2)))


@both
def fixmatch(watch: Watch, workers: int) -> None:
    """Two iterators, begun anew as each comes to its end; steps are counted."""
    loaders = [shuffled(data, workers) for data in (Subset(Samples(), range(60)), Samples())]
    ones, others = (anew(watch(loader)) for loader in loaders)
    for _ in range(EPOCHS * PER_EPOCH):
        say("batch", [digest([next(ones), next(others)]), torch.rand(1).item()])


def anew(loader: Any) -> Iterator[Any]:
    return itertools.chain.from_iterable(iter(lambda: loader, None))


@both
def model_after_iter(watch: Watch, workers: int) -> None:
    loader = watch(shuffled(Samples(), workers))
    for _ in range(EPOCHS):
        batches = iter(loader)
        model = torch.nn.Linear(2, 2)
        say("model", digest(list(model.parameters())))
        for batch in batches:
            say("batch", digest(batch))


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
    own = {"generator": _one_generator()}
    both_ = (watch(shuffled(Samples(), workers, **own)) for _ in range(2))
    pairs(*both_, lambda: say("noise", torch.rand(1, **own).item()))


@both
def left_early(watch: Watch, workers: int) -> None:
    drawn_from = _one_generator()
    loader = watch(shuffled(Samples(), workers, generator=drawn_from))
    for most in (30, 17, 36, 5):
        for batch in itertools.islice(loader, most):
            say("batch", [digest(batch), torch.rand(1).item()])
    say("generator", digest(drawn_from.get_state()))


@both
def noise(watch: Watch, workers: int) -> None:
    """A GAN: the loop draws from the global stream with each batch, and validates in between."""
    loader, validation = (watch(shuffled(Samples(), workers)) for _ in range(2))

    def step_(step: int, batch: Any) -> None:
        say("noise", torch.randn(3).tolist())
        if step % 30 == 0:
            for held_out in validation:
                say("held out", digest(held_out))

    going(loader, step_)


@both
def rebuilt(watch: Watch, workers: int) -> None:
    for epoch in range(EPOCHS + 1):
        data = PLACES["attribute"]()
        data.change(epoch)
        for batch in watch(shuffled(data, workers)):
            say("batch", [digest(batch), torch.rand(1).item()])


@both
def endless(watch: Watch, workers: int) -> None:
    batches = anew(watch(shuffled(Samples(), workers)))
    for _ in range(EPOCHS * PER_EPOCH + 7):
        say("batch", [digest(next(batches)), torch.rand(1).item()])


@both
def set_epoch(watch: Watch, workers: int) -> None:
    """As usual: the data set is told the epoch between epochs, and workers are kept."""
    data = PLACES["attribute"]()
    going(watch(shuffled(data, workers, persistent_workers=workers > 0)), ended=data.change)


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
        if step == PER_EPOCH + 26:
            child = os.fork()
            if child == 0:
                torch.manual_seed(5)
                say("of child", [digest(again) for again in loader])
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


def odd(kind: str, watch: Watch, workers: int) -> None:
    def collate(samples: list[Any]) -> Any:
        numbers = torch.tensor([index for index, _ in samples])
        return numbers, ODD[kind](numbers)

    loader = watch(shuffled(Samples(), workers, collate_fn=collate))
    for _ in range(EPOCHS):
        for numbers, _ in loader:
            say("batch", digest(numbers))


for _kind in ODD:
    talks(f"odd-{_kind}", partial(odd, _kind), 0)


class Views(Samples):
    def __getitem__(self, index: int) -> Any:
        time.sleep(SAMPLE_S * BATCH)
        return self.values[index]


@both
def in_place(watch: Watch, workers: int) -> None:
    """The loop normalises its batches in place: without workers, the data set's own memory."""
    data = Views(values=torch.arange(LENGTH * 4.0).reshape(LENGTH, 4))

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
    data, kept = OneBuffer(buffer=torch.zeros(4)), []
    for batch in watch(DataLoader(data, None)):
        kept.append(batch)
        say("batch", digest(kept[-2:]))
    say("buffer", digest(data.buffer))


talks("one-buffer", one_buffer, 0)  # in bare workers it may be filled again before it is sent


def read_or_fail(data: Any, index: int) -> Any:
    if index % 29 == 3:
        raise ValueError(f"sample {index} is damaged")
    return index


def passes_over_errors(sampler: Callable[[], Any], watch: Watch, workers: int) -> None:
    """Some samples cannot be read, which the loop passes over."""
    data = place(read_or_fail)()
    loader = watch(DataLoader(data, BATCH, sampler=sampler(), num_workers=workers))
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
    "errors-passed-random", partial(passes_over_errors, partial(RandomSampler, range(LENGTH))), 0, 2
)
talks("errors-passed-resumable", partial(passes_over_errors, Resumable), 0, 2)
