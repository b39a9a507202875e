"""Calls a function right after a module is imported, without importing it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ...guard.error_origin import is_ours


def after_import(module: str, call: Callable[[], None]) -> Callable[[], None]:
    """Call `call()` after `module` is imported, at once if it was. Returns a function that ends the
    waiting."""
    waiter = _Waiter(module, call)
    if module in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, waiter)
    return waiter.leave


class _Waiter:
    """Finds one module by the other finders, wraps its loader, and leaves."""

    def __init__(self, module: str, call: Callable[[], None]) -> None:
        self._module = module
        self._call = call

    def leave(self) -> None:
        """Stop waiting."""
        with suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        self.leave()
        spec = importlib.util.find_spec(fullname)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            _call_after(spec.loader, self._call)
        return spec


def _call_after(loader: Any, call: Callable[[], None]) -> None:
    original = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        # Restore the loader before the module's code can see it. Another waiter for the module may
        # have done so.
        vars(loader).pop("exec_module", None)
        original(module)
        try:
            call()
        except Exception as error:  # the import has succeeded
            if not is_ours(error):
                raise
            if sys.stderr is not None:  # `print` would take standard output in its place
                print(
                    f"loaderscope: nothing is recorded: {type(error).__name__}: {error}",
                    file=sys.stderr,
                )

    loader.exec_module = exec_module
