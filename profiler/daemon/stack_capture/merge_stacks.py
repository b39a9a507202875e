"""From py-spy's speedscope files to one small file a burst: equal stacks counted, frames once, rare
stacks dropped."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_INPUT_BYTES = 4 << 20
MAX_OUTPUT_CHARACTERS = 2_000_000
MAX_TEXT = 1_000
MAX_DEPTH = 512

_THREAD = re.compile(r'Thread (\S+) "(.*)"', re.DOTALL)
_PYTHON = (".py", ".pyw", ".pyi")

Place = tuple[str, str, int, bool]  # function, file, line, native


@dataclass
class Merged:
    """The stacks of several processes. `counts` maps (process, thread, frames) to samples."""

    frames: dict[Place, int] = field(default_factory=dict)
    counts: dict[tuple[int, str, tuple[int, ...]], int] = field(default_factory=dict)

    def add(self, process: int, pid: int, path: Path, native: bool) -> int:
        """Take in what py-spy wrote of one process; returns how many samples it took of it.

        Raises OSError, ValueError, KeyError, TypeError or IndexError for a file that is not what it
        should be.
        """
        if os.stat(path).st_size > MAX_INPUT_BYTES:
            raise ValueError("it has too many threads, or too deep stacks, to be taken in")
        data = json.loads(path.read_bytes())
        known = [self._frame(frame, native) for frame in data["shared"]["frames"]]
        most = 0
        for profile in data["profiles"]:
            match = _THREAD.search(profile["name"])
            tid, name = (match[1], match[2]) if match else ("", profile["name"])
            # A worker forked from another thread goes by that thread's name.
            thread = "MainThread" if tid == str(pid) else name[:MAX_TEXT]
            samples = profile["samples"]
            most = max(most, len(samples))
            for stack in samples:
                key = process, thread, tuple([known[at] for at in stack[:MAX_DEPTH]])
                self.counts[key] = self.counts.get(key, 0) + 1
        return most

    def _frame(self, frame: dict[str, Any], native: bool) -> int:
        file = str(frame.get("file") or "")[:MAX_TEXT]
        compiled = native and not file.endswith(_PYTHON) and not file.startswith("<")
        place = str(frame["name"])[:MAX_TEXT], file, int(frame.get("line") or 0), compiled
        return self.frames.setdefault(place, len(self.frames))

    def told(self) -> dict[str, Any]:
        """`frames`, `stacks` and `dropped` (samples of stacks there was no room for), as JSON
        values."""
        room = MAX_OUTPUT_CHARACTERS
        places = list(self.frames)
        kept: dict[int, int] = {}
        stacks: list[list[Any]] = []
        dropped = 0
        for (process, thread, stack), count in sorted(
            self.counts.items(), key=lambda item: -item[1]
        ):
            new = [at for at in dict.fromkeys(stack) if at not in kept]
            # About what they take as JSON; characters outside ASCII take six.
            cost = 40 + 6 * len(thread) + 7 * len(stack)
            cost += sum(40 + 6 * (len(places[at][0]) + len(places[at][1])) for at in new)
            if cost > room:
                dropped += count
                continue
            room -= cost
            for at in new:
                kept[at] = len(kept)
            stacks.append([process, thread, [kept[at] for at in stack], count])
        return {"frames": [list(places[at]) for at in kept], "stacks": stacks, "dropped": dropped}
