"""What was measured of a loader, made up for tests of rules: rows of loops, samples of the host."""

from collections.abc import Callable
from typing import Any

from builders import MS, T0, epoch_row, loop

US = 1_000


def rows_of(
    epochs: int = 2,
    batches: int = 60,
    *,
    wait_ms: float = 1.0,
    compute_ms: float = 0.5,
    **columns: Any,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(rows, epoch rows) of some alike epochs, one after another."""
    rows: list[dict[str, Any]] = []
    told = []
    for epoch in range(epochs):
        start = rows[-1]["t_ns"] + 100 * MS if rows else T0
        own = loop(batches, wait_ms, compute_ms, epoch=epoch, start_ns=start, **columns)
        rows += own
        told.append(epoch_row(own))
    return rows, told


def fetched(
    sample_us: float, idle: float, *, more_ms: float = 0.05, compute_ms: float = 0.1
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(rows, epoch rows) of a loop over four samples a batch that mostly waits for fetching them;
    of that, `idle` is no computing."""
    fetch = round(sample_us * 4 * US)
    times = {"wait_ms": fetch / 1e6 + more_ms, "compute_ms": compute_ms}
    cpu = round(fetch * (1 - idle))
    return rows_of(**times, samples=4, fetch_ns=fetch, fetch_cpu_ns=cpu, collate_ns=10 * US)


def worker_loop(
    batches: int,
    wait_ms: float = 5.0,
    compute_ms: float = 5.0,
    *,
    fetch_ms: float | Callable[[int], float] = 20.0,
    cpu: float = 1.0,
    collate_ms: float = 0.5,
    pack_ms: float = 0.2,
    unpack_ms: float = 0.1,
    **columns: Any,
) -> list[dict[str, Any]]:
    """A loop whose batches come from workers and were awaited until they were handed over."""

    def fetch(number: int) -> int:
        return round((fetch_ms(number) if callable(fetch_ms) else fetch_ms) * MS)

    collate, pack, unpack = (round(ms * MS) for ms in (collate_ms, pack_ms, unpack_ms))
    rows = loop(batches, wait_ms, compute_ms, **columns)
    for number, row in enumerate(rows):
        end = row["t_ns"] + row["wait_ns"]
        made = fetch(number) + round((collate_ms + pack_ms) * MS)
        own = {"fetch_ns": fetch(number), "fetch_cpu_ns": round(fetch(number) * cpu)}
        own |= {"collate_ns": collate, "collate_cpu_ns": collate, "pack_ns": pack}
        own |= {"unpack_ns": unpack, "queued_ns": 0, "t_fetch_ns": end - made - unpack}
        own |= {"task": number, "worker": number % 2, "worker_pid": 5000 + number % 2}
        own |= {"ready": 0, "outstanding": 2, "index_ns": 1000}
        rows[number] = {**own, **row}
    return rows


def main_loop(batches: int, compute_ms: float = 5.0, **stages_ms: float) -> list[dict[str, Any]]:
    """A loop without workers, which waits for the stages; `fetch_cpu` is CPU over wall time."""
    cpu = stages_ms.pop("fetch_cpu", 1.0)
    wait = sum(stages_ms.values())
    columns = {f"{name}_ns": round(value * MS) for name, value in stages_ms.items()}
    if "fetch" in stages_ms:
        columns["fetch_cpu_ns"] = round(stages_ms["fetch"] * cpu * MS)
    return loop(batches, wait, compute_ms, **columns)


def host_samples(
    seconds: int = 10,
    workers: int = 2,
    worker_cores: float = 1.0,
    main_cores: float = 0.2,
    uss: Callable[[int], int | None] | None = None,
    rss: Callable[[int], int | None] | None = None,
    threads: int = 3,
    fds: int | Callable[[int], int] = 20,
    **machine: Any,
) -> dict[str, Any]:
    """For RunBuilder.system: a sample a second of the training process and its workers."""
    process: list[dict[str, Any]] = []
    times = range(T0, T0 + seconds * 10**9, 10**9)
    for n, t in enumerate(times):
        of_all = {"t_ns": t, "owner_pid": 4000, "cpu_system_ns": 0}
        held = {"fds": fds if isinstance(fds, int) else fds(n)}
        used = {"cpu_user_ns": round((t - T0) * main_cores)}
        process.append({**of_all, "pid": 4000, "role": 0, **held, **used})
        used = {"cpu_user_ns": round((t - T0) * worker_cores), "threads": threads}
        held = {"uss_bytes": uss(n) if uss else None, "rss_bytes": rss(n) if rss else None}
        for w in range(workers):
            who = {"pid": 5000 + w, "role": 1, "worker": w, "loader": 0}
            process.append({**of_all, **who, **used, **held, "fds": 12})
    told = {"cpu_idle_pct": 5.0, "cpu_system_pct": 5.0, "cpu_user_pct": 90.0}
    told |= {"mem_available_bytes": 8_000_000_000, **machine}
    return {"machine": [{"t_ns": t, **told} for t in times], "process": process}
