"""Many loaders in one report: a table of all of them first, and those that are alike as one."""

from __future__ import annotations

import re
from collections import defaultdict

from ...advisors.schema.report_model import LoaderReport, Recommendation, Report
from ...profiler.base.metadata import clean
from ..words.advice_words import predicted_text
from ..words.plan_words import plan_rows
from ..words.units import duration, factor, percent, plural
from .blocks import Column, Section, Styled, Table, section

# From this many on, a table comes first, and loaders that are alike are described once.
MANY = 4
MOST_ROWS = 16
_NUMBER = re.compile(r" \d+$")  # of a further loader over the same kind of data set

Group = tuple[LoaderReport, ...]


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


def title_of_group(title: str, group: Group) -> str:
    """'Rows, training (train.py:8), and 19 loaders like it'"""
    more = len(group) - 1
    return f"{title}, and {plural(more, 'loader')} like it" if more else title


def summary(report: Report, groups: list[Group]) -> Section:
    """A row a group: what it costs, and what to do first. Nothing where the loaders are few."""
    if len(report.loaders) < MANY:
        return section("", "", [])
    rows = []
    for group in groups[:MOST_ROWS]:
        first, steps = group[0], plan_rows(group[0])
        more = f" and {len(group) - 1} more" if len(group) > 1 else ""
        lost = sum(each.lost_s for each in group if each.verdict != "too-short")
        known = first.verdict != "too-short" and first.headroom is not None
        advice = steps[0].advice if steps else None
        rows.append(
            (
                f"{clean(first.config.get('variable') or first.name, 40)}{more}",
                Styled(first.verdict, first.verdict),
                percent(first.basis.stall_share),
                duration(lost) if known else "",
                factor(first.headroom) if known else "",
                _first_step(advice) if advice is not None else "",
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
        f"{len(report.loaders)} loaders", "loaders", [Table(columns, rows, "The loaders")]
    )


def _first_step(advice: Recommendation) -> str:
    gain = f"{predicted_text(advice.predicted)}  " if advice.kind == "speed" else ""
    return f"{gain}{advice.title}"
