from collections.abc import Callable
from typing import Any

def records(
    header: int, record: int, fields: dict[str, tuple[str, int]], every: int, rarely: int, until: int, /
) -> None: ...
def envelopes(
    times: str, sent: str, mark: bytes, seal: bytes, every: int, at_first: int, always_ns: int, /
) -> None: ...

class Hook:
    __wrapped__: Any
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...

def stepping(base: Any, on_end: Any, on_failure: Any, /) -> Hook: ...
def receiving(base: Any, on_end: Any, on_failure: Any, ready: Any, /) -> Hook: ...
def drawing(base: Any, pinned: Any, /) -> Hook: ...
def indexing(base: Any, with_care: Any, /) -> Hook: ...
def processing(base: Any, envelope: type, otherwise: Any, /) -> Hook: ...
def arriving(receive: Any, /) -> Hook: ...
def getting(get: Any, arrival: Hook, envelope: type, /) -> Hook: ...
def taking(get: Any, marks: BatchTimings, begin: Callable[[Any], Any], /) -> Hook: ...
def putting(put: Any, marks: BatchTimings, carefully: Any, who: tuple[Any, ...], /) -> Hook: ...
def sending(send: Any, empty_bytes: int, /) -> Hook: ...

class LaneState:
    buf: Any
    committed: Any
    count: int
    capacity: int
    first: int

class BatchTimings:
    t_fetch: int
    t_collate: int
    t_collated: int
    t_cpu_fetch: int
    t_cpu_collate: int
    t_index: int
    taken: int
    samples: int
    epoch: int
    tasks: int
    detailed: bool
    special: bool
    lane: Any
    device: Any
    envelope: Any
    drawn: Any
    looks: Any

class Parcel:
    payload: Any
    pack_ns: int
    t_sent_ns: int
    pickled_bytes: int
    unpack_ns: int
    pin_ns: int
    @property
    def times(self) -> bytes: ...
    def __new__(cls, payload: Any, meta: bytes, unpack_ns: int, /) -> Parcel: ...

class CollateMark:
    def __get__(self, fetcher: Any, owner: Any = None, /) -> Any: ...
    def __set__(self, fetcher: Any, value: Any, /) -> None: ...

class Stamping:
    def __new__(cls, items: list[Any], stamps: list[int], /) -> Stamping: ...
    def __iter__(self) -> Stamping: ...
    def __next__(self) -> Any: ...
