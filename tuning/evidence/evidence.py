"""Evidence that a loader's batches depend on their indices alone.

It is gathered while the code's own settings make the batches, and other settings wait for it. What
speaks against it later ends tuning: state that fetching or the loop changes, random numbers, files
that are written, batches that are views of the data. A reason is one sentence.
"""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...profiler.base.clock import now_ns
from ...profiler.record.session import session as sessions
from .batches import memory_of, tensors_of, views, why_not_sent
from .guards import DRAWS, FAR_NS, VIEWS, WRITES, ObservedFetch
from .program import waits_for_any_child, written_in_place
from .samplers import drawn_at_once, generator_of
from .settings import Settings
from .shared_files import SharedHandles
from .state import State
from .streams import Streams
from .worker_context import forks

LOOKS = 64  # batches looked at, each of them
WARM = 2  # the first fetches may open what is opened late
ENOUGH = WARM + SharedHandles.LOOKS + 1  # batches looked at before other settings make any
# Of the loop's time after that, spent on looking. A look takes 5 µs, so that a loop of 0.25 ms per
# batch is looked at with each batch: what it changes must not be missed for long.
SHARE = 0.02
FAR_SHARE = 0.00025  # of the time, spent on what is far; streams of random numbers go with it
NO_FILES = ("/proc/", "/sys/", "/dev/")
FILES = 8  # opened by every fetch, and looked at for changes
# Of a batch's memory, this much may be a storage that it is a view of: the whole of it would be
# sent.
MOST_SENT = 4


class Evidence:
    """About one loader, from this process. Work in other processes is checked by comparing
    batches."""

    nothing_changed_here = False  # a worker was looked at that changes nothing

    def __init__(
        self, loader: Any, any_random: bool = False, clock: Callable[[], int] = now_ns
    ) -> None:
        self.any_random, self.pid = any_random, os.getpid()
        self.changed_in_epoch = False
        self.why: str | None = None  # no other settings may make its batches
        self.why_no_workers: str | None = None  # nor may workers, which its code has not
        self.why_not_here: str | None = None  # nor may this process, where its code has workers
        self.looks = 0
        self.data: State | None = None  # of the data set and the collate function
        self._clock, self._began_ns, self._began_unix_ns = clock, clock(), time.time_ns()
        self._spent_ns = self._asked = self._far_from = 0
        self._looking = self._far = self._settled = False  # `_far`: also at what is far
        self._own_workers = False
        self._streams, self._handles = Streams(), SharedHandles()
        self._fetch: ObservedFetch | None = None
        # That every fetch opens; None before the first fetch of which that is known.
        self._files: dict[str, Any] | None = None
        self.compared: set[int] = set()  # numbers of workers whose batches were found equal
        self._sampler: State | None = None  # of one whose indices may be drawn early
        self._drawn_at_once = drawn_at_once(loader._index_sampler)
        self._has_generator = generator_of(loader._index_sampler) is not None
        self._epoch_draws = 0  # of the last epoch that was drawn to its end

    # Which settings are allowed.

    def why_not(self, own: Settings, other: Settings) -> str | None:
        """Why these settings must not make the loader's batches; None if they may."""
        why = self.why
        if why is None and self.looks < ENOUGH:
            why = "too few of its batches were checked"
        if why is None and other.num_workers and not own.num_workers:
            why = self.why_no_workers
        if why is None and own.num_workers and not other.num_workers:
            why = self.why_not_here
        if why is None and other.ahead > own.ahead and not self.draws_early(0):
            why = (
                "its sampler may depend on the loop, so indices cannot be drawn earlier than the "
                "code draws them"
            )
        return why

    def end(self, why: str) -> None:
        """From now on, only the code's own settings make batches."""
        self.why = self.why or why

    def settle(self) -> None:
        """The code's own settings stay: nothing more is looked at."""
        self._settled, self._looking = True, False

    def draws_early(self, drawn: int) -> bool:
        """Whether another index may be drawn earlier than the code's own settings draw it, after so
        many. The last one, which may find the end, is never early if that moves a generator that
        the program has."""
        late = self._has_generator and drawn + 1 >= self._epoch_draws
        return self._drawn_at_once and not late

    # As the loop goes on.

    def epoch_begins(self, loader: Any, own: Settings) -> str | None:
        """What has changed since the last epoch; None if nothing has, or if this is the first."""
        changed = self.changed_since_workers_began()
        if self.data is None or changed is not None:
            self._own_workers = own.num_workers > 0
            if not forks(loader.multiprocessing_context):
                self.why_not_here = (
                    "its workers are not forked, so nothing shows first what fetching changes"
                )
            place = waits_for_any_child()
            if place is not None:
                self.end(f"the program waits for any of its processes to end ({place})")
            found = State({"the data set": loader.dataset, "collate_fn": loader.collate_fn})
            self._judge_state(found)
            if own.num_workers:
                found.changed(full=True)  # what is far is read for the first time
        if self._drawn_at_once:
            sampler = loader._index_sampler
            others = (loader.dataset, loader.collate_fn, loader.generator, generator_of(sampler))
            self._sampler = State({"the sampler": sampler}, others)
        self._looking = self.changed_in_epoch = False
        if changed is not None and own.persistent_workers:
            self.end(f"the program changes {changed}, which kept workers do not see")
        return changed

    def changed_since_workers_began(self) -> str | None:
        """What has changed since this epoch's, or the last one's, workers of the code's own began,
        all of it compared; None if nothing has."""
        changed = self.data.changed(full=True) if self.data is not None else None
        self.changed_in_epoch |= changed is not None
        return changed

    def epoch_ends(self, draws: int) -> None:
        """It was drawn to its end, after so many indices."""
        self._epoch_draws = draws

    def asked(self, by_own: bool, iterator: Any) -> str | None:
        """The loop asks for a batch, which this iterator of torch's will make. Returns what the
        loop has changed since the last look; None if nothing was seen."""
        if self.data is None or (by_own and (self._settled or self.why is not None)):
            self._looking = False
            return None
        began = self._clock()
        may = self.may_look(began)
        self._far = self._asked < LOOKS or began >= self._far_from
        # Workers, the code's own or others, have the data set as it was when the epoch began.
        unseen = not by_own and self._own_workers and iterator._num_workers > 0
        self._looking = may and (self._far or not unseen)
        if not self._looking:
            return None
        self._asked += 1
        changed = self._changed_by_loop()
        if self._far:
            ended = self._clock()
            self._far_from = ended + int((ended - began) / FAR_SHARE)
        fetcher = getattr(iterator, "_dataset_fetcher", None)
        if by_own and self.looks < LOOKS and fetcher is not None:  # this process fetches next
            looks = self.looks > WARM and self._handles.looks < SharedHandles.LOOKS
            self._fetch = ObservedFetch(fetcher, self._streams, self._handles if looks else None)
        self._spent_ns += self._clock() - began
        return changed

    def made(self, batch: Any, own: Settings) -> None:
        """The code's own settings have made a batch that was asked for."""
        if not self._looking or self.data is None:
            return
        began = self._clock()
        self.looks += 1
        if not own.num_workers:
            self._judge(self.data, batch)
        self._spent_ns += self._clock() - began

    def may_look(self, now: int | None = None) -> bool:
        """Whether looking has taken little enough of the loop's time since the first batches."""
        now = now or self._clock()
        if self._asked < LOOKS:
            self._began_ns, self._spent_ns = now, 0
        return self._spent_ns <= SHARE * (now - self._began_ns)

    def _changed_by_loop(self) -> str | None:
        assert self.data is not None
        far_ns = FAR_NS if self._far else 0
        changed = self.data.changed(far_ns)
        if changed is None and self._files:
            others = (path for path, was in self._files.items() if _stamp(path) != was)
            changed = next(others, None)
        if changed is not None:
            self.changed_in_epoch = True
            self._judge_state(self.data.again())
            self.end(f"the loop changes {changed} between batches")
        heard = self._sampler.changed(far_ns) if self._sampler is not None else None
        if heard is not None:
            self._drawn_at_once, self._sampler = False, None
        return changed or heard

    # What speaks against it.

    def _judge(self, data: State, batch: Any) -> None:
        """A batch was fetched in this process."""
        changed = data.changed(FAR_NS if self._far else 0)
        if changed is not None:
            data = data.again()
            self._judge_state(data)
        fetch, self._fetch = self._fetch, None
        if fetch is not None and fetch.drew and not self.any_random:
            self.end(DRAWS)
        if self.looks <= WARM:
            return
        if changed is not None:
            self.end(f"fetching changes {changed}")
        if fetch is None:
            return
        if fetch.wrote:
            self.end(WRITES)
        if fetch.hooked:
            self._judge_files(fetch.opened)
        if self.why_no_workers is None:
            self.why_no_workers = (
                fetch.why_not_forked
                or self._handles.why_not_forked
                or why_not_sent(batch)
                or _why_not_copied(batch, data)
                or next(iter(data.fork_obstacles), None)
            )

    def _judge_files(self, paths: list[Any]) -> None:
        """Those that the fetch opened for reading."""
        session = sessions.current()
        ours = () if session is None else (str(session.run_directory),)
        names = (os.fsdecode(path) for path in paths if isinstance(path, str | bytes | os.PathLike))
        opened = {path: _stamp(path) for path in names if not path.startswith((*NO_FILES, *ours))}
        for path, stamp in opened.items():
            if stamp is not None and stamp[0] > self._began_unix_ns:
                name = Path(path).name
                self.end(f"fetching reads {name}, which was written while the loop went on")
        again = opened if self._files is None else self._files
        self._files = {path: opened[path] for path in list(opened)[:FILES] if path in again}

    def _judge_state(self, data: State) -> None:
        """What the data set and the collate function hold now."""
        self.data = data
        for why in data.obstacles:
            self.end(why)
        if self._own_workers and data.writes is not None:
            self.end(data.writes)  # of what workers write nothing is seen from here
        if not data.complete:
            self.end("its data set is too large to be checked")
        for name in data.large:
            where = written_in_place(name.rpartition(".")[2].rpartition(" ")[2])
            if where is not None:
                why = f"{where} may write to {name}, which is too large to compare each batch"
                if self._own_workers:
                    self.why_not_here = self.why_not_here or why
                else:
                    self.why_no_workers = self.why_no_workers or why


def _why_not_copied(batch: Any, data: State) -> str | None:
    """Why the loop cannot have a copy of the batch, as a worker sends it."""
    if views(batch, data):
        return VIEWS
    for storage, size in (each[1:] for each in map(memory_of, tensors_of(batch)) if each):
        if storage > MOST_SENT * max(size, 1 << 20):
            return f"its batches are views of {storage / 1e6:,.0f} MB, all of which workers send"
    return None


def _stamp(path: str) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        found = Path(path).stat()
        return found.st_mtime_ns, found.st_size
    return None
