"""What `doctor`, `rules`, `list` and `demo` print."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from ...advisors.rules import Rule
from ...advisors.schema.report_model import Report
from ...profiler.doctor import Check
from ...profiler.store.run.run_list import RunEntry
from ..words.accuracy import ALL, AccuracyRow, unsure_trials
from ..words.units import UNKNOWN, factor, percent, rate, size
from .blocks import (
    Cell,
    Code,
    Column,
    Pairs,
    Section,
    Sentence,
    Styled,
    Table,
    section,
    sentences,
)

_MARKS = {True: ("ok", "good"), False: ("missing", "bad"), None: ("no", "dim")}
_KINDS = {"speed": "dim", "correctness": "bad", "safety": "own"}
_STATES = {
    "live": "good",
    "interrupted": "own",
    "failed": "bad",
    "crashed": "bad",
    "unreadable": "bad",
    "unknown": "dim",
}


def findings(checks: Sequence[Check]) -> list[Section]:
    """What `doctor` found, each with its fix, then how many can be fixed."""
    rows: list[tuple[Cell, ...]] = []
    for each in checks:
        rows.append((Styled(*_MARKS[each.ok]), f"{each.name}: {each.finding}"))
        if each.mend and each.ok is not True:
            rows.append(("", Styled(f"→ {each.mend}", "strong")))
    missing = sum(each.ok is False for each in checks)
    said = "Everything that this machine has can be measured."
    if missing:
        said = f"{missing} of {len(checks)} checks can be fixed (see →)."
    table = Table((Column("", "name"), Column("")), rows)
    return [section("", "", [table]), section("", "", [Sentence(said)])]


def rule_list(rules: Iterable[Rule]) -> list[Section]:
    """A row a rule: its name, its kind, and what it looks for."""
    rows = [(each.name, Styled(each.kind, _KINDS[each.kind]), each.summary) for each in rules]
    columns = (Column("", "name"), Column("", "name", 72), Column(""))
    end = Sentence("One rule in full: loaderscope rules NAME")
    return [section("", "", [Table(columns, rows)]), section("", "", [end])]


def one_rule(rule: Rule) -> list[Section]:
    """The rule's documentation as it is written, whatever the width."""
    title = Sentence(f"{rule.name} ({rule.kind})", "strong")
    return [section("", "", [title, Code(rule.doc)])]


def run_list(entries: Iterable[RunEntry]) -> list[Section]:
    """One line a run. The names are never cut: they are there to be copied."""
    rows = [
        (
            each.id,
            Styled(each.state, _STATES.get(each.state, "")),
            _when(each.created_unix_ns),
            size(each.size_bytes),
            each.problem or _command(each),
        )
        for each in entries
    ]
    columns = (
        Column("run", "name"),
        Column("state", "name"),
        Column("begun", "name", 60),
        Column("size", "number", 70),
        Column("command", "line"),
    )
    return [section("", "", [Table(columns, rows)])]


def _command(entry: RunEntry) -> str:
    command = " ".join(entry.argv) or UNKNOWN
    if entry.processes > 1:
        return f"{command}  ({entry.processes} processes, {entry.loaders} loaders)"
    return command if entry.loaders == 1 else f"{command}  ({entry.loaders or 'no'} loaders)"


def _when(unix_ns: int | None) -> str:
    if not unix_ns:
        return UNKNOWN
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_ns / 1e9))
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


def accuracy(rows: Sequence[AccuracyRow], unsure: int = 0) -> list[Section]:
    """How good predictions were: a line per host and setting. `unsure`: how many further trials
    were too short to tell."""
    numbers = ("trials", "median error", "bias", "in the range")
    columns = (Column("host"), Column("changed"), *(Column(head, "number") for head in numbers))
    cells = [
        (
            row.host or UNKNOWN,
            Styled(row.changed, "strong" if row.changed == ALL else ""),
            f"{row.trials:,}",
            percent(row.median_error),
            f"{row.median_bias * 100:+.0f} %",
            percent(row.inside_share),
        )
        for row in rows
    ]
    explained = "Predictions against what tuning measured. Four in five should be in the range."
    left_out = f"Left out: {unsure_trials(unsure)}." if unsure else None
    said = sentences((explained, left_out), "dim")
    return [section("", "", [Table(columns, cells), *said])]


def speedup(before: Report, after: Report) -> list[Section]:
    """The measured throughput of the first loader of each report, and their ratio."""
    rows = list(_speeds(before, after))
    nothing = "Nothing to compare: one of the runs recorded no loader."
    return [section("", "", [Pairs(rows) if len(rows) == 2 else Sentence(nothing)])]


def _speeds(before: Report, after: Report) -> Iterator[tuple[str, str]]:
    first = None
    for name, report in (("before", before), ("after", after)):
        for loader in report.loaders[:1]:
            speed, wait = loader.samples_per_s, loader.stages["wait"].share
            said = f"{rate(speed)} samples/s, waiting {percent(wait)} of the time"
            if first and loader.batches_per_s:
                said += f": {factor(loader.batches_per_s / first)} the throughput, measured"
            first = loader.batches_per_s
            yield name, said
