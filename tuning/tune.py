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
from .evidence.settings import why_fixed
from .switch.switching import handing_out
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
    """Try this loader's settings during the training, from its next iteration on; returns the
    loader itself.

    `num_workers`, `prefetch_factor` and `pin_memory` take turns with the loader's own values for
    some steps each. What is proven faster stays; otherwise the loader keeps its own settings. Where
    the data set's source shows nothing but lookups, whole batches by one lookup (`__getitems__`)
    are tried too. Only a loader whose batches depend on their indices alone is tuned, and the loop
    gets the same batches as without tuning. The loader is recorded, as by `watch`, and the run
    directory keeps the trials. When the program ends, one line on standard error says what was
    found, and what to write into the code.

    `budget`: the most seconds to spend on trying. `steps`: the number of batches of the whole
    training; at most a tenth of them are used for trying. `dry`: try nothing, and say what would be
    tried and why the rest would not. `any_order`: try `in_order=False` too; each batch still comes
    once, as soon as it is ready. `any_random`: tune a data set that draws random numbers too; it
    draws others under other settings.

    If the settings of a loader cannot change in mid-epoch, it is recorded only, and one line on
    standard error says why. Raises UsageError for something that cannot be iterated over, or an
    invalid budget.
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
    """How to tune; see `tune`."""

    budget_s: float = BUDGET_S
    steps: int | None = None
    dry: bool = False
    any_order: bool = False
    any_random: bool = False


def tune_all(options: Options) -> None:
    """As `watch_all`, and tune every DataLoader whose settings can change in mid-epoch."""
    watch_all()

    def choose(loader: Any) -> Callable[[Any], Any] | None:
        driver = _driver(loader, options)
        return None if driver is None else handing_out(driver, options.any_random)

    hand_out_each(choose)


def tune_as_told() -> None:
    """Tune in a script that `loaderscope tune` runs, with the options of its command line."""
    tune_all(Options(**json.loads(os.environ.get(VARIABLE) or "{}")))


_drivers: weakref.WeakKeyDictionary[Any, Tuner] = weakref.WeakKeyDictionary()


def _driver(loader: Any, options: Options) -> Tuner | None:
    """The driver of this loader and of those made alike after it; None if its settings are
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
