"""A lane of batches in totals that can be added to another's: what is asked of every rank of a
job."""

from __future__ import annotations

import numpy as np

from .columns import Columns
from .compacted import Compacted, Totals

# What ranks are compared by; in the order of the pipeline.
COLUMNS = (
    *("index_ns", "fetch_ns", "collate_ns", "pack_ns", "unpack_ns", "pin_ns"),
    *("wait_ns", "stall_ns", "compute_ns", "samples"),
)


def steady_totals(batches: Columns, folded: Compacted) -> tuple[int, dict[str, Totals]]:
    """How many steady batches there are, that is without the first of each epoch, and the totals of
    each column that was measured; of batches of which only totals are kept, those of all."""
    steady = np.ones(batches.rows, dtype=np.bool_)
    if batches.rows:
        steady[np.unique(batches["epoch"], return_index=True)[1]] = False
    columns = {}
    for name in COLUMNS:
        values = batches[name]
        totals = Totals()
        if len(values) and values.strides[0]:  # else one value for all rows: not measured
            totals.add(values[steady])
        if name in folded.columns:
            totals.merge(folded.columns[name])
        if totals.count:
            columns[name] = totals
    return int(np.count_nonzero(steady)) + folded.records, columns
