"""The stage of a stack, from stacks as py-spy shows them in real runs."""

import pytest

from loaderscope.profiler.store.inspection import Part
from loaderscope.profiler.store.stacks import stack_stages
from loaderscope.profiler.store.stacks.stack_samples import Frame
from loaderscope.profiler.store.stacks.stack_stages import Collate, collate_of, collating_frames

SITE = "/env/lib/python3.11/site-packages/"
FOLDERS = {"T/": SITE + "torch/utils/data/", "L/": "/usr/lib/python3.11/", "U/": "/home/me/"}
FOLDERS["O/"] = SITE + "loaderscope/profiler/"


def frames(text):
    """A line each: `function file:line`, with the usual folders abbreviated."""
    found = []
    for each in filter(None, map(str.strip, text.splitlines())):
        function, _, place_ = each.partition(" ")
        file, _, line = place_.rpartition(":")
        file = FOLDERS.get(file[:2], file[:2]) + file[2:]
        found.append(Frame(function, file, int(line)))
    return found


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
MODULE = "<module> U/train.py:9\n"
NEXT = MODULE + "_BaseDataLoaderIter.__next__ T/dataloader.py:725\n"
INDEX = "_BaseDataLoaderIter._next_index T/dataloader.py:690\n"
INNER = "next T/dataloader.py:725\nfetch T/_utils/fetch.py:57\n"
PUT = "ResultQueue.put O/worker.py:130\nQueue.put L/multiprocessing/queues.py:96\n"
PUT += "notify L/threading.py:382\n"
WRAP = "_wrap /env/torch/multiprocessing/spawn.py:95\n"
SINGLE = NEXT + "_SingleProcessDataLoaderIter._next_data T/dataloader.py:790\n"
GET = NEXT + "_MultiProcessingDataLoaderIter._try_get_data T/dataloader.py:1291\n"
ITEM, OWN = "Set.__getitem__ U/data.py:14\n", "pad U/data.py:44\n"
COLLATE = "default_collate T/_utils/collate.py:401\n"
POLL = "_poll L/multiprocessing/connection.py:440\n"
WAIT = "Condition.wait L/threading.py:327\n"
TAKE = "Queue.get L/multiprocessing/queues.py:113\n"
PINS = "Thread.run L/threading.py:982\n_pin_memory_loop T/_utils/pin_memory.py:50\n"
PIN = "pin_memory T/_utils/pin_memory.py:66\n"
SPAWN_MAIN = "<module> <string>:1\nspawn_main L/multiprocessing/spawn.py:122\n"
PROCESS = "_bootstrap L/multiprocessing/process.py:314\nrun L/multiprocessing/process.py:108\n"

# Stage, stack, and the functions that are kept of it.
OF_WORKERS = [
    ("fetch", FORKED + LIST + ITEM + "load U/png.py:3", "Set.__getitem__ load"),
    ("fetch", SPAWNED + MAP + "Set.__getitems__ U/data.py:18", "Set.__getitems__"),
    ("fetch", SPAWNED + LOOP + "fetch T/_utils/fetch.py:33\n__iter__ U/data.py:14", "__iter__"),
    ("collate", SPAWNED + LATE + COLLATE, "default_collate"),
    ("collate", SPAWNED + LATE + OWN + "stack U/data.py:70", "pad stack"),
    ("collate", SPAWNED + LATE + "wrapper U/timing.py:4\n" + OWN, "wrapper pad"),
    ("fetch", SPAWNED + LIST + ITEM + "collate T/_utils/collate.py:7", "Set.__getitem__ collate"),
    ("fetch", SPAWNED + MAP, ""),
    ("idle", FORKED + LOOP + TAKE + POLL, ""),
    ("pack", FORKED + LOOP + PUT, "notify"),
    ("other", FORKED + LOOP + "seed_all U/data.py:90", "seed_all"),
    ("other", FORKED + "Thread.run L/threading.py:982\nread_ahead U/data.py:99", "read_ahead"),
    # a loader used inside a data set: the outer fetch is the stage
    ("fetch", FORKED + LIST + ITEM + INNER + COLLATE, "Set.__getitem__ next fetch default_collate"),
    # ours are left out
    ("fetch", FORKED + LIST + "Timed.__call__ O/looks.py:5\n" + ITEM, "Set.__getitem__"),
    # its feeder thread
    ("pack", FEED + "Pickler.dumps L/multiprocessing/reduction.py:51", "Pickler.dumps"),
    ("pack", FEED, ""),
    ("idle", FEED + WAIT, ""),
    ("other", "", ""),
]
OF_MAIN = [
    ("other", FEED + WAIT, ""),
    ("fetch", SINGLE + "_MapDatasetFetcher.fetch T/_utils/fetch.py:54\n" + ITEM, "Set.__getitem__"),
    ("collate", SINGLE + "_MapDatasetFetcher.fetch T/_utils/fetch.py:57\n" + OWN, "pad"),
    ("pin", SINGLE + PIN, "pin_memory"),
    ("wait", GET, ""),
    ("wait", GET + "rebuild_fd /env/torch/multiprocessing/reductions.py:538", "rebuild_fd"),
    ("wait", NEXT + "record_function.__exit__ /env/torch/autograd/profiler.py:943", ""),
    ("index", NEXT + INDEX + "Mine.__iter__ U/sampler.py:3", "Mine.__iter__"),
    ("wait", MODULE + "DataLoader.__iter__ T/dataloader.py:505", ""),
    ("compute", "<frozen> <frozen runpy>:198\n" + MODULE + "step U/train.py:3", "<module> step"),
    ("compute", "run_script O/launch.py:5\n" + MODULE, "<module>"),
    ("compute", SPAWN_MAIN + PROCESS + WRAP + "train U/train.py:3", "train"),
    ("pin", PINS + PIN, "pin_memory"),
    ("pin", PINS + "get L/multiprocessing/queues.py:1", ""),
    ("compute", "", ""),
]

PAD = Collate("pad", "/home/me/data.py", 40, 60)


def place(stack, thread, worker, collates=(), collating=frozenset()):
    def ours(one):
        return "/loaderscope/profiler/" in one.file

    return stack_stages.place(stack, thread, worker, collates, ours, collating)


@pytest.mark.parametrize(
    ("worker", "stage", "stack", "kept"),
    [(True, *case) for case in OF_WORKERS] + [(False, *case) for case in OF_MAIN],
)
def test_stages(worker, stage, stack, kept):
    found = frames(stack)
    placed = place(found, "MainThread", worker, [PAD])
    assert (placed.stage, [found[at].function for at in placed.kept]) == (stage, kept.split())


def test_other_threads_names_without_a_class_and_folders_like_torch_s():
    assert place(frames("work U/train.py:3"), "Thread-3 (work)", False).stage == "other"
    assert place(frames(GET), "Thread-3 (train)", False).stage == "wait"
    stack = frames(SPAWNED + LIST + ITEM)
    named = [Frame(each.function.rpartition(".")[2], each.file, each.line) for each in stack]
    assert place(named, "MainThread", True).stage == "fetch"
    mine = Frame("fetch", "/home/mytorch/utils/data/_utils/fetch.py", 54)
    assert place([*frames(SPAWNED + LOOP), mine], "MainThread", True).stage == "other"


AT = {"file": "t.py", "line": 4}


@pytest.mark.parametrize(
    ("part", "config", "collate"),
    [
        (None, {}, None),
        (None, {"collate_fn": "train.pad"}, Collate("pad")),
        (Part("t.pad", "pad", call=("def pad():", " x"), **AT), {}, Collate("pad", "t.py", 4, 5)),
        (Part("lib.Pad", "Pad", **AT), {}, Collate("Pad", "t.py", 4)),
        (Part("train.pad", "pad", call=("x",) * 200, **AT), {}, Collate("pad", "t.py", 4, None)),
    ],
)
def test_how_a_collate_function_is_recognised(part, config, collate):
    assert collate_of(part, config) == collate


def test_it_is_recognised_by_what_is_known_of_it():
    for known, its, other in (
        (Collate("<lambda>", "t.py", 4, 5), ("<lambda>", "t.py", 5), ("<lambda>", "t.py", 6)),
        (Collate("Pad", "t.py", 4), ("Pad.__call__", "t.py", 90), ("Set.load", "t.py", 90)),
        (Collate("pad"), ("pad", "anywhere.py", 1), ("load", "anywhere.py", 1)),
    ):
        assert known.is_in(Frame(*its)) and not known.is_in(Frame(*other))


def collating(*stacks):
    stacks = [(frames(SPAWNED + text), samples) for text, samples in stacks]
    placed = [(place(stack, "MainThread", True), samples) for stack, samples in stacks]
    return {one.line for one in collating_frames(placed)}


def test_a_collate_function_without_frames_is_told_by_the_line_that_calls_it():
    get, torch_collate = LIST + ITEM, LATE + COLLATE
    assert collating((get, 50), (torch_collate, 9), (LATE, 3)) == {57}
    known = frozenset(frames(LATE)[1:])
    assert place(frames(SPAWNED + LATE), "MainThread", True, collating=known).stage == "collate"
    # A stack read in the middle of a change shows the wrong line: it counts for nothing.
    assert collating((get, 50), (LATE + ITEM, 1), (torch_collate, 9)) == {57}
    assert collating((get, 50), (MAP + "default_collate T/_utils/collate.py:1", 1)) == set()
