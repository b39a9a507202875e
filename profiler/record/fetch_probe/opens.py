"""Which files a thread or the process opens during a fetch: an audit hook, compiled (`_audit`) or
the Python beside it.

The hook sees what goes through Python's own `open`: a file opened by a C library (h5py, lmdb,
pyarrow) is not seen here, see `containers`. A hook cannot be taken away again, so it is installed
only where reading was seen before.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from ...guard.error_origin import is_ours
from ...native.form import PURE_VARIABLE

# Of one fetch, so many opens are remembered.
MOST = 8192

_installed = False
_thread = 0
_ALL = -1
_paths: list[Any] = []
_scope: bool | None = None  # `whole_process` of what is remembered now; None while nothing is
_before: list[Any] = []  # remembered before `also`, in that scope
_ACCESS = getattr(os, "O_ACCMODE", 3)


def load(environ: Mapping[str, str] = os.environ) -> Any:
    """The extension; None where the Python form is used."""
    if environ.get(PURE_VARIABLE, "0") not in ("", "0"):
        return None
    try:
        from ...native import _audit
    except ImportError:
        return None
    return _audit


native = load()


def installed() -> bool:
    """Whether this process has the hook."""
    return _installed


def install() -> None:
    """Add the hook to this process, once. Another hook may prevent that without a sign."""
    global _installed
    if not _installed:
        if native is not None:
            native.install()
        else:
            sys.addaudithook(_on_event)
        _installed = True


def begin(whole_process: bool) -> None:
    """Remember what this thread, or any thread of this process, opens for reading from now on."""
    global _thread, _paths, _scope, _before
    _scope, _before = whole_process, []
    if native is not None:
        native.begin(MOST, whole_process)
    else:
        _paths = []
        _thread = _ALL if whole_process else get_ident()


def end() -> list[Any]:
    """What was opened since `begin`, in order, as it was given: texts, bytes, paths. Safe to call
    at any time."""
    global _thread, _paths, _scope, _before
    _scope, found, _before = None, _before, []
    if native is not None:
        found += native.end()
        return found
    _thread = 0
    opened, _paths = _paths, []
    return found + opened


@contextmanager
def also() -> Iterator[list[Any]]:
    """What this thread opens within the `with`, in a list that is filled at its end. An outer
    listener misses nothing."""
    global _before
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
            _before = earlier + found


def _on_event(event: str, args: tuple[Any, ...]) -> None:
    if not _thread or event != "open" or _thread not in (_ALL, get_ident()):
        return
    try:
        path, _, flags = args
        if type(path) is int or len(_paths) >= MOST:
            return
        if type(flags) is int and (flags & _ACCESS == os.O_WRONLY or flags & os.O_EXCL):
            return  # to be written, or made by this very call: no data is in it
        _paths.append(path)
    except Exception as error:  # one of ours would be the user's `open` failing
        if not is_ours(error):
            raise
