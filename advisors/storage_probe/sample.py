"""Takes a reproducible sample of the files, and reads them safely."""

from __future__ import annotations

import os
import random
import stat
import time
from itertools import accumulate, takewhile

from .bounds import Bounds
from .source import Data, File

_PIECE = 4 << 20


class Unreadable(Exception):
    """A file that cannot be part of the sample; the text says why, in a few words."""


class OutOfTime(Exception):
    """The time for copying ended within a file."""


def choose(data: Data, bounds: Bounds, seed: int) -> tuple[list[File], int]:
    """Files in random order within the bounds, and how many are larger than the bound on bytes.

    The order is random, so that a part of it is a fair sample too if copying has to stop.
    """
    order = [file for file in data.files if file[1] <= bounds.max_bytes]
    too_large = len(data.files) - len(order)
    random.Random(seed).shuffle(order)
    total = accumulate(size for _, size in order)
    number = sum(1 for _ in takewhile(lambda size: size <= bounds.max_bytes, total))
    return order[: min(number, bounds.max_files)], too_large


def read_original(path: str, limit: int, deadline: float) -> bytes:
    """The file's bytes. Raises Unreadable, and OutOfTime where slow storage would take it past the
    deadline."""
    try:
        # A pipe or a link may have replaced the file since the walk: do not block or follow it.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise Unreadable(f"cannot be opened ({error.strerror or error})") from error
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            raise Unreadable("is not a file any more")
        if about.st_size > limit:
            raise Unreadable("has grown beyond the bound on bytes")
        pieces, left = [], about.st_size
        while left > 0:
            if time.monotonic() > deadline:
                raise OutOfTime
            piece = os.read(handle, min(left, _PIECE))
            if not piece:
                break
            pieces.append(piece)
            left -= len(piece)
        return b"".join(pieces)
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror or error})") from error
    finally:
        os.close(handle)
