"""Code of the user's that bare does not run is not run, and what it raises is not raised."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, SequentialSampler

from ..catalogue import Watch, program, say
from ..data import N, Rows, Stream, digest, eat

_calls: dict[str, int] = {}


def called(what: str) -> None:
    _calls[what] = _calls.get(what, 0) + 1


def say_calls() -> None:
    say("calls", dict(sorted(_calls.items())))


class RandomLength(Rows):
    def __len__(self) -> int:
        called("__len__")
        torch.rand(1)
        return N


class Getitems(Rows):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__getitems__":
            raise AttributeError(name)
        called(name)
        raise AttributeError(name)


class Watched(type):
    def __getattribute__(cls, name: str) -> Any:
        called("of the class")
        return super().__getattribute__(name)


Meta = Watched("Meta", (Rows,), {})
NAMES = ("transform", "transforms", "samples", "files", "data", "root", "loader", "cache")
CURIOUS = (*NAMES, "__class__")


class Properties(Rows):
    """Every attribute a profiler may be curious about is a property with a cost."""

    def __getattribute__(self, name: str) -> Any:
        if name in CURIOUS:
            called(name)
        return super().__getattribute__(name)

    @property
    def transform(self) -> Any:
        raise RuntimeError("not yet open")

    @property
    def samples(self) -> Any:
        raise KeyboardInterrupt("read all")


def lazy(title: str, kind: type, asked: Any = called) -> Any:
    """A kind of batch that does something when it is asked."""
    names = ("values", "items", "keys", "__iter__", "__len__", "__getitem__")

    def method(name: str) -> Any:
        return lambda self, *args: asked(name.strip("_")) or getattr(kind, name)(self, *args)

    return type(title, (kind,), {name: method(name) for name in names if hasattr(kind, name)})


def refuse(what: str) -> None:
    raise KeyboardInterrupt("a lazy batch was opened")


LazyDict, LazyList = lazy("LazyDict", dict), lazy("LazyList", list)
FailingDict = lazy("FailingDict", dict, refuse)


class Opaque:
    def __init__(self, samples: Any) -> None:
        object.__setattr__(self, "kept", samples)

    def __getattribute__(self, name: str) -> Any:
        called(f"batch.{name}")
        raise RuntimeError(name)


class LazyTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        called(getattr(function, "__name__", "?"))
        return super().__torch_function__(function, types, args, kwargs or {})


def not_here(self: Any, name: str = "it") -> Any:
    raise ValueError(f"no {name} here")


class RaisingCollate:
    __getattr__ = not_here

    def __call__(self, samples: Any) -> Any:
        return samples


class RaisingSampler(SequentialSampler):
    def __getattribute__(self, name: str) -> Any:
        allowed = name in ("data_source", "__iter__", "__len__", "__class__")
        return super().__getattribute__(name) if allowed else not_here(self, name)


class RaisingLoader(DataLoader):
    transform = batch_count = property(not_here)


def counted(what: str, answer: Any) -> Any:
    return lambda *_: called(what) or answer


class Equal(Rows):
    __eq__, __hash__ = counted("eq", True), counted("hash", 1)
    __bool__, __repr__ = counted("bool", False), counted("repr", "Equal")


Named = type("a\nname\x1b[31m", (Rows,), {"__module__": None})


class StreamWithLength(IterableDataset):
    def __len__(self) -> int:
        called("__len__")
        torch.rand(1)
        return 8

    def __iter__(self) -> Any:
        return iter(torch.rand(8))


class Torn(Dataset):
    """Its attributes are gone, as after a failed unpickling."""

    def __new__(cls) -> Any:
        return object.__new__(cls)

    def __getitem__(self, index: int) -> Any:
        return index

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name) if name == "__getitems__" else RecursionError(name)


def over(dataset: Any, **more: Any) -> Any:
    """A loader that has a sampler, so that bare never asks how long the data set is."""
    return DataLoader(dataset, batch_size=4, sampler=SequentialSampler(range(N)), **more)


def given(collate: Any) -> Any:
    return DataLoader(Rows(), batch_size=4, collate_fn=collate)


LOADERS: dict[str, Any] = {
    "random-length": lambda: over(RandomLength()),
    "random-length-asked-by-torch": lambda: DataLoader(RandomLength(), batch_size=4, shuffle=True),
    "random-length-stream": lambda: DataLoader(StreamWithLength(), batch_size=4),
    "getitems-looked-up": lambda: over(Getitems()),
    "metaclass": lambda: over(Meta()),
    "properties": lambda: over(Properties()),
    "lazy-dict": lambda: given(lambda samples: LazyDict(rows=torch.ones(4), other=torch.ones(2))),
    "failing-dict": lambda: given(lambda samples: FailingDict(rows=torch.ones(4))),
    "lazy-list": lambda: given(lambda samples: LazyList([torch.ones(4), torch.ones(2)])),
    "nested-lazy": lambda: given(lambda samples: {"a": [LazyDict(b=LazyList([torch.ones(1)]))]}),
    "opaque": lambda: given(Opaque),
    "lazy-tensor": lambda: given(lambda samples: torch.ones(4).as_subclass(LazyTensor)),
    "raising-collate": lambda: given(RaisingCollate()),
    "raising-sampler": lambda: DataLoader(Rows(), batch_size=4, sampler=RaisingSampler(range(N))),
    "raising-loader": lambda: RaisingLoader(Rows(), batch_size=4),
    "equal": lambda: over(Equal()),
    "named": lambda: over(Named()),
    "torn": lambda: over(Torn()),
}


def declare(name: str, make: Any, workers: int) -> None:
    def run(watch: Watch) -> None:
        loader = make()
        if workers:
            same = {name: getattr(loader, name) for name in ("sampler", "collate_fn")}
            loader = type(loader)(loader.dataset, batch_size=4, num_workers=1, **same)
        _calls.clear()
        loader = watch(loader)
        for _ in range(2):
            say("count", sum(1 for _ in loader))
        say_calls()

    # Each in both forms and by both calls: which code looks at what differs.
    program(f"hostile/{name}-{workers}", watched=("watch", "all-pure"))(run)


for name, make in LOADERS.items():
    declare(name, make, 0)
for name in ("random-length", "lazy-dict", "raising-collate"):
    declare(name, LOADERS[name], 1)


@program("hostile/indices-seen")
def indices_keep_their_kind(watch: Watch) -> None:
    """What a data set is given: plain lists and ints, and a sampler's own objects as they are."""

    class Index(int):
        pass

    class Show(Rows):
        def __getitem__(self, index: Any) -> Any:
            called(f"{type(index).__module__}.{type(index).__qualname__}")
            return int(index)

        def __getitems__(self, indices: Any) -> Any:
            called(f"{type(indices).__qualname__} of {type(indices[0]).__qualname__}")
            return [int(index) for index in indices]

    for sampler in (range(N), [Index(i) for i in range(N)], torch.arange(N)):
        eat(watch(DataLoader(Show(), batch_size=4, sampler=sampler)))
    say_calls()


@program("hostile/stream-asked-once")
def a_stream_is_begun_once(watch: Watch) -> None:
    class Counting(Stream):
        def __iter__(self) -> Any:
            called("iter")
            return super().__iter__()

    loader = watch(DataLoader(Counting(Rows()), batch_size=4))
    eat(loader)
    say("first", digest(next(iter(loader))))
    say_calls()
