"""Both forms of the hot path in one process: as it is, and imported anew, LOADERSCOPE_PURE=1."""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any
from unittest import mock

from closing import close_session

COMPILED, PYTHON = "compiled", "python"

_modules: dict[str, ModuleType] = {}  # of the form that is not the process's own


def available() -> list[str]:
    """The forms that this process can have: both, where it has the compiled one."""
    return [COMPILED, PYTHON] if _is_compiled() else [PYTHON]


def _is_compiled() -> bool:
    return _imported("profiler.native.form").native is not None


def _of_package() -> dict[str, ModuleType]:
    ours = [name for name in sys.modules if name.partition(".")[0] == "loaderscope"]
    return {name: sys.modules[name] for name in ours}


@contextmanager
def form(name: str) -> Iterator[Any]:
    """What imports modules of the package by their names in it, in this form. Whatever else imports
    them meanwhile, here or in a process started here, gets the same. Nothing is watched afterwards,
    and no run open."""
    if name == (COMPILED if _is_compiled() else PYTHON):
        yield _imported
        _let_go()
        return
    before = _of_package()
    for other in before:
        del sys.modules[other]
    sys.modules.update(_modules)
    try:
        with mock.patch.dict(os.environ, {"LOADERSCOPE_PURE": "1"}):
            assert not _is_compiled()
            yield _imported
            _let_go()
    finally:
        _modules.update(_of_package())
        for other in _modules:
            del sys.modules[other]
        sys.modules.update(before)


def _let_go() -> None:
    _imported("profiler.record.iterate.watch").unwatch()
    close_session(_imported("profiler.record.session.session"))


def _imported(name: str) -> Any:
    return importlib.import_module(f"loaderscope.{name}")
