"""Which waits of fetching and collating overlap with those of other workers: counts of bursts."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import RunBuilder, loop
from loaderscope.advisors.stage_model.wait_kinds import LEAST_SAMPLES, wait_kinds
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.stacks.stack_samples import Wait
from stack_cases import OWN, add_workers, burst, with_bursts

FETCH = f"Rows.__getitem__ {OWN}:41"
SLEEPS, COMPUTES = Wait("sleep"), Wait("compute")


def run_of(tmp_path: Path, workers: int, *stacks: tuple[object, ...]) -> Run:
    made = RunBuilder(tmp_path / "run")
    process = made.process(50)
    process.loader(loop(40), config={"num_workers": workers})
    made.system()
    add_workers(process.path, *((0, 0, 60 + number) for number in range(workers)))
    return with_bursts(made.path, burst(*stacks))


def kinds(run: Run):  # type: ignore[no-untyped-def]
    return wait_kinds(run, run.processes[0], run.loaders[0])


def test_only_waiting_while_batches_are_made_counts(tmp_path: Path) -> None:
    run = run_of(
        tmp_path, 2,
        (50, "wait", "", 90, {Wait("pipe"): 90}),
        (60, "fetch", FETCH, 40, {Wait("lock", "", 2): 20, SLEEPS: 10, COMPUTES: 10}),
        (61, "collate", FETCH, 10, {Wait("lock", "", 1): 5, Wait("core"): 5}),
        (61, "idle", "", 90, {Wait("pipe"): 90}),
        (77, "fetch", FETCH, 90, {Wait("disk"): 90}),
    )  # fmt: skip
    found = kinds(run)
    assert found is not None
    assert found.shares == {"shared lock": 20 / 35, "sleep": 10 / 35, "lock": 5 / 35}
    assert found.shared_lock == 20 / 50
    assert found.share("sleep", "lock", "disk") == pytest.approx(15 / 35)


@pytest.mark.parametrize("waits", [{}, {SLEEPS: LEAST_SAMPLES - 1}])
def test_too_few_samples_are_none(tmp_path: Path, waits: dict[Wait, int]) -> None:
    assert kinds(run_of(tmp_path, 0, (50, "fetch", FETCH, 40, waits))) is None
