"""Stack samples as code: which are a loader's, hot functions and lines, parts, the flame graph."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import MS, T0, RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import CodeStage
from loaderscope.advisors.stacks.code_summary import MAX_NODES, code_of, wilson
from loaderscope.advisors.stacks.libraries import owner_of
from loaderscope.advisors.stacks.stage_parts import parts_of
from loaderscope.profiler.base.host import host_name
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.stacks.stack_samples import Frame, Stack, StackCapture
from rule_cases import case_of
from rule_rows import main_loop
from stack_cases import OWN, add_workers, burst, seen, with_bursts

HERE = host_name()
GETITEM = f"Pictures.__getitem__ {OWN}:41"
LOAD = "ImageFile.load site/PIL/ImageFile.py:425"
DECODE = f"{GETITEM} > Image.convert site/PIL/Image.py:1067 > {LOAD}"


class Job(RunBuilder):
    """One process; its loaders, and what bursts of stacks tell of them."""

    def __init__(self, runs: Path, system: Any = None, **facts: Any) -> None:
        super().__init__(runs)
        self.system(**(system or {}))
        self.main = self.process(**facts)

    def loader(self, start_ns: int = T0, workers: int = 0, **facts: Any) -> Job:
        rows = loop(20, start_ns=start_ns)
        config = {"num_workers": workers}
        self.main.loader(rows, epochs=[epoch_row(rows)], config=config, **facts)
        return self

    def codes(self, *bursts: StackCapture, **host: Any) -> list[Any]:
        run = with_bursts(self.path, *bursts, **host)
        return [code_of(run, run.processes[0], loader) for loader in run.loaders]

    def stacks(self, *stacks: tuple[Any, ...], **facts: Any) -> list[Any]:
        return self.codes(burst(*stacks, **facts))

    def fetch(self, *calls: tuple[str, int]) -> CodeStage:
        """What its one loader fetches with, by samples of main."""
        (code,) = self.stacks(*((4000, "fetch", *call) for call in calls))
        return code.stages["fetch"]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_what_is_innermost_and_what_it_is_part_of(job: Job) -> None:
    stage = job.loader().fetch((DECODE, 71), (GETITEM, 29))
    assert (stage.samples, stage.libraries) == (100, {"PIL": 0.71, "": 0.29})
    load, own = stage.hot
    assert (load.function, load.library, load.line) == ("ImageFile.load", "PIL", 425)
    assert not load.own
    assert (load.share, load.total_share, load.called_from) == (0.71, 0.71, "patches.py:41")
    assert (own.share, own.total_share, own.own, own.library) == (0.29, 1.0, True, None)
    assert (load.low, load.high) == pytest.approx((0.614, 0.790), abs=1e-3)
    assert [(each.line, each.share, each.total_share) for each in stage.lines] == [(41, 0.29, 1.0)]


def test_several_lines_of_one_function_are_one_function(job: Job) -> None:
    stage = job.loader().fetch((GETITEM, 3), (f"Pictures.__getitem__ {OWN}:42", 7))
    assert [(spot.share, spot.line) for spot in stage.hot] == [(1.0, 42)]
    assert [(line.line, line.share) for line in stage.lines] == [(42, 0.7), (41, 0.3)]


def test_recursion_counts_once_a_stack_and_a_flame_graph_has_bounds(job: Job) -> None:
    inner = "deepcopy std/copy.py:146"
    deep = f"{GETITEM} > {inner} > _deepcopy_list std/copy.py:206 > {inner}"
    (hot,) = job.loader().fetch((deep, 10)).hot
    assert (hot.function, hot.library, hot.total_share) == ("deepcopy", "copy", 1.0)
    endless = " > ".join(f"f{n} {OWN}:{n}" for n in range(MAX_NODES + 300))
    flame = job.fetch((endless, 10)).flame
    assert [node.parent for node in flame] == list(range(-1, MAX_NODES - 1))


@pytest.mark.parametrize("inside", ["Pictures.__getitem__.<locals>.", ""])
def test_a_comprehension_is_a_part_of_its_function(job: Job, inside: str) -> None:
    stage = job.loader().fetch((f"{GETITEM} > {inside}<listcomp> {OWN}:44", 5))
    (spot,) = stage.hot
    assert (spot.function, spot.line, spot.share) == ("Pictures.__getitem__", 44, 1.0)
    assert len(stage.flame) == 1


def test_bursts_add_up(job: Job) -> None:
    one, other = burst((4000, "fetch", DECODE, 30)), burst((4000, "fetch", GETITEM, 10), number=1)
    (found,) = job.loader().codes(one, other)
    assert (found.bursts, found.samples, found.seconds, found.rate_hz) == (2, 40, 16.0, 25.0)
    assert (found.reason, found.stages["fetch"].hot[0].share) == (None, 0.75)


def test_each_loader_gets_its_own_workers(job: Job) -> None:
    job.loader(workers=1).loader(workers=1)
    # The pid of the second's worker was the first's before, and is reused after the burst.
    begun = (T0, 0, 51), (T0 + 1, 0, 52), (T0 + 2, 1, 51), (T0 + 10**12, 0, 51)
    add_workers(job.main.path, *begun)
    idle = (52, "idle", "get std/queue.py:1", 9)
    fetches = ((51, GETITEM, 5), (52, DECODE, 7), (99, DECODE, 1))
    first, second = job.stacks(*((pid, "fetch", *each) for pid, *each in fetches), idle)
    assert [each.stages["fetch"].samples for each in (first, second)] == [7, 5]
    assert set(first.stages) == {"fetch"}


def test_main_belongs_to_the_loader_that_was_iterated(job: Job) -> None:
    job.loader().loader(start_ns=T0 + 60_000 * MS)
    first, second = job.stacks((4000, "wait", GETITEM, 4), (4000, "fetch", GETITEM, 6))
    assert {name: stage.samples for name, stage in first.stages.items()} == {"fetch": 6, "wait": 4}
    assert "taken while this loader was in use" in (second.reason or "")


@pytest.mark.parametrize("told_apart", [True, False])
def test_two_loaders_in_main_are_told_apart_by_their_data_sets(job, told_apart):
    for name in ("Pictures", "Labels"):
        part = {"type": f"train.{name}", "name": name, "file": OWN, "line": 40}
        job.loader(**({"inspection": {"dataset": part}} if told_apart else {}))
    other = f"Labels.__getitem__ {OWN}:60"
    found = job.stacks((4000, "fetch", GETITEM, 3), (4000, "fetch", other, 5))
    assert [each.stages["fetch"].samples for each in found] == ([3, 5] if told_apart else [8, 8])
    why = "100 % of the samples may belong to another loader"
    assert found[0].reason is None if told_apart else why in found[1].reason


def test_workers_mean_that_main_does_not_fetch_and_the_gil_is_that_of_the_stage(job: Job) -> None:
    add_workers(job.loader(workers=2).main.path, (T0, 0, 51), (T0, 0, 52))
    workers = (51, "fetch", GETITEM, 10), (52, "fetch", GETITEM, 30)
    main = [(4000, stage, GETITEM, 5) for stage in ("fetch", "wait", "pin")]
    (found,) = job.stacks(*workers, *main, gil={51: 1.0, 52: 0.2})
    samples = {name: stage.samples for name, stage in found.stages.items()}
    assert samples == {"fetch": 40, "wait": 5, "pin": 5}
    assert found.stages["fetch"].gil_share == pytest.approx(0.4)
    assert found.stages["wait"].gil_share is None


def test_another_hosts_bursts_are_not_mine(job: Job) -> None:
    made = burst((4000, "fetch", GETITEM, 3))
    assert job.loader().codes(made, host="another") == [None]
    assert build_report(open_run(job.path)).loaders[0].code is None


@pytest.mark.parametrize("where", ["system", "process", "burst"])
def test_why_there_are_none(tmp_path: Path, where: str) -> None:
    why = {"reasons": {"stacks": "py-spy is missing"}}
    facts = why if where == "process" else {}
    job = Job(tmp_path, why if where == "system" else None, **facts).loader()
    (found,) = job.codes(*[burst(reason="py-spy is missing")] * (where == "burst"))
    assert (found.reason, found.samples, found.stages) == ("py-spy is missing", 0, {})


def test_frames_that_are_not_there_are_left_out(job: Job) -> None:
    told = ((0, 7), 3), ((0,), 2), ((), 1), ((0,), -4)
    stacks = tuple(Stack(4000, "m", "fetch", *each) for each in told)
    torn = replace(burst(), frames=(Frame("f", OWN, 1),), stacks=stacks, samples={4000: 2})
    stage = job.loader().codes(torn)[0].stages["fetch"]
    assert stage.samples == 3 and stage.hot[0].share == pytest.approx(2 / 3)


def test_the_flame_graph_is_a_tree_of_what_is_wide_enough(job: Job) -> None:
    calls = (DECODE, 700), (f"{GETITEM} > crop {OWN}:80", 298), (f"{GETITEM} > thin {OWN}:90", 2)
    flame = job.loader().fetch(*calls).flame
    assert [(n.function, n.parent, n.samples, n.own) for n in flame] == [
        ("Pictures.__getitem__", -1, 1000, True),
        ("Image.convert", 0, 700, False),
        ("ImageFile.load", 1, 700, False),
        ("crop", 0, 298, True),
    ]


def test_lines_have_their_recorded_source(job: Job) -> None:
    source = ["def __getitem__(self, index):", "    return decode(self.blobs[index])"]
    seen = {"dataset": {"type": "t.P", "name": "P", "file": OWN, "line": 40, "getitem": source}}
    stage = job.loader(inspection=seen).fetch((GETITEM, 3))
    assert stage.lines[0].text == stage.hot[0].text == "return decode(self.blobs[index])"


BEGAN_NS = 1_738_311_300_000_000_000


@pytest.mark.parametrize(
    ("host", "age_s", "text"),
    [
        (HERE, 1, "return \N{REPLACEMENT CHARACTER}zlib.decompress(blob)"),
        ("another", 1, None),
        (HERE, -1, None),
    ],
)
def test_a_file_is_read_only_where_it_is_the_one_that_ran(tmp_path, host, age_s, text):
    file = tmp_path / "helpers.py"
    file.write_text("def unpack(blob):\n    return \x1bzlib.decompress(blob)\n")
    os.utime(file, ns=(BEGAN_NS - age_s * 10**9,) * 2)
    assert text_of(tmp_path / "runs", f"unpack {file}:2", host, BEGAN_NS) == text


@pytest.mark.parametrize("file", ["/etc/passwd", "/nowhere/at_all.py", "relative.py", "<string>"])
def test_other_files_are_never_read(tmp_path: Path, file: str) -> None:
    assert text_of(tmp_path, f"f {file}:1", HERE, 2**62) is None


def text_of(runs: Path, frame: str, host: str, began_ns: int) -> str | None:
    """The source that is shown here of the only line of a run on this host."""
    job = Job(runs, {"host": host}, unix_ns=began_ns, host=host).loader()
    return job.fetch((frame, 3)).lines[0].text


@pytest.mark.parametrize(
    ("count", "samples", "low", "high"),
    [(0, 10, 0.0, 0.2775), (81, 263, 0.2553, 0.3662), (0, 0, 0.0, 1.0)],
)
def test_wilsons_interval(count: int, samples: int, low: float, high: float) -> None:
    # 81 of 263: Newcombe 1998, Statistics in Medicine 17, table I.
    assert wilson(count, samples) == pytest.approx((low, high), abs=1e-4)


GET, REST = "Rows.__getitem__ rows.py:4", "Rows.__getitem__ rows.py:5"
ROWS, ENCODE = f"{GET} > Rows.load rows.py", f"{GET} > Words.encode words.py"
TWICE = f"{GET} > walk rows.py:9 > walk rows.py:9 > loads std/json.py:7"


PIECE = {f"{ROWS}:9": 60, f"{ROWS}:10": 20, REST: 20}
CALL = {f"{ENCODE}:1": 20, f"{ENCODE}:2": 20, f"{ENCODE}:3": 20, REST: 40}
ALL = {f"{ENCODE}:1": 40, f"{ENCODE}:2": 35, f"{ENCODE}:3": 25}


@pytest.mark.parametrize(
    ("stacks", "expected"),
    [
        # One piece of what a line calls takes most of it: that piece. None does: the call.
        (PIECE, {"rows.py:9": 0.6, "rows.py:10": 0.2, "rows.py:5": 0.2}),
        (CALL, {"rows.py:4 Words.encode words.py:1": 0.6, "rows.py:5": 0.4}),
        # To name the line in which all happens would say nothing.
        (ALL, {"words.py:1": 0.4, "words.py:2": 0.35, "words.py:3": 0.25}),
        ({TWICE: 100}, {"rows.py:9 json loads": 1.0}),  # calls itself: counts once
    ],
)
def test_a_line_is_divided_where_a_piece_of_it_takes_most(tmp_path, stacks, expected):
    case = case_of(tmp_path, main_loop(40, fetch=4.0))
    stage = seen(case, *stacks.items()).code_stage("fetch")
    assert stage is not None
    found = {f"{each.place} {each.call or ''}".rstrip(): each.share.mid for each in parts_of(stage)}
    assert [*found.items()] == [*expected.items()]


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


def test_everything_else_is_the_users_own() -> None:
    # Python has no module `mine`.
    projects = ("/home/u/lib/python3-project/data.py", "/home/u/lib/python3.11/mine/data.py")
    for file in ("/home/u/train.py", *projects, "/tmp/ipykernel_31/1.py", "<stdin>", "x.py", ""):
        assert owner_of(file).own, file
    # A script given as text is, too, but not what Python writes there.
    assert owner_of("<string>", "Pictures.__getitem__").own and owner_of("<string>", "crop").own
    assert owner_of("<string>", "Point.__new__").library == "python"
