"""One program, in the process it is run in: what can be seen from inside before and after it."""

from __future__ import annotations

import gc
import glob
import hashlib
import locale
import os
import random
import resource
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from . import catalogue, preparing
from .catalogue import Program, say, still

# Of a watched process, beyond what a bare one has.
_OURS = ("LOADERSCOPE_PURE", "LOADERSCOPE_RUN", "LOADERSCOPE_HOME", "PYTHONPATH", "HARMLESS_MOMENT")

_sigchld = 0


def perform(job: dict[str, Any]) -> None:
    """Runs it bare or watched; whatever it raises goes on to the interpreter."""
    catalogue.load(job["module"])
    program = catalogue.find(job["program"])
    said = os.path.join(job["folder"], "said")
    log = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.set_inheritable(log, True)
    catalogue.say_into(log)
    reason = preparing.prepare(program.prepared, job["folder"])
    if reason:
        say("cannot be run here", reason)
        return
    if job["way"] in (catalogue.STILL, catalogue.TUNED):
        catalogue.be_still()
    begin(program)
    watch = watcher(job["way"], job["module"])
    try:
        program.function(watch)
    finally:
        end(program)


def watcher(way: str, module: str) -> catalogue.Watch:
    """`watch` for this way of running a program of this module; else what does nothing."""
    call, _, form = way.partition("-")
    if form == "pure":
        os.environ["LOADERSCOPE_PURE"] = "1"
    if call in (catalogue.TUNED, catalogue.RESTLESS, catalogue.DECIDES):
        from loaderscope.tuning.evidence import program
        from switch_data import deciding, restless

        source = Path(sys.modules[f"harmless.programs.{module}"].__file__ or "")
        program.files = lambda: [source]  # not all programs'
        return deciding if call == catalogue.DECIDES else restless
    if call in ("watch", "all"):
        import loaderscope

        if call == "watch":
            return loaderscope.watch
        loaderscope.watch_all()
    return lambda loader: loader


def begin(program: Program) -> None:
    """The same beginning for every run: seeds, warnings that are noted, a handler that counts."""
    random.seed(1)
    if "numpy" in sys.modules:
        import numpy.random

        numpy.random.seed(1)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(1)
    warnings.simplefilter("always")
    # Python 3.12 and later warn of any fork beside threads, torch's of its workers too.
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    warnings.showwarning = _noted
    if program.counts_sigchld and not still():  # of workers that are tried, SIGCHLD does come
        signal.signal(signal.SIGCHLD, _count)
    say("begun", True)


def _noted(message: Any, category: type, filename: str, lineno: int, *_: Any) -> None:
    data = sys.modules.get("torch.utils.data")
    worker = data and data.get_worker_info()  # which of two is first is chance
    what = f"warning of worker {worker.id}" if worker else "warning"
    say(what, [category.__name__, str(message), filename, lineno])


def _count(number: int, frame: Any) -> None:
    global _sigchld
    _sigchld += 1


def end(program: Program) -> None:
    if program.counts_sigchld and not still():
        say("end SIGCHLD", _sigchld)
    gc.collect()
    _settle()
    for name, value in {**_random_states(), **_settings(), **_held()}.items():
        say(f"end {name}", value)


def _settle() -> None:
    """A queue's feeder thread takes a moment to end, with or without us."""
    deadline = time.monotonic() + 2
    while threading.active_count() > 1 and time.monotonic() < deadline:
        time.sleep(0.01)


def _random_states() -> dict[str, str]:
    found = {"random": repr(random.getstate())}
    if "numpy" in sys.modules:
        kind, keys, *rest = sys.modules["numpy"].random.get_state()
        found["numpy"] = repr([kind, keys.tolist(), *rest])
    if "torch" in sys.modules:
        found["torch"] = sys.modules["torch"].get_rng_state().numpy().tobytes().hex()
    digests = {name: hashlib.md5(text.encode()).hexdigest() for name, text in found.items()}
    return {f"random state of {name}": each for name, each in digests.items()}


def _settings() -> dict[str, Any]:
    """What a library must not change for the program it is used in."""
    torch = sys.modules.get("torch")
    handlers = {number: str(signal.getsignal(number)) for number in sorted(signal.valid_signals())}
    hooks = str(sys.excepthook), str(sys.unraisablehook)
    return {
        "handlers": {number: handler.split(" at ")[0] for number, handler in handlers.items()},
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "timer": signal.getitimer(signal.ITIMER_REAL)[1],
        "environment": {k: v for k, v in sorted(os.environ.items()) if k not in _OURS},
        "folder": os.getcwd(),
        "umask": _umask(),
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "affinity": sorted(os.sched_getaffinity(0)),
        "limits": list(map(resource.getrlimit, range(resource.RLIMIT_NOFILE + 1))),
        "locale": locale.setlocale(locale.LC_ALL),
        "gc": [gc.isenabled(), gc.get_threshold(), len(gc.callbacks)],
        "interpreter": [sys.getswitchinterval(), sys.getrecursionlimit(), *hooks],
        "path": [entry for entry in sys.path if "profiler/record/inject" not in entry],
        "tracing": [str(sys.gettrace()), str(sys.getprofile()), str(threading.gettrace())],
        "torch": torch
        and [
            *(torch.get_num_threads(), str(torch.get_default_dtype()), torch.is_grad_enabled()),
            torch.multiprocessing.get_sharing_strategy(),
        ],
    }


def _umask() -> int:
    mask = os.umask(0o22)
    os.umask(mask)
    return mask


def _held() -> dict[str, Any]:
    import multiprocessing

    import psutil

    return {
        "active children": len(multiprocessing.active_children()),
        "children": sorted(child.name() for child in psutil.Process().children(recursive=True)),
        "waited for": _waited_for(),
        "threads": [thread.name for thread in threading.enumerate()],
        "descriptors": sum(map(os.path.islink, glob.glob("/proc/self/fd/*"))),
        "maps": _maps(),
        "shared memory": sorted(_shared_memory()),
    }


def _maps() -> int:
    """Less those of compiled modules, and their zeroed memory, which follows and has no name."""
    count, ended, of_module = 0, "", False
    with open("/proc/self/maps") as file:
        for line in file:
            place, _, _, _, _, *path = line.split(maxsplit=5)
            begun, end = place.split("-")
            named = bool(path) and (".so" in path[0] or "python" in path[0])
            of_module = named or (of_module and not path and begun == ended)
            count += not of_module
            ended = end
    return count


def _waited_for() -> str:
    try:
        return "nobody yet" if os.waitpid(-1, os.WNOHANG) == (0, 0) else "an ended child"
    except ChildProcessError:
        return "no child"


def _shared_memory() -> list[str]:
    """Only where it is this program's own: the zygote tries to mount it so."""
    if os.environ.get("HARMLESS_SHM") != "own":
        return []
    return [name.split("_")[0] for name in os.listdir("/dev/shm")]
