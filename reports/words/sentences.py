"""What is said of a loader and of recording it in whole sentences, in every format."""

from __future__ import annotations

from ...advisors.schema.report_model import LoaderReport, Overhead
from ...profiler.base.metadata import clean
from .units import count, duration, factor, micros, percent, plural, rate, size, span

# Capacity → the words for it in "… can make 31 batches/s".
CAPACITIES = {
    "index": "the sampler can draw",
    "workers": "fetch + collate can make",
    "fetch+collate": "fetch + collate can make",
    "pack": "packing can send",
    "unpack": "the main process can unpack",
    "pin": "page-locking can copy",
    "h2d": "copying to the device can move",
    "compute": "computing could take",
}


def headroom_sentence(loader: LoaderReport) -> str:
    """How much faster free loading would be, and how sure that is."""
    basis = loader.basis
    parts = []
    if loader.headroom is None:
        parts.append("Headroom: without loading, nothing would be left to do.")
    elif loader.headroom < 1.005:
        parts.append("Headroom: none, free loading would not be faster.")
    else:
        parts.append(f"Headroom: at most {factor(loader.headroom)} faster, if loading were free.")
    spread = ""
    if basis.stall_share_low is not None and basis.stall_share_high is not None:
        spread = f", {span(basis.stall_share_low, basis.stall_share_high)}"
    parts.append(f"Confidence: {basis.confidence} ({count(basis.steady_batches)} steady batches{spread}).")
    return " ".join(parts)


def limit_sentence(loader: LoaderReport) -> str | None:
    """'The limit: fetch + collate can make 31 batches/s; computing could take 120.' None if no capacity is known.

    Without workers the stages take turns, so that each alone could do more than the loop does: that is said.
    """
    known = {name: c.batches_per_s for name, c in loader.capacities.items() if c.batches_per_s}
    limit = loader.limit
    if limit is None or limit not in known:
        return None
    other = "compute"
    if limit == "compute":
        others = [name for name in known if name != "compute"]
        if not others:
            return None
        other = min(others, key=lambda name: known[name] or 0.0)
    beside = f"; {_words(other)} {rate(known[other])}" if other in known else ""
    turns = ", if they did not take turns" if beside and loader.config.get("num_workers") == 0 else ""
    return f"The limit: {_words(limit)} {rate(known[limit])} batches/s{beside}{turns}."


def _words(capacity: str) -> str:
    return CAPACITIES.get(capacity) or f"{clean(capacity, 40)} can do"


def nothing_to_change(loader: LoaderReport) -> str | None:
    """What to say where nothing is advised; None where too little is known to say it."""
    if loader.verdict == "compute-bound":
        return "Nothing to gain from the loader: faster loading would not speed up training."
    if loader.verdict == "too-short" or not (loader.rejected or loader.unmeasured):
        return None  # too little seen, or no rule was asked
    return "No change was found that is certain to help."


def throughput_line(loader: LoaderReport) -> str:
    """Counts and rates, as far as they are known."""
    parts = [plural(loader.batches, "batch", "batches")]
    if loader.samples is not None:
        parts.append(plural(loader.samples, "sample", "samples"))
    parts.append(plural(loader.epochs, "epoch", "epochs"))
    if loader.wall_s is not None:
        parts.append(f"in {duration(loader.wall_s)}")
    if loader.batches_per_s is not None:
        parts.append(f"{rate(loader.batches_per_s)} batches/s")
    if loader.samples_per_s is not None:
        parts.append(f"{rate(loader.samples_per_s)} samples/s")
    if loader.bytes_per_batch is not None:
        parts.append(f"{size(loader.bytes_per_batch)} a batch")
    return " · ".join(parts)


def overhead_sentence(overhead: Overhead) -> str:
    """What recording cost, in one sentence or two."""
    if overhead.per_batch_us is None:
        first = f"The cost a batch was not measured ({overhead.reasons.get('per_batch_us', 'no reason known')})."
    else:
        share = f", {percent(overhead.share_of_step)} of a step" if overhead.share_of_step is not None else ""
        first = f"{micros(overhead.per_batch_us)} a batch{share}."
    if overhead.sampler_cpu_share is None:
        return first
    memory = f" and {size(overhead.sampler_rss_bytes)}" if overhead.sampler_rss_bytes is not None else ""
    return f"{first} The system sampler: {percent(overhead.sampler_cpu_share)} of one core{memory}."
