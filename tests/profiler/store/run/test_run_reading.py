"""Reading a run directory in whatever state it is, and epochs whose end nobody saw."""

import json
import os
import threading
from dataclasses import replace

import numpy as np
import pytest

from builders import MS, T0, RunBuilder, epoch_row, loop, values_of
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.base import schema
from loaderscope.profiler.base.errors import RunUnreadable
from loaderscope.profiler.base.liveness import Liveness
from loaderscope.profiler.store.lanes.columns import read_lane
from loaderscope.profiler.store.lanes.lane import Budget, Lane
from loaderscope.profiler.store.lanes.segment_file import HEADER_BYTES
from loaderscope.profiler.store.run.epoch_ends import batches_an_epoch
from loaderscope.profiler.store.run.run_reader import open_run, read_run


@pytest.fixture
def run(tmp_path):
    return RunBuilder(tmp_path)


def test_columns_keep_their_types_and_say_what_was_not_measured(run):
    own = {"own_ns": lambda n, t, w: 7.5 if n == 1 else None}
    run.process().loader(loop(3, wait_ms=2, worker=1, **own))
    loader = open_run(run.path).loaders[0]
    batches = loader.batches
    assert batches.rows == 3
    assert (batches["wait_ns"].dtype, batches["worker"].dtype) == (np.int64, np.int16)
    assert batches["wait_ns"].tolist() == [2 * MS] * 3
    assert batches["h2d_ns"].tolist() == [-1, -1, -1]
    np.testing.assert_array_equal(batches["own_ns"], np.array([np.nan, 7.5, np.nan], np.float32))
    np.testing.assert_array_equal(loader.column("h2d_ns"), [np.nan] * 3)
    np.testing.assert_array_equal(loader.column("wait_ns"), [2e6] * 3)
    with pytest.raises(ValueError, match="read-only"):
        batches["wait_ns"][0] = 1
    with pytest.raises(KeyError):
        loader.column("no_such_column")


def test_compute_is_derived_from_the_next_batch_of_the_epoch(run):
    first = loop(3, wait_ms=1, compute_ms=4)
    second = loop(2, wait_ms=1, compute_ms=6, epoch=1, start_ns=T0 + 1000 * MS)
    del second[-1]["compute_ns"]  # the run was killed before the loop came back
    run.process().loader(first + second)
    steps = ((0, 0), (10, 1), (20, 0), (30, 1))  # epochs may be interleaved
    run.process(2).loader([{"t_ns": T0 + t * MS, "wait_ns": MS, "epoch": e} for t, e in steps])
    found = [loader.batches["compute_ns"].tolist() for loader in open_run(run.path).loaders]
    assert [4 * MS, 4 * MS, 4 * MS, 6 * MS, -1] in found
    assert [19 * MS, 19 * MS, -1, -1] in found


def test_lanes_of_several_threads_are_merged_in_order_of_time(run):
    one = loop(3, wait_ms=1, compute_ms=9, worker=0)
    two = loop(3, wait_ms=1, compute_ms=9, start_ns=T0 + 5 * MS, own_ns=3.0, worker=1)
    run.process().loader(one, two)
    batches = open_run(run.path).loaders[0].batches
    assert batches["worker"].tolist() == [0, 1, 0, 1, 0, 1]
    assert np.all(np.diff(batches["t_ns"]) > 0)
    assert batches["compute_ns"].tolist() == [9 * MS] * 6  # each thread's loop by itself
    assert np.isnan(batches["own_ns"]).tolist() == [True, False] * 3


def test_batches_that_made_room_count_and_are_not_in_the_columns(run):
    rows = loop(20_000, wait_ms=1, compute_ms=1)
    run.process().loader(rows, max_bytes=3 << 20)
    loader = open_run(run.path).loaders[0]
    assert loader.count == 20_000 and 0 < loader.batches.rows < 20_000
    assert loader.batches["seq"][0] == loader.older + 1
    assert loader.notes == ()


def test_more_batches_than_there_was_room_for_are_not_believed(run):
    process = run.process()
    process.loader(loop(50))
    with (process.path / "batches0x0-000000.seg").open("r+b") as file:
        file.seek(24)  # the number of its first record
        file.write((1 << 40).to_bytes(8, "little"))
    opened = open_run(run.path)
    assert opened.loaders[0].count == 0
    assert any("its header makes no sense: left out" in note for note in opened.notes)


def test_a_reader_beside_a_writer_that_makes_room_sees_every_record_once(tmp_path):
    """Segments are removed under the reader's hands."""
    lane = Lane(tmp_path, "batches0x0", schema.BATCH, Budget(5 << 18), pytest.fail, True)
    row = values_of(schema.BATCH, {"t_ns": 1, "wait_ns": 1, "epoch": 0})
    writer = threading.Thread(target=lambda: [lane.append(*row) for _ in range(20_000)])
    writer.start()
    counts, last = [0], False
    while not last:
        last = not writer.is_alive()
        content = read_lane(tmp_path, "batches0x0", schema.BATCH)
        seq = content.columns["seq"]
        assert content.notes == ()
        first = content.older + 1
        assert np.array_equal(seq, np.arange(first, first + len(seq)))
        counts.append(first - 1 + len(seq))
    assert counts == sorted(counts) and counts[-1] == 20_000
    assert content.older > 5_000 and lane.stopped is None


def test_one_corrupt_segment_does_not_lose_the_rest(run):
    process = run.process()
    process.loader(loop(5000))
    segments = sorted(process.path.glob("batches0x0-*.seg"))
    assert len(segments) >= 3
    segments[1].write_bytes(b"garbage" * 1000)
    opened = open_run(run.path)
    assert 0 < opened.loaders[0].batches.rows < 5000
    assert any("batches0x0-000001.seg is not a Loaderscope lane" in note for note in opened.notes)
    assert any("records of lane batches0x0 are missing" in note for note in opened.notes)


@pytest.mark.parametrize("content", [b"", bytes(64 << 10)])
def test_a_segment_without_a_header_is_no_damage_and_one_cut_short_gives_whole_records(
    run, content
):
    """Killed between creating the file and writing its header."""
    process = run.process()
    process.loader(loop(100))
    (process.path / "batches0x0-000001.seg").write_bytes(content)
    opened = open_run(run.path)
    assert (opened.loaders[0].batches.rows, opened.notes) == (100, ())
    os.truncate(process.path / "batches0x0-000000.seg", HEADER_BYTES + 40 * schema.BATCH.size + 17)
    assert open_run(run.path).loaders[0].batches["seq"].tolist() == list(range(1, 41))


def test_missing_torn_and_absurd_descriptions_are_tolerated(run):
    process = run.process(pid=77)
    process.loader(loop(30))
    text = json.dumps(process.facts).replace('"affinity": 8', f'"affinity": {10**400}')
    (process.path / "process.json").write_text(text)
    assert open_run(run.path).processes[0].affinity is None
    (process.path / "process.json").unlink()
    (process.path / "loader0.json").write_text('{"format": 1, "na')
    opened = open_run(run.path)
    (loader,) = opened.loaders
    assert (opened.processes[0].pid, loader.name, loader.batches.rows) == (77, "loader 0", 30)
    assert (opened.state, len(opened.notes)) == ("unknown", 2)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[1]", "holds no JSON object"),
        ("[" * 100_000, "is torn or corrupt"),
        ('{"format": "1"}', "is corrupt"),
        ('{"format": 1, "x": "' + "x" * (2 << 20) + '"}', "is far too large"),
    ],
)
def test_a_directory_that_is_no_run_says_so_in_one_sentence(tmp_path, content, sentence):
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunUnreadable, match=sentence) as caught:
        open_run(tmp_path)
    assert "\n" not in str(caught.value)


def test_a_newer_part_is_left_out_with_a_note(run):
    run.process(pid=1).loader(loop(30))
    other = run.process(pid=2)
    other.loader(loop(30))
    (other.path / "process.json").write_text('{"format": 9, "pid": 2}')
    opened = open_run(run.path)
    assert [process.pid for process in opened.processes] == [1]
    assert any("newer Loaderscope" in note for note in opened.notes)


def test_texts_lose_what_a_terminal_would_obey(run):
    run.process().loader(loop(1), name="\x1b[2Jevil\u202e\nname", config={"dataset": "\x07bell"})
    loader = open_run(run.path).loaders[0]
    assert loader.name.isprintable()
    assert "evil" in loader.name
    assert str(loader.config["dataset"]).isprintable()


def test_a_fifo_in_the_place_of_a_file_does_not_hang(run):
    process = run.process()
    for name in ("loader0.json", "batches0x0-000000.seg"):
        os.mkfifo(process.path / name)
    opened = open_run(run.path)
    assert (opened.loaders[0].batches.rows, len(opened.notes)) == (0, 2)


@pytest.mark.parametrize(
    ("ended", "alive_since", "host", "boot", "expected"),
    [
        ([True, True], None, "here", "now", "finished"),
        ([True, False], 1000.0, "here", "now", "live"),
        ([True, False], None, "here", "now", "crashed"),
        ([True, False], 2000.0, "here", "now", "crashed"),  # the pid is someone else's by now
        ([True, False], 1000.0, "here", "before", "crashed"),
        ([True, False], 1000.0, "there", "now", "unknown"),
        ([], 1000.0, "here", "now", "live"),
        ([], None, "here", "now", "finished"),
    ],
)
def test_state(tmp_path, ended, alive_since, host, boot, expected):
    run = RunBuilder(tmp_path, host=host, boot_id=boot)
    for number, each in enumerate(ended):
        run.process(4000, number, each, host=host, boot_id=boot, create_time=1000.5)
    liveness = Liveness("here", "now", lambda pid: alive_since if pid == 4000 else None)
    assert read_run(run.path, liveness).state == expected


def test_system_columns_follow_the_recording_machine(run):
    run.process().loader(loop(1))
    gpus = [{"index": 0, "name": "Big"}, "nonsense"]
    run.system([{"t_ns": T0, "cpu_user_pct": 12.5}], gpus=gpus, affinity=[0, 1, 2])
    system = open_run(run.path).systems[0]
    assert system.machine["cpu_user_pct"].tolist() == [12.5]
    assert (system.affinity, [gpu.name for gpu in system.gpus]) == (3, ["Big"])


def test_the_host_of_a_process_is_one_that_does_not_deny_it_and_was_sampled(run):
    run.process().loader(loop(3))
    run.system(machine=[{"t_ns": T0}])
    found = open_run(run.path)
    (process,), (sampled,) = found.processes, found.systems
    idle = replace(sampled, machine=sampled.gpu)  # its sampler has written nothing yet
    assert sampled.machine.rows and not idle.machine.rows
    other, later = replace(sampled, host="another"), replace(sampled, boot_id="after a restart")
    unnamed = replace(sampled, host=None, boot_id=None)

    def of(*systems):
        return replace(found, systems=systems).host_of(process)

    assert of(other, later, sampled) is sampled
    assert of(other, idle, sampled) is sampled
    assert of(other, idle) is idle
    assert of(other, unnamed) is unnamed
    assert of(other, later) is None and of() is None
    assert replace(found, systems=(idle, other)).first_host is other
    several = replace(found, systems=(other, unnamed, sampled))
    assert several.samplers_of(process) == (unnamed, sampled)


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
def test_batches_an_epoch(config, expected):
    assert batches_an_epoch(config) == expected


@pytest.mark.parametrize(
    ("count", "told", "how"),
    [
        (3, {}, 1),  # all it has was handed over
        (2, {}, -1),  # it was left
        (3, {"how": 3, "batches": 3, "t_end_ns": 5}, 3),  # what was seen stands
    ],
)
def test_what_handed_over_all_it_has_is_over(tmp_path, count, told, how):
    run = RunBuilder(tmp_path)
    rows = loop(count)
    row = epoch_row(rows, **{"how": -1, "batches": 0, "t_end_ns": -1, **told})
    run.process().loader(rows, epochs=[row], config=PLAIN)
    loader = open_run(run.path).loaders[0]
    epochs = loader.epochs
    assert (epochs["how"][0], epochs["batches"][0]) == (how, count)
    last = int(loader.batches["t_ns"][-1] + loader.batches["wait_ns"][-1])
    assert epochs["t_end_ns"][0] == told.get("t_end_ns", last if how == 1 else -1)


def test_batches_a_stream_makes_itself_are_of_nobody_knows_how_many_samples(tmp_path):
    run = RunBuilder(tmp_path)
    config = {"batching": "none", "batch_size": None, "dataset_kind": "iterable"}
    run.process().loader(loop(30), config=config)
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
def test_ray_ends_its_workers_from_outside(tmp_path, argv, how, state):
    run = RunBuilder(tmp_path)
    rows = loop(30)
    run.process(ended=False, argv=[argv]).loader(rows, epochs=[epoch_row(rows, how=how)])
    read = read_run(run.path, Liveness("elsewhere", "boot", lambda pid: None))
    assert read.state == state
