"""What one lookup of a whole batch costs, from its rows, leaves and bytes."""

# One lookup of a batch, µs: (low, high) a leaf, a row and leaf, GB/s of the copy. docs/causes.md,
# "Four workloads": 3.4 µs for 100 rows of a small tensor, 39 µs for 100 rows of 33 values out of
# five million (each row a cache miss). Within whole loops, 17 rows took about 4 µs for two leaves
# and 500 about 8 (generated loaders 201-10 and 102-10).
LEAF_US, ROW_US, COPY_GB_S = (1.5, 3.0), (0.002, 0.06), (25.0, 2.0)
CALL_BATCH_US = (0.0, 3.0)
# Of all the bytes that are read, so many stay in caches: a row then costs no more than this.
IN_CACHES, CACHED_ROW_US, CACHED_GB_S = 16e6, 0.015, 5.0
# A list is still read value by value.
LIST_ROW_US = (0.05, 0.4)
COLLATED_US = (0.1, 1.0)


def look_up_us(
    rows: float, leaves: int, batch_bytes: float | None, length: int | None, lists: int
) -> tuple[float, float]:
    """(low, high) µs for a batch of so many rows and bytes, of a data set of this `length`; `lists`
    of the leaves are read value by value."""
    nbytes = batch_bytes or 4.0 * rows
    row_us, speed = ROW_US, COPY_GB_S
    if length is not None and nbytes / max(1.0, rows) * length <= IN_CACHES:
        row_us, speed = (ROW_US[0], CACHED_ROW_US), (COPY_GB_S[0], CACHED_GB_S)
    low, high = (
        CALL_BATCH_US[k]
        + leaves * LEAF_US[k]
        + rows * leaves * row_us[k]
        + rows * lists * LIST_ROW_US[k]
        + nbytes / speed[k] / 1e3
        for k in (0, 1)
    )
    return low, high
