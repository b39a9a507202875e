"""Lanes in memory that a keeper brings to files: nothing lost, torn, or hurt by a file."""

import os
import socket
import struct
import threading
from pathlib import Path

import numpy as np
import pytest

from loaderscope.profiler.base.batch_record import Part
from loaderscope.profiler.base.schema import BATCH, WORKER
from loaderscope.profiler.daemon.keeper import Keeper
from loaderscope.profiler.record.session.start_sampler import _keeper_socket
from loaderscope.profiler.store.lanes import arena
from loaderscope.profiler.store.lanes.arena import FIRST_CHUNK_BYTES, Arena
from loaderscope.profiler.store.lanes.block import Copier
from loaderscope.profiler.store.lanes.columns import read_lane
from loaderscope.profiler.store.lanes.lane import LARGEST_BLOCK_BYTES, WINDOW_AT, Budget, Lane
from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.segment_file import SegmentFile, segment_path, segments
from started import until

pytestmark = pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason="no sealed memory on this platform"
)


class Place:
    """A process's folder in a run, an arena for it, and a keeper in this very process."""

    def __init__(self, run):
        self.system, self.folder = run / "system-here-0", run / "p1-0"
        self.system.mkdir()
        self.folder.mkdir()
        listening = _keeper_socket(self.system)
        self.keeper = Keeper(run, self.system, listening.detach())
        self.arena = Arena(self.folder, self.system, os.getpid())
        self.said = []

    def lane(self, name="workers", schema=WORKER, limit=1 << 26):
        return Lane(self.folder, name, schema, Budget(limit), self.said.append, arena=self.arena)

    def rows(self, name="workers"):
        return read_lane(self.folder, name, WORKER).columns["seq"].tolist()


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path)
    yield made
    made.arena.close()
    made.keeper.close()


def write(lane, count):
    for number in range(count):
        lane.append(number, 0, 0, 0, number)


def test_a_window_used_again_holds_blank_records(place):
    lane = place.lane("batches0x0", BATCH)
    for number in range(2000):
        lane.append(number, *[-1] * (len(BATCH.fields) - 2))
    # Now as the hot path does it: the head alone.
    for _ in range(3000):
        n = lane.count
        if n >= lane.capacity:
            n = lane.roll()
        struct.pack_into("@2q", lane.buf, WINDOW_AT + n * lane.size, lane.first + n, 77)
        lane.committed[0] = n + 1
        lane.count = n + 1
    place.keeper.round()
    paths = segments(place.folder, "batches0x0")
    records = np.concatenate([read_segment(path)[0] for path in paths])
    assert (records["seq"] == np.arange(1, 5001)).all()
    assert (records["t_ns"][2000:] == 77).all()
    own = records["own_ns"][2000:]
    moved_on = ~np.isnan(own)  # the first record of each window says what that cost
    assert 1 < moved_on.sum() < 50 and (own[moved_on] > 0).all()
    own[moved_on] = np.nan
    for name in BATCH.fields[2:]:
        tail = records[name.name][-1000:]
        assert np.isnan(tail).all() if name.code == "f" else (tail == -1).all(), name.name


def test_a_patch_reaches_the_file_before_and_after_the_window_moved_on(place):
    lane, pid = place.lane(), Part("pid", schema=WORKER)
    row, window = lane.append(1, 0, 0, 0, 1), lane.window
    for more, value in ((2, 4711), (3000, 4712)):
        write(lane, more)
        place.keeper.round()
        window.patch([pid.patch(row, value)])
        place.keeper.round()
        assert read_segment(segments(place.folder, "workers")[0])[0]["pid"][0] == value


def test_the_keeper_copies_while_the_lane_goes_on(place):
    lane = place.lane()
    stop = threading.Event()

    def keep():
        while not stop.is_set():
            place.keeper.round()

    thread = threading.Thread(target=keep)
    thread.start()
    try:
        for number in range(60_000):
            lane.append(number, 0, 0, 0, number)
            if number % 20_000 == 0:
                # For a moment, until it is settled, a late copy may take back what was flushed.
                until(lambda: (seen := place.rows()) == [*range(1, len(seen) + 1)], "rows in order")
    finally:
        stop.set()
        thread.join()
    place.keeper.round()
    assert place.rows() == list(range(1, 60_001))
    assert len(segments(place.folder, "workers")) > 2
    assert lane.window is not None and len(lane.window.buf) == LARGEST_BLOCK_BYTES


def test_a_copy_that_comes_late_does_not_take_back_what_was_flushed(place):
    """The copier has read the window, the lane flushes, and only then the copier writes."""
    lane = place.lane()
    lane.append(0, 0, 0, 0, 0)
    place.arena.flush()
    chunk, _ = place.arena._chunks[0]
    late = Copier(chunk, str(place.folder))
    (at,) = (one for one in late.blocks() if late._head(one).state)
    head, path = late._head(at), segment_path(place.folder, "workers", 0)
    file = SegmentFile(path, WORKER, head.file_capacity, head.file_first)
    records = bytes(chunk[at + WINDOW_AT : at + WINDOW_AT + WORKER.size])
    write(lane, 100)
    flushed = len(place.rows())
    assert flushed > 1
    file.write(head.position, records, head.position + head.committed)
    assert len(place.rows()) == 1  # what the late copy has done
    late._settle(at, head, file)
    assert len(place.rows()) == flushed
    place.keeper.round()
    assert place.rows() == list(range(1, 102))


def test_a_removed_file_begins_another(place):
    lane = place.lane()
    write(lane, 100)
    place.keeper.round()
    (path,) = segments(place.folder, "workers")
    path.unlink()
    write(lane, 3000)
    place.keeper.round()
    rows = place.rows()
    assert lane.stopped is None and rows[-1] == 3100
    assert rows == list(range(rows[0], 3101))


def test_a_thousand_small_lanes_need_little_memory_and_few_maps(place):
    def maps():
        return len(Path("/proc/self/maps").read_text().splitlines())

    def lanes(name, count):
        made = [place.lane(f"{name}{number}") for number in range(count)]
        for lane in made:
            write(lane, 1)
        return made

    for number in range(300):  # memory of a closed lane is used again
        for lane in lanes(f"closed{number}x", 1):
            lane.close()
    assert [len(chunk) for chunk, _ in place.arena._chunks] == [FIRST_CHUNK_BYTES]
    before = maps()
    lanes("epochs", 1000)
    assert sum(len(chunk) for chunk, _ in place.arena._chunks) <= 4 << 20
    assert maps() - before <= 20
    place.keeper.round()
    assert all(place.rows(f"epochs{number}") == [1] for number in range(0, 1000, 7))


def test_a_keeper_that_died_is_given_up(place, monkeypatch):
    lane = place.lane()
    write(lane, 3)
    place.arena._keeper_pid = 2**22 + 17  # no such process
    write(lane, 100)
    assert place.arena.kept()  # it was here a moment ago
    monkeypatch.setattr(arena, "SILENT_NS", 0)
    write(lane, 3000)
    assert not place.arena.kept()
    assert place.rows() == list(range(1, 3104))  # each record was written at once


@pytest.mark.parametrize("why", ["No space left", "No such file"])
def test_a_full_disk_or_a_removed_folder_stops_the_lane(place, monkeypatch, why):
    lane, gone = place.lane(), place.folder.with_name("gone")
    write(lane, 3)
    if why == "No space left":
        monkeypatch.setattr(os, "pwrite", lambda fd, data, at: 0)
    else:
        place.folder.rename(gone)
    write(lane, 3000)
    assert lane.stopped is not None and why in lane.stopped
    assert len(place.said) == 1
    if gone.exists():
        gone.rename(place.folder)


def test_foreign_messages_are_not_taken(place):
    sending = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    address = str(place.system / "keeper")
    plain = os.memfd_create("plain", os.MFD_CLOEXEC)
    os.ftruncate(plain, 1 << 16)
    above = b'{"directory": "../p1-0", "bytes": 65536}'
    refused = (b"", b"{}", b"[]", above, b'{"directory": "p1-0", "bytes": -1}')
    with sending, open(__file__, "rb") as file:
        for message in refused:
            for fd in (plain, file.fileno()):
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", fd))]
                sending.sendmsg([message], rights, 0, address)
        sending.sendto(b"no descriptor", address)
    os.close(plain)
    write(place.lane(), 3)  # the keeper has too much to look at to take this now
    place.keeper.round()
    assert place.arena.kept()
    place.keeper.round()
    assert (place.rows(), len(place.keeper._kept)) == ([1, 2, 3], 1)
