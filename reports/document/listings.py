"""What `doctor`, `rules`, `list` and `demo` print."""

import time
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from ...advisors.rules import Rule
from ...advisors.schema.gains import LEAST_GAIN
from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.doctor import Check
from ...profiler.store.run.run_list import RunEntry
from ..words.units import UNKNOWN, factor, rate, size
from .blocks import (
    Cell,
    Code,
    Column,
    Section,
    Sentence,
    Styled,
    Table,
    section,
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


def run_list(runs: Iterable[tuple[RunEntry, LoaderReport | None]], where: str) -> list[Section]:
    """One line a run, with its loader that costs most. The names are never cut: they are there to
    be copied. `where`: the folder of the runs."""
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
    rows = [_run_row(*each) for each in runs]
    return [section([Table(columns, rows), Sentence(f"in {where}", "dim")])]


def _run_row(entry: RunEntry, costliest: LoaderReport | None) -> tuple[Cell, ...]:
    loader = verdict = gain = ""
    if costliest:
        loader = str(costliest.config.get("variable") or costliest.name)
        loader += f" of {entry.loaders}" if entry.loaders > 1 else ""
        verdict = costliest.verdict
        promised = [each.predicted.mid for each in costliest.recommendations[:1]]
        gain = factor(promised[0]) if promised and promised[0] >= LEAST_GAIN else ""
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
    speeds = [loader.samples_per_s for each in (before, after) for loader in each.loaders[:1]]
    said = "Nothing to compare: one of the runs recorded no loader."
    if len(speeds) == 2 and speeds[0] and speeds[1]:
        times = factor(speeds[1] / speeds[0])
        said = f"{rate(speeds[0])} samples/s before, {rate(speeds[1])} after: {times}, measured."
    return [section([Sentence(said)])]
