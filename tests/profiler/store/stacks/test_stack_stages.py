"""The stage of a stack, from stacks as py-spy shows them in real runs."""

import pytest

from loaderscope.profiler.store.inspection import Part
from loaderscope.profiler.store.stacks.stack_samples import Frame
from loaderscope.profiler.store.stacks.stack_stages import (
    Collate,
    collate_of,
    collating_frames,
    place,
)

TORCH = "/env/lib/python3.11/site-packages/torch/utils/data/"
LIB = "/usr/lib/python3.11/"
OURS = "/env/lib/python3.11/site-packages/loaderscope/profiler/"


def frame(text: str) -> Frame:
    """`function file:line`, with the usual folders abbreviated; a leading * marks compiled code."""
    function, _, place_ = text.removeprefix("*").partition(" ")
    file, _, line = place_.rpartition(":")
    for short, long in (("T/", TORCH), ("L/", LIB), ("O/", OURS), ("U/", "/home/me/")):
        if file.startswith(short):
            file = long + file[2:]
    return Frame(function, file, int(line), text.startswith("*"))


def frames(text: str) -> list[Frame]:
    return [frame(line.strip()) for line in text.strip().splitlines() if line.strip()]


FORKED = """
    <module> U/train.py:35
    DataLoader.__iter__ T/dataloader.py:505
    _MultiProcessingDataLoaderIter.__init__ T/dataloader.py:1176
    Popen._launch L/multiprocessing/popen_fork.py:71
    BaseProcess._bootstrap L/multiprocessing/process.py:314
    run_worker O/worker.py:49
"""
SPAWNED = """
    <module> <string>:1
    spawn_main L/multiprocessing/spawn.py:122
    BaseProcess._bootstrap L/multiprocessing/process.py:314
    run_worker O/worker.py:49
"""
LOOP = "_worker_loop T/_utils/worker.py:374\n"
MAP = LOOP + "_MapDatasetFetcher.fetch T/_utils/fetch.py:54\n"
LIST = MAP + "_MapDatasetFetcher.fetch.<locals>.<listcomp> T/_utils/fetch.py:54\n"
LATE = LOOP + "_MapDatasetFetcher.fetch T/_utils/fetch.py:57\n"
FEED = """
    Thread._bootstrap L/threading.py:1002
    Thread._bootstrap_inner L/threading.py:1045
    Thread.run L/threading.py:982
    Queue._feed L/multiprocessing/queues.py:244
"""
NEXT = "<module> U/train.py:9\n_BaseDataLoaderIter.__next__ T/dataloader.py:725\n"
SINGLE = NEXT + "_SingleProcessDataLoaderIter._next_data T/dataloader.py:790\n"
GET = (
    NEXT
    + """_MultiProcessingDataLoaderIter._next_data T/dataloader.py:1505
    _MultiProcessingDataLoaderIter._try_get_data T/dataloader.py:1291
    Queue.get L/multiprocessing/queues.py:122
"""
)

CASES = [
    # a worker's main thread
    (
        FORKED + LIST + "Set.__getitem__ U/data.py:14\nload U/png.py:3",
        True,
        "fetch",
        ["Set.__getitem__", "load"],
    ),
    (SPAWNED + LIST + "Set.__getitem__ U/data.py:14", True, "fetch", ["Set.__getitem__"]),
    (SPAWNED + MAP + "Set.__getitems__ U/data.py:18", True, "fetch", ["Set.__getitems__"]),
    (
        SPAWNED + LOOP + "fetch T/_utils/fetch.py:33\n__iter__ U/data.py:14",
        True,
        "fetch",
        ["__iter__"],
    ),
    (
        SPAWNED + LATE + "default_collate T/_utils/collate.py:401",
        True,
        "collate",
        ["default_collate"],
    ),
    (SPAWNED + LATE + "pad U/data.py:44\nstack U/data.py:70", True, "collate", ["pad", "stack"]),
    (
        SPAWNED + LATE + "wrapper U/timing.py:4\npad U/data.py:44",
        True,
        "collate",
        ["wrapper", "pad"],
    ),
    (
        SPAWNED + LIST + "Set.__getitem__ U/data.py:14\ncollate T/_utils/collate.py:7",
        True,
        "fetch",
        ["Set.__getitem__", "collate"],
    ),
    (SPAWNED + MAP, True, "fetch", []),
    (
        FORKED + LOOP + "Queue.get L/multiprocessing/queues.py:113\n_poll "
        "L/multiprocessing/connection.py:440",
        True,
        "idle",
        [],
    ),
    (
        FORKED + LOOP + "IndexQueue.get O/worker.py:130\nQueue.get L/multiprocessing/queues.py:113",
        True,
        "idle",
        [],
    ),
    (
        FORKED
        + LOOP
        + "ResultQueue.put O/worker.py:130\nQueue.put L/multiprocessing/queues.py:96\n"
        "notify L/threading.py:382",
        True,
        "pack",
        ["notify"],
    ),
    (FORKED + LOOP + "seed_all U/data.py:90", True, "other", ["seed_all"]),
    (
        FORKED + "Thread.run L/threading.py:982\nread_ahead U/data.py:99",
        True,
        "other",
        ["read_ahead"],
    ),
    # a loader used inside a data set: the outer fetch is the stage
    (
        FORKED + LIST + "Set.__getitem__ U/data.py:14\n_BaseDataLoaderIter.__next__ "
        "T/dataloader.py:725\n"
        "_MapDatasetFetcher.fetch T/_utils/fetch.py:57\ndefault_collate T/_utils/collate.py:401",
        True,
        "fetch",
        [
            "Set.__getitem__",
            "_BaseDataLoaderIter.__next__",
            "_MapDatasetFetcher.fetch",
            "default_collate",
        ],
    ),
    # compiled frames do not hide the stage; ours are left out
    (
        FORKED + "*0x7f L/libc.so:0\n" + LIST + "*slot L/libpython.so:0\nSet.__getitem__ "
        "U/data.py:14\n*inflate libz.so:0",
        True,
        "fetch",
        ["slot", "Set.__getitem__", "inflate"],
    ),
    (
        FORKED + LIST + "Timed.__call__ O/looks.py:5\n*taking_call "
        "O/_hot.cpython-311.so:0\nSet.__getitem__ U/data.py:14",
        True,
        "fetch",
        ["Set.__getitem__"],
    ),
    # its feeder thread
    (
        FEED + "ForkingPickler.dumps L/multiprocessing/reduction.py:51",
        True,
        "pack",
        ["ForkingPickler.dumps"],
    ),
    (FEED, True, "pack", []),
    (FEED + "Condition.wait L/threading.py:327", True, "idle", []),
    (FEED + "Condition.wait L/threading.py:327", False, "other", []),
    # main
    (
        SINGLE + "_MapDatasetFetcher.fetch T/_utils/fetch.py:54\nSet.__getitem__ U/data.py:14",
        False,
        "fetch",
        ["Set.__getitem__"],
    ),
    (
        SINGLE + "_MapDatasetFetcher.fetch T/_utils/fetch.py:57\npad U/data.py:44",
        False,
        "collate",
        ["pad"],
    ),
    (SINGLE + "pin_memory T/_utils/pin_memory.py:66", False, "pin", ["pin_memory"]),
    (GET, False, "wait", []),
    (
        GET + "rebuild_storage_fd /env/torch/multiprocessing/reductions.py:538",
        False,
        "wait",
        ["rebuild_storage_fd"],
    ),
    (
        GET
        + "_poll L/multiprocessing/connection.py:440\nselect L/selectors.py:415\n*poll libc.so:0",
        False,
        "wait",
        [],
    ),
    (NEXT + "record_function.__exit__ /env/torch/autograd/profiler.py:943", False, "wait", []),
    (
        NEXT + "_BaseDataLoaderIter._next_index T/dataloader.py:690\nMine.__iter__ U/sampler.py:3",
        False,
        "index",
        ["Mine.__iter__"],
    ),
    ("<module> U/train.py:9\nDataLoader.__iter__ T/dataloader.py:505", False, "wait", []),
    (
        "<frozen> <frozen runpy>:198\n<module> U/train.py:9\nstep U/train.py:3",
        False,
        "compute",
        ["<module>", "step"],
    ),
    ("run_script O/launch.py:5\n<module> U/train.py:9", False, "compute", ["<module>"]),
    (
        "<module> <string>:1\nspawn_main L/multiprocessing/spawn.py:122\n_bootstrap "
        "L/multiprocessing/process.py:314\n"
        "run L/multiprocessing/process.py:108\n_wrap /env/torch/multiprocessing/spawn.py:95\ntrain "
        "U/train.py:3",
        False,
        "compute",
        ["train"],
    ),
    (
        "Thread.run L/threading.py:982\n_pin_memory_loop T/_utils/pin_memory.py:50\npin_memory "
        "T/_utils/pin_memory.py:66",
        False,
        "pin",
        ["pin_memory"],
    ),
    (
        "Thread.run L/threading.py:982\n_pin_memory_loop T/_utils/pin_memory.py:50\nget "
        "L/multiprocessing/queues.py:1",
        False,
        "pin",
        [],
    ),
    ("", False, "compute", []),
    ("", True, "other", []),
]

PAD = Collate("pad", "/home/me/data.py", 40, 60)


@pytest.mark.parametrize(("stack", "worker", "stage", "kept"), CASES)
def test_stages(stack, worker, stage, kept):
    found = frames(stack)
    placed = place(
        found, "MainThread", worker, [PAD], lambda one: "/loaderscope/profiler/" in one.file
    )
    assert (placed.stage, [found[at].function for at in placed.kept]) == (stage, kept)


def test_the_same_by_names_without_a_class():
    found = frames(SPAWNED + LIST)
    stack = [Frame(f.function.rpartition(".")[2], f.file, f.line) for f in found]
    item = Frame("__getitem__", "/home/me/data.py", 3)
    assert place([*stack, item], "MainThread", True).stage == "fetch"


def test_other_threads_of_main_compute_nothing_but_load():
    assert place(frames("work U/train.py:3"), "Thread-3 (work)", False).stage == "other"
    assert place(frames(GET), "Thread-3 (train)", False).stage == "wait"


def test_a_folder_that_only_looks_like_torch_s():
    mine = [Frame("fetch", "/home/mytorch/utils/data/_utils/fetch.py", 54)]
    assert place([*frames(SPAWNED + LOOP), *mine], "MainThread", True).stage == "other"


@pytest.mark.parametrize(
    ("part", "config", "collate"),
    [
        (None, {}, None),
        (None, {"collate_fn": "train.pad"}, Collate("pad")),
        (
            Part("train.pad", "pad", file="t.py", line=4, call=("def pad():", " x")),
            {},
            Collate("pad", "t.py", 4, 5),
        ),
        (Part("lib.Pad", "Pad", file="/env/lib.py", line=4), {}, Collate("Pad", "/env/lib.py", 4)),
        (
            Part("train.pad", "pad", file="t.py", line=4, call=("x",) * 200),
            {},
            Collate("pad", "t.py", 4, None),
        ),
    ],
)
def test_how_a_collate_function_is_recognised(part, config, collate):
    assert collate_of(part, config) == collate


def test_it_is_recognised_by_what_is_known_of_it():
    by_line, by_name, by_config = (
        Collate("<lambda>", "t.py", 4, 5),
        Collate("Pad", "t.py", 4),
        Collate("pad"),
    )
    assert by_line.is_in(Frame("<lambda>", "t.py", 5))
    assert not by_line.is_in(Frame("<lambda>", "t.py", 6))
    assert by_name.is_in(Frame("Pad.__call__", "t.py", 90))
    assert not by_name.is_in(Frame("Set.load", "t.py", 90))
    assert by_config.is_in(Frame("pad", "anywhere.py", 1))
    assert not by_config.is_in(Frame("load", "anywhere.py", 1))


def collating(*stacks, one_loader=True):
    placed = [
        (place(frames(SPAWNED + text), "MainThread", True), samples) for text, samples in stacks
    ]
    return {(one.line) for one in collating_frames(placed, one_loader)}


def test_a_collate_function_without_frames_is_told_by_the_line_that_calls_it():
    get, torch_collate = (
        LIST + "Set.__getitem__ U/data.py:14",
        LATE + "default_collate T/_utils/collate.py:401",
    )
    assert collating((get, 50), (torch_collate, 9), (LATE, 3)) == {57}
    known = frozenset([frame(LATE.split("\n")[1])])
    assert place(frames(SPAWNED + LATE), "MainThread", True, collating=known).stage == "collate"
    # A stack read in the middle of a change shows the wrong line: it counts for nothing.
    assert collating((get, 50), (LATE + "Set.__getitem__ U/data.py:14", 1), (torch_collate, 9)) == {
        57
    }
    assert collating((get, 50), (MAP + "default_collate T/_utils/collate.py:1", 1)) == set()


def test_an_unknown_collate_function_is_told_by_being_called_later():
    get, unknown = LIST + "Set.__getitem__ U/data.py:14", LATE + "mystery U/other.py:4"
    assert collating((get, 50), (unknown, 20)) == {57}
    assert collating((get, 50), (unknown, 20), one_loader=False) == set()
    assert collating((get, 50), (LATE, 20)) == {57}
    assert collating((get, 50)) == set()
    before = LOOP + "_MapDatasetFetcher.fetch T/_utils/fetch.py:52\n"
    assert collating((get, 500), (before + "Set.__getitem__ U/data.py:14", 3)) == set()
