"""The figures of a report as rows of ready texts, for every format that has tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...advisors.schema.report_model import LoaderReport, Recommendation, Report
from ...profiler.base.metadata import clean
from .advice_words import effect_text
from .glosses import CAUSES, GLOSSES, GROUPS
from .ranks import who
from .sentences import CAPACITIES
from .units import UNKNOWN, duration, figure, micros, percent, plural, rate
from .uses import use_of

MAX_CODE = 20_000


@dataclass(frozen=True)
class StageRow:
    """One stage. `reason` says why there are no figures, or how to read them."""

    name: str
    label: str
    gloss: str
    figures: tuple[str, str, str, str]  # mean, p50, p95, p99
    share: str
    reason: str | None


def stage_groups(loader: LoaderReport) -> Iterator[tuple[str, list[StageRow]]]:
    """(heading, rows) in the order of the pipeline, stages without figures included; empty groups
    are left out."""
    workers = loader.config.get("num_workers")
    several = isinstance(workers, int) and workers > 0
    where = (
        f"in {plural(int(workers or 0), 'worker', 'workers')}"
        if several
        else "in the training process"
    )
    known = {name for _, names in GROUPS for name in names}
    groups = [(title.format(where=where), names) for title, names in GROUPS]
    groups.append(("other", tuple(name for name in loader.stages if name not in known)))
    for title, names in groups:
        rows = [_stage_row(name, loader) for name in names if name in loader.stages]
        if rows:
            yield title, rows


def _stage_row(name: str, loader: LoaderReport) -> StageRow:
    stage = loader.stages[name]
    shown, _, gloss = GLOSSES.get(name, (clean(name, 40), "", ""))
    figures = (
        micros(stage.mean_us),
        micros(stage.p50_us),
        micros(stage.p95_us),
        micros(stage.p99_us),
    )
    whole = loader.stages.get(name.removesuffix("_cpu"))
    if (
        whole is not None
        and whole is not stage
        and whole.mean_us
        and whole.share
        and stage.share is not None
    ):
        # Measured on a few batches, and not on a fair sample of them: its mean follows from its
        # share of the whole.
        figures = (micros(whole.mean_us * stage.share / whole.share), UNKNOWN, UNKNOWN, UNKNOWN)
    reason = stage.reason or ("no reason known" if not stage.count else None)
    return StageRow(
        name,
        shown.strip(),
        gloss,
        figures,
        percent(stage.share),
        clean(reason, 200) if reason else None,
    )


@dataclass(frozen=True)
class CauseRow:
    """One cause of waiting: seconds, share of all waiting, and what it means."""

    cause: str
    time: str
    share: str
    meaning: str
    fraction: float  # as `share`


def cause_rows(loader: LoaderReport) -> list[CauseRow]:
    """The causes of waiting, the greatest first."""
    found = loader.waiting.causes.items() if loader.waiting is not None else ()
    return [
        CauseRow(
            clean(name, 40),
            duration(cause.seconds),
            percent(cause.share),
            CAUSES.get(name, ""),
            cause.share,
        )
        for name, cause in sorted(found, key=lambda item: -item[1].share)
    ]


def capacity_rows(loader: LoaderReport) -> list[tuple[str, str, str, bool]]:
    """(stage in words, batches a second, what that assumes, whether it is the limit)."""
    return [
        (
            CAPACITIES.get(name) or clean(name, 40),
            f"{rate(each.batches_per_s)} batches/s" if each.batches_per_s is not None else UNKNOWN,
            clean(each.how, 300),
            name == loader.limit,
        )
        for name, each in loader.capacities.items()
    ]


@dataclass(frozen=True)
class AdviceRow:
    """One piece of advice in words. `effect` is empty where speed does not change."""

    rule: str
    kind: str
    title: str
    effect: str
    why: str
    evidence: list[tuple[str, str]]
    params: list[tuple[str, str]]
    code: str
    caveat: str | None
    doc: str | None


def advice_row(advice: Recommendation) -> AdviceRow:
    """Every text clean, the code whole with its lines."""
    return AdviceRow(
        rule=clean(advice.rule, 60),
        kind=advice.kind,
        title=clean(advice.title, 200),
        effect=effect_text(advice),
        why=clean(advice.why),
        evidence=[(clean(name, 100), figure(value)) for name, value in advice.evidence.items()],
        params=[
            (clean(name, 60), clean(value, 200)) for name, value in advice.change.params.items()
        ],
        code=clean_code(advice.change.code),
        caveat=clean(advice.caveat) if advice.caveat else None,
        doc=clean(advice.doc, 200) if advice.doc else None,
    )


def clean_code(code: str) -> str:
    """Code to paste: its lines as they are, without control characters."""
    text = code.expandtabs(4).strip("\n")[:MAX_CODE]
    return "\n".join(clean(line, MAX_CODE).rstrip() for line in text.split("\n"))


def config_rows(loader: LoaderReport) -> list[tuple[str, str]]:
    """What the loader was made with."""
    return [(clean(name, 60), clean(value, 200)) for name, value in loader.config.items()]


def run_rows(report: Report) -> list[tuple[str, str]]:
    """Which run, where and when; what is not known is left out."""
    run = report.run
    processes = f"{run.processes}" + (f", world size {run.world_size}" if run.world_size else "")
    rows = [
        ("run", run.id),
        ("state", run.state),
        ("recorded", duration(run.wall_s) if run.wall_s is not None else None),
        ("command", " ".join(run.argv) or None),
        ("host", run.host),
        ("devices", ", ".join(run.devices) or None),
        ("processes", processes),
        ("platform", run.platform),
        ("Python", run.python),
        ("torch", run.torch),
        ("Loaderscope", run.loaderscope),
    ]
    return [(name, clean(value, 300)) for name, value in rows if value]


def title_of(loader: LoaderReport, several: bool) -> str:
    """'ImageNet', with what it is for, and whose figures these are where that is not clear."""
    name = ", ".join(filter(None, (clean(loader.name, 80), use_of(loader))))
    whose = who(loader, several)
    return name if whose is None else f"{name} ({whose})"
