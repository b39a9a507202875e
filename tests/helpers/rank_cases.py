"""Ranks of a job, each with one loader over the same data set, that step together."""

from typing import Any

from builders import MS, RunBuilder, epoch_row, loop

WORLD = 4


def rank(
    run: RunBuilder,
    number: int,
    *,
    wait_ms: float,
    step_ms: float,
    fetch_ms: float,
    batches: int = 40,
    workers: int = 0,
    pid: int | None = None,
    process: dict[str, Any] | None = None,
    hiccup_ms: float = 0,
    **columns: Any,
) -> None:
    """One rank: what of a step is no waiting for data is computing, or waiting for other ranks."""
    made = {"fetch_ns": round(fetch_ms * MS), "collate_ns": MS // 10, **columns}
    rows = loop(batches, wait_ms, step_ms - wait_ms, **made)
    for row in rows[20:] if hiccup_ms else ():
        row["wait_ns" if row is rows[20] else "t_ns"] += round(hiccup_ms * MS)
    facts = {"rank": number, "world_size": WORLD, **(process or {})}
    config = {"num_workers": workers, "dataset": "train.Rows"}
    recording = run.process(pid=pid or 4000 + number, **facts)
    recording.loader(rows, epochs=[epoch_row(rows)], config=config, name="Rows")


def job(run: RunBuilder, slow: int, ranks: int = WORLD) -> None:
    """Ranks whose fetch takes 10 ms, but one's takes 150, and all step in 160."""
    for number in range(ranks):
        made = 150 if number == slow else 10
        rank(run, number, wait_ms=made, step_ms=160, fetch_ms=made)
