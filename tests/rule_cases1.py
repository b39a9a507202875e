"""Cases for rules, made of recorded runs, and a what-if model whose answers a test chooses."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from builders import MS, T0, RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import loader_report
from loaderscope.advisors.case.case import Advice, Case, Unmeasured
from loaderscope.advisors.rules import rule
from loaderscope.advisors.schema.report_model import LoaderReport, Range
from loaderscope.advisors.stage_model.summary import summarise
from loaderscope.profiler.run.run_reader import open_run

SECTIONS = ("What it looks for", "Why it matters", "What to change", "When not to")


class FakeWhatIf:
    """Answers with what it was given, and remembers what it was asked."""

    def __init__(self, answer: float | Callable[..., float] = 1.5) -> None:
        self.answer = answer
        self.asked: list[dict[str, Any]] = []

    def predict(self, **changes: Any) -> Range:
        self.asked.append(changes)
        mid = self.answer(**changes) if callable(self.answer) else self.answer
        return Range(mid * 0.9, mid, mid * 1.1)


def worker_loop(
    batches: int,
    wait_ms: float = 5.0,
    compute_ms: float = 5.0,
    *,
    fetch_ms: float | Callable[[int], float] = 20.0,
    cpu: float = 1.0,
    collate_ms: float = 0.5,
    pack_ms: float = 0.2,
    unpack_ms: float = 0.1,
    **columns: Any,
) -> list[dict[str, Any]]:
    """A loop whose batches come from workers and were awaited until they were handed over."""

    def fetch(number: int) -> int:
        return round((fetch_ms(number) if callable(fetch_ms) else fetch_ms) * MS)

    rows = loop(batches, wait_ms, compute_ms, **columns)
    for number, row in enumerate(rows):
        end = row["t_ns"] + row["wait_ns"]
        made = fetch(number) + round((collate_ms + pack_ms) * MS)
        own = {
            "fetch_ns": fetch(number), "fetch_cpu_ns": round(fetch(number) * cpu), "collate_ns": round(collate_ms * MS),
            "collate_cpu_ns": round(collate_ms * MS), "pack_ns": round(pack_ms * MS),
            "unpack_ns": round(unpack_ms * MS), "queued_ns": 0, "t_fetch_ns": end - made - round(unpack_ms * MS),
            "task": number, "worker": number % 2, "worker_pid": 5000 + number % 2, "ready": 0, "outstanding": 2,
            "index_ns": 1000,
        }  # fmt: skip
        rows[number] = {**own, **row}
    return rows


def main_loop(batches: int, compute_ms: float = 5.0, **stages_ms: float) -> list[dict[str, Any]]:
    """A loop without workers: waiting is the sum of the stages; `fetch_cpu` is CPU over wall time."""
    cpu = stages_ms.pop("fetch_cpu", 1.0)
    wait = sum(stages_ms.values())
    columns = {f"{name}_ns": round(value * MS) for name, value in stages_ms.items()}
    if "fetch" in stages_ms:
        columns["fetch_cpu_ns"] = round(stages_ms["fetch"] * cpu * MS)
    return loop(batches, wait, compute_ms, **columns)


def case_of(
    path: Path,
    *lanes: list[dict[str, Any]],
    whatif: FakeWhatIf | None = None,
    process: Mapping[str, Any] | None = None,
    system: Mapping[str, Any] | None = None,
    report: Callable[[LoaderReport], LoaderReport] | None = None,
    **facts: Any,
) -> Case:
    """The case of the one loader in a run of these rows; `system` are the arguments of RunBuilder.system."""
    run = RunBuilder(path)
    builder = run.process(**(process or {}))
    if "epochs" not in facts:
        facts["epochs"] = [epoch_row(rows) for rows in lanes]
    builder.loader([row for rows in lanes for row in rows], **facts)
    if system is not None:
        run.system(**system)
    opened = open_run(run.path)
    one, loader = opened.processes[0], opened.loaders[0]
    summary = summarise(opened)
    found = loader_report_of(opened, one, loader, summary.effective_cpus)
    return Case(
        run=opened, process=one, loader=loader, report=report(found) if report else found, system=summary,
        host=opened.systems[0] if opened.systems else None, whatif=whatif,
    )  # fmt: skip


def loader_report_of(*parts: Any) -> LoaderReport:
    run, process, loader, cpus = parts
    return loader_report(run, process, loader, cpus)


def workers_config(workers: int = 2, **more: Any) -> dict[str, Any]:
    return {"num_workers": workers, "prefetch_factor": 2, "in_order": True, "start_method": "fork", **more}


def host_samples(
    seconds: int = 10,
    workers: int = 2,
    worker_cores: float = 1.0,
    main_cores: float = 0.2,
    uss: Callable[[int], int | None] | None = None,
    rss: Callable[[int], int | None] | None = None,
    threads: int = 3,
    fds: int | Callable[[int], int] = 20,
    **machine: Any,
) -> dict[str, Any]:
    """Arguments for RunBuilder.system: a sample a second of the training process and its workers."""
    second = 10**9
    process: list[dict[str, Any]] = []
    for n in range(seconds):
        t = T0 + n * second
        held = fds if isinstance(fds, int) else fds(n)
        process.append({"t_ns": t, "pid": 4000, "owner_pid": 4000, "role": 0, "fds": held,
                        "cpu_user_ns": round(n * second * main_cores), "cpu_system_ns": 0})  # fmt: skip
        process += [
            {"t_ns": t, "pid": 5000 + w, "owner_pid": 4000, "role": 1, "worker": w, "loader": 0,
             "cpu_user_ns": round(n * second * worker_cores), "cpu_system_ns": 0, "threads": threads,
             "uss_bytes": uss(n) if uss else None, "rss_bytes": rss(n) if rss else None, "fds": 12}
            for w in range(workers)
        ]  # fmt: skip
    rows = [{"t_ns": T0 + n * second, "cpu_idle_pct": 5.0, "cpu_system_pct": 5.0, "cpu_user_pct": 90.0,
             "mem_available_bytes": 8_000_000_000, **machine} for n in range(seconds)]  # fmt: skip
    return {"machine": rows, "process": process}


def judged(name: str, case: Case) -> tuple[list[Advice], list[Advice], list[Unmeasured]]:
    """(recommended, rejected, unmeasured). Whatever a rule says, its code parses and its evidence has units."""
    outcomes = list(rule(name).examine(case))
    for outcome in outcomes:
        if isinstance(outcome, Advice):
            ast.parse(outcome.code)
            assert outcome.title and outcome.why.endswith(".")
            assert outcome.evidence and all(_has_unit(value) for value in outcome.evidence.values()), outcome.evidence
    advice = [o for o in outcomes if isinstance(o, Advice)]
    return (
        [a for a in advice if not a.rejected],
        [a for a in advice if a.rejected],
        [o for o in outcomes if isinstance(o, Unmeasured)],
    )


def only(advice: list[Advice]) -> Advice:
    assert len(advice) == 1, advice
    return advice[0]


def _has_unit(value: str) -> bool:
    """A number with a word or sign behind it; a plain count says what it counts by its name."""
    return (bool(value.strip()) and not value.replace(".", "").isdigit()) or value.replace(",", "").isdigit()


def assert_documented(name: str) -> None:
    """`loaderscope rules NAME` prints a summary of one line, and the four sections."""
    doc = rule(name).doc
    assert doc.splitlines()[0].endswith(".") and doc.splitlines()[1] == ""
    places = [doc.index(f"\n{section}\n") for section in SECTIONS]
    assert places == sorted(places)


def each_loader_call(code: str) -> Iterator[ast.Call]:
    """The calls of DataLoader in a piece of code."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "DataLoader":
            yield node


def arguments(code: str) -> dict[str, Any]:
    """The keyword arguments of the one DataLoader call, as source."""
    (call,) = each_loader_call(code)
    return {keyword.arg or "**": ast.unparse(keyword.value) for keyword in call.keywords}
