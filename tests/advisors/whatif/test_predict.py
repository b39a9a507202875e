"""Predictions from synthetic runs whose answer is known, and what no prediction may break."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import MS, T0, RunBuilder, epoch_row, loop, opened
from loaderscope.advisors.schema.report_model import Range
from loaderscope.advisors.whatif import TooLittle, WhatIf, Workload, workload_of
from loaderscope.advisors.whatif.costs import handover
from loaderscope.advisors.whatif.predict import predict
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from workloads import Rows, alone, starved, with_workers

NAMES = itertools.count()
FIXTURE = HealthCheck.function_scoped_fixture
SAME = Range(1.0, 1.0, 1.0)


def recorded(folder: Path, *lanes: Rows, main_cores: float | None = None, **facts: Any) -> Run:
    """A run of one loader; `main_cores`: CPU that main used; other facts are of the process."""
    own = {name: facts.pop(name) for name in ("epochs", "kind") if name in facts}
    # Starts of epochs are not felt.
    config = {"dataset_len": 4_000_000, **(facts.pop("config", None) or {})}
    system = None
    if main_cores is not None:
        first, last = lanes[0][0]["t_ns"], lanes[0][-1]["t_ns"]
        spent = {t: round(main_cores * (t - first)) for t in (first, last)}
        main = {"pid": 4000, "role": 0, "cpu_system_ns": 0}
        samples = [{"t_ns": t, "cpu_user_ns": ns, **main} for t, ns in spent.items()]
        system = {"machine": [{"t_ns": first}], "process": samples, "affinity": 64}
    process = {"affinity": 64, **facts}
    path = folder / str(next(NAMES))
    return opened(path, *lanes, process=process, system=system, config=config, **own)


def workload(folder: Path, *lanes: Rows, **facts: Any) -> Workload:
    run = recorded(folder, *lanes, **facts)
    return workload_of(run, run.processes[0], run.loaders[0])


def whatif(folder: Path, *lanes: Rows, **facts: Any) -> WhatIf:
    """The model of a loop whose main process hardly computes."""
    return WhatIf(workload(folder, *lanes, **{"main_cores": 0, **facts}))


@pytest.mark.parametrize(("workers", "factor"), [(1, 44 / 40), (8, 8.8)])
def test_workers_for_a_data_set_that_waits(tmp_path: Path, workers: int, factor: float) -> None:
    found = whatif(tmp_path, alone(40, 0, 4)).predict(num_workers=workers)
    assert found.mid == pytest.approx(factor, rel=0.06)
    assert found.low < factor < found.high


@pytest.mark.parametrize(("cpus", "workers", "factor"), [(2, 8, 2), (8, 4, 4)])
def test_workers_for_one_that_computes(tmp_path, cpus, workers, factor):
    model = whatif(tmp_path, alone(40, 40, 0.2), affinity=cpus, main_cores=1)
    assert model.predict(num_workers=workers).mid == pytest.approx(factor, rel=0.08)


def test_what_workers_cannot_bring(tmp_path: Path) -> None:
    tiny = whatif(tmp_path, alone(0.05, 0.05, 0.05), affinity=4, main_cores=None)
    assert tiny.predict(num_workers=2).high < 1
    computing = whatif(tmp_path, alone(0.1, 0, 20)).predict(num_workers=4)
    assert 0.93 < computing.mid <= 1.02  # taking a batch from a worker costs something
    half = whatif(tmp_path, alone(10, 0, 10))
    for changes in ({"num_workers": 16}, {"fetch": 0.0}, {"num_workers": 4, "fetch": 0.1}):
        found = half.predict(**changes)  # no more than free loading
        assert 1.8 < found.mid <= found.high <= 2.1


def test_more_and_fewer_workers(tmp_path: Path) -> None:
    model = whatif(tmp_path, starved(2, 40, 0, 4), config=with_workers(2))
    assert model.misfit == pytest.approx(1, abs=0.05)
    assert model.baseline_batches_per_s == pytest.approx(50, rel=0.05)
    for workers, factor in ((1, 0.5), (4, 2), (0, 20 / 44)):
        assert model.predict(num_workers=workers).mid == pytest.approx(factor, rel=0.05)


def test_waiting_for_a_core_is_not_waiting_for_data(tmp_path: Path) -> None:
    # Four workers on two cores: 20 ms of computing take each 40 ms; with eight, they take 20. A new
    # time is meant without waiting for a core: 10 ms where 20 are computed now.
    model = whatif(tmp_path, starved(4, 40, 20, 0.5), config=with_workers(4), affinity=2)
    asked = [("cpus", 8), ("num_workers", 0), ("num_workers", 8), ("fetch", 0.5)]
    found = [model.predict(**{name: value}).mid for name, value in [*asked, ("fetch_us", 10_000)]]
    assert found == pytest.approx([2, 0.5, 1, 2, 2], rel=0.1) and 0.95 < found[2] < 1.05


@pytest.mark.parametrize(("pickled", "share"), [(422, 0.0), (900, 0.33), (400_000, 0.58)])
def test_a_slow_hand_over_is_due_to_objects_if_there_are_some(tmp_path, pickled, share):
    slow = {"pack_ns": 3 * MS, "unpack_ns": MS, "tensors": 2, "bytes": 13_600}
    rows = starved(2, 0.4, 0.4, 0.1, step_ms=4.2, pickled_bytes=pickled, **slow)
    found = whatif(tmp_path, rows, config=with_workers(2)).objects_share
    assert found == pytest.approx(share, abs=0.03)


def test_in_order_costs_where_slow_batches_block_ready_ones(tmp_path: Path) -> None:
    slow = lambda n, t, w: (60 if n % 10 == 0 else 2) * MS  # noqa: E731
    rows = starved(3, 9, 0, 3, fetch_ns=slow, fetch_cpu_ns=0, step_ms=6)
    found = whatif(tmp_path, rows, config=with_workers(3))
    assert found.misfit == pytest.approx(1, abs=0.2)
    assert found.predict(in_order=False).mid > 1.2
    steady = whatif(tmp_path, starved(3, 12, 0, 3), config=with_workers(3))
    assert steady.predict(in_order=False).mid == pytest.approx(1, abs=0.03)


def test_keeping_workers_saves_their_start(tmp_path: Path) -> None:
    """Six epochs of 20 batches of 10 ms, each with 100 ms until the workers begin."""
    lanes, epochs, t = [], [], T0
    for number in range(6):
        lanes += starved(2, 20, 0, 4, batches=20, epoch=number, start_ns=t)
        lanes[-20]["t_fetch_ns"] = t - 1
        own = {**epoch_row(lanes[-20:]), "t_iter_ns": t - 100 * MS, "num_workers": 2}
        epochs.append(own)
        t = own["t_end_ns"] + 150 * MS
    config = with_workers(2, persistent_workers=False, start_method="fork")
    run = recorded(tmp_path, lanes, epochs=epochs, config=config, main_cores=0)
    # An epoch: 100 ms of starting, 20 of the first batch, 19 of 10 ms, and its end.
    kept, sooner, none = {"persistent_workers": True}, {"startup": 0.5}, {"num_workers": 0}
    for changes, ms, rel in ((kept, 214, 0.12), (sooner, 284, 0.08), (none, 480, 0.1)):
        assert predict(run, **changes).mid == pytest.approx(334 / ms, rel=rel), changes
    assert predict(run, multiprocessing_context="spawn").high < 0.6
    # A loader that is built again for each epoch loses its workers, whatever it is told.
    for built, factor in ((1, 334 / 214), (0, 1.0)):
        again = [{**each, "instance": built * n} for n, each in enumerate(epochs)]
        told, path = {**config, "persistent_workers": True}, tmp_path / f"built{built}"
        run = recorded(path, lanes, epochs=again, config=told, main_cores=0)
        assert predict(run, persistent_workers=True).mid == pytest.approx(factor, rel=0.12)
    # Long epochs do not feel the start.
    long = whatif(tmp_path, starved(2, 20, 0, 4), config=config).predict(persistent_workers=True)
    assert long.mid == pytest.approx(1, abs=0.01)


def test_pinning_needs_a_device(tmp_path: Path) -> None:
    assert whatif(tmp_path, alone(10, 0, 5)).predict(pin_memory=True) == SAME
    rows = alone(10, 0, 5, h2d_ns=3 * MS, bytes=1_000_000)
    device = whatif(tmp_path, rows, device="cuda:0")
    found = device.predict(pin_memory=True)
    assert 1 < found.mid < 1.2
    # Copies may take between 40 % and all of their time, and the range says so.
    assert found.low < 1 < found.high
    # Who says what copies will take is believed, and nothing is added to it.
    assert device.predict(pin_memory=True, h2d=1.0).mid < 1.01
    assert device.predict(h2d=0.0).mid == pytest.approx(15 / 12, rel=0.03)


def test_waiting_hidden_behind_the_device_is_not_lost(tmp_path: Path) -> None:
    lanes = (alone(8, 0, 2, stall_ns=ms * MS) for ms in (0, 8))
    hidden, felt = (whatif(tmp_path, lane, device="cuda:0") for lane in lanes)
    assert hidden.predict(num_workers=8).high < 2.2
    taking = handover(1, 1000, 0)
    step_ms = 2 + (taking.receive_ns + taking.unpack_ns) / MS
    assert felt.predict(num_workers=8).mid == pytest.approx(10 / step_ms, rel=0.05)


def test_stage_factors_scale_stages(tmp_path: Path) -> None:
    model = WhatIf(workload(tmp_path, alone(10, 10, 5)))
    for name, value, ms in (("fetch", 0.5, 10), ("fetch_us", 5000, 10), ("compute", 0.2, 11)):
        assert model.predict(**{name: value}).mid == pytest.approx(15 / ms, rel=0.01), name
    assert model.predict(collate_us=5000) == SAME  # it took no time before
    pair = model.predict(fetch=(0.2, 0.8))
    assert pair.low < 15 / 13 < pair.mid < 15 / 7 < pair.high
    assert model.predict(fetch=(0.8, 0.2)) == pair


def test_what_changes_nothing_is_exactly_one(tmp_path: Path) -> None:
    model = WhatIf(workload(tmp_path, alone(10, 10, 5)))
    same = {"num_workers": 0, "fetch": 1.0, "prefetch_factor": 8, "persistent_workers": True}
    same |= {"pin": 0.5, "collate": 0.5, "transfer": 0.5, "h2d": 0.5, "in_order": False}
    for name, value in {**same, "startup": 0.1, "cpus": 64}.items():
        assert model.predict(**{name: value}) == SAME, name
    assert model.predict() == SAME


def test_changes_that_cannot_be_meant(tmp_path: Path) -> None:
    model = WhatIf(workload(tmp_path, alone(10, 10, 5, batches=30)))
    for name, value, says in (
        ("workers", 2, "num_workers, prefetch_factor, in_order"),
        ("num_workers", -1, "whole number from 0"),
        ("num_workers", True, "whole number"),
        ("prefetch_factor", 0, "whole number from 1"),
        ("in_order", 0, "True or False"),
        ("multiprocessing_context", "thread", "fork, spawn, forkserver"),
        ("fetch", -0.1, "number from 0"),
        ("fetch", math.nan, "number from 0"),
        ("fetch", (0.1, 0.2, 0.3), "pair"),
        ("cpus", 0, "positive"),
        ("fetch", "x" * 10_000, "..."),
    ):
        with pytest.raises(UsageError) as error:
            model.predict(**{name: value})
        assert says in str(error.value) and len(str(error.value)) < 300, name


def test_too_little(tmp_path: Path) -> None:
    with pytest.raises(TooLittle, match="not measured"):
        workload(tmp_path, loop(50))
    with pytest.raises(TooLittle, match="not a DataLoader"):
        workload(tmp_path, loop(50), kind="iterable")
    with pytest.raises(UsageError, match="only 14 steady batches"):
        predict(recorded(tmp_path, alone(10, 10, 5, batches=15)), num_workers=1)


def test_which_loader(tmp_path: Path) -> None:
    run = RunBuilder(tmp_path)
    process = run.process()
    process.loader(alone(10, 0, 5), name="train")
    process.loader(alone(10, 0, 90, batches=50), name="validation")
    train = predict(run.path, num_workers=2)
    assert train == predict(open_run(run.path), loader="train", num_workers=2)
    assert train == predict(run.path, 0, num_workers=2)
    assert predict(run.path, loader="validation", num_workers=2).mid < train.mid
    for wrong in ("test", 2, -1, True):
        with pytest.raises(UsageError, match=r"0 \(train\), 1 \(validation\)"):
            predict(run.path, loader=wrong, num_workers=2)
    with pytest.raises(UsageError, match="no loader"):
        predict(RunBuilder(tmp_path / "empty").path, num_workers=2)


def noisy(seed: int, workers: int) -> Rows:
    rng = np.random.default_rng(seed)
    fetch, share = (rng.lognormal(0, 1, 200) * 5 * MS).astype(int), rng.uniform(0, 1)
    wall, cpu = (lambda n, t, w: int(fetch[n])), (lambda n, t, w: int(fetch[n] * share))
    columns: dict[str, Any] = {"batches": 200, "fetch_ns": wall, "fetch_cpu_ns": cpu}
    compute = float(rng.uniform(0.1, 10))
    if workers:
        return starved(workers, 8, 0, compute, **columns)
    rows, t = alone(8, 0, compute, **columns), T0
    for row, own in zip(rows, fetch, strict=True):
        row["t_ns"], row["wait_ns"] = t, int(own) + 10_000
        t += row["wait_ns"] + round(compute * MS)
    return rows


@given(st.integers(0, 1000), st.integers(0, 3), st.integers(0, 8), st.integers(1, 8))
@settings(max_examples=15, deadline=None, suppress_health_check=[FIXTURE])
def test_invariants(tmp_path: Path, seed: int, workers: int, to: int, cpus: int) -> None:
    """Ranges are ordered and finite, slower fetching is no faster, more CPUs are no slower."""
    config = with_workers(workers) if workers else None
    loaded = workload(tmp_path, noisy(seed, workers), config=config, affinity=cpus)
    whatif = WhatIf(loaded)
    faster, slower, worse = (whatif.predict(num_workers=to, fetch=f) for f in (0.5, 2.0, 4.0))
    for found in (faster, slower, worse):
        assert 0 < found.low <= found.mid <= found.high < math.inf
    assert faster.mid >= 0.98 * slower.mid >= 0.98 * 0.98 * worse.mid
    assert WhatIf(loaded).predict(num_workers=to, fetch=0.5) == faster
    more = whatif.predict(num_workers=to, fetch=0.5, cpus=2 * cpus)
    assert more.mid >= 0.98 * faster.mid


def test_threads_of_main_beside_workers_are_uncertain(tmp_path: Path) -> None:
    def width(cores: float) -> float:
        facts = {"affinity": 2, "torch_threads": 2, "main_cores": cores}
        found = whatif(tmp_path, alone(10, 0, 20), **facts).predict(num_workers=2)
        return found.high / found.low

    assert width(1.3) > 1.3 * width(0.6)


def test_rubbish_in_a_lane_still_gives_a_range(tmp_path: Path) -> None:
    most = (1 << 62) - 1
    rows = starved(2, 20, 0, 4, batches=60)
    names = ["fetch", "wait", "t_fetch", "queued", "compute", "fetch_cpu", "pack", "t"]
    for number, row in enumerate(rows):
        row[f"{names[number % 8]}_ns"] = most if number % 3 else 0
    told = epoch_row(rows)
    epochs = [{**told, "t_end_ns": 0, "batches": most}, {**told, "t_iter_ns": most, "batches": 1}]
    config = with_workers(2, prefetch_factor=most, dataset_len=-5)
    run = recorded(tmp_path, rows, epochs=epochs, config=config)
    asked = [("num_workers", 0), ("num_workers", 4), ("in_order", False)]
    for name, value in (*asked, ("persistent_workers", False)):
        found = predict(run, **{name: value})
        assert 0 <= found.low <= found.mid <= found.high
