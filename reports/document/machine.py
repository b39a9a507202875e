"""What a machine must have for a loader to be no limit, as a table; and what a probe of its storage
found: a table, what it comes to in plain sentences, and what was not tried."""

import math
from collections.abc import Iterator, Sequence

from ...advisors.assemble.size import Need, Size
from ...advisors.storage_probe.probe_model import LayoutTrial, StorageProbe
from ..words.units import UNKNOWN, count, duration, factor, micros, percent, plural, rate, size
from .blocks import (
    Block,
    Bullets,
    Part,
    Section,
    Sentence,
    bullets,
    section,
    sentences,
    table,
)

LEAST_READ_BYTES = 64  # a sample; less is no data


def size_sections(found: Size) -> Iterator[Section]:
    """The table, then the disk and the memory."""
    device = found.device if found.device else "the computing of this run with cores enough"
    heads = ("speed", "samples/s", "CPUs", "workers", "read", "waits as it is now")
    rows = [_row(each, found) for each in found.needs]
    now = plural(found.now_workers, "worker")
    title = f"{found.loader}: for loading to be no limit"
    yield section(table(heads, rows, "wnnnnn", title), title, "size")
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


def probe_sections(probe: StorageProbe) -> list[Section]:
    """The probe as a table, and what it comes to."""
    return [Section(probe.source, list(_parts(probe)))]


def _parts(probe: StorageProbe) -> Iterator[Part]:
    timed = [each for each in probe.layouts if not each.reason]
    yield Part(sentences(_about(probe)))
    heading = "A sample, decoding included" if probe.decoder else "Reading a sample"
    yield Part(_totals(timed), heading)
    ordered = "* read in sequence, as it is stored: shuffling needs a buffer, and is weaker"
    in_sequence = any(each.order == "in sequence" for each in timed)
    yield Part(sentences((ordered if in_sequence else None,), "dim"))
    yield Part([Bullets(probe.verdict)], "What this means")
    not_tried = [f"{_label(each)}: {each.reason}" for each in probe.layouts if each.reason]
    cold = [f"cold not measured, because {probe.cold_reason}"] if probe.cold_reason else []
    for title, lines in (("Not tried", not_tried), ("Notes", [*cold, *probe.notes])):
        yield Part(bullets(lines), title)


def _about(probe: StorageProbe) -> Iterator[str]:
    least = "at least " if probe.whole_is_lower_bound else ""
    kind = probe.suffix or "files without a suffix"
    yield (
        f"{kind}: {least}{plural(probe.whole_files, 'file')}, {size(probe.whole_bytes)}; "
        f"tried on {count(probe.samples)} of them, {size(probe.sample_bytes)}, copied to "
        f"{(probe.file_system or 'an unknown file system')}"
    )
    decoding = ""
    if probe.decode_us:
        decoding = f"decoding with {probe.decoder} {micros(probe.decode_us)} a sample; "
    rounds = plural(probe.rounds, "round")
    yield f"{decoding}one process, {rounds}, {duration(probe.seconds)} in all"


def _totals(timed: Sequence[LayoutTrial]) -> list[Block]:
    heads = ("samples/s", "cold", "warm", "gain", "size")
    rows = [
        (
            _label(each, mark=True),
            rate(each.cold),
            rate(each.warm),
            factor(each.gain.mid if each.gain else None),
            size(each.whole_bytes),
        )
        for each in timed
    ]
    return table(heads, rows, "wnnnn")


def _label(each: LayoutTrial, mark: bool = False) -> str:
    decoded = ", decoded" if each.form == "decoded" else ""
    return f"{each.label}{decoded}{' *' if mark and each.order == 'in sequence' else ''}"
