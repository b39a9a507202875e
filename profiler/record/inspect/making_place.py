"""Where a loader was made: the user's own lines that led to it, the innermost first.

Frames of installed packages are passed over. Only code names and positions are read, never
variables.
"""

from __future__ import annotations

import itertools
import os
import sys
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any

from ...base.metadata import Facts
from ...guard.error_origin import forgiving
from ...guard.static_access import instance_vars
from ...guard.users_code import of_user, package_of
from ...store.making import MAX_LINES
from .uses import cell_of, frames

MAX_NOTED = 1024
# torch calls it in every loader's `__init__`. Nothing looks at it, and it takes no arguments.
_CALLED = "check_worker_number_rationality"


class _Noted:
    """What is known of one loader; nothing here keeps it, or its data set, alive."""

    def __init__(self, loader: Any, made: Facts) -> None:
        self.loader = weakref.ref(loader)
        self.dataset: Callable[[], Any] = lambda: None
        self.made = made
        with forgiving(TypeError):
            self.dataset = weakref.ref(instance_vars(loader).get("dataset"))

    def same_data(self, other: _Noted) -> bool:
        mine = self.dataset()
        return mine is not None and mine is other.dataset()


_noted: OrderedDict[int, _Noted] = OrderedDict()


def note_makings() -> Any:
    """Note where each loader of this process is made from now on. Returns what ends it."""
    from torch.utils.data import DataLoader

    original = vars(DataLoader).get(_CALLED)
    if type(original) is not FunctionType:
        return lambda: None
    hook = _Noticing(original)
    setattr(DataLoader, _CALLED, hook)

    def end() -> None:
        _noted.clear()
        if vars(DataLoader).get(_CALLED) is hook:
            setattr(DataLoader, _CALLED, original)

    return end


class _Noticing:
    """Notes that a method is looked up, and gives the method itself: no frame of ours is around its
    call, where torch warns with `stacklevel=2`."""

    def __init__(self, original: FunctionType) -> None:
        self._original = original

    def __get__(self, loader: Any, owner: Any = None) -> Any:
        if loader is None:
            return self._original
        known = _noted.get(id(loader))
        if known is None or known.loader() is not loader:
            _note(loader)
        return self._original.__get__(loader)  # torch asks again with each epoch of workers


def _note(loader: Any) -> None:
    with forgiving():
        _noted[id(loader)] = _Noted(loader, made_here())
        while len(_noted) > MAX_NOTED:
            _noted.popitem(last=False)


def making_of(loader: Any) -> Facts | None:
    """Where this loader was made, see `store.making.Making`; None where that was not seen. Of one
    that a framework made out of the user's, where the user's was made."""
    own = _noted.get(id(loader))
    if own is None or own.loader() is not loader:
        return None
    if own.made["through"] is not None:
        for other in list(_noted.values()):
            if other.made["through"] is None and other.same_data(own):
                return {**other.made, "through": own.made["through"], "again": True}
    return own.made


def made_here() -> Facts:
    """The lines of the user's own on the stack, and the package between them and the loader."""
    lines: list[Facts] = []
    through: str | None = None
    call: str | None = None
    for frame in frames(sys._getframe(1)):
        if len(lines) >= MAX_LINES:
            break
        file = frame.f_code.co_filename
        if of_user(file):
            lines.append(_line(frame))
        elif not lines:
            package = package_of(file)
            if package is not None and package not in ("torch", "torchdata"):
                through, call = package, frame.f_code.co_name
    return {"lines": lines, "through": through, "call": call, "again": False}


def _line(frame: FrameType) -> Facts:
    code, line = frame.f_code, frame.f_lineno
    cell = cell_of(code.co_filename)
    found: Facts = {
        "file": os.path.abspath(code.co_filename) if code.co_filename[:1] != "<" else "",
        "line": line,
        "function": code.co_name,
    }
    if cell is not None:
        found["cell"] = cell
    positions = getattr(code, "co_positions", None)  # from Python 3.11 on
    if positions is not None:
        at = next(itertools.islice(positions(), frame.f_lasti // 2, None), None)
        if at is not None and None not in at and at[0] == line:
            found["end_line"], found["column"], found["end_column"] = at[1], at[2], at[3]
    return found
