"""Reads the sample once, and writes it into every layout.

The conversion time of a layout is what it would have taken alone.
"""

from __future__ import annotations

import errno
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from .decoders import Decoder
from .layout import Layout, NotStorable
from .page_cache import flush
from .probe_model import Form
from .sample import OutOfTime, Unreadable, read_original
from .scratch import RESERVE_BYTES, free_bytes

# How often free space is checked: others write to the same file system.
SPACE_EVERY_FILES = 16
# Decoding may take this part of the time for copying.
DECODING_SHARE = 0.6
# If no layout takes decoded samples, this many are decoded to time it.
ENOUGH_DECODED = 256
# With less than this left, an error is attributed to the disk.
FULL_BELOW_BYTES = 1_000_000


@dataclass
class Converted:
    """What was copied. `checks` are checksums of the samples of each form, in order."""

    count: int = 0
    bytes: int = 0
    decoded: int = 0  # the number of samples at the start that were decoded
    skipped: Counter[str] = field(default_factory=Counter)
    checks: dict[Form, list[int]] = field(default_factory=lambda: {"encoded": [], "decoded": []})
    stopped: str | None = None


def check(sample: Any) -> int:
    """A checksum of bytes, or of an array with its shape and type."""
    if isinstance(sample, np.ndarray):
        head = zlib.crc32(f"{sample.dtype.str}{sample.shape}".encode())
        return zlib.crc32(np.ascontiguousarray(sample).tobytes(), head)
    return zlib.crc32(sample)


def convert(
    paths: Sequence[str],
    layouts: Sequence[Layout],
    decoder: Decoder | None,
    max_bytes: int,
    deadline: float,
    free: Callable[[Path], int] = free_bytes,
) -> Converted:
    """Write the samples into all layouts that have no `reason`, until time or space ends.

    A layout that cannot hold them gets its reason and is emptied. The first layout is the files.
    Raises UsageError where the disk is full.
    """
    parent, budget_s = layouts[0].folder.parent, DECODING_SHARE * (deadline - time.monotonic())
    work = _Conversion(layouts, decoder, max_bytes, deadline, budget_s)
    with ExitStack() as opened:
        for layout in layouts:
            opened.callback(layout.close)
        try:
            for number, path in enumerate(paths):
                if not number % SPACE_EVERY_FILES and free(parent) < RESERVE_BYTES // 2:
                    work.done.stopped = "free space ran low"
                    break
                work.one(path)
        except OutOfTime:
            work.done.stopped = "the time for copying was over"
        work.finish()
    return work.done


@dataclass
class _Conversion:
    layouts: Sequence[Layout]
    decoder: Decoder | None
    max_bytes: int
    deadline: float
    decode_budget_s: float
    done: Converted = field(default_factory=Converted)

    def alive(self, form: Form) -> list[Layout]:
        """Layouts of this form without a reason against them."""
        return [each for each in self.layouts if each.reason is None and form == each.format.form]

    def one(self, path: str) -> None:
        """One file into every layout."""
        begun = time.perf_counter()
        try:
            data = read_original(path, self.max_bytes, self.deadline)
        except Unreadable as error:
            self.done.skipped[str(error)] += 1
            return
        read_s = time.perf_counter() - begun
        if self.done.count and self.done.bytes + len(data) > self.max_bytes:
            return  # it has grown since it was chosen
        if self.decoder is not None and self.decode_budget_s > 0:
            begun = time.perf_counter()
            try:
                sample = self.decoder.decode(data)
            except Exception as error:
                self.done.skipped[f"does not decode ({type(error).__name__})"] += 1
                return
            decode_s = time.perf_counter() - begun
            self.decode_budget_s -= decode_s
            self.add_decoded(sample, len(data), read_s + decode_s)
        for layout in self.alive("encoded"):
            self.add(layout, data, len(data), read_s)
        self.done.count += 1
        self.done.bytes += len(data)
        self.done.checks["encoded"].append(check(data))

    def add_decoded(self, sample: Any, source_bytes: int, before_s: float) -> None:
        """One decoded sample into the decoded layouts, as far as their bound allows."""
        self.done.decoded += 1
        taking = 0
        for layout in self.alive("decoded"):
            if not isinstance(sample, np.ndarray):
                layout.give_up("samples do not decode to one array each")
                continue
            layout.full = layout.full or layout.stored_bytes + sample.nbytes > self.max_bytes
            if not layout.full:
                self.add(layout, sample, source_bytes, before_s)
                taking += layout.reason is None
            elif not layout.count:
                layout.give_up("a single decoded sample exceeds the bound on bytes: raise --bytes")
        if taking:
            self.done.checks["decoded"].append(check(sample))
        elif self.done.decoded >= ENOUGH_DECODED:
            self.decode_budget_s = 0.0

    def add(self, layout: Layout, sample: Any, source_bytes: int, before_s: float) -> None:
        if layout.first is None:
            self.guarded(layout, layout.begin, sample)
            layout.convert_s = 0.0  # opening takes as long for a larger data set
        self.guarded(layout, layout.add, sample)
        layout.convert_s += before_s
        layout.source_bytes += source_bytes

    def guarded(self, layout: Layout, step: Callable[..., object], *arguments: Any) -> None:
        """One step of a layout. If it fails, that is the layout's reason; a full disk ends the
        probe."""
        if layout.reason is not None:
            return
        begun = time.perf_counter()
        try:
            step(*arguments)
        except NotStorable as error:
            layout.give_up(clean(error, 200))
        except Exception as error:
            if _full(error, layout.folder.parent):
                raise UsageError(
                    "the disk became full: lower --bytes, or name a roomier folder with --temp"
                ) from error
            layout.give_up(f"writing it failed ({type(error).__name__}: {clean(error, 160)})")
        layout.convert_s += time.perf_counter() - begun

    def finish(self) -> None:
        """Close every layout and flush its files to the storage."""
        for layout in self.layouts:
            if layout.reason is None and not layout.count:
                layout.give_up("no sample could be stored in it")
            self.guarded(layout, layout.finish)
            self.guarded(layout, lambda each=layout: flush(each.files))
        if self.layouts[0].reason is not None and self.done.count:
            raise UsageError(f"the files cannot be copied: {self.layouts[0].reason}")


def _full(error: Exception, folder: Path) -> bool:
    """Whether a full disk caused the error, which LMDB calls an I/O error."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    try:
        return free_bytes(folder) < FULL_BELOW_BYTES
    except OSError:
        return False
