"""One figure, one truth: a lint over many reports finds no statements that contradict."""

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
from report_lint import contradictions, one_loader
from report_samples import full_report, full_run
from stack_cases import OWN, burst, with_bursts

SECOND = 10**9
# Many small runs are cheaper to make than to advise on: each has one loader that its number draws.
RUNS = 40


def drawn(number: int, runs: Path) -> Report:
    """A loop: with workers or without, waiting or not, computing in fetch or not, on few cores."""
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
    columns: dict[str, Any] = {"index_ns": 15_000, "bytes": 1 << 20, "tensors": 2, "own_ns": 900.0}
    columns |= {"fetch_ns": round(fetch * MS), "fetch_cpu_ns": round(fetch * cpu * MS)}
    columns |= dict.fromkeys(("collate_ns", "collate_cpu_ns"), round(collate * MS))
    if workers:
        begun = round((wait - making - 0.5) * MS)
        columns |= {"pack_ns": MS // 5, "queued_ns": 50_000, "unpack_ns": MS // 10}
        columns |= {"pickled_bytes": 400, "t_fetch_ns": lambda n, t, w: t + begun}
        columns |= {"worker": lambda n, t, w: n % workers, "task": lambda n, t, w: n}
        columns |= {"worker_pid": lambda n, t, w: 5000 + n % workers}
    rows = loop(120, wait_ms=wait, compute_ms=compute, first_wait_ms=start, **columns)
    builder = RunBuilder(runs, f"20250131-09{number:04}-abc123")
    facts = {"ended_by": "KeyboardInterrupt"} if number % 5 == 0 else {}
    epochs = [epoch_row(rows, startup_ms=start)]
    config = {"num_workers": workers, "prefetch_factor": 2, "dataset": "train.Points"}
    builder.process(affinity=cores, **facts).loader(rows, epochs=epochs, config=config)
    ready = random.choice([0.0, 0.6])  # of its time, a process waits for a core
    machine = {"mem_total_bytes": 32 * 10**9, "mem_available_bytes": 20 * 10**9}
    machine |= {"cpu_idle_pct": 100 * (1 - max(ready, 0.3))}
    # Of each process, what it comes to in a second; and who it is.
    used = {"cpu_user_ns": SECOND // 2, "run_delay_ns": round(SECOND * ready)}
    used |= {"cpu_system_ns": 0, "read_all_bytes": 1000, "read_disk_bytes": 5000}
    who = [{"pid": 5000 + w, "role": 1, "worker": w} for w in range(workers)]
    who.append({"pid": 4000, "role": 0, "worker": -1})
    system: dict[str, Any] = {"machine": [], "process": []}
    for n in range(6):
        at = {"t_ns": T0 + n * SECOND}
        system["machine"].append({**at, "sampler_cpu_ns": n * MS, **machine})
        grown = {**at, "loader": 0, "owner_pid": 4000, **{name: n * v for name, v in used.items()}}
        system["process"] += ({**grown, **each} for each in who)
    builder.system(**system, cores_logical=cores, affinity=cores)
    hot = random.choice([0, 20, 90])
    line = f"Points.__getitem__ {OWN}:41"
    stacks = [(pid, "fetch", line, 100 - hot) for pid in range(5000, 5000 + workers) or [4000]]
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
    busy = "A batch takes 74.7 ms to make, computing, and one worker cannot keep up."
    most = "Decoding is 90 % and reading 64 % of fetch: at most ×2."
    waits = replace(advised[0], why=busy)
    packs = replace(advised[0], why=most, rule="storage-format")
    assert with_advice.loaders[0].plan is None
    little = (replace(advised[0], predicted=Range(1.04, 1.06, 1.08)),)
    costs = Finding("fetch", "x = y", "a.py:1", None, Range(0.1, 0.1, 0.1), 0.1, Range(2, 3, 4))
    steps = (PlanStep(0, Range(1.0, 9.0, 9.0), 0.5),)
    first: dict[str, Any] = {"recommendations": advised[:1]}
    stop = "the loop still waits 100 % of the time; no further change is known."
    for wrong, changed in (
        ("little to gain", {"basis": basis, "headroom": 1.4}),
        ("beside a headroom of 1.10", {**first, "headroom": 1.1}),
        ("computing, where", {"rejected": (waits,)}),
        ("reading 64 % beside 3.0 %", {"storage": storage, "rejected": (packs,)}),
        ("are shown", {"code": code, "unmeasured": {"hot-function": "stacks were not recorded"}}),
        ("advice without a plan", first),
        ("would not help: ", {"rejected": (replace(advised[0], title="It would not help"),)}),
        ("nothing says by what", {"unmeasured": {"collate": "not recorded"}, "findings": ()}),
        ("of a loop that computes", {"recommendations": little, "headroom": 1.15}),
        ("what can bring", {"findings": (costs,), "config": {"num_workers": 0}}),
        ("with a headroom of 1.41", {**first, "plan": Plan(steps, (), stop), "headroom": 1.41}),
        ("by itself and another", {**first, "plan": Plan(steps, (), None)}),
    ):
        found = contradictions(one_loader(report, **changed))
        assert any(wrong in each for each in found), (wrong, found)
