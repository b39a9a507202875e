"""Epochs whose end nobody saw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.store.run.epoch_ends import batches_an_epoch
from loaderscope.profiler.store.run.run_reader import open_run

PLAIN = {"dataset_len": 10, "batch_size": 4, "sampler_plain": True}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (PLAIN, (3, 3)),
        ({**PLAIN, "drop_last": True}, (2, 2)),
        ({**PLAIN, "dataset_len": 18, "replicas": 2}, (2, 3)),
        ({**PLAIN, "dataset_len": 16, "replicas": 2, "sampler_plain": False}, (2, 2)),
        ({**PLAIN, "sampler_plain": False}, None),
        ({**PLAIN, "dataset_len": None}, None),
        ({**PLAIN, "batch_size": 0}, None),
        ({}, None),
    ],
)
def test_batches_an_epoch(config: dict[str, Any], expected: tuple[int, int] | None) -> None:
    assert batches_an_epoch(config) == expected


@pytest.mark.parametrize(
    ("count", "told", "how"),
    [
        (3, {}, 1),  # all it has was handed over
        (2, {}, -1),  # it was left
        (3, {"how": 3, "batches": 3, "t_end_ns": 5}, 3),  # what was seen stands
    ],
)
def test_what_handed_over_all_it_has_is_over(tmp_path: Path, count: int, told, how: int) -> None:
    run = RunBuilder(tmp_path)
    rows = loop(count)
    row = epoch_row(rows, **{"how": -1, "batches": 0, "t_end_ns": -1, **told})
    run.process().loader(rows, epochs=[row], config=PLAIN)
    loader = open_run(run.path).loaders[0]
    epochs = loader.epochs
    assert (epochs["how"][0], epochs["batches"][0]) == (how, count)
    last = int(loader.batches["t_ns"][-1] + loader.batches["wait_ns"][-1])
    assert epochs["t_end_ns"][0] == told.get("t_end_ns", last if how == 1 else -1)


def test_batches_a_stream_makes_itself_are_of_nobody_knows_how_many_samples(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path)
    run.process().loader(
        loop(30), config={"batching": "none", "batch_size": None, "dataset_kind": "iterable"}
    )
    report = build_report(open_run(run.path)).loaders[0]
    assert report.samples is None and report.samples_per_s is None


RAY = "/env/site-packages/ray/_private/workers/default_worker.py"


@pytest.mark.parametrize(
    ("argv", "how", "state"),
    [
        (RAY, 1, "finished"),
        (RAY, -1, "crashed"),
        ("train.py", 1, "crashed"),
        ("/home/ray/train.py", 1, "crashed"),
    ],
)
def test_ray_ends_its_workers_from_outside(tmp_path: Path, argv: str, how: int, state: str) -> None:
    from loaderscope.profiler.base.liveness import Liveness
    from loaderscope.profiler.store.run.run_reader import read_run

    run = RunBuilder(tmp_path)
    rows = loop(30)
    run.process(ended=False, argv=[argv]).loader(rows, epochs=[epoch_row(rows, how=how)])
    read = read_run(run.path, Liveness("elsewhere", "boot", lambda pid: None))
    assert read.state == state
