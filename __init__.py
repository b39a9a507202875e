"""Loaderscope: where every batch's time goes, and why.

    import loaderscope
    loader = loaderscope.watch(loader)

Importing this package loads neither torch nor numpy nor rich: names are resolved on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in `typing`, without its import
if TYPE_CHECKING:
    from .advisors.model import Report
    from .advisors.report import report
    from .advisors.whatif.predict import predict
    from .profiler.errors import LoaderscopeError
    from .profiler.run import Run
    from .profiler.run_reader import open_run
    from .profiler.watch import unwatch, watch, watch_all

__version__ = "0.1.0"

__all__ = ["LoaderscopeError", "Report", "Run", "open_run", "predict", "report", "unwatch", "watch", "watch_all"]

# Public name → the module that has it.
_HOMES = {
    "LoaderscopeError": "profiler.errors",
    "Report": "advisors.model",
    "Run": "profiler.run",
    "open_run": "profiler.run_reader",
    "predict": "advisors.whatif.predict",
    "report": "advisors.report",
    "unwatch": "profiler.watch",
    "watch": "profiler.watch",
    "watch_all": "profiler.watch",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
