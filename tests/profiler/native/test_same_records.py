"""Both forms of the hot path write the same records: every field, of every kind of loader."""

import functools
import math
import queue
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import two_forms
from loaderscope.profiler.base.schema import BATCH
from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.segment_file import segments

pytestmark = pytest.mark.skipif(
    two_forms.available() == ["python"], reason="there is one form only"
)

EPOCHS, ROWS, BATCH_SIZE = 2, 200, 3
BATCHES = -(-ROWS // BATCH_SIZE)

# What is known before: the same in both forms, value by value.
KNOWN = (
    *("seq", "samples", "epoch", "task", "worker", "flags", "digest"),
    *(field.name for field in BATCH.fields if field.name.startswith("h2d_")),
    *("compute_device_ns", "stall_ns"),
)
OF_THE_ORDER = ("seq", "samples", "worker", "compute_ns", "digest")  # in which the batches come
# Which are looked at in detail depends on how long they took: measured in both, or in neither.
DETAIL = (
    *("fetch_cpu_ns", "collate_cpu_ns", "bytes", "tensors", "own_ns"),
    *("sample_min_ns", "sample_median_ns", "sample_max_ns"),
)
# Whatever else there is was measured in both, or in neither.


class Slow(torch.utils.data.Dataset[torch.Tensor]):
    """Of which every sample takes long enough for all batches to be looked at in detail."""

    def __len__(self):
        return 50

    def __getitem__(self, index):
        time.sleep(0.0006)  # two of them: longer than ALWAYS_DETAILED_NS
        return torch.full((4,), float(index))


BATCHED = functools.partial(DataLoader, batch_size=BATCH_SIZE)
MAKE = {
    "plain": BATCHED,
    "pinned": functools.partial(BATCHED, pin_memory=True),
    "any order": functools.partial(BATCHED, in_order=False),
    "stateful": functools.partial(StatefulDataLoader, batch_size=BATCH_SIZE),
    "unbatched": functools.partial(BATCHED, batch_size=None),
}


@pytest.fixture
def pinning(monkeypatch):
    """A device that is none: torch pins what it hands over, and pinning copies."""
    told = {"is_available": True, "current_accelerator": torch.device("cuda")}
    for name, value in (told | {"set_device_index": None, "current_device_index": 0}).items():
        monkeypatch.setattr(torch.accelerator, name, lambda *more, value=value: value)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor, *device: tensor.clone())


def recorded(form, kind, rows, workers):
    """(the batches, their records), in this form."""
    with two_forms.form(form) as imported:
        watch = imported("profiler.record.iterate.watch")
        loader = watch.watch(MAKE[kind](rows, num_workers=workers), name=form)
        values = [batch.tolist() for _ in range(EPOCHS) for batch in loader]
        directory, index = watch.loader_place(loader)
        imported("profiler.record.session.session").flush()
        lanes = segments(directory, f"batches{index}x0")
        return values, np.concatenate([read_segment(path)[0] for path in lanes])


def measured(column):
    return ~np.isnan(column) if column.dtype.kind == "f" else column != -1


@pytest.mark.filterwarnings("ignore:'set_vital':UserWarning")  # torchdata calls it
@pytest.mark.parametrize(
    ("kind", "workers"),
    [("plain", 0), ("unbatched", 0), ("stateful", 0), *((kind, 2) for kind in MAKE)],
)
def test_every_field_of_every_record(kind, workers, pinning):
    rows = torch.arange(ROWS * 4, dtype=torch.float32).reshape(ROWS, 4)
    (values, got), (values_too, got_too) = (
        recorded(form, kind, rows, workers) for form in two_forms.available()
    )
    in_turn = kind != "any order" or not workers  # else the workers' speed decides on the order
    if in_turn:
        assert values == values_too
    else:
        got, got_too = (np.sort(each, order=["epoch", "task"]) for each in (got, got_too))
    assert len(got) == len(got_too) == EPOCHS * (ROWS if kind == "unbatched" else BATCHES)
    for name in got.dtype.names:
        ours, theirs = got[name], got_too[name]
        if name in ("unpack_ns", "pin_ns") and kind == "pinned" and workers:
            # The thread that pins waits for its first messages before envelopes are opened.
            ours, theirs = (each[name][each["task"] >= 4] for each in (got, got_too))
        if name in DETAIL:
            assert measured(ours).any() == measured(theirs).any(), name
        elif name in KNOWN and (in_turn or name not in OF_THE_ORDER):
            assert ours.tolist() == theirs.tolist(), name
        elif in_turn or name not in OF_THE_ORDER:
            assert measured(ours).tolist() == measured(theirs).tolist(), name
    for one in (got, got_too):
        assert (one["wait_ns"] > 0).all() and (np.diff(np.sort(one["t_ns"])) > 0).all()
        pinned = (one["pin_ns"] >= 0)[one["task"] >= 4 if workers else ...]
        assert pinned.all() == (kind == "pinned")
        if workers:
            assert len(set(one["worker_pid"].tolist())) == EPOCHS * workers or not in_turn
            assert (one["outstanding"] >= 0).all() and (one["ready"] >= 0).all()
            assert (one["queued_ns"] >= 0).all()
            assert one["pickled_bytes"].tolist() == got["pickled_bytes"].tolist()


def test_every_field_where_all_batches_are_looked_at():
    (values, got), (values_too, got_too) = (
        recorded(form, "plain", Slow(), 2) for form in two_forms.available()
    )
    assert values == values_too
    for name in got.dtype.names:
        assert measured(got[name]).tolist() == measured(got_too[name]).tolist(), name
    for name in ("bytes", "tensors", *KNOWN):
        assert got[name].tolist() == got_too[name].tolist(), name
    assert set(got["bytes"].tolist()) == {BATCH_SIZE * 16, (50 % BATCH_SIZE) * 16}


NAMES = [field.name for field in BATCH.fields]
AS_READ = {"names": NAMES, "formats": [np.dtype(field.code) for field in BATCH.fields]}
AS_READ |= {"offsets": [BATCH.offset(name) for name in NAMES], "itemsize": BATCH.size}


class Received:
    """The shape of torch's iterator with workers, handing on what it is given."""

    _ls = None
    _auto_collation, _num_workers = True, 2
    _send_idx, _rcvd_idx, _tasks_outstanding = 9, 2, 4

    def __init__(self, arrivals, pins, in_order):
        self._arrivals, self._pin_memory, self._in_order = arrivals, pins, in_order
        self._worker_result_queue, self._data_queue = queue.Queue(), queue.Queue()

    def _reset(self, loader, first_iter=False): ...

    def _next_index(self):
        return [1, 2, 3]

    def _process_data(self, data, worker):
        self._worker_result_queue.queue.clear()  # whoever asks how many wait must have done so
        self._next_index()
        return data

    def __next__(self):
        return self._process_data(self._arrivals.pop(0), 1)


@pytest.mark.parametrize("form", two_forms.available())
@pytest.mark.parametrize("pins", [False, True])
@pytest.mark.parametrize("in_order", [False, True])
def test_a_received_record_field_by_field(form, pins, in_order):
    with two_forms.form(form) as imported:
        layout, lanes = imported("profiler.native.layout"), imported("profiler.store.lanes.lane")
        recorder = imported("profiler.record.iterate.recorder")
        envelope = imported("profiler.record.transit.envelope")
        times = layout.TIMES.pack(7, 1000, 200, 30, 150, 25, 4096, 9, 3, 4321, 1, 1.5, 2.5, 3.5)
        # One is sent in the future: queued for no time.
        sent = [layout.SENT.pack(55, *each) for each in ((1 << 62, 640), (-1, -1))]
        metas = [layout.MARK + times + each for each in sent]
        arrived, waits = (envelope.unwrap((layout.SEAL, "batch", each), 70) for each in metas)
        arrived.pin_ns = 80 if pins else -1
        made = imported("profiler.record.iterate.iterators").instrumented(Received, quiet=False)
        iterator = made([arrived, waits, "bare"], pins, in_order)
        iterator._worker_result_queue.queue.extend("ab")
        iterator._data_queue.queue.extend("cde")
        lane = lanes.Lane(Path(), "test", BATCH, lanes.Budget(0), pytest.fail)
        lane.buf, lane.capacity = bytearray(lanes.WINDOW_AT) + bytearray(BATCH.blank * 3), 3
        iteration = imported("profiler.record.iterate.iteration")
        step = iterator._ls = iteration.Iteration(recorder.Recorder("test", "none", {}, {}))
        step.take(lane)
        step.detailed = step.special = step.looks = None
        step.epoch = 5
        step.drawn.update({7: (44, 3)})
        assert [next(iterator), next(iterator), next(iterator)] == ["batch", "batch", "bare"]
        assert arrived.payload is None and list(step.drawn) == [9] and step.drawn[9][1] == 3
        first, second, bare = np.frombuffer(lane.buf[lanes.WINDOW_AT :], np.dtype(AS_READ))
    known = dict.fromkeys(first.dtype.names, -1)
    known |= {"seq": 1, "epoch": 5, "index_ns": 44, "samples": 3, "own_ns": math.nan}
    known |= {"task": 7, "worker_pid": 4321, "worker": 1, "t_fetch_ns": 1000, "fetch_ns": 200}
    known |= {"collate_ns": 30, "fetch_cpu_ns": 150, "collate_cpu_ns": 25}
    known |= {"bytes": 4096, "tensors": 3, "pickled_bytes": 640, "outstanding": 4}
    known |= {"sample_min_ns": 1.5, "sample_median_ns": 2.5, "sample_max_ns": 3.5}
    known |= {"pack_ns": 55, "queued_ns": 0, "unpack_ns": 70, "pin_ns": 80 if pins else -1}
    early = 3 * pins + 3 * in_order
    np.testing.assert_equal(fields(first), known | {"ready": 2 + early})
    unsent = dict.fromkeys(("pack_ns", "queued_ns", "pin_ns", "pickled_bytes"), -1)
    again = {"seq": 2, "index_ns": -1, "samples": -1, "ready": early}
    np.testing.assert_equal(fields(second), known | unsent | again)
    floats = (name for name in known if first[name].dtype.kind == "f")
    nothing = dict.fromkeys(known, -1) | dict.fromkeys(floats, math.nan)
    np.testing.assert_equal(fields(bare), nothing | {"seq": 3, "epoch": 5})


def fields(record):
    """Its values; `t_ns` and `wait_ns` count as unmeasured, once they are seen to be measured."""
    values = {name: record[name].item() for name in record.dtype.names}
    assert values["t_ns"] > 0 and values["wait_ns"] > 0
    return values | {"t_ns": -1, "wait_ns": -1}
