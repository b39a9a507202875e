"""Loaderscope: where every batch's time goes, and why.

    import loaderscope
    loader = loaderscope.watch(loader)

Importing this package loads neither torch nor numpy nor rich: names are resolved on first use; the
folder it is imported in is noted.
"""

from __future__ import annotations

from .profiler.base import started_in as _started_in  # noqa: F401  it is noted now: it may be another one later

TYPE_CHECKING = False  # as in `typing`, without its import
if TYPE_CHECKING:
    from .advisors.assemble.build_report import report
    from .advisors.schema.report_model import Report
    from .advisors.whatif.predict import predict
    from .profiler.base.errors import LoaderscopeError
    from .profiler.record.iterate.watch import unwatch, watch, watch_all
    from .profiler.store.run.run import Run
    from .profiler.store.run.run_reader import open_run
    from .tuning.tune import tune

__version__ = "0.1.0"

__all__ = [
    "LoaderscopeError",
    "Report",
    "Run",
    "open_run",
    "predict",
    "report",
    "tune",
    "unwatch",
    "watch",
    "watch_all",
]

# Public name → the module that has it.
_HOMES = {
    "LoaderscopeError": "profiler.base.errors",
    "Report": "advisors.schema.report_model",
    "Run": "profiler.store.run.run",
    "load_ipython_extension": "integrations.notebook",  # what `%load_ext loaderscope` asks for
    "open_run": "profiler.store.run.run_reader",
    "predict": "advisors.whatif.predict",
    "report": "advisors.assemble.build_report",
    "tune": "tuning.tune",
    "unload_ipython_extension": "integrations.notebook",
    "unwatch": "profiler.record.iterate.watch",
    "watch": "profiler.record.iterate.watch",
    "watch_all": "profiler.record.iterate.watch",
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
