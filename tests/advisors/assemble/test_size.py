"""What a machine needs for a loader to be no limit: the arithmetic, and that the model agrees."""

import json
from pathlib import Path

import pytest

from builders import MS, RunBuilder, loop
from loaderscope.advisors.assemble.size import need, size_of
from loaderscope.advisors.whatif.predict import chosen_of, whatif_of
from loaderscope.cli import main
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.document.machine import size_sections
from loaderscope.reports.text.draw import print_sections

FETCH_MS, COMPUTE_MS = 8.0, 2.0


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Without workers: a batch computes for 8 ms, or half of that and waits, and trains for 2."""
    making = {"fetch_ns": round(FETCH_MS * MS), "collate_ns": 0, "tensors": 2, "bytes": 4096}
    builder = RunBuilder(tmp_path)
    process = builder.process(affinity=4)
    for name, cpu in (("computes", FETCH_MS), ("waits", FETCH_MS / 2)):
        rows = loop(400, FETCH_MS, COMPUTE_MS, fetch_cpu_ns=round(cpu * MS), **making)
        process.loader(rows, name=name)
    return open_run(builder.path)


def test_cores_do_the_work_of_each_step_and_workers_wait_besides(run: Run) -> None:
    one, two = size_of(run, "computes", (1.0, 2.0)).needs
    # 10 ms of work in a step of 2 ms and what a batch costs the loop to take from a worker.
    assert one.cpus.low < 4.5 <= one.cpus.mid <= 6.0 < one.cpus.high and one.workers in (4, 5)
    assert 1.35 * one.cpus.mid < two.cpus.mid < 2 * one.cpus.mid
    assert 1.35 * one.workers < two.workers <= 2 * one.workers
    assert one.samples_per_s == pytest.approx(4000 / COMPUTE_MS, rel=0.3)
    assert 0.65 < one.waits_share < 0.85 < two.waits_share + 0.1
    (waits,) = size_of(run, "waits", (1.0,)).needs
    assert waits.cpus.mid < one.cpus.mid * 0.7 and waits.workers == one.workers


@pytest.mark.parametrize("speed", [1.0, 2.0])
def test_the_model_agrees(run: Run, speed: float) -> None:
    whatif = whatif_of(run, *chosen_of(run, "computes"))
    asked = need(whatif, speed, 4)
    how = {"num_workers": asked.workers, "compute": 1 / speed, "persistent_workers": True}
    gains = [whatif.predict(cpus=asked.cpus.mid * share, **how).mid for share in (1.0, 0.5)]
    enough, half = (gain * whatif.baseline_batches_per_s for gain in gains)
    assert enough > 0.85 * asked.batches_per_s > half


def test_the_command(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["size", str(run.path), "--loader", "computes", "--speed", "3"]) == 0
    text = capsys.readouterr().out
    assert "computes: for loading to be no limit" in text and " ×3 " in text
    assert main(["size", str(run.path), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["speed"] for each in told["needs"]] == [1.0, 2.0, 4.0]
    assert told["dataset_bytes"] is None and told["reasons"]["dataset_bytes"]
    for wrong, said in (("--speed=-1", "-1"), ("--loader=nowhere", "there is no loader")):
        assert main(["size", str(run.path), wrong]) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(UsageError, match="positive"):
        size_of(run, None, (float("inf"),))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits(run: Run, width: int) -> None:
    lines = print_sections(size_sections(size_of(run, None, (1.0, 64.0))), width).splitlines()
    assert max(map(len, lines)) <= width and any("×64" in line for line in lines)
