"""`tune`: a loader whose settings are tried while the training goes on."""

import atexit
import json
import math
import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from ..profiler.base.errors import UsageError
from ..profiler.guard.error_origin import is_ours
from ..profiler.record.iterate.watch import hand_out, hand_out_each, recorder_of, watch, watch_all
from ..profiler.record.session import session as sessions
from ..profiler.store.run.tuning import read_tuning
from .evidence.settings import why_fixed
from .switch.switching import handing_out
from .tuner import BUDGET_S, Tuner
from .tuner import Options as Options

T = TypeVar("T")

VARIABLE = (
    "LOADERSCOPE_TUNE"  # the options of `loaderscope tune`, as JSON, for the processes it starts
)


def tune(
    loader: T,
    *,
    budget: float = BUDGET_S,
    dry: bool = False,
    any_random: bool = False,
) -> T:
    """Try this loader's settings during the training, from its next iteration on; returns the
    loader itself.

    `num_workers`, `prefetch_factor` and `pin_memory` take turns with the loader's own values for
    some steps each. What is proven faster stays; otherwise the loader keeps its own settings. Only
    a loader whose batches depend on their indices alone is tuned, and the loop gets the same
    batches as without tuning. The loader is recorded, as by `watch`, and the run directory keeps
    the trials. When the program ends, one line on standard error says what was found, and what to
    write into the code.

    `budget`: the most seconds to spend on trying. `dry`: try nothing, and say what would be tried
    and why the rest would not. `any_random`: tune a data set that draws random numbers too; it
    draws others under other settings.

    If the settings of a loader cannot change in mid-epoch, it is recorded only, and one line on
    standard error says why. Raises UsageError for something that cannot be iterated over, or an
    invalid budget.
    """
    number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if not (number and 0 < budget < math.inf):
        raise UsageError(f"budget must be a number of seconds above 0, not {budget!r}")
    watched = watch(loader)
    make = _tuning(watched, Options(budget, dry, any_random), _said_at_exit)
    if make is not None:
        hand_out(watched, make)
    return watched


def tune_as_told() -> None:
    """As `watch_all`, and tune every DataLoader whose settings can change in mid-epoch, in a script
    that `loaderscope tune` runs, with the options of its command line."""
    options = Options(**json.loads(os.environ.get(VARIABLE) or "{}"))
    watch_all()
    hand_out_each(lambda loader: _tuning(loader, options, {}))


_drivers: weakref.WeakKeyDictionary[Any, Tuner] = weakref.WeakKeyDictionary()


def _tuning(loader: Any, options: Options, told: dict[Tuner, int]) -> Callable[[Any], Any] | None:
    """What makes the iterators of this loader, for `hand_out`; None if its settings are fixed. One
    driver decides for it and for those made alike after it. `told`: where drivers are noted."""
    recorder = recorder_of(loader)
    name = recorder.name if recorder is not None else "the loader"
    why = why_fixed(loader)
    if why is not None:
        sessions.tell(f"{name} is recorded, but not tuned: {why}")
        return None
    found = _drivers.get(recorder)
    if found is None:
        found = _drivers[recorder] = Tuner(loader, options, name)
    found.loader = weakref.ref(loader)
    told.setdefault(found, os.getpid())
    return handing_out(found, options.any_random)


# When the program ends.

_said_at_exit: dict[Tuner, int] = {}  # tuned in code, with the process that tunes


def say_nothing() -> None:
    """Forget what was tuned so far."""
    _said_at_exit.clear()


@atexit.register
def _say_all() -> None:
    """A line on standard error for each loader that was iterated over. The program has ended, so an
    error here must not reach it."""
    try:
        for driver, pid in _said_at_exit.items():
            place = driver.record.place if pid == os.getpid() else None
            tuned = read_tuning(*place, []) if place is not None else None
            if tuned is not None and tuned.follows is None:
                from ..reports.words.tuned_words import said_at_end

                sessions.tell(said_at_end(driver.name, tuned))
    except Exception as error:
        if not is_ours(error):
            raise
