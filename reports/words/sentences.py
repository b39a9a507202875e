"""What is said of a loader and of recording it in whole sentences, in every format."""

from __future__ import annotations

from ...advisors.schema.report_model import LoaderReport, Overhead
from ...profiler.base.metadata import clean
from .advice_words import effect_text
from .plan_words import may_help
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


# Headroom this much above that of the steady batches is at the starts of epochs.
STARTS_ABOVE = 1.1


def headroom_sentence(loader: LoaderReport) -> str:
    """How much faster free loading would be, and how sure that is."""
    basis = loader.basis
    parts = []
    if loader.headroom is None:
        parts.append("Headroom: without loading, nothing would be left to do.")
    elif loader.headroom < 1.005:
        parts.append("Headroom: none, free loading would not be faster.")
    else:
        steady = 1 / max(1e-3, 1 - (basis.stall_share or 0.0))
        starts = " and every start" if loader.headroom > STARTS_ABOVE * steady else ""
        parts.append(f"Headroom: at most {factor(loader.headroom)}, if loading{starts} were free.")
    spread = ""
    if basis.stall_share_low is not None and basis.stall_share_high is not None:
        spread = f", {span(basis.stall_share_low, basis.stall_share_high)}"
    parts.append(
        f"Confidence: {basis.confidence} ({count(basis.steady_batches)} steady batches{spread})."
    )
    return " ".join(parts)


def limit_sentence(loader: LoaderReport) -> str | None:
    """'The limit: fetch + collate can make 31 batches/s; computing could take 120.' None if no
    capacity is known.

    Without workers the stages take turns, so that each alone could do more than the loop does: that
    is said.
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
    turns = (
        ", if they did not take turns" if beside and loader.config.get("num_workers") == 0 else ""
    )
    return f"The limit: {_words(limit)} {rate(known[limit])} batches/s{beside}{turns}."


def _words(capacity: str) -> str:
    return CAPACITIES.get(capacity) or f"{clean(capacity, 40)} can do"


def nothing_to_change(loader: LoaderReport) -> str | None:
    """What to say where nothing is advised, and what limits then; None where too little is known to
    say it."""
    if loader.tuning is not None and loader.tuning.proven is not None:
        return "No change is advised beside what was proven."
    if loader.verdict == "compute-bound":
        return "Nothing to gain from the loader: faster loading would not speed up training."
    if loader.verdict == "too-short" or not (loader.rejected or loader.unmeasured):
        return None  # too little seen, or no rule was asked
    certain = "No change was found that is certain to help"
    candidate = next(may_help(loader), None)
    if candidate is not None:
        certain += f"; what may: {clean(candidate.title, 100)}, {effect_text(candidate)}"
    return f"{certain}. {what_limits(loader)}".rstrip()


# Cause of waiting, or work of workers → what then limits.
_LIMITS = {
    "fetch": "the data set's own work (fetch)",
    "collate": "joining samples to batches (collate)",
    "pack": "handing batches over (pack)",
    "index": "drawing indices",
    "hand-over": "handing batches over from the workers",
    "queue": "taking batches from the queue",
    "unpack": "unpacking batches in the main process",
    "pin": "copying to page-locked memory",
    "startup": "starting, at the first batch of each epoch",
    "other": "starting, and the bookkeeping of the DataLoader itself",
}
LIMITS_FROM, NO_CORE_FROM = 0.3, 0.2


def what_limits(loader: LoaderReport) -> str:
    """'What limits is the data set's own work (fetch): 83 % of the waiting.' Nothing where nothing
    stands out."""
    waiting = loader.waiting
    if waiting is None:
        return ""
    shares = {name: cause.share for name, cause in waiting.causes.items() if name in _LIMITS}
    for (
        name,
        share,
    ) in (
        waiting.work.items()
    ):  # divides the waiting for workers, and names again what they made then
        if name in _LIMITS:
            shares[name] = max(share, shares.get(name, 0.0))
    name, share = max(shares.items(), key=lambda item: item[1], default=("", 0.0))
    busy = waiting.causes.get("workers-busy")
    if share < LIMITS_FROM and busy is not None and busy.share >= LIMITS_FROM:
        return f"What limits are the workers: {percent(busy.share)} of the waiting, none was free."
    if share < LIMITS_FROM:
        return ""
    core = waiting.fetch_core_wait_share
    cores = ""
    if name == "fetch" and core is not None and core >= NO_CORE_FROM:
        cores = f"; {percent(core)} of its time it waits for a free core"
    return f"What limits is {_LIMITS[name]}, {percent(share)} of the waiting{cores}."


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


def config_line(loader: LoaderReport) -> str:
    """'batch_size=8 · num_workers=2 · pin_memory · RandomSampler': the arguments that matter."""
    config = loader.config
    numbers = ("batch_size", "num_workers", "prefetch_factor")
    flags = ("pin_memory", "persistent_workers", "drop_last")
    parts = [
        *(f"{name}={clean(config[name], 40)}" for name in numbers if config.get(name) is not None),
        *(name for name in flags if config.get(name) is True),
        *(
            clean(value.rpartition(".")[2], 60)
            for name in ("sampler", "collate_fn")
            if isinstance(value := config.get(name), str)
        ),
    ]
    return " · ".join(parts)


def overhead_line(overhead: Overhead) -> str | None:
    """The same in a few words; None where nothing is known of it."""
    parts = []
    if overhead.per_batch_us is not None:
        share = (
            f" ({percent(overhead.share_of_step)} of a step)"
            if overhead.share_of_step is not None
            else ""
        )
        parts.append(f"{micros(overhead.per_batch_us)} a batch{share}")
    if overhead.sampler_cpu_share is not None:
        parts.append(f"sampler {percent(overhead.sampler_cpu_share)} of a core")
    return f"Recording cost {', '.join(parts)}." if parts else None


def overhead_sentence(overhead: Overhead) -> str:
    """What recording cost, in one sentence or two, and what of it is left out.

    The hooks are timed back to back (record/iterate/calibrate.py), so with warm caches;
    benchmarks/overhead.py, whose loop does real work in between, measures 1.6 times as much.
    """
    if overhead.per_batch_us is None:
        first = (
            "The cost a batch was not measured "
            f"({overhead.reasons.get('per_batch_us', 'no reason known')})."
        )
    else:
        share = (
            f", {percent(overhead.share_of_step)} of a step"
            if overhead.share_of_step is not None
            else ""
        )
        first = (
            f"{micros(overhead.per_batch_us)} a batch{share}, timed with warm caches: where the "
            "loop's own work empties them, up to twice that."
        )
    if overhead.sampler_cpu_share is None:
        return first
    memory = (
        f" and {size(overhead.sampler_rss_bytes)}" if overhead.sampler_rss_bytes is not None else ""
    )
    return f"{first} The system sampler: {percent(overhead.sampler_cpu_share)} of one core{memory}."
