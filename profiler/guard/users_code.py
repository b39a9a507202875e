"""Whose code a file holds: the user's, an installed package's, Python's, or this package's."""

from __future__ import annotations

import functools
import os
import re
import sysconfig

from ..base.own_frames import HERE

_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
_STANDARD = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")})
_OURS = os.path.dirname(HERE.rstrip(os.sep)) + os.sep


@functools.lru_cache(maxsize=4096)
def package_of(file: str) -> str | None:
    """The installed package that this file belongs to."""
    found = _INSTALLED.match(file)
    return found[1] if found is not None else None


def of_python(file: str) -> bool:
    """Whether the file belongs to Python itself."""
    return file.startswith((*_STANDARD, "<frozen ")) and package_of(file) is None


def of_user(file: str) -> bool:
    """Whether the file's code is the user's. Code typed into a shell or notebook is."""
    return not (package_of(file) or of_python(file) or file.startswith(_OURS))
