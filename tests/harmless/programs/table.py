"""Most programs: loaders of each kind, times what may happen to a loop: `loops/KIND-WORKERS-EVENT`, and
`starts/METHOD-KIND-EVENT` where workers are not forked."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import default_collate, get_worker_info

from ..catalogue import Watch, program, say, still
from ..data import KINDS, Rows, digest, eat

BAD = 10  # of the samples a process makes

Make = Callable[..., Any]  # a watched loader over these rows
Event = Callable[[Make], None]


class Failing(Rows):
    """Fails at a sample of the third batch, as each worker counts; still: at one sample."""

    made = 0

    def __getitem__(self, index: int) -> Any:
        self.made += 1
        if (index if still() else self.made) == BAD:
            self.fail()
        return super().__getitem__(index)

    def fail(self) -> None:
        raise ValueError("a bad sample")


class Stopping(Failing):
    def fail(self) -> None:
        raise StopIteration("odd")


class Deadly(Failing):
    def fail(self) -> None:
        info = get_worker_info()
        if info is not None and info.id == 1:
            time.sleep(0.3)  # what was made before has arrived
            os.kill(os.getpid(), signal.SIGKILL)


class Leaving(Failing):
    def fail(self) -> None:
        sys.exit(5)


class Warning_(Rows):
    def __getitem__(self, index: int) -> Any:
        if index % 8 == 0:
            warnings.warn(f"sample {index} looks odd", stacklevel=1)
            warnings.warn("seen from the caller", UserWarning, stacklevel=2)
        return super().__getitem__(index)


class BadCollate:
    made = 0

    def __call__(self, samples: Any) -> Any:
        self.made += 1
        indices = [samples[0]] if isinstance(samples, tuple) else [sample[0] for sample in samples]
        if BAD in indices if still() else self.made == 3:
            raise TypeError("cannot be collated")
        return samples


class Preempted(Exception):
    pass


def preempt(number: int, frame: Any) -> None:
    raise Preempted(number)


def caught(run: Callable[[], Any]) -> None:
    """Runs it and says what it raises, as it is printed."""
    try:
        run()
    except BaseException as error:
        around = [repr(error.__cause__), repr(error.__context__)]
        say("error", [type(error).__name__, str(error), *around])
        say("traceback", traceback.format_exc())
        # Torch leaves the error in a cycle, and the iterator with it.
        traceback.clear_frames(error.__traceback__)


def twice(make: Make) -> None:
    loader = make(Rows())
    eat(loader)
    eat(loader)


def left_early(make: Make) -> None:
    loader = make(Rows())
    for most in (2, 1, 3):
        eat(loader, most)


def after_three(make: Make, act: Callable[[], Any]) -> None:
    for count, batch in enumerate(make(Rows())):
        say("batch", digest(batch))
        if count == 2:
            act()


def diverge() -> None:
    raise RuntimeError("the model diverged")


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def preempted(make: Make) -> None:
    signal.signal(signal.SIGTERM, preempt)
    loader = make(Rows())
    caught(lambda: after_three(lambda rows: loader, terminate))
    eat(loader)


def worker_killed(make: Make) -> None:
    try:
        for _ in make(Deadly()):
            pass
    except RuntimeError as error:
        say("error", str(error))


def forked(make: Make) -> None:
    """Half way, a child goes through the same loader from the beginning."""
    loader = make(Rows())

    def fork() -> None:
        child = os.fork()
        if child == 0:
            torch.manual_seed(5)
            eat(loader)
            os._exit(7)
        say("child", os.waitpid(child, 0)[1])

    after_three(lambda rows: loader, fork)


def collected(make: Make) -> None:
    loader = make(Rows())
    for _ in range(2):
        for batch in loader:
            say("batch", digest(batch))
            gc.collect()


def together(make: Make) -> None:
    one, two = make(Rows()), make(Rows(16))
    say("pairs", [[digest(a), digest(b)] for a, b in zip(one, two, strict=False)])


def copied(make: Make) -> None:
    loader = make(Rows())
    eat(loader)
    for other in (pickle.loads(pickle.dumps(loader)), copy.copy(loader)):
        eat(other)
    say("attributes", sorted(vars(loader)))


def dropped(make: Make) -> None:
    """Iterators let go of at once, half way and in a cycle, and loaders with them."""
    next(iter(make(Rows())))
    cycle: list[Any] = [iter(make(Rows()))]
    next(cycle[0])
    cycle.append(cycle)
    del cycle
    gc.collect()
    eat(make(Rows()))


def shown(make: Make) -> None:
    """What a curious program reads of a loader and its iterator."""
    loader = make(Rows())
    iterator = iter(loader)
    next(iterator)
    fetcher = getattr(iterator, "_dataset_fetcher", None)
    kind, held = type(loader), sorted(vars(loader))
    say("loader", [kind.__module__, kind.__qualname__, held, len(loader)])
    kind = type(iterator)
    say("iterator", [kind.__module__, kind.__qualname__, repr(kind.__mro__[-2:])])
    held = sorted(vars(fetcher)) if fetcher is not None else None
    say("fetcher", [type(fetcher).__qualname__, held])
    same = getattr(iterator, "_collate_fn", None) in (loader.collate_fn, default_collate)
    say("collate", [same, getattr(loader.collate_fn, "__qualname__", "")])


EVENTS: dict[str, Event] = {
    "twice": twice,
    "left_early": left_early,
    "sample_fails": lambda make: caught(lambda: eat(make(Failing()))),
    "sample_fails_uncaught": lambda make: eat(make(Failing())),
    "sample_stops": lambda make: caught(lambda: eat(make(Stopping()))),
    "collate_fails": lambda make: caught(lambda: eat(make(Rows(), collate_fn=BadCollate()))),
    "loop_fails": lambda make: after_three(make, diverge),
    "loop_exits": lambda make: after_three(make, lambda: sys.exit(3)),
    "ctrl_c": lambda make: after_three(make, lambda: os.kill(os.getpid(), signal.SIGINT)),
    "terminated": lambda make: after_three(make, terminate),
    "preempted": preempted,
    "worker_killed": worker_killed,
    "worker_leaves": lambda make: caught(lambda: eat(make(Leaving()))),
    "forked": forked,
    "collected": collected,
    "warned": lambda make: eat(make(Warning_())),
    "together": together,
    "copied": copied,
    "dropped": dropped,
    "shown": shown,
}

# Kinds in full; of the others, every so many an event, so that each meets several.
IN_FULL = {("map", 0), ("map", 2), ("stateful", 0), ("stream", 2)}
EVERY = 6

# Where only a signal decides how far others came, or which of two workers was first.
SAID = ("error", "traceback", "batches")
UNJUDGED = {
    "worker_killed": ("stderr",),
    # Torch's SIGCHLD handler raises wherever the main process is then: past the program's `except`
    # too (one of 36 bare runs), or before a first batch.
    "worker_leaves": ("stderr", "status", *SAID, "end threads", "end descriptors"),
    # Pipes of workers that are let go are closed sooner or later: bare runs ended with 8 to 14
    # descriptors (11 of a stateful stream), or with 6 to 10 (24 of plain loaders).
    "dropped": ("end descriptors",),
}
# Of two workers that fail, it is chance whose error comes first.
ONE_WORKER = (
    "sample_fails",
    "sample_fails_uncaught",
    "sample_stops",
    "collate_fails",
    "worker_leaves",
)
# Of these kinds settings can be changed in mid-epoch; the others are left as they are.
SWITCHED = set(KINDS) - {"stream", "stateful", "statestream"}
# Which process of how many warns or dies is what settings are about. And torch's workers miss the
# end of a parent that is killed as it starts them, which new settings do more often.
BY_SETTINGS = ("warned", "worker_killed", "worker_leaves", "terminated")
# A spawned worker imports torch, which takes seconds.
STARTED = {
    "spawn": "map-left_early stream-sample_fails stateful-ctrl_c persistent-twice",
    "forkserver": "map-sample_fails whole-preempted stream-collate_fails persistent-warned",
}


def declare(
    name: str, kind: str, what: str, given: dict[str, Any], tuned: bool, **how: Any
) -> None:
    def run(watch: Watch) -> None:
        EVENTS[what](lambda rows, **more: watch(KINDS[kind](rows, **given, **more)))

    how |= {
        "recorded": what != "worker_leaves",
        "unjudged": UNJUDGED.get(what, ()) if given else (),
    }
    tuned = tuned and kind in SWITCHED and what not in BY_SETTINGS
    program(f"{name}-{what}", tuned=tuned, **how)(run)


for place, kind in enumerate(KINDS):
    for number, what in enumerate(EVENTS):
        for workers in (0, 2):
            chosen = (kind, workers) in IN_FULL or (number + place + workers) % EVERY == 0
            only_workers = what == "worker_killed" or kind == "persistent"
            if chosen and (workers or not only_workers):
                some = min(workers, 1 if what in ONE_WORKER else 2)
                given = {"num_workers": some} if some else {}
                tuned = (number + some // 2) % 2 == 0
                declare(f"loops/{kind}-{some}", kind, what, given, tuned, counts_sigchld=not some)
for method, programs in STARTED.items():
    for kind, what in (each.split("-") for each in programs.split()):
        given = {"num_workers": 1, "multiprocessing_context": method}
        declare(f"starts/{method}-{kind}", kind, what, given, True, limit_s=120)
