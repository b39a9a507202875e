"""A loader in words: what it is for, where and how its run went, which recorded loader a report is
about; and the same loader over the ranks of a job."""

from collections import defaultdict

from ...advisors.code.dialects import NAMES
from ...advisors.schema.rank_model import SlowestRank
from ...advisors.schema.report_model import LoaderReport, Report, RunInfo
from ...advisors.stage_model.ranks import LEAST_STEADY
from ...profiler.base.metadata import Scalar, clean
from ...profiler.record.inspect.uses import place_of
from ...profiler.store.run.run import LoaderRun, Run
from .glosses import label_of
from .units import micros, plural


def use_of(loader: LoaderReport | LoaderRun) -> str | None:
    """'training (train.py:41), Lightning, made at data.py:12', as far as it is known."""
    phase, place, framework = (loader.config.get(name) for name in ("phase", "place", "framework"))
    at = loader.made_at if isinstance(loader, LoaderReport) else loader.made.place
    made = f"made at {clean(at, 60)}" if at else None
    said = clean(phase, 60) if isinstance(phase, str) else None
    if place and said:
        said = f"{said} ({clean(place, 60)})"
    elif place and place != at:
        said = f"used at {clean(place, 60)}"
    by = NAMES.get(framework) if isinstance(framework, str) else None
    return ", ".join(filter(None, (said, by, made))) or None


def run_facts(run: RunInfo) -> dict[str, Scalar]:
    """What two runs may differ in besides their loaders."""
    return {
        "command": " ".join(run.argv) or None,
        "host": run.host,
        "devices": ", ".join(run.devices) or None,
        "processes": run.processes,
        "world size": run.world_size,
        "platform": run.platform,
        "Python": run.python,
        "torch": run.torch,
        "Loaderscope": run.loaderscope,
    }


def recorded(report: Report, run: Run | None) -> list[tuple[LoaderReport, LoaderRun | None]]:
    """Each loader of the report with its columns; None where the run has none (a report read from
    elsewhere).

    Process ids may repeat between hosts: of several that fit, each is taken once, in the order of
    both.
    """
    left: dict[object, list[LoaderRun]] = defaultdict(list)
    for one in run.loaders if run else ():
        left[one.pid, one.index, one.rank].append(one)
    fits = [left[each.pid, each.index, each.rank] for each in report.loaders]
    pairs = zip(report.loaders, fits, strict=True)
    return [(each, found.pop(0) if found else None) for each, found in pairs]


def who(loader: LoaderReport, several: bool) -> str | None:
    """'4 ranks, figures of rank 2', 'rank 2', 'process 4000': whose figures a section shows; None
    where it is clear."""
    if loader.ranks:
        return f"{plural(len(loader.ranks.each), 'rank')}, figures of rank {loader.rank}"
    if loader.rank is not None:
        return f"rank {loader.rank}"
    return f"process {loader.pid}" if several else None


def title_of(loader: LoaderReport, several: bool) -> str:
    """'ImageNet', with what it is for, and whose figures these are where that is not clear."""
    variable = loader.config.get("variable")
    named = clean(loader.name, 80)
    if isinstance(variable, str) and variable != loader.name:
        named = f"{clean(variable, 60)}: {named}"
    name = ", ".join(filter(None, (named, use_of(loader))))
    whose = who(loader, several)
    return name if not whose else f"{name} ({whose})"


def rank_sentences(loader: LoaderReport) -> list[str]:
    """Which rank holds the others up and why, or that none does; and how many are missing."""
    ranks = loader.ranks
    if not ranks:
        return []
    sentences = [_slowest(ranks.slowest)] if ranks.slowest else []
    if not sentences and sum(each.steady_batches >= LEAST_STEADY for each in ranks.each) > 1:
        sentences = ["No rank delays the others with its loading."]
    missing = (ranks.world_size or 0) - len(ranks.each)
    if missing > 0:
        was = "was" if missing == 1 else "were"
        sentences.append(
            f"Of {ranks.world_size:,} ranks, {missing:,} {was} not recorded with this loader."
        )
    return sentences


def _slowest(slow: SlowestRank) -> str:
    if slow.cause:
        what = (
            f"Rank {slow.rank}’s {label_of(slow.cause)} takes {micros(slow.cause_us)} per batch, "
            "the others’ "
        )
        what += micros(slow.others_cause_us)
        at = place_of(slow.file, slow.line) if slow.file and slow.line else ""
        where = " at ".join(filter(None, (clean(slow.function, 80) if slow.function else "", at)))
        what += f": {where}" if where else ""
    else:
        what = (
            f"Rank {slow.rank} waits {micros(slow.lost_us)} a step for its data, the others "
            f"{micros(slow.others_lost_us)}: no stage of its loader accounts for that"
        )
    if not slow.held_up:
        return f"{what}. The ranks do not step together, so that only it waits for that."
    more = micros(slow.lost_us - slow.others_lost_us)
    return f"{what}. Every step waits for it: {more} of {micros(slow.step_us)}, in all ranks."
