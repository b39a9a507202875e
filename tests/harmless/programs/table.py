"""Most programs: loaders of each kind, with and without workers, times what may happen to a loop.

Named `loops/KIND-WORKERS-EVENT`, and `starts/METHOD-KIND-EVENT` where workers are not forked.
"""

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


class Failing(Rows):
    """Fails at a sample of the third batch, whatever the order; each worker counts for itself.
    Still: at one sample."""

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


def sample_fails(make: Make) -> None:
    loader = make(Failing())
    caught(lambda: eat(loader))


def sample_fails_uncaught(make: Make) -> None:
    eat(make(Failing()))


def sample_stops(make: Make) -> None:
    caught(lambda: eat(make(Stopping())))


def collate_fails(make: Make) -> None:
    caught(lambda: eat(make(Rows(), collate_fn=BadCollate())))


def loop_fails(make: Make) -> None:
    for count, batch in enumerate(make(Rows())):
        say("batch", digest(batch))
        if count == 2:
            raise RuntimeError("the model diverged")


def loop_exits(make: Make) -> None:
    for count, _ in enumerate(make(Rows())):
        if count == 2:
            sys.exit(3)


def ctrl_c(make: Make) -> None:
    for count, batch in enumerate(make(Rows())):
        say("batch", digest(batch))
        if count == 2:
            os.kill(os.getpid(), signal.SIGINT)


def terminated(make: Make) -> None:
    for count, _ in enumerate(make(Rows())):
        if count == 2:
            os.kill(os.getpid(), signal.SIGTERM)


def preempted(make: Make) -> None:
    signal.signal(signal.SIGTERM, preempt)
    loader = make(Rows())

    def run() -> None:
        for count, _ in enumerate(loader):
            if count == 2:
                os.kill(os.getpid(), signal.SIGTERM)

    caught(run)
    eat(loader)


def worker_killed(make: Make) -> None:
    try:
        for _ in make(Deadly()):
            pass
    except RuntimeError as error:
        say("error", str(error))


def worker_leaves(make: Make) -> None:
    caught(lambda: eat(make(Leaving())))


def forked(make: Make) -> None:
    """Half way, a child goes through the same loader from the beginning."""
    loader = make(Rows())
    for count, batch in enumerate(loader):
        say("batch", digest(batch))
        if count == 2:
            child = os.fork()
            if child == 0:
                torch.manual_seed(5)
                eat(loader)
                os._exit(7)
            say("child", os.waitpid(child, 0)[1])


def collected(make: Make) -> None:
    loader = make(Rows())
    for _ in range(2):
        for batch in loader:
            say("batch", digest(batch))
            gc.collect()


def warned(make: Make) -> None:
    eat(make(Warning_()))


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
    iterator = iter(make(Rows()))
    next(iterator)
    cycle = [iterator]
    cycle.append(cycle)  # type: ignore[arg-type]
    del iterator, cycle
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


FAILING = (twice, left_early, sample_fails, sample_fails_uncaught, sample_stops, collate_fails)
ENDING = (loop_fails, loop_exits, ctrl_c, terminated, preempted, worker_killed, worker_leaves)
LOOKING = (forked, collected, warned, together, copied, dropped, shown)

# Kinds in full; of the others, every so many an event, so that each meets several.
IN_FULL = {("map", 0), ("map", 2), ("stateful", 0), ("stream", 2)}
EVERY = 6

# Where only a signal decides how far others came, or which of two workers was first.
SAID = ("error", "traceback", "batches")
UNJUDGED = {
    worker_killed: ("stderr",),
    # Torch's SIGCHLD handler raises wherever the main process is then: past the program's `except`
    # too (one of 36 bare runs), or before a first batch.
    worker_leaves: ("stderr", "status", *SAID, "end threads", "end descriptors"),
    # Pipes of workers that are let go are closed sooner or later: bare runs ended with 8 to 14
    # descriptors (11 of a stateful stream), or with 6 to 10 (24 of plain loaders).
    dropped: ("end descriptors",),
}


def declare(
    name: str, kind: str, event: Callable[[Make], None], given: dict[str, Any], **how: Any
) -> None:
    def run(watch: Watch) -> None:
        event(lambda rows, **more: watch(KINDS[kind](rows, **given, **more)))

    recorded = event is not worker_leaves
    program(name, unjudged=UNJUDGED.get(event, ()) if given else (), recorded=recorded, **how)(run)


def declare_all() -> None:
    for place, kind in enumerate(KINDS):
        for number, event in enumerate((*FAILING, *ENDING, *LOOKING)):
            for workers in (0, 2):
                chosen = (kind, workers) in IN_FULL or (number + place + workers) % EVERY == 0
                only_workers = event is worker_killed or kind == "persistent"
                if not chosen or (only_workers and not workers):
                    continue
                workers = min(workers, 1 if event in ONE_WORKER else 2)  # noqa: PLW2901
                given = {"num_workers": workers} if workers else {}
                name = f"loops/{kind}-{workers}-{event.__name__}"
                tuned = (number + workers // 2) % 2 == 0 and is_switched(kind, event)
                declare(name, kind, event, given, counts_sigchld=not workers, tuned=tuned)
    for method, kinds in STARTED.items():
        for kind, event in kinds:
            given = {"num_workers": 1, "multiprocessing_context": method}
            name, tuned = f"starts/{method}-{kind}-{event.__name__}", is_switched(kind, event)
            declare(name, kind, event, given, limit_s=120, tuned=tuned)


def is_switched(kind: str, event: Callable[[Make], None]) -> bool:
    return kind in SWITCHED and event not in BY_SETTINGS


# Of two workers that fail, it is chance whose error comes first.
ONE_WORKER = (sample_fails, sample_fails_uncaught, sample_stops, collate_fails, worker_leaves)

# Of these kinds settings can be changed in mid-epoch; the others are left as they are, and run
# watched.
SWITCHED = set(KINDS) - {"stream", "stateful", "statestream"}

# Which process of how many warns or dies is what settings are about. And torch's workers do not
# notice the end of a parent that is killed in the very moment it starts them, which new settings do
# more often.
BY_SETTINGS = (warned, worker_killed, worker_leaves, terminated)

# A spawned worker imports torch, which takes seconds.
STARTED: dict[str, tuple[tuple[str, Callable[[Make], None]], ...]] = {
    "spawn": (("map", left_early), ("stream", sample_fails), ("stateful", ctrl_c)),
    "forkserver": (("map", sample_fails), ("whole", preempted), ("stream", collate_fails)),
}
STARTED["spawn"] += (("persistent", twice),)
STARTED["forkserver"] += (("persistent", warned),)

declare_all()
