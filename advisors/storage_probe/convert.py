"""Copies the sample once and writes it into every layout on the way, timing what each would have
cost alone."""

from __future__ import annotations

import errno
import time
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from .decoders import Decoder
from .encoded import Files
from .layout import Layout, NotStorable
from .page_cache import flush
from .sample import OutOfTime, Unreadable, read_original
from .scratch import RESERVE_BYTES, free_bytes

# How often free space is asked for again: others write to the same file system.
SPACE_EVERY_FILES = 16

# Decoding may take this part of the time for copying; the samples decoded until then are the
# decoded layouts' own.
DECODING_SHARE = 0.6

# Where no layout takes decoded samples (any more), so many are decoded to know how long it takes.
ENOUGH_DECODED = 256

# An error with less than this left on the disk is laid to the disk.
FULL_BELOW_BYTES = 1_000_000


@dataclass
class Converted:
    """What was copied. `checks` are checksums of the samples, encoded and decoded, by which reading
    is verified."""

    count: int = 0
    bytes: int = 0
    decoded: int = 0  # the first so many decode
    skipped: Counter[str] = field(default_factory=Counter)
    encoded_checks: list[int] = field(default_factory=list)
    decoded_checks: list[int] = field(default_factory=list)
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
    """Write the samples into all layouts that have no `reason`, until there are no more or time or
    space ends.

    A layout that cannot hold them gets its reason and is emptied. Raises UsageError where the disk
    is full.
    """
    work = _Conversion(layouts, decoder, max_bytes, time.monotonic(), deadline)
    try:
        for layout in work.alive():
            work.guarded(layout, layout.begin)
            layout.convert_s = 0.0  # done once, however large the data set is
        for number, path in enumerate(paths):
            if time.monotonic() > deadline:
                work.done.stopped = "the time for copying was over"
                break
            if (
                number % SPACE_EVERY_FILES == 0
                and free(layouts[0].folder.parent) < RESERVE_BYTES // 2
            ):
                work.done.stopped = "free space ran low"
                break
            try:
                work.one(path)
            except OutOfTime:
                work.done.stopped = "the time for copying was over"
                break
        work.finish()
    except BaseException:
        for layout in work.alive():
            layout.give_up("the conversion was broken off")
        raise
    return work.done


class _Conversion:
    def __init__(
        self,
        layouts: Sequence[Layout],
        decoder: Decoder | None,
        max_bytes: int,
        begun: float,
        deadline: float,
    ) -> None:
        self.layouts, self.decoder, self.max_bytes, self.deadline = (
            layouts,
            decoder,
            max_bytes,
            deadline,
        )
        self.decode_budget_s = DECODING_SHARE * (deadline - begun)
        self.done = Converted()

    def alive(self, form: str | None = None) -> list[Layout]:
        """Layouts without a reason against them."""
        return [each for each in self.layouts if each.reason is None and form in (None, each.form)]

    def guarded(self, layout: Layout, step: Callable[..., object], *arguments: Any) -> None:
        """One step of one layout: what goes wrong in it is its reason, but a full disk ends the
        probe."""
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

    def one(self, path: str) -> None:
        """One file into every layout."""
        begun = time.perf_counter()
        try:
            data = read_original(path, self.max_bytes, self.deadline)
        except Unreadable as error:
            self.done.skipped[str(error)] += 1
            return
        read_s = time.perf_counter() - begun
        if (
            self.done.count and self.done.bytes + len(data) > self.max_bytes
        ):  # it has grown since it was chosen
            return
        if self.decoder is not None and self.decode_budget_s > 0 and not self.decode(data, read_s):
            return
        for layout in self.alive("encoded"):
            self.add(layout, data, len(data), read_s)
        self.done.count += 1
        self.done.bytes += len(data)
        self.done.encoded_checks.append(check(data))

    def decode(self, data: bytes, read_s: float) -> bool:
        """Decode into the decoded layouts; whether the sample is fit to be one."""
        assert self.decoder is not None
        begun = time.perf_counter()
        try:
            sample = self.decoder.decode(data)
        except Exception as error:
            self.done.skipped[f"does not decode ({type(error).__name__})"] += 1
            return False
        decode_s = time.perf_counter() - begun
        self.decode_budget_s -= decode_s
        self.done.decoded += 1
        if not isinstance(sample, np.ndarray):
            for layout in self.alive("decoded"):
                layout.give_up("samples do not decode to one array each")
            return True
        for layout in self.alive("decoded"):
            if layout.full or layout.stored_bytes + sample.nbytes > self.max_bytes:
                layout.full = True
                if not layout.count:
                    layout.give_up(
                        "a single decoded sample exceeds the bound on bytes: raise --bytes"
                    )
                continue
            self.add(layout, sample, len(data), read_s + decode_s)
        if any(not layout.full for layout in self.alive("decoded")):
            self.done.decoded_checks.append(check(sample))
        elif self.done.decoded >= ENOUGH_DECODED:
            self.decode_budget_s = 0.0
        return True

    def add(self, layout: Layout, sample: Any, source_bytes: int, before_s: float) -> None:
        self.guarded(layout, layout.add, sample)
        layout.convert_s += before_s
        layout.source_bytes += source_bytes

    def finish(self) -> None:
        """Close every layout and have its files on the storage, in turn."""
        for layout in self.alive():
            if not layout.count:
                layout.give_up("no sample could be stored in it")
                continue
            self.guarded(layout, layout.finish)
            if layout.reason is None:
                self.guarded(layout, lambda each=layout: flush(each.paths()))
        files = self.layouts[0]
        if isinstance(files, Files) and files.reason is not None and self.done.count:
            raise UsageError(f"the files cannot be copied: {files.reason}")


def _full(error: Exception, folder: Path) -> bool:
    """Whether a full disk is behind an error. Libraries have words of their own for it: LMDB says
    I/O error."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    try:
        return free_bytes(folder) < FULL_BELOW_BYTES
    except OSError:
        return False
