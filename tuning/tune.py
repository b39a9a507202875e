"""`tune`: a loader whose settings are tried while the training goes on."""

from __future__ import annotations

import json
import math
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from ..profiler.base.errors import UsageError
from ..profiler.record.iterate.watch import hand_out, hand_out_each, recorder_of, watch, watch_all
from ..profiler.record.session import session as sessions
from .at_exit import print_at_exit
from .settings import why_fixed
from .switching import handing_out
from .tuner import Tuner

T = TypeVar("T")

BUDGET_S = 60.0
VARIABLE = (
    "LOADERSCOPE_TUNE"  # the options of `loaderscope tune`, as JSON, for the processes it starts
)


def tune(
    loader: T,
    *,
    budget: float = BUDGET_S,
    steps: int | None = None,
    dry: bool = False,
    any_order: bool = False,
    any_random: bool = False,
) -> T:
    """Try this loader's settings while training goes on, from its next iteration on; returns the
    loader itself.

    `num_workers`, `prefetch_factor` and `pin_memory` are changed for some steps at a time, in turns
    with the loader's own; what is proven faster stays, and nothing proven, its own. Where the data
    set's source shows nothing but look-ups, whole batches by one look-up (`__getitems__`) are tried
    too. Only a loader whose batches were seen to depend on their indices alone is tuned, and the
    loop gets the batches that it would get untuned. The loader is recorded, as by `watch`; the run
    directory keeps the trials. When the program ends, one line on standard error says what was
    found, and what to write into the code.

    `budget` is the most seconds to spend on trying; `steps`, how many batches the whole training
    has, makes that a tenth of them at most. With `dry`, nothing is tried: what would be is told,
    and what forbids the rest. With `any_order`, `in_order=False` is tried too, under which each
    batch still comes once, as soon as it is ready. With `any_random`, a data set that draws random
    numbers is tuned too, and draws others under other settings.

    A loader whose settings cannot be changed in mid-epoch is recorded and left alone, and one line
    on standard error says why. Raises UsageError for something that cannot be iterated over, or a
    budget that is no time.
    """
    number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if not (number and 0 < budget < math.inf):
        raise UsageError(f"budget must be a number of seconds above 0, not {budget!r}")
    if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps <= 0):
        raise UsageError(f"steps must be a whole number above 0, not {steps!r}")
    watched = watch(loader)
    options = Options(budget, steps, dry, any_order, any_random)
    driver = _driver(watched, options)
    if driver is not None:
        hand_out(watched, handing_out(driver, any_random))
        recorder = recorder_of(watched)
        if recorder is not None:
            print_at_exit(driver, recorder.name)
    return watched


@dataclass(frozen=True)
class Options:
    """How long to try, and whether what is found stays."""

    budget_s: float = BUDGET_S
    steps: int | None = None
    dry: bool = False
    any_order: bool = False
    any_random: bool = False


def tune_all(options: Options) -> None:
    """As `watch_all`, with every DataLoader tuned whose settings can be changed in mid-epoch."""
    watch_all()

    def choose(loader: Any) -> Callable[[Any], Any] | None:
        driver = _driver(loader, options)
        return None if driver is None else handing_out(driver, options.any_random)

    hand_out_each(choose)


def tune_as_told() -> None:
    """In a script that `loaderscope tune` runs: with the options of its command line."""
    tune_all(Options(**json.loads(os.environ.get(VARIABLE) or "{}")))


_drivers: weakref.WeakKeyDictionary[Any, Tuner] = weakref.WeakKeyDictionary()


def _driver(loader: Any, options: Options) -> Tuner | None:
    """Who decides on this loader, and on those made alike after it; None where its settings are
    fixed."""
    recorder = recorder_of(loader)
    why = why_fixed(loader)
    if why is not None:
        sessions.tell(
            f"{recorder.name if recorder else 'the loader'} is recorded, but not tuned: {why}"
        )
        return None
    found = _drivers.get(recorder)
    if found is None:
        found = Tuner(loader, options.budget_s, options.steps, options.dry, options.any_order)
        if recorder is not None:
            _drivers[recorder] = found
    found.loader = weakref.ref(loader)
    return found
