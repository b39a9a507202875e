"""From py-spy's speedscope files to one small file per burst: equal stacks are counted, frames
stored once, rare stacks dropped."""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

from ...store.stacks.stack_samples import MAX_DEPTH, Frame, StackRow, Wait
from .thread_waits import Seen

MAX_INPUT_BYTES = 4 << 20
MAX_OUTPUT_CHARACTERS = 2_000_000
MAX_TEXT = 1_000

_THREAD = re.compile(r'Thread (\S+) "(.*)"', re.DOTALL)


_Key = tuple[int, str, tuple[int, ...]]


class Merged:
    """The stacks of several processes. `counts` maps (process, thread, frames) to samples, `waits`
    to what the thread did in the samples where that is known."""

    def __init__(self) -> None:
        self.frames: dict[Frame, int] = {}
        self.counts: Counter[_Key] = Counter()
        self.waits: defaultdict[_Key, Counter[Seen]] = defaultdict(Counter)

    def add(
        self,
        process: int,
        pid: int,
        path: Path,
        pairs: Callable[[int], list[Seen | None] | None],
    ) -> int:
        """Add what py-spy wrote of one process; returns how many samples it took. `pairs(n)` is
        what the main thread did at each of the n samples.

        Raises OSError, ValueError, KeyError, TypeError or IndexError for a file that is not what it
        should be.
        """
        if os.stat(path).st_size > MAX_INPUT_BYTES:
            raise ValueError("it has too many threads, or too deep stacks, to be taken in")
        data = json.loads(path.read_bytes())
        known = [self._frame(frame) for frame in data["shared"]["frames"]]
        for profile in data["profiles"]:
            match = _THREAD.search(profile["name"])
            tid, name = match.groups() if match else ("", profile["name"])
            # A worker forked from another thread goes by that thread's name.
            thread = "MainThread" if tid == str(pid) else name[:MAX_TEXT]
            keys: list[_Key] = [
                (process, thread, tuple([known[at] for at in stack[:MAX_DEPTH]]))
                for stack in profile["samples"]
            ]
            self.counts.update(keys)
            told = pairs(len(keys)) if tid == str(pid) else None
            for key, seen in zip(keys, told or (), strict=False):
                if seen is not None:
                    self.waits[key][seen] += 1
        return max((len(profile["samples"]) for profile in data["profiles"]), default=0)

    def _frame(self, frame: dict[str, Any]) -> int:
        file = str(frame.get("file") or "")[:MAX_TEXT]
        found = Frame(str(frame["name"])[:MAX_TEXT], file, int(frame.get("line") or 0))
        return self.frames.setdefault(found, len(self.frames))

    def kept(
        self, slots: Sequence[Hashable]
    ) -> tuple[tuple[Frame, ...], tuple[StackRow, ...], int, tuple[Wait, ...]]:
        """The frames and stacks that fit, how many samples were dropped, and the waits.

        `slots`: by process, which worker it is; workers of later epochs have the same slots.
        """
        room, dropped = MAX_OUTPUT_CHARACTERS, 0
        frames = list(self.frames)
        places: dict[int, int] = {}
        waits: dict[Wait, int] = {}
        sharers = self._sharers(slots)
        stacks = []
        for (process, thread, stack), count in self.counts.most_common():
            new = [at for at in dict.fromkeys(stack) if at not in places]
            # About what they take as JSON; characters outside ASCII take six.
            cost = 40 + 6 * len(thread) + 7 * len(stack)
            cost += sum(40 + 6 * len(each.what) for each in self.waits[process, thread, stack])
            cost += sum(40 + 6 * (len(frames[at].function) + len(frames[at].file)) for at in new)
            if cost > room:
                dropped += count
                continue
            room -= cost
            for at in new:
                places[at] = len(places)
            seen = Counter[Wait]()
            for each, times in self.waits[process, thread, stack].items():
                seen[Wait(each.kind, each.what, len(sharers[each.key]) if each.key else 0)] += times
            told = tuple((waits.setdefault(each, len(waits)), n) for each, n in seen.items())
            stacks.append(StackRow(process, thread, tuple(places[at] for at in stack), count, told))
        return tuple(frames[at] for at in places), tuple(stacks), dropped, tuple(waits)

    def _sharers(self, slots: Sequence[Hashable]) -> dict[tuple[str, int], set[Hashable]]:
        """By each lock that processes share: those that waited for it."""
        found: defaultdict[tuple[str, int], set[Hashable]] = defaultdict(set)
        for (process, _, _), seen in self.waits.items():
            for each in seen:
                if each.key is not None:
                    found[each.key].add(slots[process])
        return found
