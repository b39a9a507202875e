"""A report as sections of blocks: each loader, the one that costs most first, then the machine. Of
many loaders a table comes first, and those that are alike are described once."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.base.metadata import clean
from ..words.advice_words import plan_rows, predicted_text
from ..words.inside import finding_text, inside_notes, what_costs
from ..words.loaders import rank_sentences, run_facts, title_of
from ..words.sentences import (
    config_line,
    headroom_sentence,
    overhead_sentence,
    throughput_line,
)
from ..words.system_words import system_rows
from ..words.units import duration, factor, percent, plural
from .advice import advice_parts, tuned_blocks
from .blocks import (
    Block,
    Column,
    Folded,
    Pairs,
    Part,
    Plots,
    Section,
    Sentence,
    Styled,
    Table,
    bullets,
    section,
    sentences,
)
from .inside import inside_parts
from .stages import (
    not_judged,
    stage_table,
    unmeasured_stages,
    waiting_blocks,
)

MAX_LOADERS, MAX_NOTES = 32, 50
NOTHING = "Nothing to report: no loader was recorded."

# From this many on, a table comes first, and loaders that are alike are described once.
MANY = 4
MOST_ROWS = 16
_NUMBER = re.compile(r" \d+$")  # of a further loader over the same kind of data set
Group = tuple[LoaderReport, ...]


def report_sections(report: Report, most: int = MAX_LOADERS) -> Iterator[Section]:
    """The whole report, of at most `most` loaders."""
    yield section(sentences(report.missing[:MAX_NOTES], "warning"))
    several = len(report.loaders) > 1
    groups = groups_of(report)
    yield summary(report, groups)
    for number, group in enumerate(groups[:most]):
        loader = group[0]
        parts = _loader_parts(loader, f"loader{number}")
        title = title_of_group(group, several)
        yield Section(title, list(parts), f"loader{number}", loader.verdict)
    yield rest(report, groups, most)
    machine = Pairs(system_rows(report.system), "The machine")
    yield section([machine, Plots("machine")], "The machine", "machine")
    cost = Sentence(overhead_sentence(report.overhead))
    yield section([cost], "What recording cost", "overhead")
    yield section(bullets(report.notes[:MAX_NOTES]), "Notes", "notes")
    yield section([Pairs(run_rows(report), "This run")], "This run", "run")


def rest(report: Report, groups: Sequence[Group], most: int) -> Section:
    """How many loaders found no room, or that there are none."""
    more = sum(map(len, groups[most:]))
    said = f"… and {more} more loaders: --format json has them all" if more > 0 else None
    return section(sentences([said, None if report.loaders else NOTHING]))


def _loader_parts(loader: LoaderReport, key: str) -> Iterator[Part]:
    yield Part(tuned_blocks(loader))
    yield Part([*lead(loader), *sentences(rank_sentences(loader))])
    yield from advice_parts(loader)
    costs = [finding_text(each) for each in loader.findings]
    yield Part(bullets(costs if len(costs) > 1 else []), "What costs")
    facts = (throughput_line(loader), config_line(loader), not_judged(loader))
    yield Part(sentences(facts, "dim"))
    yield Part(
        [
            Plots(key),
            *stage_table(loader),
            *sentences([unmeasured_stages(loader)], "dim"),
        ],
        "Where each batch's time goes",
    )
    yield from inside_parts(loader, key)
    if loader.waiting and loader.waiting.total_s > 0:
        title = f"Where waiting came from ({duration(loader.waiting.total_s)} in all)"
        yield Part(waiting_blocks(loader), title)
    yield Part(bullets([*loader.notes[:MAX_NOTES], *inside_notes(loader)]), "Notes")
    config = [(name, clean(value, 200)) for name, value in loader.config.items()]
    folded = [Folded("Configuration", [Pairs(config, "Configuration")])] if config else []
    yield Part(folded)


def lead(loader: LoaderReport) -> list[Block]:
    """The verdict, what costs, and how much there is to gain."""
    headroom = headroom_sentence(loader) if loader.verdict != "too-short" else None
    said = [what_costs(loader), headroom]
    return [Sentence(loader.basis.sentence, "lead"), *sentences(said)]


def run_rows(report: Report) -> list[tuple[str, str]]:
    """Which run, where and when; what is not known is left out."""
    run = report.run
    wall = duration(run.wall_s) if run.wall_s is not None else None
    about = {"run": run.id, "state": run.state, "recorded": wall, **run_facts(run)}
    return [(name, clean(value, 300)) for name, value in about.items() if value]


def groups_of(report: Report) -> list[Group]:
    """The loaders, the one that costs most first. Of many, those over one kind of data set with the
    same verdict and the same advice are together."""
    if len(report.loaders) < MANY:
        return [(each,) for each in report.costliest]
    found: dict[object, list[LoaderReport]] = defaultdict(list)
    for each in report.costliest:
        advised = tuple((one.rule, one.title) for one in each.recommendations)
        place = each.config.get("place"), each.config.get("phase")
        found[_NUMBER.sub("", each.name), each.verdict, place, advised].append(each)
    return [tuple(group) for group in found.values()]


def title_of_group(group: Group, several: bool) -> str:
    """'Rows, training (train.py:8), and 19 loaders like it'"""
    title, more = title_of(group[0], several), len(group) - 1
    return f"{title}, and {plural(more, 'loader')} like it" if more else title


def summary(report: Report, groups: list[Group]) -> Section:
    """A row a group: what it costs, and what to do first. Nothing where the loaders are few."""
    if len(report.loaders) < MANY:
        return section([])
    rows = []
    for group in groups[:MOST_ROWS]:
        first, steps = group[0], plan_rows(group[0])
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        lost = sum(each.lost_s for each in group if each.verdict != "too-short")
        known = first.verdict != "too-short" and first.headroom is not None
        advice = steps[0].advice if steps else None
        speed = advice and advice.kind == "speed"
        gain = f"{predicted_text(advice.predicted)}  " if advice and speed else ""
        rows.append(
            (
                f"{clean(first.config.get('variable') or first.name, 40)}{more}",
                Styled(first.verdict, first.verdict),
                percent(first.basis.stall_share),
                duration(lost) if known else "",
                factor(first.headroom) if known else "",
                f"{gain}{advice.title}" if advice else "",
            )
        )
    columns = (
        Column("loader"),
        Column("verdict", "name"),
        Column("waits", "number"),
        Column("in all", "number", 60),
        Column("if free", "number", 60),
        Column("first", "line", 72),
    )
    return section(
        [Table(columns, rows, "The loaders")], f"{len(report.loaders)} loaders", "loaders"
    )
