"""Loaderscope: where every batch's time goes, and why.

    import loaderscope
    loader = loaderscope.watch(loader)

Importing this package loads neither torch nor numpy nor rich: names are resolved on first use.
"""

from __future__ import annotations

__version__ = "0.1.0"
