"""Stack samples as code: which are a loader's, hot functions and lines, parts, the flame graph."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import MS, T0, ProcessBuilder, RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Code, CodeStage
from loaderscope.advisors.stacks.code_summary import code_of, wilson
from loaderscope.advisors.stacks.flame import MAX_NODES
from loaderscope.advisors.stacks.libraries import owner_of
from loaderscope.advisors.stacks.stage_parts import parts_of
from loaderscope.profiler.base.host import host_name
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.stacks.stack_samples import Frame, Stack, StackCapture
from rule_cases import case_of
from rule_rows import main_loop
from stack_cases import OWN, add_workers, burst, seen, with_bursts

HERE = host_name()
GETITEM = f"Pictures.__getitem__ {OWN}:41"
DECODE = (
    f"{GETITEM} > Image.convert site/PIL/Image.py:1067 > ImageFile.load site/PIL/ImageFile.py:425"
)


Recorded = tuple[RunBuilder, ProcessBuilder]


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    run = RunBuilder(tmp_path)
    run.system()
    return run, run.process()


def loader_in(process: ProcessBuilder, start_ns: int = T0, workers: int = 0, **facts: Any) -> None:
    rows = loop(20, start_ns=start_ns)
    process.loader(rows, epochs=[epoch_row(rows)], config={"num_workers": workers}, **facts)


def code(run: Run, number: int = 0) -> Code:
    found = code_of(run, run.processes[0], run.loaders[number])
    assert found is not None
    return found


def shown(recorded: Recorded, *bursts: StackCapture, number: int = 0) -> Code:
    return code(with_bursts(recorded[0].path, *bursts), number)


def fetch_of(recorded: Recorded, *samples: tuple[int, str, str, int], **facts: Any) -> CodeStage:
    loader_in(recorded[1], **facts)
    return shown(recorded, burst(*samples)).stages["fetch"]


def test_what_is_innermost_and_what_it_is_part_of(recorded: Recorded) -> None:
    stage = fetch_of(recorded, (4000, "fetch", DECODE, 71), (4000, "fetch", GETITEM, 29))
    assert stage.samples == 100
    load, own = stage.hot
    assert (load.function, load.library, load.line) == ("ImageFile.load", "PIL", 425)
    assert not load.own
    assert (load.share, load.total_share, load.called_from) == (0.71, 0.71, "patches.py:41")
    assert (own.share, own.total_share, own.own, own.library) == (0.29, 1.0, True, None)
    assert (load.low, load.high) == pytest.approx((0.614, 0.790), abs=1e-3)
    assert stage.libraries == {"PIL": 0.71, "": 0.29}
    (line,) = stage.lines
    assert (line.line, line.share, line.total_share) == (41, 0.29, 1.0)


def test_several_lines_of_one_function_are_one_function(recorded: Recorded) -> None:
    first, second = (f"Pictures.__getitem__ {OWN}:{line}" for line in (41, 42))
    stage = fetch_of(recorded, (4000, "fetch", first, 3), (4000, "fetch", second, 7))
    assert [(spot.share, spot.line) for spot in stage.hot] == [(1.0, 42)]
    assert [(line.line, line.share) for line in stage.lines] == [(42, 0.7), (41, 0.3)]


def test_recursion_counts_once_a_stack_and_a_flame_graph_has_bounds(recorded: Recorded) -> None:
    inner = "deepcopy std/copy.py:146"
    deep = f"{GETITEM} > {inner} > _deepcopy_list std/copy.py:206 > {inner}"
    endless = " > ".join(f"f{n} {OWN}:{n}" for n in range(MAX_NODES + 300))
    loader_in(recorded[1])
    deepcopy, frames = (
        shown(recorded, burst((4000, "fetch", each, 10))).stages["fetch"]
        for each in (deep, endless)
    )
    (hot,) = deepcopy.hot
    assert (hot.function, hot.library, hot.total_share) == ("deepcopy", "copy", 1.0)
    assert [node.parent for node in frames.flame] == list(range(-1, MAX_NODES - 1))


@pytest.mark.parametrize(
    "inner", [f"Pictures.__getitem__.<locals>.<listcomp> {OWN}:44", f"<listcomp> {OWN}:44"]
)
def test_a_comprehension_is_a_part_of_its_function(recorded: Recorded, inner: str) -> None:
    stage = fetch_of(recorded, (4000, "fetch", f"{GETITEM} > {inner}", 5))
    (spot,) = stage.hot
    assert (spot.function, spot.line, spot.share) == ("Pictures.__getitem__", 44, 1.0)
    assert len(stage.flame) == 1


def test_bursts_add_up(recorded: Recorded) -> None:
    loader_in(recorded[1])
    one, other = burst((4000, "fetch", DECODE, 30)), burst((4000, "fetch", GETITEM, 10), number=1)
    found = shown(recorded, one, other)
    assert (found.bursts, found.samples, found.seconds, found.rate_hz) == (2, 40, 16.0, 25.0)
    assert found.reason is None
    assert found.stages["fetch"].hot[0].share == 0.75


def test_each_loader_gets_its_own_workers(recorded: Recorded) -> None:
    run, process = recorded
    loader_in(process, workers=1)
    loader_in(process, workers=1)
    # The process id of the second loader's worker was the first's before, and is a third one's
    # after the burst.
    add_workers(process.path, (T0, 0, 51), (T0 + 1, 0, 52), (T0 + 2, 1, 51), (T0 + 10**12, 0, 51))
    idle = (52, "idle", "get std/queue.py:1", 9)
    fetches = ((51, GETITEM, 5), (52, DECODE, 7), (99, DECODE, 1))
    made = burst(*((pid, "fetch", *each) for pid, *each in fetches), idle)
    opened = with_bursts(run.path, made)
    assert [code(opened, n).stages["fetch"].samples for n in (0, 1)] == [7, 5]
    assert set(code(opened, 0).stages) == {"fetch"}


def test_main_belongs_to_the_loader_that_was_iterated(recorded: Recorded) -> None:
    run, process = recorded
    loader_in(process)
    loader_in(process, start_ns=T0 + 60_000 * MS)
    opened = with_bursts(run.path, burst((4000, "wait", GETITEM, 4), (4000, "fetch", GETITEM, 6)))
    samples = {name: stage.samples for name, stage in code(opened).stages.items()}
    assert samples == {"fetch": 6, "wait": 4}
    assert "taken while this loader was in use" in (code(opened, 1).reason or "")


@pytest.mark.parametrize("told_apart", [True, False])
def test_two_loaders_in_main_are_told_apart_by_their_data_sets(recorded, told_apart):
    run, process = recorded
    for name in ("Pictures", "Labels"):
        part = {"type": f"train.{name}", "name": name, "file": OWN, "line": 40}
        loader_in(process, **({"inspection": {"dataset": part}} if told_apart else {}))
    other = f"Labels.__getitem__ {OWN}:60"
    opened = with_bursts(run.path, burst((4000, "fetch", GETITEM, 3), (4000, "fetch", other, 5)))
    found = [code(opened, n) for n in (0, 1)]
    assert [each.stages["fetch"].samples for each in found] == ([3, 5] if told_apart else [8, 8])
    why = None if told_apart else "100 % of the samples may belong to another loader"
    assert found[0].reason is None if told_apart else why in (found[1].reason or "")


def test_workers_mean_that_main_does_not_fetch(recorded: Recorded) -> None:
    loader_in(recorded[1], workers=2)
    made = burst((4000, "fetch", GETITEM, 4), (4000, "wait", GETITEM, 4), (4000, "pin", GETITEM, 4))
    assert set(shown(recorded, made).stages) == {"wait", "pin"}


def test_the_gil_is_that_of_the_processes_of_the_stage(recorded: Recorded) -> None:
    run, process = recorded
    loader_in(process, workers=2)
    add_workers(process.path, (T0, 0, 51), (T0, 0, 52))
    stacks = ((51, "fetch", GETITEM, 10), (52, "fetch", GETITEM, 30), (4000, "wait", GETITEM, 5))
    found = code(with_bursts(run.path, burst(*stacks, gil={51: 1.0, 52: 0.2})))
    assert found.stages["fetch"].gil_share == pytest.approx(0.4)
    assert found.stages["wait"].gil_share is None


def test_another_hosts_bursts_are_not_mine(recorded: Recorded) -> None:
    loader_in(recorded[1])
    run = with_bursts(recorded[0].path, burst((4000, "fetch", GETITEM, 3)), host="another")
    assert code_of(run, run.processes[0], run.loaders[0]) is None
    assert build_report(open_run(recorded[0].path)).loaders[0].code is None


@pytest.mark.parametrize("where", ["system", "process", "burst"])
def test_why_there_are_none(tmp_path: Path, where: str) -> None:
    run = RunBuilder(tmp_path)
    run.system(reasons={"stacks": "py-spy is missing"} if where == "system" else {})
    loader_in(run.process(reasons={"stacks": "py-spy is missing"} if where == "process" else {}))
    bursts = [burst(reason="py-spy is missing")] if where == "burst" else []
    found = code(with_bursts(run.path, *bursts))
    assert (found.reason, found.samples, found.stages) == ("py-spy is missing", 0, {})


def test_frames_that_are_not_there_are_left_out(recorded: Recorded) -> None:
    loader_in(recorded[1])
    told = ((0, 7), 3), ((0,), 2), ((), 1), ((0,), -4)
    stacks = tuple(Stack(4000, "m", "fetch", *each) for each in told)
    torn = replace(burst(), frames=(Frame("f", OWN, 1),), stacks=stacks, samples={4000: 2})
    stage = shown(recorded, torn).stages["fetch"]
    assert stage.samples == 3 and stage.hot[0].share == pytest.approx(2 / 3)


def test_the_flame_graph_is_a_tree_of_what_is_wide_enough(recorded: Recorded) -> None:
    calls = (DECODE, 700), (f"{GETITEM} > crop {OWN}:80", 298), (f"{GETITEM} > thin {OWN}:90", 2)
    flame = fetch_of(recorded, *((4000, "fetch", *call) for call in calls)).flame
    assert [(n.function, n.parent, n.samples, n.own) for n in flame] == [
        ("Pictures.__getitem__", -1, 1000, True),
        ("Image.convert", 0, 700, False),
        ("ImageFile.load", 1, 700, False),
        ("crop", 0, 298, True),
    ]


def test_lines_have_their_recorded_source(recorded: Recorded) -> None:
    source = ["def __getitem__(self, index):", "    return decode(self.blobs[index])"]
    seen = {"dataset": {"type": "t.P", "name": "P", "file": OWN, "line": 40, "getitem": source}}
    stage = fetch_of(recorded, (4000, "fetch", GETITEM, 3), inspection=seen)
    assert stage.lines[0].text == stage.hot[0].text == "return decode(self.blobs[index])"


@pytest.mark.parametrize(
    ("host", "changed", "text"),
    [
        (HERE, False, "return \N{REPLACEMENT CHARACTER}zlib.decompress(blob)"),
        ("another", False, None),
        (HERE, True, None),
    ],
)
def test_a_file_is_read_only_where_it_is_the_one_that_ran(tmp_path, host, changed, text):
    file = tmp_path / "helpers.py"
    file.write_text("def unpack(blob):\n    return \x1bzlib.decompress(blob)\n")
    began_ns = 1_738_311_300_000_000_000
    stamp = began_ns + (10**9 if changed else -(10**9))
    os.utime(file, ns=(stamp, stamp))
    assert text_of(tmp_path / "runs", f"unpack {file}:2", host, began_ns) == text


@pytest.mark.parametrize("file", ["/etc/passwd", "/nowhere/at_all.py", "relative.py", "<string>"])
def test_other_files_are_never_read(tmp_path: Path, file: str) -> None:
    assert text_of(tmp_path, f"f {file}:1", HERE, 2**62) is None


def text_of(runs: Path, frame: str, host: str, began_ns: int) -> str | None:
    """The source that is shown here of the only line of a run on this host."""
    builder = RunBuilder(runs)
    builder.system(host=host)
    loader_in(builder.process(unix_ns=began_ns, host=host))
    run = with_bursts(builder.path, burst((4000, "fetch", frame, 3)))
    return code(run).stages["fetch"].lines[0].text


@pytest.mark.parametrize(
    ("count", "samples", "low", "high"),
    [(0, 10, 0.0, 0.2775), (81, 263, 0.2553, 0.3662), (0, 0, 0.0, 1.0)],
)
def test_wilsons_interval(count: int, samples: int, low: float, high: float) -> None:
    # 81 of 263: Newcombe 1998, Statistics in Medicine 17, table I.
    assert wilson(count, samples) == pytest.approx((low, high), abs=1e-4)


GET = "Rows.__getitem__ rows.py:4"
LOAD, ENCODE = f"{GET} > Rows.load rows.py", f"{GET} > Words.encode words.py"


@pytest.mark.parametrize(
    ("stacks", "expected"),
    [
        # One piece of what a line calls takes most of it: that piece.
        (
            [(f"{LOAD}:9", 60), (f"{LOAD}:10", 20), ("Rows.__getitem__ rows.py:5", 20)],
            [("rows.py:9", None, 0.6), ("rows.py:10", None, 0.2), ("rows.py:5", None, 0.2)],
        ),
        # None does: the call.
        (
            [*((f"{ENCODE}:{n}", 20) for n in (1, 2, 3)), ("Rows.__getitem__ rows.py:5", 40)],
            [("rows.py:4", "Words.encode words.py:1", 0.6), ("rows.py:5", None, 0.4)],
        ),
        # To name the line in which all happens would say nothing.
        (
            [(f"{ENCODE}:{line}", n) for line, n in ((1, 40), (2, 35), (3, 25))],
            [("words.py:1", None, 0.4), ("words.py:2", None, 0.35), ("words.py:3", None, 0.25)],
        ),
        # A function that calls itself counts once.
        (
            [(f"{GET} > walk rows.py:9 > walk rows.py:9 > loads std/json.py:7", 100)],
            [("rows.py:9", "json loads", 1.0)],
        ),
    ],
)
def test_a_line_is_divided_where_a_piece_of_it_takes_most(tmp_path, stacks, expected):
    stage = seen(case_of(tmp_path, main_loop(40, fetch=4.0)), *stacks).code_stage("fetch")
    assert stage is not None
    found = [(each.place, each.call, each.share.mid) for each in parts_of(stage)]
    assert found == expected


@pytest.mark.parametrize(
    ("file", "library", "place"),
    [
        ("/v/lib/python3.11/site-packages/PIL/ImageFile.py", "PIL", "PIL/ImageFile.py"),
        ("/usr/lib/python3/dist-packages/yaml/loader.py", "yaml", "yaml/loader.py"),
        (r"C:\v\Lib\site-packages\numpy\lib\x.py", "numpy", "numpy/lib/x.py"),
        ("/v/lib/python3.11/site-packages/six.py", "six", "six.py"),
        ("/v/site-packages/google/cloud/blob.py", "google.cloud", "google/cloud/blob.py"),
        ("/usr/lib/python3.11/json/decoder.py", "json", "python/json/decoder.py"),
        ("/v/3.13.0/lib/python3.13t/zipfile/__init__.py", "zipfile", "python/zipfile/__init__.py"),
        ("<frozen importlib._bootstrap>", "python", "<frozen importlib._bootstrap>"),
        ("<class 'x.argmap'> compilation 3", "python", "<class 'x.argmap'> compilation 3"),
    ],
)
def test_libraries_are_known_by_their_place(file: str, library: str, place: str) -> None:
    found = owner_of(file)
    assert (found.library, found.place, found.own) == (library, place, False)


@pytest.mark.parametrize(
    "file",
    [
        "/home/u/train.py",
        "/home/u/lib/python3-project/data.py",
        "/home/u/lib/python3.11/mine/data.py",  # no module of Python is called that
        "/tmp/ipykernel_31/1234.py",
        "<stdin>",
        "patches.py",
        "",
    ],
)
def test_everything_else_is_the_users_own(file: str) -> None:
    assert owner_of(file).own


def test_a_script_given_as_text_is_own_but_not_what_python_writes_there() -> None:
    assert owner_of("<string>", "Pictures.__getitem__").own and owner_of("<string>", "crop").own
    assert owner_of("<string>", "Point.__new__").library == "python"
