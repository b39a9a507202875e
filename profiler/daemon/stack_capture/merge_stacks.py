"""From py-spy's speedscope files to one small file a burst: equal stacks counted, frames once, rare
stacks dropped."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

from ...store.stacks.burst_file import MAX_DEPTH, StackRow
from ...store.stacks.stack_samples import Frame

MAX_INPUT_BYTES = 4 << 20
MAX_OUTPUT_CHARACTERS = 2_000_000
MAX_TEXT = 1_000

_THREAD = re.compile(r'Thread (\S+) "(.*)"', re.DOTALL)
_PYTHON = (".py", ".pyw", ".pyi")


class Merged:
    """The stacks of several processes. `counts` maps (process, thread, frames) to samples."""

    def __init__(self) -> None:
        self.frames: dict[Frame, int] = {}
        self.counts: Counter[tuple[int, str, tuple[int, ...]]] = Counter()

    def add(self, process: int, pid: int, path: Path, native: bool) -> int:
        """Add what py-spy wrote of one process; returns how many samples it took of it.

        Raises OSError, ValueError, KeyError, TypeError or IndexError for a file that is not what it
        should be.
        """
        if os.stat(path).st_size > MAX_INPUT_BYTES:
            raise ValueError("it has too many threads, or too deep stacks, to be taken in")
        data = json.loads(path.read_bytes())
        known = [self._frame(frame, native) for frame in data["shared"]["frames"]]
        for profile in data["profiles"]:
            match = _THREAD.search(profile["name"])
            tid, name = match.groups() if match else ("", profile["name"])
            # A worker forked from another thread goes by that thread's name.
            thread = "MainThread" if tid == str(pid) else name[:MAX_TEXT]
            for stack in profile["samples"]:
                self.counts[process, thread, tuple([known[at] for at in stack[:MAX_DEPTH]])] += 1
        return max((len(profile["samples"]) for profile in data["profiles"]), default=0)

    def _frame(self, frame: dict[str, Any], native: bool) -> int:
        file = str(frame.get("file") or "")[:MAX_TEXT]
        compiled = native and not file.endswith(_PYTHON) and not file.startswith("<")
        found = Frame(str(frame["name"])[:MAX_TEXT], file, int(frame.get("line") or 0), compiled)
        return self.frames.setdefault(found, len(self.frames))

    def kept(self) -> tuple[tuple[Frame, ...], tuple[StackRow, ...], int]:
        """The frames and stacks there is room for, and how many samples were dropped."""
        room, dropped = MAX_OUTPUT_CHARACTERS, 0
        frames = list(self.frames)
        places: dict[int, int] = {}
        stacks = []
        for (process, thread, stack), count in self.counts.most_common():
            new = [at for at in dict.fromkeys(stack) if at not in places]
            # About what they take as JSON; characters outside ASCII take six.
            cost = 40 + 6 * len(thread) + 7 * len(stack)
            cost += sum(40 + 6 * (len(frames[at].function) + len(frames[at].file)) for at in new)
            if cost > room:
                dropped += count
                continue
            room -= cost
            for at in new:
                places[at] = len(places)
            stacks.append(StackRow(process, thread, tuple(places[at] for at in stack), count))
        return tuple(frames[at] for at in places), tuple(stacks), dropped
