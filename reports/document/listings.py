"""What `doctor`, `rules`, `list` and `demo` print."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple

from ...advisors.rules import Rule
from ...advisors.schema.gains import LEAST_GAIN
from ...advisors.schema.report_model import Report
from ...profiler.doctor import Check
from ...profiler.store.run.run_list import RunEntry
from ..words.advice_words import predicted_text
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
    table,
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


class Leading(NamedTuple):
    """Of a run: the loader that costs most, and the factor that its first advice promises."""

    name: str
    verdict: str
    gain: float | None


def findings(checks: Sequence[Check]) -> list[Section]:
    """What `doctor` found, each with its fix, then how many can be fixed."""
    rows: list[tuple[Cell, ...]] = []
    for each in checks:
        rows.append((Styled(*_MARKS[each.ok]), f"{each.name}: {each.finding}"))
        if each.fix and each.ok is not True:
            rows.append(("", Styled(f"→ {each.fix}", "strong")))
    missing = sum(each.ok is False for each in checks)
    said = "Everything that this machine has can be measured."
    if missing:
        said = f"{missing} of {len(checks)} checks can be fixed (see →)."
    found = table(("", ""), rows, "wt")
    return [section(found), section([Sentence(said)])]


def rule_list(rules: Iterable[Rule]) -> list[Section]:
    """A row a rule: its name, its kind, and what it looks for."""
    rows = [(each.name, Styled(each.kind, _KINDS[each.kind]), each.summary) for each in rules]
    columns = (Column("", "name"), Column("", "name", 72), Column(""))
    end = Sentence("One rule in full: loaderscope rules NAME")
    return [section([Table(columns, rows)]), section([end])]


def one_rule(rule: Rule) -> list[Section]:
    """The rule's documentation as it is written, whatever the width."""
    title = Sentence(f"{rule.name} ({rule.kind})", "strong")
    return [section([title, Code(rule.doc)])]


def run_list(
    entries: Iterable[RunEntry], leading: Mapping[str, Leading], where: str = ""
) -> list[Section]:
    """One line a run, with its loader that costs most. The names are never cut: they are there to
    be copied. `leading`: that loader by the run's id; `where`: the folder of the runs."""
    rows = [_run_row(each, leading.get(each.id)) for each in entries]
    columns = (
        Column("run", "name"),
        Column("state", "name"),
        Column("begun", "name", 110),
        Column("size", "number", 120),
        Column("script", "line"),
        Column("loader", "line", 72),
        Column("verdict", "name", 60),
        Column("gain", "number", 66),
    )
    said = sentences([where and f"in {where}"], "dim")
    return [section([Table(columns, rows), *said])]


def _run_row(entry: RunEntry, leading: Leading | None) -> tuple[Cell, ...]:
    loader = verdict = gain = ""
    if leading:
        named = leading.name
        loader = named if entry.loaders < 2 else f"{named} of {entry.loaders}"
        verdict = leading.verdict
        if (leading.gain or 1.0) >= LEAST_GAIN:
            gain = factor(leading.gain)
    return (
        entry.id,
        Styled(entry.state, _STATES.get(entry.state, "")),
        _when(entry.created_unix_ns),
        size(entry.size_bytes),
        entry.problem or _command(entry),
        loader,
        Styled(verdict, verdict),
        gain,
    )


def _command(entry: RunEntry) -> str:
    """The script without its folder, and its arguments."""
    script, *rest = entry.argv or (UNKNOWN,)
    command = " ".join((PurePath(script).name or script, *rest))
    return f"{command}  ({entry.processes} processes)" if entry.processes > 1 else command


def _when(unix_ns: int | None) -> str:
    if not unix_ns:
        return UNKNOWN
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(unix_ns / 1e9))
    except (OverflowError, OSError, ValueError):
        return UNKNOWN


def speedup(before: Report, after: Report) -> list[Section]:
    """The measured throughput of the first loader of each report, and their ratio."""
    rows = list(_speeds(before, after))
    nothing = "Nothing to compare: one of the runs recorded no loader."
    return [section([Pairs(rows) if len(rows) >= 2 else Sentence(nothing)])]


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
    advised = [each for loader in before.loaders[:1] for each in loader.recommendations]
    workers = next((each for each in advised if "num_workers" in each.change.params), None)
    if workers and workers.kind == "speed":
        yield "predicted", f"{workers.title}: {predicted_text(workers.predicted)}"
