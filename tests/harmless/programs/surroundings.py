"""Odd interpreters and surroundings: without standard error, arguments or a folder, with -OO,
-X dev."""

from __future__ import annotations

import gc
import os
import weakref
from typing import Any

from torch.utils.data import DataLoader

from ..catalogue import Watch, program, say
from ..data import Rows, eat
from .table import Failing, caught


def plain(watch: Watch) -> None:
    """A little of everything."""
    loader = watch(DataLoader(Rows(), batch_size=4, shuffle=True))
    eat(loader)
    eat(watch(DataLoader(Rows(), batch_size=4, num_workers=1)))
    caught(lambda: eat(watch(DataLoader(Failing(), batch_size=4))))


for what in ("no stderr", "no argv", "odd argv", "no folder"):
    program(f"surroundings/{what.replace(' ', '-')}", prepared=what, watched=("watch", "all-pure"))(
        plain
    )


@program(
    "surroundings/no-stderr-but-a-message", prepared="no stderr", watched=("watch", "all-pure")
)
def something_to_tell_and_nowhere_to(watch: Watch) -> None:
    """A limit that is no number makes us speak: not on standard output."""
    os.environ["LOADERSCOPE_MAX_MB"] = "many"
    plain(watch)


for options in (("-OO",), ("-X", "dev"), ("-W", "error")):
    program(f"interpreter/{''.join(options)}", options=options, limit_s=120)(plain)


@program("surroundings/garbage-is-never-collected", watched=("all", "watch-pure"))
def without_a_collector(watch: Watch) -> None:
    """What an iterator holds goes with it: its queues' pipes are closed without a collection of
    garbage."""
    gc.disable()
    loader = watch(DataLoader(Rows(8), batch_size=4, num_workers=1))
    eat(loader)
    queues = []
    for _ in range(3):
        iterator = iter(loader)
        queues.append(weakref.ref(iterator._worker_result_queue))
        eat(iterator)
        del iterator
    say("queues left", sum(queue() is not None for queue in queues))


@program("surroundings/closed-descriptors")
def without_standard_descriptors(watch: Watch) -> None:
    """As daemons have it: what is opened next is 0, 1 and 2, and is not to be written to."""
    for fd in (0, 1, 2):
        os.close(fd)
    names = [os.open(f"own-{number}", os.O_RDWR | os.O_CREAT) for number in range(3)]
    say("descriptors", names)
    plain(watch)
    say("sizes", [os.fstat(fd).st_size for fd in names])


@program("surroundings/no-environment")
def without_environment(watch: Watch) -> None:
    kept = {name: os.environ[name] for name in ("LOADERSCOPE_DIR", "HARMLESS_SHM")}
    os.environ.clear()
    os.environ.update(kept)
    plain(watch)


@program("surroundings/patched-clock")
def a_clock_that_stands_still(watch: Watch) -> None:
    """As tests freeze it: everything in `time` answers one moment."""
    import time

    for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "perf_counter_ns"):
        moment: Any = getattr(time, name)()
        setattr(time, name, lambda moment=moment: moment)
    loader = watch(DataLoader(Rows(), batch_size=4, shuffle=True))
    eat(loader)
    eat(loader)


@program("surroundings/restrictive-umask")
def with_a_umask_that_takes_all(watch: Watch) -> None:
    os.umask(0o777)
    plain(watch)


@program("surroundings/unpickled-loader")
def a_watched_loader_is_pickled(watch: Watch) -> None:
    """What is pickled of a watched loader is what is pickled of a bare one, byte for byte."""
    import hashlib
    import pickle

    loader = watch(DataLoader(Rows(), batch_size=4))
    eat(loader)
    say("pickled", hashlib.md5(pickle.dumps(loader)).hexdigest())
