"""Runs at Python's start-up in a process of `loaderscope run`, and records its DataLoaders once
torch is imported.

It removes itself from `sys.path`, and runs the environment's own `sitecustomize` if there is one. A
failure here prints one line, and the program goes on.
"""

import sys


def _restore():
    """Restore the path, and run the environment's sitecustomize."""
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401  the environment's own
    except ImportError as error:
        if getattr(error, "name", None) != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = this  # the import system expects to find one


def _begin():
    """Hook torch's DataLoader once it is imported."""
    import os

    if not os.environ.get("LOADERSCOPE_RUN"):
        return
    home = os.environ.get("LOADERSCOPE_HOME")
    added = False
    try:
        import importlib.util

        if importlib.util.find_spec("loaderscope") is None and home:
            sys.path.append(home)  # a Python in which we are not installed
            added = True
        from loaderscope.profiler.record.iterate.imports import after_import

        def call(named):
            from importlib import import_module

            module, _, name = named.partition(":")
            getattr(import_module(module), name)()

        if os.environ.get("LOADERSCOPE_START"):
            call(os.environ["LOADERSCOPE_START"])
        begin = os.environ.get("LOADERSCOPE_BEGIN") or (
            "loaderscope.profiler.record.iterate.watch:watch_all"
        )
        after_import("torch.utils.data", lambda: call(begin))
    except Exception as error:
        if added:
            sys.path.remove(home)
        if sys.stderr is not None:  # `print` would take standard output in its place
            print(
                f"loaderscope: this process is not recorded: {type(error).__name__}: {error}",
                file=sys.stderr,
            )


_restore()
_begin()
