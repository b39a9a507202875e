"""A report as sections of blocks: each loader, the one that costs most first, then the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import LoaderRun, Run
from ..words.findings import finding_text, what_costs
from ..words.inside import inside_notes
from ..words.ranks import RANK_HEAD, rank_rows, rank_sentences, title_of
from ..words.sentences import (
    config_line,
    headroom_sentence,
    limit_sentence,
    overhead_sentence,
    throughput_line,
)
from ..words.system_words import system_rows
from ..words.units import duration, factor, percent, rate
from ..words.uses import recorded, run_facts
from .advice import advice_parts, tuned_blocks
from .blocks import (
    Block,
    Bullets,
    Folded,
    Pairs,
    Part,
    Plots,
    Section,
    Sentence,
    Tiles,
    section,
    sentences,
    table,
)
from .inside import inside_parts
from .many import Group, groups_of, summary, title_of_group
from .stages import (
    capacities,
    not_judged,
    slowest_batches,
    stage_table,
    unmeasured_stages,
    waiting_blocks,
)

MAX_NOTES = 50
NOTHING = "Nothing to report: no loader was recorded."


def report_sections(report: Report, most: int, run: Run | None = None) -> Iterator[Section]:
    """The whole report, of at most `most` loaders. With its `run`, single batches are shown too."""
    yield section("", "", sentences(report.missing[:MAX_NOTES], "warning"))
    several = len(report.loaders) > 1
    groups = groups_of(report)
    yield summary(report, groups)
    for number, (group, found) in enumerate(shown(report, run, groups)[:most]):
        loader = group[0]
        parts = _loader_parts(loader, f"loader{number}", found)
        title = title_of_group(title_of(loader, several), group)
        yield Section(title, list(parts), f"loader{number}", loader.verdict)
    yield rest(report, groups, most)
    machine = Pairs(system_rows(report.system), "The machine")
    yield section("The machine", "machine", [machine, Plots("machine")])
    cost = Sentence(overhead_sentence(report.overhead))
    yield section("What recording cost", "overhead", [cost])
    notes = [Bullets(report.notes[:MAX_NOTES])] if report.notes else []
    yield section("Notes", "notes", notes)
    yield section("This run", "run", [Pairs(run_rows(report), "This run")])


def shown(
    report: Report, run: Run | None, groups: Sequence[Group]
) -> list[tuple[Group, LoaderRun | None]]:
    """Each group with the columns of its first loader, if they are at hand."""
    columns = {id(loader): found for loader, found in recorded(report, run)}
    return [(group, columns[id(group[0])]) for group in groups]


def rest(report: Report, groups: Sequence[Group], most: int) -> Section:
    """How many loaders found no room, or that there are none."""
    more = sum(map(len, groups[most:]))
    said = f"… and {more} more loaders: --format json has them all" if more > 0 else None
    return section("", "", sentences([said, None if report.loaders else NOTHING]))


def _loader_parts(loader: LoaderReport, key: str, columns: LoaderRun | None) -> Iterator[Part]:
    yield Part("", tuned_blocks(loader))
    yield Part("", [*lead(loader), *_ranks(loader), tiles(loader)])
    yield from advice_parts(loader)
    if len(loader.findings) > 1:
        yield Part("What costs", [Bullets([finding_text(each) for each in loader.findings])])
    facts = (throughput_line(loader), config_line(loader), not_judged(loader))
    yield Part("", sentences(facts, "dim"))
    yield Part(
        "Where each batch's time goes",
        [
            Plots(key),
            *stage_table(loader),
            *sentences([unmeasured_stages(loader)], "dim"),
            *(slowest_batches(columns) if columns is not None else []),
        ],
    )
    yield from inside_parts(loader, key)
    if loader.waiting is not None and loader.waiting.total_s > 0:
        title = f"Where waiting came from ({duration(loader.waiting.total_s)} in all)"
        yield Part(title, waiting_blocks(loader))
    notes = [*loader.notes[:MAX_NOTES], *inside_notes(loader)]
    yield Part("Notes", [Bullets(notes)] if notes else [])
    config = [(name, clean(value, 200)) for name, value in loader.config.items()]
    folded = [Folded("Configuration", [Pairs(config, "Configuration")])] if config else []
    yield Part("", [*capacities(loader), *folded])


def lead(loader: LoaderReport, limit: bool = True) -> list[Block]:
    """The verdict, what costs, how much there is to gain, and what limits."""
    headroom = headroom_sentence(loader) if loader.verdict != "too-short" else None
    limits = limit_sentence(loader) if limit else None
    said = [what_costs(loader), headroom, limits]
    return [Sentence(loader.basis.sentence, "lead"), *sentences(said)]


def _ranks(loader: LoaderReport) -> list[Block]:
    rows = rank_rows(loader)
    spread = [table(RANK_HEAD, rows, "wnnn", "The ranks")] if rows else []
    return [*sentences(rank_sentences(loader)), *spread]


def tiles(loader: LoaderReport) -> Tiles:
    """What one looks at first."""
    basis = loader.basis
    rows = []
    if loader.samples_per_s is not None:
        more = f"{rate(loader.batches_per_s)} batches/s"
        rows.append(("samples/s", rate(loader.samples_per_s), more))
    elif loader.batches_per_s is not None:
        rows.append(("batches/s", rate(loader.batches_per_s), ""))
    if basis.stall_share is not None:
        low, high = basis.stall_share_low, basis.stall_share_high
        known = low is not None and high is not None
        spread = f"{percent(low)} to {percent(high)}, 19 times in 20" if known else ""
        lost = "lost to loading" if basis.lost == "stall" else "spent waiting for data"
        rows.append((lost, percent(basis.stall_share), spread))
    if loader.verdict != "too-short":
        free = "if loading were free"
        if loader.headroom is None:
            free = "without loading, nothing would be left"
        rows.append(("headroom", factor(loader.headroom), free))
    rows.append(("confidence", basis.confidence, f"{basis.steady_batches:,} steady batches"))
    return Tiles(rows)


def run_rows(report: Report) -> list[tuple[str, str]]:
    """Which run, where and when; what is not known is left out."""
    run = report.run
    recorded_for = duration(run.wall_s) if run.wall_s is not None else None
    about = {"run": run.id, "state": run.state, "recorded": recorded_for, **run_facts(run)}
    return [(name, clean(value, 300)) for name, value in about.items() if value]
