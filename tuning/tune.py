"""`tune`: a loader whose settings are tried while the training goes on."""

from __future__ import annotations

import math
from typing import TypeVar

from ..profiler.base.errors import UsageError
from ..profiler.iterate.watch import hand_out, recorder_of, watch
from ..profiler.session import session as sessions
from .settings import why_fixed
from .switching import handing_out
from .tuner import Tuner

T = TypeVar("T")

BUDGET_S = 60.0


def tune(loader: T, *, budget: float = BUDGET_S, steps: int | None = None, dry: bool = False) -> T:
    """Try this loader's settings while training goes on, from its next iteration on; returns the loader itself.

    `num_workers`, `prefetch_factor` and `pin_memory` are changed for some steps at a time, in turns with the loader's
    own; what is proven faster stays, and nothing proven, its own. Batches and their order stay the same; what random
    augmentation draws in workers does not. The loader is recorded, as by `watch`; the run directory keeps the trials.

    `budget` is the most seconds to spend on trying; `steps`, how many batches the whole training has, makes that a
    tenth of them at most. With `dry`, the loader's own settings are put back at the end whatever was found.

    A loader whose settings cannot be changed in mid-epoch is recorded and left alone, and one line on standard error
    says why. Raises UsageError for something that cannot be iterated over, or a budget that is no time.
    """
    if isinstance(budget, bool) or not isinstance(budget, int | float) or not math.isfinite(budget) or budget <= 0:
        raise UsageError(f"budget must be a number of seconds above 0, not {budget!r}")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps <= 0):
        raise UsageError(f"steps must be a whole number above 0, not {steps!r}")
    watched = watch(loader)
    why = why_fixed(watched)
    if why is None:
        hand_out(watched, handing_out(Tuner(watched, budget, steps, dry)))
    else:
        recorder = recorder_of(watched)
        sessions.tell(f"{recorder.name if recorder else 'the loader'} is recorded, but not tuned: {why}")
    return watched
