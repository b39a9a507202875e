"""One figure, one truth: a lint over many reports finds no two statements that contradict each
other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import inside_samples
from builders import MS, T0, RunBuilder, epoch_row, loop
from dashboard_samples import sampled, train
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Finding, Plan, PlanStep, Range, Report
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.words.storage_words import storage_rows
from report_lint import contradictions, one_loader
from report_samples import full_report, full_run
from stack_cases import OWN, burst, with_bursts

SECOND = 10**9
# Many small runs are cheaper to make than to advise on: each has one loader that its number draws.
RUNS = 40


def drawn(number: int, runs: Path) -> Report:
    """A loop of some kind: with or without workers, waiting or not, computing or waiting in fetch,
    on crowded cores."""
    random = Random(number)
    workers = random.choice([0, 0, 1, 2, 4])
    compute = random.choice([0.2, 2.0, 20.0])
    fetch = random.choice([0.05, 1.0, 8.0, 60.0])
    collate = random.choice([0.02, 0.5, 6.0])
    cpu = random.choice([0.05, 0.5, 1.0])
    cores = random.choice([1, 2, 16])
    start = random.choice([1, 400, 4000])
    making = fetch + collate
    wait = making + 0.05 if not workers else max(0.05, making / min(workers, cores) - compute) + 0.2
    columns: dict[str, Any] = {
        "index_ns": 15_000,
        "bytes": 1 << 20,
        "tensors": 2,
        "own_ns": 900.0,
        "fetch_ns": round(fetch * MS),
        "collate_ns": round(collate * MS),
        "fetch_cpu_ns": round(fetch * cpu * MS),
        "collate_cpu_ns": round(collate * MS),
    }
    if workers:
        columns |= {"pack_ns": MS // 5, "queued_ns": 50_000, "unpack_ns": MS // 10}
        columns |= {
            "t_fetch_ns": lambda n, t, w: t + round((wait - making - 0.5) * MS),
            "pickled_bytes": 400,
            "worker": lambda n, t, w: n % workers,
            "worker_pid": lambda n, t, w: 5000 + n % workers,
            "task": lambda n, t, w: n,
        }
    rows = loop(120, wait_ms=wait, compute_ms=compute, first_wait_ms=start, **columns)
    builder = RunBuilder(runs, f"20250131-09{number:04}-abc123")
    facts = {"ended_by": "KeyboardInterrupt"} if number % 5 == 0 else {}
    config = {"num_workers": workers, "prefetch_factor": 2, "batch_size": 4}
    builder.process(affinity=cores, **facts).loader(
        rows,
        epochs=[epoch_row(rows, startup_ms=start)],
        config={**config, "dataset": "train.Points"},
    )
    ready = random.choice([0.0, 0.6])  # of its time, a process waits for a core
    memory = {"mem_total_bytes": 32 * 10**9, "mem_available_bytes": 20 * 10**9}
    idle = {"cpu_idle_pct": 100 * (1 - max(ready, 0.3))}
    builder.system(
        machine=[
            {"t_ns": T0 + n * SECOND, "sampler_cpu_ns": n * MS, **memory, **idle} for n in range(6)
        ],
        process=[
            {
                "t_ns": T0 + n * SECOND,
                "pid": 5000 + w if w >= 0 else 4000,
                "role": int(w >= 0),
                "worker": w,
                "loader": 0,
                "owner_pid": 4000,
                "cpu_system_ns": 0,
                "cpu_user_ns": n * SECOND // 2,
                "run_delay_ns": round(n * SECOND * ready),
                "read_all_bytes": n * 1000,
                "read_disk_bytes": n * 5000,
            }
            for n in range(6)
            for w in range(-1, workers)
        ],
        cores_logical=cores,
        affinity=cores,
    )
    hot = random.choice([0, 20, 90])
    line = f"Points.__getitem__ {OWN}:41"
    stacks = [(5000 + n, "fetch", line, 100 - hot) for n in range(workers)] or [
        (4000, "fetch", line, 100 - hot)
    ]
    if not hot:
        return build_report(open_run(builder.path))
    called = f"{line} > decode site/PIL/Image.py:7"
    stacks += [(pid, stage, called, hot) for pid, stage, *_ in stacks]
    return build_report(with_bursts(builder.path, burst(*stacks)))


@pytest.mark.parametrize(
    "numbers", [range(RUNS), pytest.param(range(RUNS, 200), marks=pytest.mark.slow)], ids=len
)
def test_no_drawn_report_contradicts_itself(numbers: range, tmp_path: Path) -> None:
    verdicts = set()
    for number in numbers:
        report = drawn(number, tmp_path)
        verdicts.add(report.loaders[0].verdict)
        assert contradictions(report) == [], f"run {number}"
        assert report.run.state == ("interrupted" if number % 5 == 0 else "finished")
    assert len(verdicts) > 1, "all of one kind"


def test_neither_do_those_of_other_tests(tmp_path: Path) -> None:
    pictures = RunBuilder(tmp_path / "pictures")
    train(pictures)
    sampled(pictures)
    for run in (open_run(pictures.path), full_run(tmp_path / "full")):
        assert contradictions(build_report(run)) == []


def test_the_lint_finds_what_it_is_for(tmp_path: Path) -> None:
    """Each statement that was seen beside its contrary in a report."""
    report = build_report(full_run(tmp_path), advice=False)
    with_advice = full_report(full_run(tmp_path, "20250131-091501-abc123"))
    loader = report.loaders[0]
    assert contradictions(report) == []
    said = "The training loop waited for data 10 % of the time: there is little to gain."
    basis = replace(loader.basis, sentence=said)
    advised = with_advice.loaders[0].recommendations
    code, storage = inside_samples.CODE, inside_samples.STORAGE
    waits, sleeps, packs = (
        replace(advised[0], why=why)
        for why in (
            "A batch takes 74.7 ms to make, computing, and one worker cannot keep up.",
            "A sample takes 2.40 ms: the rest is reading it (×1.00 if the call were free).",
            "Decoding is 90 % and reading 64 % of fetch: at most ×2.",
        )
    )
    packs = replace(packs, rule="storage-format")
    plan = with_advice.loaders[0].plan
    assert plan is None
    little = (replace(advised[0], predicted=Range(1.04, 1.06, 1.08)),)
    costs = Finding("fetch", "x = y", "a.py:1", None, Range(0.1, 0.1, 0.1), 0.1, Range(2, 3, 4))
    steps = (PlanStep(0, Range(1.0, 9.0, 9.0), 0.5),)
    for wrong, changed in (
        ("little to gain", {"basis": basis, "headroom": 1.4}),
        ("beside a headroom of 1.10", {"recommendations": advised[:1], "headroom": 1.1}),
        ("computing, where", {"rejected": (waits,)}),
        ("reading 64 % beside 3.0 %", {"storage": storage, "rejected": (packs,)}),
        ("reading, which is 3.0 % of fetch", {"storage": storage, "rejected": (sleeps,)}),
        ("are shown", {"code": code, "unmeasured": {"hot-function": "stacks were not recorded"}}),
        ("advice without a plan", {"recommendations": advised[:1]}),
        ("would not help: ", {"rejected": (replace(advised[0], title="It would not help"),)}),
        ("nothing says by what", {"unmeasured": {"collate": "not recorded"}, "findings": ()}),
        ("of a loop that computes", {"recommendations": little, "headroom": 1.15}),
        ("what can bring", {"findings": (costs,), "config": {"num_workers": 0}}),
    ):
        found = contradictions(one_loader(report, **changed))
        assert any(wrong in each for each in found), (wrong, found)
    waits_on = Plan(
        steps, (), "the loop still waits 100 % of the time; no further change is known."
    )
    still = one_loader(report, recommendations=advised[:1], plan=waits_on, headroom=1.41)
    assert any("with a headroom of 1.41" in each for each in contradictions(still))
    planned = one_loader(report, recommendations=advised[:1], plan=Plan(steps, (), None))
    assert any("by itself and another" in each for each in contradictions(planned))


def test_a_data_set_in_memory_reads_nothing() -> None:
    """No line of 'no file opened … reading 0 %, decoding 100 %'."""
    shares: dict[str, Any] = {"reading_share": 0.0, "decoding_share": 1.0, "dataset_bytes": None}
    none = dict.fromkeys(
        ("opens_per_sample", "read_bytes_per_sample", "disk_bytes_per_sample"), 0.0
    )
    empty = dict.fromkeys(("kinds", "mounts", "containers", "epochs"), ())
    nothing = replace(inside_samples.STORAGE, **shares, **none, **empty)
    assert storage_rows(nothing) == []
