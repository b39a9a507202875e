"""Where the time inside `next()` came from.

Without workers, everything happens inside `next()`: waiting is index + fetch + collate + pin +
other. With workers, the wait interval is laid over the awaited batch's own history (begun, fetched,
collated, sent, taken, unpacked, pinned): each part of the interval belongs to what was happening to
that batch then. What lies before its fetching began is time in which the workers were busy with
earlier batches.
"""

from collections.abc import Mapping

import numpy as np

from ...profiler.base.arrays import Floats, Mask
from ...profiler.store.run.run import LoaderRun
from ..schema.report_model import Cause, Waiting
from .core_wait import waiting_besides_core
from .stages import cpu_shares

CAUSES = (
    "startup",
    "workers-busy",
    "index",
    "fetch",
    "collate",
    "hand-over",
    "queue",
    "unpack",
    "pin",
    "other",
    "unknown",
)

_WORK = ("fetch", "collate", "pack")  # what workers spend their time on
AT_ONCE = 100_000  # batches
_READ = ("t", "wait", "index", "fetch", "collate", "t_fetch", "pack", "queued", "unpack", "pin")


def waiting(loader: LoaderRun, first: Mask, core_wait: float | None = None) -> Waiting | None:
    """The causes of waiting over the batches kept in detail; `first` marks the first batch of each
    epoch, `core_wait` is the `core_wait_ratio` of what fetches.

    None if no wait was measured. Shape of `first`: one flag per batch.
    """
    total, work, count = dict.fromkeys(CAUSES, 0.0), dict.fromkeys(_WORK, 0.0), 0
    for begin in range(0, len(first), AT_ONCE):
        rows = slice(begin, begin + AT_ONCE)
        columns = {name: loader.batches[f"{name}_ns"][rows].astype(np.float64) for name in _READ}
        known, from_worker = columns["wait"] >= 0, columns["t_fetch"] >= 0
        made, own = (
            {name: values[mine] for name, values in columns.items()}
            for mine in (known & from_worker, known & ~from_worker)
        )
        head = first[rows][known & from_worker]
        for parts in (_with_workers(made, head), _without_workers(own)):
            for name, values in parts.items():
                total[name] += float(values.sum())
        for name in _WORK:
            work[name] += float(columns[name][known].clip(0).sum())
        count += int(known.sum())
    if not count:
        return None
    seconds = sum(total.values()) / 1e9
    causes = {
        name: Cause(value / 1e9, value / 1e9 / seconds)
        for name, value in total.items()
        if value > 0
    }
    of_fetch, _ = cpu_shares(loader)
    fetch = None if of_fetch is None else 1 - of_fetch
    for_io = waiting_besides_core(fetch, core_wait)
    counted = core_wait is not None and fetch is not None
    return Waiting(
        batches=count,
        total_s=seconds,
        causes=causes,
        work=_work(causes, work),
        fetch_idle_share=fetch,
        fetch_core_wait_share=(fetch or 0.0) - (for_io or 0.0) if counted else None,
    )


def _without_workers(c: dict[str, Floats]) -> dict[str, Floats]:
    left = c["wait"]
    parts = {}
    seen = np.zeros(len(left), dtype=np.bool_)
    for name in ("index", "fetch", "collate", "pin"):
        seen |= c[name] >= 0
        parts[name] = np.minimum(c[name].clip(0), left)
        left = left - parts[name]
    return {**parts, "other": left * seen, "unknown": left * ~seen}


def _with_workers(c: dict[str, Floats], head: Mask) -> dict[str, Floats]:
    start, end = c["t"], c["t"] + c["wait"]
    unpack, pin = c["unpack"].clip(0), c["pin"].clip(0)
    fetched = c["t_fetch"] + c["fetch"].clip(0)
    made = fetched + c["collate"].clip(0)
    sent = np.where(c["queued"] >= 0, end - c["queued"] - unpack - pin, made + c["pack"].clip(0))
    # With a pin thread a batch is unpacked in the background: if it was ready before next(), none
    # of that is waiting.
    ready = (c["pin"] >= 0) & (sent + unpack + pin <= start)
    unpacking = np.where(ready, start, end - pin - unpack)
    borders = {
        "workers-busy": c["t_fetch"],
        "fetch": fetched,
        "collate": made,
        "hand-over": sent,
        "queue": unpacking,
        "unpack": np.where(ready, start, end - pin),
        "pin": np.where(ready, start, end),
    }
    parts: dict[str, Floats] = {}
    at = start
    for name, border in borders.items():
        # Unpacking and pinning end the wait: what came before cannot reach into them.
        until = np.clip(border, at, end if name in ("unpack", "pin") else np.maximum(at, unpacking))
        parts[name] = (until - at) * ~head
        at = until
    return {**parts, "other": (end - at) * ~head, "startup": c["wait"] * head}


def _work(causes: Mapping[str, Cause], spent: Mapping[str, float]) -> dict[str, float]:
    """Shares of all waiting by what workers were doing: the awaited batch's own work, and the busy
    time divided."""
    busy = causes["workers-busy"].share if "workers-busy" in causes else 0.0
    everything = sum(spent.values()) or 1.0
    found = {}
    for name in _WORK:
        share = causes[name].share if name in causes else 0.0
        share += busy * spent[name] / everything
        if share > 0:
            found[name] = share
    return found
