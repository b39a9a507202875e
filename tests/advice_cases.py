"""Cases for rules, made of a real DataLoader (what is seen of it) and rows made up (what was measured)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from builders import MS, RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import loader_report
from loaderscope.advisors.case.case import Advice, Case, Outcome, Unmeasured
from loaderscope.advisors.rules import rule
from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.stage_model.summary import summarise
from loaderscope.profiler.inspect.describe import describe_loader
from loaderscope.profiler.inspect.inspect_loader import inspect_loader
from loaderscope.profiler.run.run_reader import open_run

US = 1_000
ANSWER = Range(1.5, 2.0, 2.5)


class FakeWhatIf:
    """Answers every question alike, and remembers what it was asked."""

    baseline_batches_per_s = 100.0

    def __init__(self, answer: Range = ANSWER) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    def predict(self, **changes: Any) -> Range:
        self.asked.append(changes)
        return self.answer


def rows_of(
    epochs: int = 2, batches: int = 60, *, wait_ms: float = 1.0, compute_ms: float = 0.5, **columns: Any
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(rows, epoch rows) of some alike epochs, one after another."""
    rows: list[dict[str, Any]] = []
    told = []
    for epoch in range(epochs):
        start = rows[-1]["t_ns"] + 100 * MS if rows else 5_000_000_000_000
        own = loop(batches, wait_ms, compute_ms, epoch=epoch, start_ns=start, **columns)
        rows += own
        told.append(epoch_row(own))
    return rows, told


def case_of(
    tmp_path: Path,
    rows: Sequence[Mapping[str, Any]],
    epochs: Iterable[Mapping[str, Any]] = (),
    *,
    loader: Any = None,
    config: Mapping[str, Any] | None = None,
    inspection: Mapping[str, Any] | None = None,
    whatif: FakeWhatIf | None = None,
    system: Mapping[str, Any] | None = None,
    process: Mapping[str, Any] | None = None,
    **more: Any,
) -> Case:
    """The case of a loader with these rows; `loader` is looked at as a recording process would."""
    seen = inspect_loader(loader) if loader is not None else {}
    run = RunBuilder(tmp_path / "cases")
    told = {**(describe_loader(loader) if loader is not None else {}), **(config or {})}
    run.process(**(process or {})).loader(rows, epochs=epochs, config=told, inspection={**seen, **(inspection or {})})
    if system is not None:
        run.system(**system)
    opened = open_run(run.path)
    recording, own = opened.processes[0], opened.processes[0].loaders[0]
    seen_system = summarise(opened)
    return Case(
        run=opened,
        process=recording,
        loader=own,
        report=loader_report(opened, recording, own, seen_system.effective_cpus),
        system=seen_system,
        host=opened.systems[0] if opened.systems else None,
        whatif=cast("Any", whatif if whatif is not None else FakeWhatIf()),
        **more,
    )


def outcomes(name: str, case: Case) -> list[Outcome]:
    """All that the rule says of this case."""
    return list(rule(name).examine(case))


def advice(name: str, case: Case) -> Advice:
    """The one recommendation the rule makes."""
    found = outcomes(name, case)
    assert len(found) == 1 and isinstance(found[0], Advice) and not found[0].rejected, found
    check_words(found[0])
    return found[0]


def rejection(name: str, case: Case) -> Advice:
    """The one thing the rule advises against."""
    found = outcomes(name, case)
    assert len(found) == 1 and isinstance(found[0], Advice) and found[0].rejected, found
    check_words(found[0])
    return found[0]


def unmeasured(name: str, case: Case) -> str:
    """Why the rule cannot say."""
    found = outcomes(name, case)
    assert len(found) == 1 and isinstance(found[0], Unmeasured), found
    return found[0].reason


def check_words(found: Advice) -> None:
    """Evidence has figures with units, and code that parses."""
    compile(found.code, "advice", "exec")
    assert found.title and found.why and found.evidence
    assert all(value and name for name, value in found.evidence.items())
    for value in found.evidence.values():
        assert any(c.isdigit() for c in value) or " " in value or value.isidentifier(), value


def check_doc(name: str) -> None:
    """The rule's documentation has its sections, each with something in it."""
    lines = rule(name).doc.splitlines()
    assert lines[0].endswith(".") and not lines[1]
    for title in ("What it looks for", "Why it matters", "What to change", "When not to"):
        at = lines.index(title)
        assert lines[at + 1].startswith("    ") and len(lines[at + 1]) > 10, title
