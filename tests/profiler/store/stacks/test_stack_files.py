"""StackCapture files: what is read of them, whatever they hold, and how a burst is asked for."""

import json
import os
import random
import threading

import pytest

from builders import RunBuilder, loop
from damaged_runs import json_values
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.base.liveness import Liveness
from loaderscope.profiler.store.run import take_stacks as taking
from loaderscope.profiler.store.run.run_reader import read_run
from loaderscope.profiler.store.run.take_stacks import take_stacks
from loaderscope.profiler.store.stacks import stack_samples
from loaderscope.profiler.store.stacks.stack_files import MAX_FILES, answer_to, read_bursts
from loaderscope.profiler.store.stacks.stack_request import request_burst, wait_for_burst
from loaderscope.profiler.store.stacks.stack_samples import (
    REQUEST,
    Frame,
    Stack,
    Wait,
    read_request,
)
from loaderscope.profiler.store.stacks.stack_stages import Collate

TORCH = "/env/site-packages/torch/utils/data/"
WORKER = ["_worker_loop", TORCH + "_utils/worker.py", 374]
FETCH = ["_MapDatasetFetcher.fetch", TORCH + "_utils/fetch.py", 54]
LATE = ["_MapDatasetFetcher.fetch", TORCH + "_utils/fetch.py", 57]
ITEM = ["Set.__getitem__", "/home/me/data.py", 14]
PAD = ["pad", "/home/me/data.py", 44]
TRAIN = ["<module>", "/home/me/train.py", 9]
ENV = ["sleep", "/env/lib.so", 0]
COLLATE = Collate("pad", "/home/me/data.py", 40, 60)
COLLATES = ((50, 2, COLLATE),)


def burst(**changes):
    main = {"pid": 50, "owner": 50, "worker": None, "loader": None, "samples": 160, "gil": 0.25}
    worker = {"pid": 51, "owner": 50, "worker": 0, "loader": 2, "samples": 150, "gil": None}
    stacks = [[1, "MainThread", [0, 1, 3], 90], [1, "MainThread", [0, 2, 4], 30]]
    stacks += [[0, "MainThread", [5], 100], [0, "MainThread", [5, 6], 60]]
    return {
        "format": 1,
        "number": 0,
        "t_begin_ns": 1000,
        "t_end_ns": 9000,
        "rate_hz": 20,
        "why": "steady",
        "nonce": None,
        "reason": None,
        "package": "/env/loaderscope",
        "processes": [main, worker],
        "frames": [WORKER, FETCH, LATE, ITEM, PAD, TRAIN, ENV],
        "stacks": stacks,
        "dropped": 0,
        **changes,
    }


def write(system, file=0, **changes):
    system.mkdir(exist_ok=True)
    (system / f"stacks-{file}.json").write_text(json.dumps(burst(**changes)))


def only(system):
    (found,), _ = read_bursts(system, ())
    return found


@pytest.fixture
def system(tmp_path):
    return tmp_path / "system-here-0"


def test_a_burst_with_its_stages(system):
    write(system)
    (found,), notes = read_bursts(system, COLLATES)
    stacks = (
        Stack(50, "MainThread", "compute", (5,), 100),
        Stack(50, "MainThread", "compute", (5, 6), 60),
        Stack(51, "MainThread", "fetch", (3,), 90),
        Stack(51, "MainThread", "collate", (4,), 30),
    )
    frames = tuple(Frame(*one) for one in burst()["frames"])
    counted = ({50: 160, 51: 150}, {50: 0.25})
    told = (0, 1000, 9000, 20.0, "steady", frames, stacks, *counted)
    assert found == stack_samples.StackCapture(*told) and notes == ()


def test_what_threads_waited_for_is_read_as_far_as_it_is_known(system):
    worker = burst()["stacks"][0]
    waits = [["lock", "", 4], ["levitates", "x", 0], ["disk"], 7]
    stacks = [[*worker, [[0, 40], [1, 3], [2, 2], [3, 1], [99, 5]]], worker]
    write(system, waits=waits, waits_reason="none of yours", stacks=stacks)
    found, notes = only(system), read_bursts(system, ())[1]
    assert notes == () and found.waits_reason == "none of yours"
    (stack,) = found.stacks
    assert stack.samples == 180
    assert stack.waits == {Wait("lock", "", 4): 40, Wait(): 4, Wait("disk"): 2}


def test_stacks_that_are_equal_once_cut_are_counted_together(system):
    other = ["_worker_loop", TORCH + "_utils/worker.py", 380]
    stacks = [[1, "MainThread", [0, 1, 2], 7], [1, "MainThread", [3, 1, 2], 4]]
    write(system, frames=[WORKER, FETCH, ITEM, other], stacks=stacks)
    assert only(system).stacks == (Stack(51, "MainThread", "fetch", (2,), 11),)
    # Another loader's collate function, called by this one's data set, is fetching.
    write(system, stacks=[[1, "MainThread", [0, 1, 4], 90]])
    (found,), _ = read_bursts(system, ((50, 0, COLLATE),))
    assert [one.stage for one in found.stacks] == ["fetch"]


@pytest.mark.parametrize(
    ("file", "ours"),
    [
        ("/env/loaderscope/cli.py", True),  # where older runs have the command
        ("/env/loaderscope/__main__.py", True),
        ("/env/loaderscope/demo.py", False),  # the script that it runs
        ("/home/me/cli/train.py", False),
    ],
)
def test_a_command_that_runs_a_script_is_left_out(system, file, ours):
    write(system, frames=[["main", file, 7], TRAIN], stacks=[[0, "MainThread", [0, 1], 7]])
    assert only(system).stacks == (Stack(50, "MainThread", "compute", (1,) if ours else (0, 1), 7),)


def test_a_run_holds_its_bursts(tmp_path):
    run = RunBuilder(tmp_path)
    run.process(pid=50).loader(loop(3), config={"collate_fn": "train.pad"})
    system = run.system(reasons={"stacks": "too early"})
    write(system, 1, t_begin_ns=5000)
    process = {"pid": 51, "owner": 50, "worker": 0, "loader": 0, "samples": 9}
    write(system, 0, processes=[process], stacks=[[0, "MainThread", [0, 2, 4], 9]])
    (found,) = read_run(run.path, Liveness()).systems
    assert [one.t_begin_ns for one in found.bursts] == [1000, 5000]
    assert [one.stage for one in found.bursts[0].stacks] == ["collate"]
    assert found.reasons["stacks"] == "too early"


def test_what_is_no_burst_is_left_out_with_a_note(system):
    write(system)
    for number, text in enumerate(["{", '{"format": 9}', "x" * (5 << 20), "[" * 100_000], start=1):
        (system / f"stacks-{number}.json").write_text(text)
    (system / "stacks-6.json").mkdir()
    os.mkfifo(system / "stacks-7.json")
    (system / ".stacks-8.json").write_text("{}")
    (system / "stacks-99999999.json").write_text("{}")
    found, notes = read_bursts(system, ())
    assert [one.number for one in found] == [0] and len(notes) == 6
    write(system, stacks=[])  # anew
    assert only(system).stacks == ()
    for number in range(10, 15 + MAX_FILES):
        write(system, number, number=number)
    assert sum(map(len, read_bursts(system, ()))) == MAX_FILES
    assert read_bursts(system / "nowhere", ()) == ((), ())


def test_no_content_harms_the_reader(system):
    rng = random.Random(7)
    readable = 0
    system.mkdir()
    for _ in range(300):
        text = json_values(json.dumps(burst()).encode(), rng)
        (system / "stacks-0.json").write_bytes(text)
        found, notes = read_bursts(system, COLLATES)
        assert len(found) + len(notes) == 1
        for one in found:
            readable += 1
            assert one.why in ("steady", "asked")
            assert all(0.0 <= share <= 1.0 for share in one.gil.values())
            assert all(isinstance(count, int) and count >= 0 for count in one.samples.values())
            assert all((frame.function + frame.file).isprintable() for frame in one.frames)
            for stack in one.stacks:
                assert stack.stage in stack_samples.STAGES
                assert stack.samples > 0 and stack.thread.isprintable()
                assert all(0 <= at < len(one.frames) for at in stack.frames)
    assert readable > 200


def test_a_request_is_understood_by_the_sampler(tmp_path):
    nonce = request_burst(tmp_path, seconds=2.2)
    asked = read_request(tmp_path / REQUEST)
    assert (asked.nonce, asked.seconds) == (nonce, 3)
    assert request_burst(tmp_path) != nonce
    asked = read_request(tmp_path / REQUEST)
    assert asked.seconds is None
    assert [path.name for path in tmp_path.iterdir()] == [REQUEST]


@pytest.mark.parametrize(
    "text",
    ["[]", "{", '{"nonce": "../../etc"}', '{"nonce": "%s"}' % ("x" * 65), "[" * 4000, "x" * 5000],
)
def test_a_request_that_makes_no_sense(tmp_path, text):
    (tmp_path / REQUEST).write_text(text)
    assert read_request(tmp_path / REQUEST) is None
    assert read_request(tmp_path) is None and read_request(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("seconds", "taken"),
    [(-5, 1), (1e9, 30), (10**400, None), (2, 2), ("9", None), (True, None), (float("nan"), None)],
)
def test_the_length_of_a_request_is_bounded(tmp_path, seconds, taken):
    asked = {"nonce": "abcdefgh", "seconds": seconds, "so_far": "yes"}
    (tmp_path / REQUEST).write_text(json.dumps(asked))
    found = read_request(tmp_path / REQUEST)
    assert found.seconds == taken and found.so_far is False


def test_waiting_for_the_answer(tmp_path, system):
    nonce = request_burst(tmp_path)
    write(system, nonce="anotherone")
    assert wait_for_burst(tmp_path, nonce, 0.1) is None
    timer = threading.Timer(0.1, write, [system, 1], {"nonce": nonce, "number": 1, "why": "asked"})
    timer.start()
    found = wait_for_burst(tmp_path, nonce, 20)
    timer.join()
    assert found is not None and found.number == 1 and found.why == "asked"


def test_the_answer_is_found_beside_what_cannot_be_read(tmp_path, system):
    why = "py-spy is not installed\x1b"
    write(system, 3, nonce="abcdefgh", reason=why, processes=[], stacks=[])
    (system / "stacks-4.json").write_text("{")
    (tmp_path / "p50-0").mkdir()
    (tmp_path / "p50-0" / "loader0.json").write_text("[]")
    found = answer_to(tmp_path, "abcdefgh")
    assert found is not None and found.stacks == ()
    assert found.reason == "py-spy is not installed\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["finished"], "of a live run only"),
        (["live", "finished"], "ended before its stacks were taken"),
        (["live", "live"], "does not answer"),
    ],
)
def test_a_run_that_takes_none(runs_dir, monkeypatch, states, said):
    path, asked = RunBuilder(runs_dir).path, len(states) > 1
    monkeypatch.setattr(taking, "state_of", lambda *_: states.pop(0))
    monkeypatch.setattr(taking, "LOOK_EVERY_S", 0.0)
    monkeypatch.setattr(taking, "WAIT_S", -3.0)
    with pytest.raises(UsageError, match=said):
        take_stacks(path, 3.0)
    assert (path / REQUEST).exists() == asked
    assert not asked or json.loads((path / REQUEST).read_text())["seconds"] == 3.0


def test_what_cannot_be_asked_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(taking, "state_of", lambda *_: "live")
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        take_stacks(tmp_path / "gone")
