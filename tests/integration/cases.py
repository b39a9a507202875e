"""Data loading as people do it, each case once bare and once watched: what it shows must be the
same.

Run as `python cases.py bare|watched|all|still|tuned CASE...`: prints one JSON line a case. Each
case returns what a training loop would see; the harness adds random states, warnings, exceptions
and what was left behind. "still" is bare, and "tuned" has other settings every few batches; in
both, samples do not show the random state of whoever makes them.
"""

from __future__ import annotations

import copy
import gc
import hashlib
import json
import multiprocessing
import os
import pickle
import random
import re
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Subset,
)

N = 24
DRAWS = True  # whether samples do


class Map(Dataset):
    """Samples that show the random state of whoever makes them."""

    def __len__(self) -> int:
        return N

    def __getitem__(self, index: int) -> Any:
        if not DRAWS:
            return {"index": index, "text": f"sample {index}"}
        return {
            "index": index,
            "torch": torch.rand(3),
            "numpy": np.random.rand(2),
            "random": random.random(),
            "text": f"sample {index}",
        }


class Batched(Map):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        assert type(indices) is list
        return [self[i] for i in indices]


class WholeBatch(Map):
    """Is given what its sampler drew: here a list, and no subclass of one."""

    def __getitem__(self, index: Any) -> Any:
        return type(index).__name__, [super(WholeBatch, self).__getitem__(i) for i in index]


class Stream(IterableDataset):
    def __init__(self, length: int | None = None) -> None:
        self.length = length

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        start, step = (info.id, info.num_workers) if info else (0, 1)
        for i in range(start, N, step):
            yield i, torch.rand(2)


class WrongLength(Stream):
    def __len__(self) -> int:
        return N // 2


class Failing(Map):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __getitem__(self, index: int) -> Any:
        if index == N // 2:
            raise self.error
        return super().__getitem__(index)


class Warning_(Map):
    def __getitem__(self, index: int) -> Any:
        if index % 8 == 0:
            warnings.warn(f"sample {index} looks odd", stacklevel=1)
            warnings.warn("seen from the caller", UserWarning, stacklevel=2)
        return index


class Nested(Map):
    def __getitem__(self, index: int) -> Any:
        return sum(int(batch.sum()) for batch in DataLoader(list(range(index + 1)), batch_size=4))


class Special:
    """A batch of a class of the user's own, with pinning of its own."""

    def __init__(self, samples: list[Any]) -> None:
        self.values = torch.tensor([s["index"] for s in samples])

    def pin_memory(self) -> Special:
        return self


class Sampler_:
    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(N).tolist())

    def __len__(self) -> int:
        return N


class FailingSampler(Sampler_):
    def __iter__(self) -> Iterator[int]:
        yield 0
        yield 1
        raise LookupError("no more indices")


class TwoByTwo:
    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter([(i, i + 1) for i in range(0, N, 2)])


class OwnLoader(DataLoader):
    def __iter__(self) -> Any:
        for batch in super().__iter__():
            yield batch["index"]


def indices_only(samples: list[Any]) -> Any:
    return torch.tensor([s["index"] for s in samples])


def failing_collate(samples: list[Any]) -> Any:
    raise ValueError("cannot collate")


def warning_collate(samples: list[Any]) -> Any:
    warnings.warn("ragged", UserWarning, stacklevel=2)
    return samples


def special(samples: list[Any]) -> Special:
    return Special(samples)


def seed_worker(worker: int) -> None:
    np.random.seed(worker + torch.initial_seed() % 1000)


def failing_init(worker: int) -> None:
    raise OSError(f"worker {worker} has no disk")


class SlowFirst(Map):
    def __getitem__(self, index: int) -> Any:
        if index == 0:
            time.sleep(0.3)
        return index


class Chain:
    def __init__(self, steps: list[Any]) -> None:
        self.steps = steps

    def __call__(self, value: Any) -> Any:
        for step in self.steps:
            value = step(value)
        return value


def add_noise(value: Any) -> Any:
    return value + torch.rand(1) + random.random() if DRAWS else value + 1


def fail_at_half(value: Any) -> Any:
    if value.numel() == N // 2:
        raise ValueError("cannot be transformed")
    return value


class Transformed(Map):
    """Reads a file, and hands it to a chain of callables; long enough to be looked at."""

    def __init__(self, last: Any = torch.neg) -> None:
        self.transform = Chain([add_noise, last, add_noise])

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.0005)
        with open(__file__, "rb") as file:
            return self.transform(torch.full((index,), float(len(file.read()))))


class Hanging(Map):
    def __getitem__(self, index: int) -> Any:
        if index == N // 2:
            time.sleep(4)
        return index


def digest(value: Any) -> Any:
    """A value as JSON that is equal if and only if the value is, bit by bit."""
    if isinstance(value, torch.Tensor):
        return [
            "tensor",
            str(value.dtype),
            list(value.shape),
            hashlib.md5(value.numpy().tobytes()).hexdigest(),
        ]
    if isinstance(value, np.ndarray):
        return ["array", str(value.dtype), hashlib.md5(value.tobytes()).hexdigest()]
    if isinstance(value, dict):
        return {str(k): digest(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *[digest(v) for v in value]]
    if isinstance(value, Special):
        return ["special", digest(value.values)]
    return [type(value).__name__, repr(value)]


def drain(loader: Any) -> list[Any]:
    return [digest(batch) for batch in loader]


Watch = Callable[[Any], Any]
CASES: dict[str, Callable[[Watch], Any]] = {}


def case(function: Callable[[Watch], Any]) -> Callable[[Watch], Any]:
    CASES[function.__name__] = function
    return function


def simple(name: str, make: Callable[[], Any], epochs: int = 1) -> None:
    def run(watch: Watch) -> Any:
        loader = watch(make())
        return [drain(loader) for _ in range(epochs)]

    CASES[name] = run


simple("map", lambda: DataLoader(Map(), batch_size=4))
simple("map_workers", lambda: DataLoader(Map(), batch_size=4, num_workers=2))
simple("shuffled_epochs", lambda: DataLoader(Map(), batch_size=5, shuffle=True), epochs=3)
simple(
    "shuffled_epochs_workers",
    lambda: DataLoader(Map(), batch_size=5, shuffle=True, num_workers=2),
    epochs=2,
)
simple(
    "own_generator",
    lambda: DataLoader(
        Map(), batch_size=5, shuffle=True, generator=torch.Generator().manual_seed(7)
    ),
    epochs=2,
)
simple("drop_last", lambda: DataLoader(Map(), batch_size=7, drop_last=True))
simple("iterable", lambda: DataLoader(Stream(), batch_size=4))
simple("iterable_drop_last", lambda: DataLoader(Stream(), batch_size=5, drop_last=True))
simple("iterable_workers", lambda: DataLoader(Stream(), batch_size=4, num_workers=2), epochs=2)
simple("no_batches", lambda: DataLoader(Map(), batch_size=None))
simple("no_batches_workers", lambda: DataLoader(Map(), batch_size=None, num_workers=2))
simple(
    "sampler_of_lists",
    lambda: DataLoader(WholeBatch(), batch_size=None, sampler=BatchSampler(range(N), 5, False)),
)
simple(
    "sampler_of_lists_workers",
    lambda: DataLoader(
        WholeBatch(), batch_size=None, sampler=BatchSampler(range(N), 5, False), num_workers=2
    ),
)
simple("no_batches_iterable", lambda: DataLoader(Stream(), batch_size=None, num_workers=2))
simple("sampler", lambda: DataLoader(Map(), batch_size=4, sampler=Sampler_()))
simple(
    "batch_sampler",
    lambda: DataLoader(
        Map(), batch_sampler=BatchSampler(RandomSampler(range(N)), 5, False), num_workers=2
    ),
)
simple("tuples_from_batch_sampler", lambda: DataLoader(Map(), batch_sampler=TwoByTwo()))
simple(
    "tuples_from_batch_sampler_workers",
    lambda: DataLoader(Map(), batch_sampler=TwoByTwo(), num_workers=1),
)
simple("collate", lambda: DataLoader(Map(), batch_size=4, collate_fn=indices_only, num_workers=2))
simple(
    "worker_init",
    lambda: DataLoader(Map(), batch_size=4, worker_init_fn=seed_worker, num_workers=2),
)
simple(
    "persistent",
    lambda: DataLoader(Map(), batch_size=4, num_workers=2, persistent_workers=True),
    epochs=3,
)
simple(
    "persistent_iterable",
    lambda: DataLoader(Stream(), batch_size=4, num_workers=2, persistent_workers=True),
    epochs=2,
)
simple("prefetch", lambda: DataLoader(Map(), batch_size=2, num_workers=2, prefetch_factor=5))
simple("timeout_not_reached", lambda: DataLoader(Map(), batch_size=4, num_workers=1, timeout=60))
simple("pin_memory", lambda: DataLoader(Map(), batch_size=4, pin_memory=True))
simple(
    "pin_memory_workers", lambda: DataLoader(Map(), batch_size=4, pin_memory=True, num_workers=2)
)
simple("getitems", lambda: DataLoader(Batched(), batch_size=4))
simple("getitems_workers", lambda: DataLoader(Batched(), batch_size=4, num_workers=2))
simple("subset", lambda: DataLoader(Subset(Map(), [3, 1, 4, 1, 5]), batch_size=2))
simple(
    "subset_workers",
    lambda: DataLoader(Subset(Batched(), [3, 1, 4, 1, 5]), batch_size=2, num_workers=2),
)
simple("concat", lambda: DataLoader(ConcatDataset([Map(), Batched()]), batch_size=6, num_workers=2))
simple("special_batch", lambda: DataLoader(Map(), batch_size=4, collate_fn=special, num_workers=2))
simple("nested_loader", lambda: DataLoader(Nested(), batch_size=4))
simple("nested_loader_workers", lambda: DataLoader(Nested(), batch_size=4, num_workers=2))
simple("own_loader_class", lambda: OwnLoader(Map(), batch_size=4, num_workers=2))
simple(
    "spawn", lambda: DataLoader(Map(), batch_size=4, num_workers=1, multiprocessing_context="spawn")
)
simple(
    "forkserver",
    lambda: DataLoader(Map(), batch_size=4, num_workers=1, multiprocessing_context="forkserver"),
)
simple("fails", lambda: DataLoader(Failing(ValueError("bad sample")), batch_size=4))
simple(
    "fails_workers",
    lambda: DataLoader(Failing(ValueError("bad sample")), batch_size=4, num_workers=2),
)
simple(
    "fails_key_error", lambda: DataLoader(Failing(KeyError("lost")), batch_size=4, num_workers=1)
)
simple(
    "fails_getitems", lambda: DataLoader(ConcatDataset([Failing(OSError(5, "I/O"))]), batch_size=4)
)
simple("fails_collate", lambda: DataLoader(Map(), batch_size=4, collate_fn=failing_collate))
simple(
    "fails_collate_workers",
    lambda: DataLoader(Map(), batch_size=4, collate_fn=failing_collate, num_workers=2),
)
simple(
    "fails_init",
    lambda: DataLoader(Map(), batch_size=4, worker_init_fn=failing_init, num_workers=1),
)
simple("fails_sampler", lambda: DataLoader(Map(), batch_size=1, sampler=FailingSampler()))
simple(
    "fails_sampler_workers",
    lambda: DataLoader(Map(), batch_size=1, sampler=FailingSampler(), num_workers=1),
)
simple("stops_in_dataset", lambda: DataLoader(Failing(StopIteration("odd")), batch_size=4))
simple("times_out", lambda: DataLoader(Hanging(), batch_size=4, num_workers=1, timeout=1))
simple("warns", lambda: DataLoader(Warning_(), batch_size=4))
simple("warns_collate", lambda: DataLoader(Map(), batch_size=12, collate_fn=warning_collate))
simple("transformed", lambda: DataLoader(Transformed(), batch_size=1), epochs=2)
simple(
    "transformed_workers", lambda: DataLoader(Transformed(), batch_size=1, num_workers=2), epochs=2
)
simple("fails_transform", lambda: DataLoader(Transformed(fail_at_half), batch_size=1))
simple(
    "fails_transform_workers",
    lambda: DataLoader(Transformed(fail_at_half), batch_size=1, num_workers=2),
)
simple("plain_list", lambda: [torch.ones(2) * i for i in range(5)], epochs=2)
simple("plain_generator", lambda: (torch.ones(2) * i for i in range(5)), epochs=2)


@case
def wrong_length_warning(watch: Watch) -> Any:
    loader = watch(DataLoader(WrongLength(), batch_size=None))
    return len(loader), drain(loader), drain(loader)


@case
def wrong_length_warning_workers(watch: Watch) -> Any:
    loader = watch(DataLoader(WrongLength(), batch_size=None, num_workers=2))
    return len(loader), drain(loader)


@case
def out_of_order(watch: Watch) -> Any:
    loader = watch(DataLoader(SlowFirst(), batch_size=4, num_workers=2, in_order=False))
    return sorted(json.dumps(batch) for batch in drain(loader))


@case
def left_early(watch: Watch) -> Any:
    loader = watch(DataLoader(Map(), batch_size=4, shuffle=True, num_workers=2))
    seen = []
    for _ in range(3):
        for count, batch in enumerate(loader):
            seen.append(digest(batch["index"]))
            if count == 1:
                break
    return seen


@case
def first_batch_again_and_again(watch: Watch) -> Any:
    loader = watch(DataLoader(Map(), batch_size=4, shuffle=True))
    return [digest(next(iter(loader))) for _ in range(5)]


@case
def interleaved(watch: Watch) -> Any:
    one = watch(DataLoader(Map(), batch_size=4, shuffle=True))
    two = watch(DataLoader(Map(), batch_size=3, num_workers=2))
    return [[digest(a), digest(b)] for a, b in zip(one, two, strict=False)]


@case
def with_itself(watch: Watch) -> Any:
    loader = watch(DataLoader(Map(), batch_size=4, shuffle=True))
    return [[digest(a["index"]), digest(b["index"])] for a, b in zip(loader, loader, strict=True)]


@case
def in_threads(watch: Watch) -> Any:
    loader = watch(DataLoader([torch.full((2,), float(i)) for i in range(400)], batch_size=2))
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(drain(loader))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@case
def iterator_handed_to_thread(watch: Watch) -> Any:
    iterator = iter(watch(DataLoader(Map(), batch_size=4, num_workers=1)))
    first = digest(next(iterator))
    rest: list[Any] = []
    thread = threading.Thread(target=lambda: rest.extend(drain(iterator)))
    thread.start()
    thread.join()
    return first, rest


@case
def attributes(watch: Watch) -> Any:
    loader = DataLoader(Map(), batch_size=4, num_workers=2, persistent_workers=True)
    before = sorted(vars(loader))
    watched = watch(loader)
    iterator = iter(watched)
    next(iterator)
    return [
        watched is loader,
        type(watched).__name__,
        isinstance(watched, DataLoader),
        sorted(vars(watched)) == before,
        len(watched),
        len(iterator),
        type(iterator).__name__,
        type(iterator).__module__,
        isinstance(iterator, torch.utils.data.dataloader._MultiProcessingDataLoaderIter),
        watched._iterator is iterator,
        iterator._collate_fn is loader.collate_fn,
        iterator._worker_init_fn,
        digest([batch["index"] for batch in iterator]),
    ]


@case
def copied_and_made_again(watch: Watch) -> Any:
    loader = watch(DataLoader(Map(), batch_size=4))
    again = pickle.loads(pickle.dumps(loader))
    same = copy.copy(loader)
    arguments = {
        k: v
        for k, v in vars(loader).items()
        if k in ("dataset", "batch_size", "num_workers", "collate_fn")
    }
    return [drain(again), drain(same), drain(type(loader)(**arguments)), drain(loader)]


@case
def stateful(watch: Watch) -> Any:
    return _resumed(watch, 0)


@case
def stateful_workers(watch: Watch) -> Any:
    return _resumed(watch, 2)


def _resumed(watch: Watch, workers: int) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    def make() -> Any:
        return watch(StatefulDataLoader(Map(), batch_size=4, shuffle=True, num_workers=workers))

    loader = make()
    iterator = iter(loader)
    first = [digest(next(iterator)["index"]) for _ in range(2)]
    state = loader.state_dict()
    rest = [digest(batch["index"]) for batch in iterator]
    resumed = make()
    resumed.load_state_dict(state)
    after = [digest(batch["index"]) for batch in resumed]
    return [
        first,
        rest,
        after,
        rest == after,
        sorted(state),
        [digest(batch["index"]) for batch in loader],
    ]


@case
def stateful_fails(watch: Watch) -> Any:
    from torchdata.stateful_dataloader import StatefulDataLoader

    return drain(
        watch(StatefulDataLoader(Failing(ValueError("bad sample")), batch_size=4, num_workers=1))
    )


# The harness.


def state_of_randomness() -> list[str]:
    numpy_state = np.random.get_state()
    return [
        hashlib.md5(torch.get_rng_state().numpy().tobytes()).hexdigest(),
        hashlib.md5(numpy_state[1].tobytes() + str(numpy_state[2:]).encode()).hexdigest(),
        hashlib.md5(repr(random.getstate()).encode()).hexdigest(),
    ]


def left_behind() -> dict[str, int]:
    gc.collect()
    deadline = time.monotonic() + 5
    process = psutil.Process()
    while True:
        # Up to 2.7, torch kills workers of an iterator that was garbage, and leaves it to
        # multiprocessing to wait for them when it next looks. How many there are to wait for is a
        # matter of settings.
        multiprocessing.active_children()
        children = [
            child
            for child in process.children(recursive=True)
            if not any(
                "forkserver" in part or "resource_tracker" in part for part in _command(child)
            )
        ]
        # A queue's feeder thread, too, takes a moment to end, with or without us.
        if (not children and threading.active_count() == 1) or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return {
        "children": len(children),
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "segments": sum(
            1 for name in os.listdir("/dev/shm") if name.startswith(f"torch_{os.getpid()}_")
        ),
    }


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def own_frames(error: BaseException) -> list[str]:
    here = str(Path(__file__).resolve())
    return [
        f"{frame.name}:{frame.lineno}: {frame.line}"
        for frame in traceback.extract_tb(error.__traceback__)
        if str(Path(frame.filename).resolve()) == here
    ]


def masked(text: str) -> str:
    return re.sub(r"pid\(?s?\)? ?\d+|0x[0-9a-f]+", "#", text)


def observe(name: str, watch: Watch) -> dict[str, Any]:
    torch.manual_seed(1)
    np.random.seed(1)
    random.seed(1)
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd"))
    result: Any = None
    error: Any = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = CASES[name](watch)
        except Exception as raised:
            error = [
                type(raised).__name__,
                masked(str(raised)),
                own_frames(raised),
                repr(raised.__cause__),
            ]
            del raised
    remains = left_behind()
    remains["descriptors"] -= descriptors
    return {
        "case": name,
        "result": result,
        "error": error,
        "warnings": [
            [w.category.__name__, masked(str(w.message)), Path(w.filename).name, w.lineno]
            for w in caught
        ],
        "random": state_of_randomness(),
        "remains": remains,
    }


def main(mode: str, names: list[str]) -> None:
    import loaderscope

    global DRAWS
    DRAWS = mode not in ("still", "tuned")
    if mode == "all":
        loaderscope.watch_all()
    watch: Watch = loaderscope.watch if mode == "watched" else lambda loader: loader
    if mode == "tuned":
        from switch_data import restless as watch
    gc.collect()
    gc.freeze()  # or each worker would copy all of torch's objects to look at them once
    for name in names:
        print(json.dumps(observe(name, watch)), flush=True)
    if mode == "all":
        loaderscope.unwatch()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] or list(CASES))
