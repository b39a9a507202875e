"""What a machine must have for a loader to be no limit, as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...advisors.assemble.size import Size
from ...advisors.whatif.size import Need
from ..words.units import UNKNOWN, percent, plural, rate, size
from .blocks import Section, Sentence, section, sentences, table

LEAST_READ_BYTES = 64  # a sample; less is no data


def size_sections(found: Size) -> Iterator[Section]:
    """The table, then the disk and the memory."""
    device = found.device if found.device else "the computing of this run with cores enough"
    heads = ("speed", "samples/s", "CPUs", "workers", "read", "waits as it is now")
    rows = [_row(each, found) for each in found.needs]
    now = plural(found.now_workers, "worker")
    title = f"{found.loader}: for loading to be no limit"
    yield section([table(heads, rows, "wnnnnn", title)], title, "size")
    said = [
        f"×1 is {device}. The run had {found.now_cpus:g} CPUs and {now}. CPUs include the training "
        "process's own; the range holds the true number four times in five. Workers that stay "
        "(persistent_workers=True) spare the start of each epoch.",
        _disk(found),
    ]
    yield section(sentences(said))
    reasons = [f"Not known: {why}." for why in dict.fromkeys(found.reasons.values())]
    yield section([Sentence(each, "dim") for each in reasons])


def _row(need: Need, found: Size) -> tuple[str, ...]:
    low, likely, high = map(math.ceil, (need.cpus.low, need.cpus.mid, need.cpus.high))
    cpus = f"{likely:,} ({low:,}–{high:,})"
    samples, each = need.samples_per_s, found.read_bytes_per_sample
    read = UNKNOWN
    if samples is not None and each is not None:
        read = f"{size(samples * each)}/s" if each >= LEAST_READ_BYTES else "nothing"
    speed = rate(samples if samples is not None else need.batches_per_s)
    return (f"×{need.speed:g}", speed, cpus, f"{need.workers}", read, percent(need.waits_share))


def _disk(found: Size) -> str | None:
    """How much the disk must bring, and what memory spares it."""
    if (found.read_bytes_per_sample or 0.0) < LEAST_READ_BYTES:
        return None
    said = "What is read comes from the disk in the first epoch, and later unless the page cache "
    said += "holds it"
    if found.dataset_bytes is None:
        return f"{said}."
    said += f": that takes {size(found.dataset_bytes)} of free memory"
    has = f" (the run had {size(found.memory_bytes)} for it)" if found.memory_bytes else ""
    return f"{said}{has}."
