"""Little of everything, odd interpreters and surroundings, others who handle the run's files."""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import resource
import shutil
import signal
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from torch.utils.data import DataLoader

from ..catalogue import Watch, program, say
from ..data import Rows, eat
from .table import Failing, caught


def long(watch: Watch) -> None:
    """Some 3,000 batches: more than a first segment holds."""
    loader = watch(DataLoader(list(range(3000)), batch_size=1))
    say("sum", sum(int(batch) for batch in loader))


def short(watch: Watch) -> None:
    for size in (4, 3):
        eat(watch(DataLoader(Rows(), batch_size=size, num_workers=2)))


def declare(what: str, recorded: bool = False) -> None:
    def short_with_workers(watch: Watch) -> None:
        try:
            short(watch)
        except (OSError, RuntimeError) as error:
            say("error", [type(error).__name__, getattr(error, "errno", None)])

    name = what.replace(" ", "-")
    # Where addresses are short, malloc makes do with many small maps, their number by chance.
    unjudged = ("end maps",) if what == "little memory" else ()
    how = {"prepared": what, "may_speak": True, "unjudged": unjudged}
    program(f"limits/{name}-0", recorded=recorded, **how)(long)
    if what != "few descriptors":  # torch itself fails or hangs then, in another way each time
        program(f"limits/{name}-2", recorded=False, **how)(short_with_workers)


_DISKS = ("small files", "full disk", "no inodes")
for what in ("few descriptors", "few processes", "little memory", *_DISKS):
    declare(what)
declare("nobody", recorded=True)


# Torch complains there, too, of modules it cannot import.
@program("limits/descriptors-run-out", recorded=False, unjudged=("stderr",))
def descriptors_run_out(watch: Watch) -> None:
    """All taken by the program itself before it trains, and given back half way."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    taken = []
    try:
        while True:
            taken.append(os.open(os.devnull, os.O_RDONLY))
    except OSError:
        pass
    say("taken", len(taken))
    eat(watch(DataLoader(Rows(), batch_size=4)))
    for fd in taken:
        os.close(fd)
    eat(watch(DataLoader(Rows(), batch_size=4)))


# A container's small /dev/shm is the workers' alone.
program("limits/small-shm", prepared="small shm")(short)


# Others: clean-up scripts, sync tools, quotas.
def recorded_files() -> list[Path]:
    return [path for path in Path(os.environ["LOADERSCOPE_DIR"]).rglob("*") if path.is_file()]


def truncate() -> None:
    for path in recorded_files():
        if path.suffix == ".seg":
            os.truncate(path, 0)


def remove() -> None:
    shutil.rmtree(os.environ["LOADERSCOPE_DIR"], ignore_errors=True)


def replace() -> None:
    for path in recorded_files():
        path.unlink(missing_ok=True)
        path.mkdir(exist_ok=True)


def forbid() -> None:
    files = recorded_files()
    for path in [*files, *{file.parent for file in files}]:
        path.chmod(0)


def overwrite() -> None:
    for path in recorded_files():
        path.write_bytes(os.urandom(64))


def declare_damage(damage: Callable[[], None], workers: int) -> None:
    def run(watch: Watch) -> None:
        loader = watch(DataLoader(Rows(4000), batch_size=4, num_workers=workers))
        total = 0
        for count, batch in enumerate(loader):
            total += int(batch[0].sum())
            if count in (100, 300):
                damage()
        say("total", total)
        eat(watch(DataLoader(Rows(), batch_size=4, num_workers=workers)))

    name = damage.__name__.replace("_", "-")
    program(f"damage/{name}-{workers}", recorded=False, may_speak=True)(run)


for damage in (truncate, remove, replace, forbid, overwrite):
    declare_damage(damage, 0)
for damage in (truncate, remove):
    declare_damage(damage, 1)


@program("damage/sampler-killed", recorded=True)
def the_sampler_is_killed(watch: Watch) -> None:
    loader = watch(DataLoader(Rows(pause_s=0.01), batch_size=4))
    for count, _ in enumerate(loader):
        if count in (1, 4):
            runs = os.environ["LOADERSCOPE_DIR"]
            for process in psutil.process_iter(["cmdline"]):
                of_it = any(runs in part for part in process.info["cmdline"] or ())
                if of_it and process.pid != os.getpid():
                    os.kill(process.pid, signal.SIGKILL)
    eat(loader)


def plain(watch: Watch) -> None:
    loader = watch(DataLoader(Rows(), batch_size=4, shuffle=True))
    eat(loader)
    eat(watch(DataLoader(Rows(), batch_size=4, num_workers=1)))
    caught(lambda: eat(watch(DataLoader(Failing(), batch_size=4))))


BOTH = ("watch", "all-pure")
for what in ("no stderr", "no argv", "odd argv", "no folder"):
    program(f"surroundings/{what.replace(' ', '-')}", prepared=what, watched=BOTH)(plain)


@program("surroundings/no-stderr-but-a-message", prepared="no stderr", watched=BOTH)
def something_to_tell_and_nowhere_to(watch: Watch) -> None:
    """A limit that is no number makes us speak: not on standard output."""
    os.environ["LOADERSCOPE_MAX_MB"] = "many"
    plain(watch)


for options in (("-OO",), ("-X", "dev"), ("-W", "error")):
    program(f"interpreter/{''.join(options)}", options=options, limit_s=120)(plain)


@program("surroundings/garbage-is-never-collected", watched=("all", "watch-pure"))
def without_a_collector(watch: Watch) -> None:
    """What an iterator holds goes with it: its queues' pipes are closed without a collection."""
    gc.disable()
    loader = watch(DataLoader(Rows(8), batch_size=4, num_workers=1))
    eat(loader)
    queues = []
    for _ in range(3):
        iterator = iter(loader)
        queues.append(weakref.ref(iterator._worker_result_queue))
        eat(iterator)
        del iterator
    say("queues left", sum(queue() is not None for queue in queues))


@program("surroundings/closed-descriptors")
def without_standard_descriptors(watch: Watch) -> None:
    """As daemons have it: what is opened next is 0, 1 and 2, and is not to be written to."""
    for fd in (0, 1, 2):
        os.close(fd)
    names = [os.open(f"own-{number}", os.O_RDWR | os.O_CREAT) for number in range(3)]
    say("descriptors", names)
    plain(watch)
    say("sizes", [os.fstat(fd).st_size for fd in names])


@program("surroundings/no-environment")
def without_environment(watch: Watch) -> None:
    kept = {name: os.environ[name] for name in ("LOADERSCOPE_DIR", "HARMLESS_SHM")}
    os.environ.clear()
    os.environ.update(kept)
    plain(watch)


@program("surroundings/patched-clock")
def a_clock_that_stands_still(watch: Watch) -> None:
    """As tests freeze it: everything in `time` answers one moment."""
    for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "perf_counter_ns"):
        moment: Any = getattr(time, name)()
        setattr(time, name, lambda moment=moment: moment)
    loader = watch(DataLoader(Rows(), batch_size=4, shuffle=True))
    eat(loader)
    eat(loader)


@program("surroundings/restrictive-umask")
def with_a_umask_that_takes_all(watch: Watch) -> None:
    os.umask(0o777)
    plain(watch)


@program("surroundings/unpickled-loader")
def a_watched_loader_is_pickled(watch: Watch) -> None:
    """What is pickled of a watched loader is what is pickled of a bare one, byte for byte."""
    loader = watch(DataLoader(Rows(), batch_size=4))
    eat(loader)
    say("pickled", hashlib.md5(pickle.dumps(loader)).hexdigest())
