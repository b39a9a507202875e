"""Which files a thread or the process opens during a fetch, by a compiled audit hook (`_audit`). In
Python a hook would cost each event of the program more than it tells.

The hook sees Python's own `open`. For files opened by C libraries (h5py, lmdb, pyarrow) see
`containers`. A hook cannot be removed, so it is installed only after reading was seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ...native import form

# The most opens remembered of one fetch.
MOST = 8192

_installed = False
_scope: bool | None = None  # the present `whole_process`, None while nothing is remembered
_before: list[Any] = []  # remembered before `also`, in that scope
native: Any = None
if form.native is not None:
    with suppress(ImportError):
        from ...native import _audit as native


def installed() -> bool:
    """Whether this process has the hook."""
    return _installed


def install() -> None:
    """Add the hook to this process, once. Another hook may silently prevent that."""
    global _installed
    if native is not None and not _installed:
        native.install()
        _installed = True


def begin(whole_process: bool) -> None:
    """Remember what this thread, or the whole process, opens for reading from now on."""
    global _scope
    _scope = whole_process
    _before.clear()
    if native is not None:
        native.begin(MOST, whole_process)


def end() -> list[Any]:
    """The paths opened since `begin`, in order, as they were given. Safe to call at any time."""
    global _scope
    _scope = None
    found = _before + (native.end() if native is not None else [])
    _before.clear()
    return found


@contextmanager
def also() -> Iterator[list[Any]]:
    """A list that receives, at the end of the `with`, what this thread opened in it. An outer
    listener misses nothing."""
    scope = _scope
    earlier = end() if scope is not None else []
    begin(False)
    found: list[Any] = []
    try:
        yield found
    finally:
        found += end()
        if scope is not None:
            begin(scope)
            _before[:] = earlier + found
