"""Chooses the form of the hot path once: compiled (`_native`), or in Python (`python_form`), a few
times slower. `hooks` is the form in use.

Both have the names and signatures of `_native.pyi`. A wheel without the extension, another
platform, a Python without a GIL, and `LOADERSCOPE_PURE=1` get the Python form. The rest of the
recorder shares the fields of `BatchTimings` and `LaneState` with the hooks. Compiled, they are C
numbers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..base.schema import BATCH, WINDOW_AT, Schema
from . import layout

PURE_VARIABLE = "LOADERSCOPE_PURE"

# The clock that the extension reads; `clock.now_ns` must be the same.
_CLOCK = "clock_gettime(CLOCK_MONOTONIC)"


def load(environ: Mapping[str, str] = os.environ) -> tuple[Any, str]:
    """(the extension, ""), or (None, the reason for the Python form)."""
    if environ.get(PURE_VARIABLE, "0") not in ("", "0"):
        return None, f"{PURE_VARIABLE} is set"
    if "t" in getattr(sys, "abiflags", ""):
        return None, "this Python has no GIL"
    if time.get_clock_info("monotonic").implementation != _CLOCK:
        return None, "this platform has another clock"
    try:
        from . import _native

        tell(_native)
    except ImportError as error:
        return None, f"the extension is not there ({error})"
    except ValueError as error:
        return None, f"the extension was built from other sources ({error})"
    return _native, ""


def tell(
    extension: Any,
    record: Schema = BATCH,
    every: int = layout.SAMPLE_EVERY,
    mark: bytes = layout.MARK,
) -> None:
    """Tell the extension the layout of what it writes. ValueError if it was built for another."""
    fields = {field.name: (field.code, record.offset(field.name)) for field in record.fields}
    extension.records(
        WINDOW_AT, record.size, fields, every, layout.SAMPLE_RARELY, layout.OFTEN_UNTIL
    )
    extension.envelopes(
        layout.TIMES.format,
        layout.SENT.format,
        mark,
        layout.SEAL,
        layout.SAMPLE_EVERY,
        layout.ALWAYS_AT_FIRST,
        layout.ALWAYS_DETAILED_NS,
    )


native, why_python = load()

if TYPE_CHECKING:
    from . import _native
    from ._native import BatchTimings as BatchTimings
    from ._native import LaneState as LaneState
    from ._native import StepMarks as StepMarks

    hooks = _native
else:
    hooks = native
    if native is None:
        from . import python_form as hooks
    BatchTimings, LaneState, StepMarks = hooks.BatchTimings, hooks.LaneState, hooks.StepMarks
