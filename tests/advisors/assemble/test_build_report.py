"""From a run to a report, and the report as JSON."""

import functools
import json
import os
import platform
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import MS, RUN_ID, T0, RunBuilder, epoch_row, loop, opened
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Change, Report
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.words.system_words import system_rows
from report_samples import advice


def report_of(run: RunBuilder) -> Report:
    return build_report(open_run(run.path))


@pytest.fixture
def run(tmp_path: Path) -> RunBuilder:
    return RunBuilder(tmp_path)


def test_throughput_leaves_out_pauses_between_epochs(run: RunBuilder) -> None:
    one = loop(50, wait_ms=1, compute_ms=9)
    two = loop(50, wait_ms=1, compute_ms=9, epoch=1, start_ns=T0 + 3600 * 10**9)
    run.process().loader(one + two, epochs=[epoch_row(one), epoch_row(two)])
    report = report_of(run)
    loader = report.loaders[0]
    rates = loader.wall_s, loader.batches_per_s, loader.samples_per_s, report.run.wall_s
    assert rates == pytest.approx((1.0, 100, 400, 3600.5))
    assert (loader.batches, loader.samples, loader.epochs) == (100, 400, 2)
    assert report.run.id == RUN_ID


def test_overhead_spreads_detail_over_all_batches(run: RunBuilder) -> None:
    own = lambda n, t, w: 5000.0 if n % 10 == 0 else None  # noqa: E731
    run.process().loader(loop(100, 1, 9, own_ns=own), overhead={"hook_ns": 700.0})
    overhead = report_of(run).overhead
    assert (overhead.per_batch_us, overhead.share_of_step) == pytest.approx((1.2, 1200 / 10e6))
    assert overhead.sampler_cpu_share is None and overhead.reasons["sampler_cpu_share"]


def test_several_processes_and_loaders_are_all_there(run: RunBuilder) -> None:
    for rank in (1, 0):
        process = run.process(pid=4000 + rank, rank=rank, world_size=2, local_world_size=2)
        process.loader(loop(30), name="train")
        process.loader(loop(30), name="validation")
    report = report_of(run)
    assert [(each.rank, each.name) for each in report.loaders] == [(0, "train"), (0, "validation")]
    for loader in report.loaders:
        assert loader.ranks and [each.rank for each in loader.ranks.each] == [0, 1]
    assert report.run.world_size == 2
    (one,) = build_report(open_run(run.path), 4001, ("p4001-0", 1)).loaders
    assert (one.rank, one.name) == (1, "validation")


def test_system_summary(run: RunBuilder) -> None:
    run.process(affinity=6, local_world_size=2, rank=0).loader(loop(30))
    second = 10**9
    machine, process, gpu = [], [], []
    for n, (idle, available) in enumerate([(None, 9), (50.0, 5), (10.0, 7)]):
        at: dict[str, Any] = {"t_ns": T0 + n * second}
        cpu = {"cpu_idle_pct": idle, "cpu_iowait_pct": 10.0, "cgroup_throttled_ns": n * 100 * MS}
        memory = {"mem_available_bytes": available, "shm_used_bytes": n}
        sampler = {"sampler_cpu_ns": n * 10 * MS, "sampler_rss_bytes": 20_000_000}
        machine.append({**at, **cpu, **memory, **sampler, "disk_read_bytes": 1000 + n * 50})
        read = {"read_all_bytes": 100 + n, "read_disk_bytes": 0}
        used = {"cpu_user_ns": n * second, "cpu_system_ns": 0}
        process.append({**at, "pid": 4000, "role": 0, **used, **read})
        read = {"read_all_bytes": n * 1000, "read_disk_bytes": n * 100, "uss_bytes": n * 10}
        used = {"cpu_user_ns": n * second // 4, "cpu_system_ns": n * second // 4, "role": 1}
        process += ({**at, "pid": 5000 + w, "worker": w, **used, **read} for w in range(2))
        gpu.append({**at, "gpu": 0, "util_pct": 40 + n, "power_mw": 300_000})
    quota = {"version": 2, "cpu_quota": 3.0, "mem_limit_bytes": None}
    run.system(machine, process, gpu, gpus=[{"index": 0, "name": "H200"}], cgroup=quota)
    report = report_of(run)
    system = report.system
    expected = {"samples": 3, "seconds": 2, "effective_cpus": 1.5}  # 3 cores for 2 ranks
    expected |= {"cpu_busy_mean_share": 0.6, "cpu_busy_max_share": 0.8}
    expected |= {"cpu_iowait_mean_share": 0.1, "mem_available_min_bytes": 5}
    expected |= {"disk_read_bytes_s": 50, "throttled_share": 0.1, "main_cpu_cores": 1}
    expected |= {"workers": 2, "worker_cpu_mean_cores": 0.5}
    expected |= {"read_all_bytes": 2 + 2 * 2000, "read_disk_bytes": 2 * 200}
    assert {name: getattr(system, name) for name in expected} == pytest.approx(expected)
    (found,) = system.gpus
    assert found.name == "H200"
    assert (found.util_mean_share, found.power_mean_w) == pytest.approx((0.41, 300))
    assert report.overhead.sampler_cpu_share == pytest.approx(0.01)
    assert report.overhead.sampler_rss_bytes == 20_000_000
    assert system.net_recv_bytes_s is None and "net_recv_bytes_s" in system.reasons


TAKEN = (
    "the hypervisor gave 30 % of this machine's CPU time to others: measured times are too long, and "
    "predictions less certain; record again when the host is quiet"
)
ELSEWHERE = {"cpu_stolen_mean_share": "not measured on this platform"}


@pytest.mark.parametrize(
    ("platform", "idle", "stolen", "noted"),
    [
        ("Linux-6.8", 44.0, 0.0, False),
        ("Linux-6.8", 40.0, 0.04, False),
        ("Linux-6.8", 14.0, 0.3, True),
        ("macOS-15.1-arm64", 44.0, None, False),  # where the system does not tell it
    ],
)
def test_time_the_hypervisor_took_is_told(tmp_path, platform, idle, stolen, noted):
    run = RunBuilder(tmp_path, platform=platform)
    run.process().loader(loop(30))
    busy = {"cpu_user_pct": 50.0, "cpu_system_pct": 6.0, "cpu_idle_pct": idle}
    run.system(machine=[{"t_ns": T0}, *({"t_ns": T0 + n * 10**9, **busy} for n in (1, 2))])
    report = report_of(run)
    share, reasons = report.system.cpu_stolen_mean_share, report.system.reasons
    assert share == (None if stolen is None else pytest.approx(stolen, abs=1e-6))
    assert (ELSEWHERE.items() <= reasons.items()) == (stolen is None)
    assert [note for note in report.notes if "hypervisor" in note] == [TAKEN] * noted
    (cpu,) = (line for label, line in system_rows(report.system) if label == "CPU")
    assert ("taken by the hypervisor" in cpu) == bool(stolen)


def test_every_none_of_the_system_has_its_reason(run: RunBuilder) -> None:
    run.process().loader(loop(30))
    run.system(machine=[{"t_ns": T0}])
    system = report_of(run).system
    unmeasured = {name for name, value in vars(system).items() if value is None}
    assert unmeasured <= {*system.reasons, "host", "seconds", "cores_logical"}


def test_states_are_noted(tmp_path: Path) -> None:
    here: dict[str, Any] = {"host": platform.node(), "boot_id": None}
    run = RunBuilder(tmp_path, **here)
    run.process(pid=2**22 + 5, ended=False, **here).loader(loop(30))
    report = report_of(run)
    assert report.run.state == "crashed"
    assert any("killed or crashed" in note for note in report.notes)


@pytest.fixture
def report(run: RunBuilder) -> Report:
    rows = loop(60, wait_ms=3, fetch_ns=2 * MS, fetch_cpu_ns=MS)
    rows[20]["t_ns"] = 5  # clocks that jump and absurd numbers give a report
    rows[30]["t_ns"] = 2**62
    rows[31]["wait_ns"] = 2**62
    run.process(rank=0).loader(rows, epochs=[epoch_row(rows, startup_ms=9)])
    run.system(machine=[{"t_ns": T0 + n} for n in range(2)], gpu=[{"t_ns": T0, "gpu": 1}])
    return report_of(run)


def test_a_folder_whose_name_is_no_utf_8_gives_a_report_that_can_be_read(tmp_path: Path) -> None:
    report = build_report(opened(tmp_path / os.fsdecode(b"donn\xe9es"), loop(30)))
    assert report.run.path.endswith("donn\N{REPLACEMENT CHARACTER}es/" + RUN_ID)
    assert Report.from_json(report.to_json().encode().decode()) == report


def test_json_round_trip_is_exact(report: Report) -> None:
    params = {"num_workers": 4, "persistent_workers": True, "timeout": 1.5, "x": None}
    made = advice(change=Change(params, "DataLoader(...)"))
    loader = replace(report.loaders[0], recommendations=(made,), rejected=(made,))
    told = replace(report, loaders=(loader,))
    text = told.to_json()
    again = Report.from_json(text)
    assert again == told and again.to_json() == text
    assert again.loaders[0].recommendations[0].change.params["persistent_workers"] is True
    assert told.to_json(indent=None).count("\n") == 0
    later = json.loads(text)
    later["loaders"][0]["future"] = 1  # of a later version
    assert Report.from_json(json.dumps(later)) == told


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it is not JSON"),
        ("{}", "it names no schema"),
        ('{"schema": true}', "it names no schema"),
        ('{"schema": 3}', "newer Loaderscope: upgrade"),
        ('{"schema": 0}', "schema 0, which is no longer read"),
        ('{"schema": 2}', "missing required field `run`"),
        ('{"schema": 1}', "schema 1, which is no longer read"),
        ('{"schema": 1, "later": "\ud800"}', "it is not JSON"),
        ("{" + '"schema":{' * 100_000, "it names no schema"),
        ('{"schema": 1, "later": ' + "[" * 100_000, "it is not JSON"),
    ],
)
def test_what_is_no_report(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Report.from_json(text)


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("loaders", 0, "verdict"), "great", r"report\.loaders\[0\]\.verdict"),
        (("loaders", 0, "stages", "fetch", "mean_us"), "1", r"stages\[\.\.\.\]\.mean_us"),
        (("loaders", 0, "batches"), 60.0, r"expected `int`, got `float` - at `report\.lo"),
        (("system", "reasons"), [], r"system\.reasons"),
    ],
)
def test_values_of_the_wrong_kind_are_named(report: Any, path: Any, value: Any, where: str) -> None:
    data = json.loads(report.to_json())
    *parents, last = path
    functools.reduce(lambda found, key: found[key], parents, data)[last] = value
    with pytest.raises(UsageError, match=where):
        Report.from_json(json.dumps(data))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


INSIDE = lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(), x, max_size=3)  # noqa: E731


@settings(max_examples=40)
@given(st.recursive(SCALARS, INSIDE))
def test_any_json_is_refused_politely(value: Any) -> None:
    for data in (value, *({"schema": n, "run": value, "loaders": value} for n in (1, 2))):
        with pytest.raises(UsageError):
            Report.from_json(json.dumps(data))
