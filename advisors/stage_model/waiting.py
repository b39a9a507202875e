"""Where the time inside `next()` came from.

Without workers, everything happens inside `next()`: waiting is index + fetch + collate + pin +
other. With workers, the wait interval is laid over the awaited batch's own history (begun, fetched,
collated, sent, taken, unpacked, pinned): each part of the interval belongs to what was happening to
that batch then. What lies before its fetching began is time in which the workers were busy with
earlier batches.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...profiler.store.run.run import LoaderRun
from ..schema.report_model import Cause, Waiting
from .stages import cpu_share

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

CHUNK_ROWS = 1 << 16

Floats = npt.NDArray[np.float64]


def waiting(loader: LoaderRun, first: npt.NDArray[np.bool_]) -> Waiting | None:
    """The causes of waiting over the batches kept in detail; `first` marks the first batch of each
    epoch.

    None where no wait was measured. Shape of `first`: one flag a batch.
    """
    batches = loader.batches
    total = dict.fromkeys(CAUSES, 0.0)
    work = dict.fromkeys(("fetch", "collate", "pack"), 0.0)
    count = 0
    names = (
        "t_ns",
        "wait_ns",
        "index_ns",
        "fetch_ns",
        "collate_ns",
        "t_fetch_ns",
        "pack_ns",
        "queued_ns",
        "unpack_ns",
        "pin_ns",
    )
    for start in range(0, batches.rows, CHUNK_ROWS):
        rows = slice(start, start + CHUNK_ROWS)
        chunk = {name: batches[name][rows].astype(np.float64) for name in names}
        head = first[rows]
        keep = chunk["wait_ns"] >= 0
        if not keep.all():
            chunk = {name: values[keep] for name, values in chunk.items()}
            head = head[keep]
        count += len(head)
        from_worker = chunk["t_fetch_ns"] >= 0
        if from_worker.all():
            _add(total, _with_workers(chunk, head))
        elif from_worker.any():
            _add(
                total,
                _with_workers({n: v[from_worker] for n, v in chunk.items()}, head[from_worker]),
            )
            _add(total, _without_workers({n: v[~from_worker] for n, v in chunk.items()}))
        else:
            _add(total, _without_workers(chunk))
        for name in work:
            work[name] += float(chunk[f"{name}_ns"].clip(0).sum())
    if not count:
        return None
    seconds = sum(total.values()) / 1e9
    causes = {
        name: Cause(value / 1e9, value / 1e9 / seconds)
        for name, value in total.items()
        if value > 0
    }
    return Waiting(
        batches=count,
        total_s=seconds,
        causes=causes,
        work=_work(causes, work),
        fetch_idle_share=_idle(cpu_share(batches["fetch_ns"], batches["fetch_cpu_ns"])),
        collate_idle_share=_idle(cpu_share(batches["collate_ns"], batches["collate_cpu_ns"])),
    )


def _idle(cpu: float | None) -> float | None:
    return 1 - cpu if cpu is not None else None


def _add(total: dict[str, float], parts: dict[str, Floats]) -> None:
    for name, values in parts.items():
        total[name] += float(values.sum())


def _without_workers(c: dict[str, Floats]) -> dict[str, Floats]:
    left = c["wait_ns"]
    parts = {}
    seen = np.zeros(len(left), dtype=np.bool_)
    for name in ("index", "fetch", "collate", "pin"):
        seen |= c[f"{name}_ns"] >= 0
        part = np.minimum(c[f"{name}_ns"].clip(0), left)
        parts[name] = part
        left = left - part
    parts["other"] = left * seen
    parts["unknown"] = left * ~seen
    return parts


def _with_workers(c: dict[str, Floats], head: npt.NDArray[np.bool_]) -> dict[str, Floats]:
    start, wait = c["t_ns"], c["wait_ns"]
    end = start + wait
    unpack, pin = c["unpack_ns"].clip(0), c["pin_ns"].clip(0)
    fetched = c["t_fetch_ns"] + c["fetch_ns"].clip(0)
    made = fetched + c["collate_ns"].clip(0)
    sent = np.where(
        c["queued_ns"] >= 0, end - c["queued_ns"] - unpack - pin, made + c["pack_ns"].clip(0)
    )
    # With a pin thread a batch is unpacked in the background: if it was ready before next(), none
    # of that is waiting.
    ready = (c["pin_ns"] >= 0) & (sent + unpack + pin <= start)
    unpacking = np.where(ready, start, end - pin - unpack)
    pinning = np.where(ready, start, end - pin)
    borders = (
        c["t_fetch_ns"],
        fetched,
        made,
        sent,
        unpacking,
        pinning,
        np.where(ready, start, end),
    )
    parts: dict[str, Floats] = {}
    at = start
    names = ("workers-busy", "fetch", "collate", "hand-over", "queue", "unpack", "pin")
    for name, border in zip(names, borders, strict=True):
        # Unpacking and pinning end the wait: what came before cannot reach into them.
        until = np.clip(border, at, end if name in ("unpack", "pin") else np.maximum(at, unpacking))
        parts[name] = until - at
        at = until
    parts["other"] = end - at
    steady = ~head
    parts = {name: values * steady for name, values in parts.items()}
    parts["startup"] = wait * head
    return parts


def _work(causes: dict[str, Cause], spent: dict[str, float]) -> dict[str, float]:
    """Shares of all waiting by what workers were doing: the awaited batch's own work, and the busy
    time divided."""
    busy = causes["workers-busy"].share if "workers-busy" in causes else 0.0
    everything = sum(spent.values())
    found = {}
    for name, nanoseconds in spent.items():
        own = "hand-over" if name == "pack" else name
        share = causes[own].share if own in causes and name != "pack" else 0.0
        if everything:
            share += busy * nanoseconds / everything
        if share > 0:
            found[name] = share
    return found
