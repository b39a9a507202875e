"""Which part of a loop's time loading cost, and which part passed while batches were ready."""

from collections.abc import Mapping

from ...profiler.base.arrays import Array


def waiting_share(lost: Array, step: Array) -> float:
    """Σ lost / Σ step, of times per batch or of their sums; 0 if no time passed."""
    total = float(step.sum())
    return float(lost.sum()) / total if total > 0 else 0.0


def blocked_share(batches: Mapping[str, Array]) -> float | None:
    """The part of all waiting for a batch during which a later one was ready; None if unknown.

    Unpacking and pinning are no waiting for a batch.
    """
    known = (batches["wait_ns"] >= 0) & (batches["ready"] >= 0)
    waited = batches["wait_ns"] - batches["unpack_ns"].clip(0) - batches["pin_ns"].clip(0)
    waited = waited.clip(0)[known]
    return waiting_share(waited * (batches["ready"][known] > 0), waited) if waited.any() else None
