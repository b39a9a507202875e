"""Code of the user's that bare does not run is not run, and what it raises when asked is not
raised."""

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
    """Draws random numbers to say how long it is."""

    def __len__(self) -> int:
        called("__len__")
        torch.rand(1)
        return N


class Getitems(Rows):
    """Gives `__getitems__` when asked for it, and counts how often."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__getitems__":
            raise AttributeError(name)
        called(name)
        raise AttributeError(name)


class Watched(type):
    def __getattribute__(cls, name: str) -> Any:
        _calls["of the class"] = _calls.get("of the class", 0) + 1
        return super().__getattribute__(name)


class Meta(Rows, metaclass=Watched):
    pass


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


def lazy(kind: type, *names: str) -> dict[str, Any]:
    """Methods of a batch that does something when it is asked: `_asked`."""

    def method(name: str) -> Any:
        return lambda self, *args: self._asked(name.strip("_")) or getattr(kind, name)(self, *args)

    return {name: method(name) for name in names}


class Counted:
    def _asked(self, what: str) -> None:
        called(what)


class Refusing:
    def _asked(self, what: str) -> None:
        raise KeyboardInterrupt("a lazy batch was opened")


_DICT = lazy(dict, "values", "items", "keys", "__iter__", "__len__", "__getitem__")
_LIST = lazy(list, "__iter__", "__len__", "__getitem__")
LazyDict = type("LazyDict", (Counted, dict), _DICT)
FailingDict = type("FailingDict", (Refusing, dict), _DICT)
LazyList = type("LazyList", (Counted, list), _LIST)


class Opaque:
    """A batch that answers no question."""

    def __init__(self, samples: Any) -> None:
        object.__setattr__(self, "kept", samples)

    def __getattribute__(self, name: str) -> Any:
        called(f"batch.{name}")
        raise RuntimeError(name)


class LazyTensor(torch.Tensor):
    """Counts what is done with it."""

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        called(getattr(function, "__name__", "?"))
        return super().__torch_function__(function, types, args, kwargs or {})


class RaisingCollate:
    def __call__(self, samples: Any) -> Any:
        return samples

    def __getattr__(self, name: str) -> Any:
        raise ValueError(f"no {name} here")


class RaisingSampler(SequentialSampler):
    def __getattribute__(self, name: str) -> Any:
        if name not in ("data_source", "__iter__", "__len__", "__class__"):
            raise ValueError(f"no {name} here")
        return super().__getattribute__(name)


class RaisingLoader(DataLoader):
    @property
    def transform(self) -> Any:
        raise ValueError("not set up")

    @property
    def batch_count(self) -> Any:
        raise ValueError("not set up")


class Equal(Rows):
    """Compares and hashes by running code."""

    def __eq__(self, other: object) -> bool:
        called("eq")
        return True

    def __hash__(self) -> int:
        called("hash")
        return 1

    def __bool__(self) -> bool:
        called("bool")
        return False

    def __repr__(self) -> str:
        called("repr")
        return "Equal"


class Named(Rows):
    pass


Named.__module__ = None  # type: ignore[assignment]
Named.__qualname__ = "a\nname\x1b[31m"


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
            loader = type(loader)(
                loader.dataset,
                batch_size=4,
                sampler=loader.sampler,
                collate_fn=loader.collate_fn,
                num_workers=1,
            )
        _calls.clear()
        loader = watch(loader)
        for _ in range(2):
            count = 0
            for _ in loader:
                count += 1
            say("count", count)
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
