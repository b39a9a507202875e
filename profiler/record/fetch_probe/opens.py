"""Which files a thread or the process opens during a fetch, by an audit hook, compiled (`_audit`)
or in Python.

The hook sees Python's own `open`. For files opened by C libraries (h5py, lmdb, pyarrow) see
`containers`. A hook cannot be removed, so it is installed only after reading was seen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import get_ident
from typing import Any

from ...guard.error_origin import forgiving
from ...native import form

# The most opens remembered of one fetch.
MOST = 8192

_installed = False
_thread = 0
_ALL = -1
_paths: list[Any] = []
_scope: bool | None = None  # the present `whole_process`, None while nothing is remembered
_before: list[Any] = []  # remembered before `also`, in that scope
_ACCESS = os.O_ACCMODE


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
    if not _installed:
        if native is not None:
            native.install()
        else:
            sys.addaudithook(_on_event)
        _installed = True


def begin(whole_process: bool) -> None:
    """Remember what this thread, or the whole process, opens for reading from now on."""
    global _thread, _scope
    _scope = whole_process
    _before.clear()
    if native is not None:
        native.begin(MOST, whole_process)
    else:
        _paths.clear()
        _thread = _ALL if whole_process else get_ident()


def end() -> list[Any]:
    """The paths opened since `begin`, in order, as they were given. Safe to call at any time."""
    global _thread, _scope
    _scope, _thread = None, 0
    found = _before + (native.end() if native is not None else _paths)
    _before.clear()
    _paths.clear()
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


def _on_event(event: str, args: tuple[Any, ...]) -> None:
    if not _thread or event != "open" or _thread not in (_ALL, get_ident()):
        return
    with forgiving():  # an error of ours would make the user's `open` fail
        path, _, flags = args
        # A file to be written, or made by this call, holds no data.
        writes = type(flags) is int and (flags & _ACCESS == os.O_WRONLY or flags & os.O_EXCL)
        if not writes and type(path) is not int and len(_paths) < MOST:
            _paths.append(path)
