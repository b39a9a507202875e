"""Ends of epochs that were not recorded. Some frameworks (Lightning among them) do not ask for more
after the last batch, so the iterator is never exhausted. An epoch is over when it has handed over
all its batches."""

from __future__ import annotations

from collections import Counter

import numpy as np

from ...base.metadata import Scalars
from ..lanes.columns import Columns

RUNNING, EXHAUSTED = -1, 1


def batches_an_epoch(config: Scalars) -> tuple[int, int] | None:
    """(fewest, most) batches that one epoch of a loader with this configuration has; None where its
    sampler alone knows. They differ by one where ranks share the data."""
    length, size = config.get("dataset_len"), config.get("batch_size")
    ranks = config.get("replicas")
    if type(length) is not int or type(size) is not int or min(length, size) <= 0 or ranks == 0:
        return None
    if type(ranks) is int:
        least, most = length // ranks, -(-length // ranks)
    elif config.get("sampler_plain") is True:
        least = most = length
    else:
        return None
    if config.get("drop_last") is True:
        return least // size, most // size
    return (least // size if type(ranks) is int else -(-least // size)), -(-most // size)


def with_ends(epochs: Columns, batches: Columns, config: Scalars) -> Columns:
    """The rows of epochs, those without an end with what their batches say: how many were handed
    over, and where these are all there are, that it is over since the last one was."""
    open_ = np.flatnonzero(epochs["how"] == RUNNING)
    if not len(open_) or not batches.rows:
        return epochs
    expected = batches_an_epoch(config)
    epoch_of = batches["epoch"].tolist()
    counts, last = Counter(epoch_of), {epoch: at for at, epoch in enumerate(epoch_of)}
    filled = {name: epochs[name].copy() for name in ("batches", "t_end_ns", "how")}
    for row in open_.tolist():
        epoch = int(epochs["epoch"][row])
        if epoch not in last:
            continue
        at, count = last[epoch], counts[epoch]
        filled["batches"][row] = count
        if expected is not None and 0 < expected[0] <= count <= expected[1]:
            filled["t_end_ns"][row] = batches["t_ns"][at] + max(0, int(batches["wait_ns"][at]))
            filled["how"][row] = EXHAUSTED
    return Columns({**epochs, **filled}, epochs.rows)


def one_each(epochs: Columns, batches: Columns) -> bool:
    """Whether each iterator gave one batch, as of `next(iter(loader))`."""
    return np.array_equal(epochs["epoch"], batches["epoch"])


def computing_until_iter(epochs: Columns, batches: Columns) -> Columns:
    """The batches, of which a loop that takes one of each iterator computes until the next
    `iter()`."""
    if (epochs["how"] == EXHAUSTED).any() or not one_each(epochs, batches):
        return batches
    compute = batches["compute_ns"].copy()
    compute[:-1] = epochs["t_iter_ns"][1:] - (batches["t_ns"] + batches["wait_ns"])[:-1]
    return Columns({**batches, "compute_ns": compute.clip(-1)}, batches.rows)


def rebuilt(epochs: Columns) -> bool:
    """Whether a loader was another object in nearly every pass: what an object keeps is lost."""
    instances = epochs["instance"]
    return epochs.rows > 1 and len(np.unique(instances[instances >= 0])) >= 0.8 * epochs.rows
