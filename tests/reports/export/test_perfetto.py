"""The trace: checked against the documented event format, and against what was recorded."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from builders import MS, T0, RunBuilder, loop, opened
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.export.perfetto import render_perfetto
from report_samples import absurd, full_run, hostile_report, recorded, reported

Event = dict[str, Any]

# "Trace Event Format", by phase: what an event must have besides pid, tid and name.
REQUIRED = {"X": {"ts", "dur"}, "M": {"args"}, "C": {"ts", "args"}}
NUMBER_OF_BATCHES = 260


@pytest.fixture(scope="module")
def events(run: Run, report: Report) -> list[Event]:
    return trace(report, run)


def trace(report: Report, run: Run, **options: int) -> list[Event]:
    """The events, each as documented."""
    data = json.loads(render_perfetto(report, run, **options))
    assert set(data) == {"traceEvents", "displayTimeUnit", "otherData"}
    check_format(data["traceEvents"])
    return data["traceEvents"]


def check_format(events: list[Event]) -> None:
    """Every event is as documented, and slices of a thread nest."""
    slices: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for event in events:
        assert REQUIRED[event["ph"]] <= set(event), event
        assert (type(event["pid"]), type(event["tid"]), type(event["name"])) == (int, int, str)
        assert event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0
        if event["ph"] == "X":
            begin = round(event["ts"] * 1000)
            slices[event["pid"], event["tid"]].append((begin, begin + round(event["dur"] * 1000)))
        elif event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
    for spans in slices.values():
        open_: list[int] = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while open_ and open_[-1] <= begin:
                open_.pop()
            assert not open_ or end <= open_[-1], "slices of a thread overlap"
            open_.append(end)


def of(run: Run) -> list[Event]:
    return trace(reported(run), run)


def threads(events: list[Event]) -> dict[int, str]:
    named = [e for e in events if e["name"] == "thread_name" and e["pid"] == 1]
    return {e["tid"]: e["args"]["name"] for e in named}


def slices(events: list[Event], thread: str, name: str) -> list[Event]:
    (tid,) = [tid for tid, label in threads(events).items() if label == thread]
    wanted = ("X", 1, tid, name)
    return [e for e in events if (e["ph"], e["pid"], e["tid"], e["name"]) == wanted]


def test_it_is_as_documented(events: list[Event]) -> None:
    times = [event["ts"] for event in events if "ts" in event]
    assert times == sorted(times) and times[0] == 0
    workers = [f"worker {n}{part}" for n in range(4) for part in ("", " sending")]
    expected = ["main", *workers, "pin thread", "device (NVIDIA H200)"]
    assert list(threads(events).values()) == expected
    names = {e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert names == {"ImageNet, process 4000"}
    # Of these only lengths are known.
    guessed = {e["name"] for e in events if e["ph"] == "X" and "place" in e["args"]}
    assert guessed == {"unpack", "pin", "copy", "device", "stall"}


def test_slices_are_what_was_recorded(run: Run, events: list[Event]) -> None:
    batches = run.loaders[0].batches
    waits = slices(events, "main", "wait")
    assert [round(e["dur"] * 1000) for e in waits] == batches["wait_ns"].tolist()
    assert [e["args"]["batch"] for e in waits] == list(range(NUMBER_OF_BATCHES))
    fetched = slices(events, "worker 2", "fetch")
    rows = [row for row in range(NUMBER_OF_BATCHES) if batches["worker"][row] == 2]
    assert [round(e["dur"] * 1000) for e in fetched] == batches["fetch_ns"][rows].tolist()
    first, main = fetched[0]["ts"], waits[0]["ts"]
    assert round((first - main) * 1000) == batches["t_fetch_ns"][rows[0]] - batches["t_ns"][0]
    assert fetched[0]["args"]["worker_pid"] == 4103


def test_counters(run: Run, events: list[Event]) -> None:
    counters: dict[str, list[float]] = defaultdict(list)
    for event in events:
        if event["ph"] == "C":
            counters[event["name"]] += event["args"].values()
    assert counters["ready batches"] == run.loaders[0].batches["ready"].tolist()
    assert set(counters["outstanding batches"]) == {8}


def test_the_window_is_bounded(run: Run, report: Report) -> None:
    events = trace(report, run, batches=10)
    assert [e["args"]["batch"] for e in slices(events, "main", "wait")] == list(range(250, 260))


def test_the_default_window_of_a_long_run_is_small_enough(tmp_path: Path) -> None:
    run = full_run(tmp_path, batches=2_300)
    text = render_perfetto(reported(run), run)
    assert len(text) < 6_000_000
    assert len(slices(json.loads(text)["traceEvents"], "main", "wait")) == 2_000


def test_without_workers_the_parts_lie_inside_the_wait(tmp_path: Path) -> None:
    # More than the wait: cut.
    rows = loop(30, wait_ms=9, index_ns=MS, fetch_ns=6 * MS, collate_ns=5 * MS)
    events = of(recorded(tmp_path, rows))
    assert threads(events) == {1: "main"}
    assert {round(e["dur"]) for e in slices(events, "main", "collate")} == {2000}


def test_of_loops_that_interleave_what_overlaps_is_left_out(tmp_path: Path) -> None:
    events = of(opened(tmp_path, loop(20), loop(20, epoch=1, start_ns=T0 + 4 * MS)))
    assert list(threads(events).values()) == ["main"]
    assert 0 < sum(e["ph"] == "X" and e["name"] == "wait" for e in events) < 40


def test_of_several_hosts_the_first_is_shown(tmp_path: Path) -> None:
    builder = RunBuilder(tmp_path)
    for rank, (boot, clock) in enumerate([("boot", T0), ("other", 77 * MS)]):
        process = builder.process(pid=4000 + rank, rank=rank, boot_id=boot, clock_ns=clock)
        process.loader(loop(20, start_ns=clock))
    events = of(open_run(builder.path))
    assert {e["pid"] for e in events} == {1} and any("rank 0" in str(e["args"]) for e in events)


def test_hostile_and_absurd_values_and_none(run: Run, report: Report, tmp_path: Path) -> None:
    assert trace(hostile_report(report), run)
    assert of(recorded(tmp_path / "a", absurd(loop(30, wait_ms=5, fetch_ns=4 * MS))))
    nothing = RunBuilder(tmp_path)
    nothing.process()
    assert of(open_run(nothing.path)) == []
