"""What each stage is, in a few words, and in what order and groups a reader meets them."""

# Stage → (shown as, what it is).
GLOSSES: dict[str, tuple[str, str]] = {
    "wait": ("wait", "inside next()"),
    "compute": ("compute", "the loop's own work"),
    "stall": ("stall", "device had no work"),
    "startup": ("startup", "to the first batch"),
    "index": ("index", "drawing indices"),
    "fetch": ("fetch", "dataset[i]"),
    "fetch_cpu": ("  of it CPU", "rest: I/O, locks"),
    "collate": ("collate", "samples to batch"),
    "collate_cpu": ("  of it CPU", ""),
    "pack": ("pack", "worker → queue"),
    "queued": ("queued", "ready early"),
    "unpack": ("unpack", "queue → main"),
    "pin": ("pin", "page-locking"),
    "h2d": ("copy", "to the device"),
    "h2d_host": ("copy (host)", "the call itself"),
    "compute_device": ("device", "busy computing"),
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
