"""The sentences about a loader and about recording it."""

from ...advisors.schema.report_model import LoaderReport, Overhead
from ...profiler.base.metadata import clean
from .advice_words import effect_text, may_help
from .units import count, duration, factor, known, micros, percent, plural, rate, size, span


def headroom_sentence(loader: LoaderReport) -> str:
    """How much faster free loading would be, and how sure that is."""
    basis = loader.basis
    if loader.headroom is None:
        headroom = "without loading, nothing would be left to do"
    elif loader.headroom < 1.005:
        headroom = "none, free loading would not be faster"
    else:
        steady = 1 / max(1e-3, 1 - (basis.stall_share or 0.0))
        starts = " and every start" if loader.headroom > STARTS_ABOVE * steady else ""
        headroom = f"about {factor(loader.headroom)}, if loading{starts} were free"
    low, high = basis.stall_share_low, basis.stall_share_high
    spread = known("", (f", {span(low, high)}", low))
    sure = f"{basis.confidence} ({count(basis.steady_batches)} steady batches{spread})"
    return f"Headroom: {headroom}. Confidence: {sure}."


TUNE = "`loaderscope tune`"  # named where trying alone can tell
# Headroom this much above that of the steady batches is at the starts of epochs.
STARTS_ABOVE = 1.1


def nothing_to_change(loader: LoaderReport) -> str | None:
    """What to say where nothing is advised; None where too little is known."""
    if loader.tuning and loader.tuning.proven:
        return "No change is advised besides what was proven."
    if loader.verdict == "compute-bound":
        return "Nothing to gain from the loader: faster loading would not speed up training."
    asked = loader.rejected or loader.unmeasured or loader.findings
    if loader.verdict == "too-short" or not asked:
        return None  # too little was recorded, or no rule was asked
    certain = "No change is certain to help"
    candidate = may_help(loader)
    if candidate:
        certain += f"; one may: {candidate.title}, {effect_text(candidate)}"
        if TUNE in candidate.why:
            certain += f" ({TUNE} tells)"
    return f"{certain}."


def throughput_line(loader: LoaderReport) -> str:
    """Counts and rates, as far as they are known."""
    return known(
        " · ",
        (plural(loader.batches, "batch", "batches"), loader.batches),
        (plural(loader.samples or 0, "sample"), loader.samples),
        (plural(loader.epochs, "epoch"), loader.epochs),
        (f"in {duration(loader.wall_s)}", loader.wall_s),
        (f"{rate(loader.batches_per_s)} batches/s", loader.batches_per_s),
        (f"{rate(loader.samples_per_s)} samples/s", loader.samples_per_s),
        (f"{size(loader.bytes_per_batch)} per batch", loader.bytes_per_batch),
    )


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
    """What recording cost; None where nothing is known of it."""
    cost, step = overhead.per_batch_us, overhead.share_of_step
    sampler = overhead.sampler_cpu_share
    share = known("", (f" ({percent(step)} of a step)", step))
    parts = known(
        ", ",
        (f"{micros(cost)} per batch{share}", cost),
        (f"sampler {percent(sampler)} of a core", sampler),
    )
    return f"Recording{':' if cost is None else ' cost'} {parts}." if parts else None


def overhead_sentence(overhead: Overhead) -> str:
    """The same, with what it leaves out.

    The hooks are timed back to back (record/iterate/calibrate.py), so with warm caches;
    benchmarks/overhead.py, whose loop does real work in between, measures 1.6 times as much.
    """
    note = "That is with warm caches: in a loop that empties them, it is up to twice as much."
    if overhead.per_batch_us is None:
        reason = overhead.reasons.get("per_batch_us", "no reason known")
        note = f"The cost per batch was not measured ({reason})."
    return " ".join(filter(None, (overhead_line(overhead), note)))
