"""Advice as a change of the user's own source: which lines it is about, the edit, the diff, and
writing it."""

from __future__ import annotations

from importlib.util import find_spec


def why_no_patches() -> str | None:
    """What is not installed; None where patches can be made."""
    if find_spec("libcst") is not None:
        return None
    return "patches need LibCST: pip install 'loaderscope[fix]'"
