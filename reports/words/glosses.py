"""What each stage is, in a few words, and in what order and groups a reader meets them."""

from __future__ import annotations

# Stage → (shown as, few words for 80 columns, more for wide terminals).
GLOSSES: dict[str, tuple[str, str, str]] = {
    "wait": ("wait", "inside next()", "inside next(): what the loop lost to loading"),
    "compute": ("compute", "the loop's own work", "your loop's own work, until it asks for more"),
    "stall": ("stall", "device had no work", "part of wait in which the device had nothing to do"),
    "startup": ("startup", "to the first batch", "from iter() to the first batch, once an epoch"),
    "index": ("index", "drawing indices", "drawing the batch's indices from the sampler"),
    "fetch": ("fetch", "dataset[i]", "the data set makes the samples: dataset[i]"),
    "fetch_cpu": (
        "  of it CPU",
        "rest: I/O, locks",
        "the rest is waiting: I/O, locks, other processes",
    ),
    "collate": ("collate", "samples to batch", "collate_fn joins the samples to a batch"),
    "collate_cpu": ("  of it CPU", "", "the rest is waiting"),
    "pack": ("pack", "worker → queue", "the worker puts the batch into the queue"),
    "queued": ("queued", "ready early", "made, not yet taken: long is good, workers are ahead"),
    "unpack": ("unpack", "queue → main", "the main process rebuilds the batch from the queue"),
    "pin": ("pin", "page-locking", "copying to page-locked memory"),
    "h2d": ("copy", "to the device", "copying the batch to the device, by device events"),
    "h2d_host": ("copy (host)", "the call itself", "host time inside the copy calls"),
    "compute_device": ("device", "busy computing", "device time per batch, by device events"),
}

# Heading → stages. The heading's {where} is "in 4 workers, side by side" or "in the training
# process".
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("the training loop", ("wait", "compute", "stall", "startup")),
    ("making a batch, {where}", ("index", "fetch", "fetch_cpu", "collate", "collate_cpu")),
    ("handing it over", ("pack", "queued", "unpack", "pin")),
    ("the device", ("h2d", "h2d_host", "compute_device")),
)

# Cause of waiting → what it means. Next to the stages so that a report reads as one text.
CAUSES: dict[str, str] = {
    "startup": "starting workers, first batch of an epoch",
    "workers-busy": "no worker free: all made earlier batches",
    "index": "drawing indices from the sampler",
    "fetch": "the data set was making the samples",
    "collate": "collate_fn was joining the samples",
    "hand-over": "made, on its way into the queue",
    "queue": "sent, not yet taken by the main process",
    "unpack": "rebuilding the batch in the main process",
    "pin": "copying to page-locked memory",
    "other": "the DataLoader's own bookkeeping",
    "unknown": "what happened inside was not seen",
}


def label_of(stage: str) -> str:
    """A stage as a reader knows it; anything else (a cause, say) by its own name."""
    if stage.endswith("_cpu"):
        return f"{label_of(stage.removesuffix('_cpu'))} CPU"
    return GLOSSES[stage][0] if stage in GLOSSES else stage
