"""What can and cannot be measured on this machine, and how to enable it. Facts are passed in;
nothing is changed."""

from __future__ import annotations

import importlib
import importlib.metadata
import multiprocessing
import os
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .base import torch_parts
from .base.host import usable_cores
from .daemon import cgroup
from .daemon.gpu import driver_present
from .daemon.stack_capture.py_spy import MISSING, find_py_spy, ptrace_scope
from .daemon.stack_capture.try_py_spy import try_stacks
from .native import form
from .record.session.start_sampler import why_not_kept
from .store.rundir import runs_directory

SHM_LEAST_BYTES = 1 << 30
SHM_LEAST_SHARE = 0.05  # of memory; a bare Linux gives 0.5, Docker 64 MiB whatever the machine
DESCRIPTORS_LEAST = 4096

# What sets the number of library threads, of which every worker starts as many.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


@dataclass(frozen=True)
class Check:
    """One finding. `ok` is None where there is nothing to be had or to be told; `mend` says how to
    enable it."""

    name: str
    ok: bool | None
    finding: str
    mend: str | None = None


Load = Callable[[str], Any]


def checks(
    root: Path = Path("/"),
    environ: Mapping[str, str] = os.environ,
    directory: Path | None = None,
    load: Load = importlib.import_module,
    descriptors: Callable[[], tuple[int, int]] | None = None,
    start_method: Callable[[], str] = multiprocessing.get_start_method,
    affinity: Callable[[], int] | None = None,
    why_python: str = form.why_python,
    read_stacks: Callable[[str], str | None] = try_stacks,
    py_spy: str | None = None,
    why_unkept: str | None = None,
) -> tuple[Check, ...]:
    """Every check, in the order in which they matter.

    `root` is where /proc, /sys and /dev lie, `directory` the folder for runs (by default the one
    runs go to), `load` imports a module by name, `descriptors` gives the (soft, hard) limit of open
    files, `affinity` the number of cores this process may use, `why_python` says why the compiled
    hot path is not in use ("": it is), `read_stacks` tries to read a process's stacks with the
    py-spy it is given and says why it cannot, `why_unkept` says why the sampler cannot keep what is
    recorded ("": it can). Never raises: a check that fails says so.
    """
    where = directory if directory is not None else runs_directory(environ)
    tried: tuple[tuple[str, Callable[[], Check]], ...] = (
        ("run directory", lambda: run_directory(where)),
        ("recording memory", lambda: keeping(why_not_kept() if why_unkept is None else why_unkept)),
        ("torch", lambda: torch_version(load)),
        ("device", lambda: device(load)),
        ("nvml", lambda: nvml(root, load)),
        ("cpus", lambda: cpus(root, affinity or usable_cores)),
        ("memory", lambda: memory(root)),
        ("shared memory", lambda: shared_memory(root)),
        ("open files", lambda: open_files(descriptors or _descriptors)),
        ("start method", lambda: start(start_method)),
        ("process counters", lambda: process_counters(root)),
        ("process memory", lambda: process_memory(root)),
        ("stacks", lambda: stacks(root, py_spy or find_py_spy(environ), read_stacks)),
        ("library threads", lambda: threads(environ)),
        ("hot path", lambda: hot_path(why_python)),
    )
    found = []
    for name, check in tried:
        try:
            found.append(check())
        except Exception as error:
            found.append(
                Check(name, None, f"could not be checked: {type(error).__name__}: {error}")
            )
    return tuple(found)


def run_directory(directory: Path) -> Check:
    """Whether runs can be written there."""
    name, mend = "run directory", "set LOADERSCOPE_DIR to a folder that you may write to"
    nearest = directory
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    try:
        with tempfile.TemporaryFile(dir=nearest) as file:
            file.write(b"x")
            file.flush()
    except OSError as error:
        return Check(name, False, f"{directory} cannot be written: {error.strerror}", mend)
    return Check(name, True, f"{directory} can be written")


def keeping(why_not: str) -> Check:
    """Whether batches are recorded in memory that the system sampler keeps, or each by a system
    call."""
    name = "recording memory"
    if why_not:
        mend = "recording works and costs some µs more a batch"
        return Check(name, True, f"{why_not}: each batch is written by system calls", mend)
    return Check(name, True, "batches are recorded in memory that outlives the training process")


def torch_version(load: Load) -> Check:
    """Whether torch is there, and of a release whose DataLoader was tried."""
    name = "torch"
    try:
        version = str(load("torch").__version__)
    except ImportError as error:
        return Check(
            name, False, f"torch cannot be imported: {error}", "install PyTorch in this environment"
        )
    oldest, tried = torch_parts.TRIED[0], ", ".join(torch_parts.TRIED)
    if _release(version) < _release(oldest):
        return Check(
            name,
            False,
            f"torch {version} is older than what is handled ({oldest} or later)",
            "upgrade PyTorch",
        )
    never = torch_parts.untried(version)
    if never is not None:
        mend = (
            "what it changed in its DataLoader is not measured, and reports begin with that; then "
            "upgrade loaderscope"
        )
        return Check(name, None, never, mend)
    return Check(name, True, f"torch {version} (tried: {tried})")


def _release(version: str) -> tuple[int, int]:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def device(load: Load) -> Check:
    """Whether device times can be measured."""
    name = "device"
    torch = load("torch")
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        return Check(
            name,
            True,
            f"{count} CUDA device{'s' * (count != 1)}: copies, compute and stall by device events",
        )
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        found = "this torch is built for CPUs only: no device times"
        return Check(name, None, found, "if there is a GPU, install a CUDA build of PyTorch")
    mend = (
        "check that nvidia-smi works here and that the driver is new enough for this torch; in "
        "Docker use --gpus all"
    )
    return Check(
        name, None, f"torch is built for CUDA {torch.version.cuda} but sees no device", mend
    )


def nvml(root: Path, load: Load) -> Check:
    """Whether GPU use, memory, power and PCIe can be sampled."""
    name = "nvml"
    if not driver_present(root):
        return Check(
            name,
            None,
            "no NVIDIA driver is loaded: no GPU use, memory or power",
            "in Docker use --gpus all",
        )
    try:
        binding = load("pynvml")
    except ImportError:
        return Check(name, False, "NVML's Python binding is missing", "pip install nvidia-ml-py")
    try:
        binding.nvmlInit()
        count = int(binding.nvmlDeviceGetCount())
        divided = [gpu for gpu in range(count) if _divided(binding, gpu)]
        binding.nvmlShutdown()
    except Exception as error:
        mend = (
            "check that nvidia-smi works here; after an update of the driver, reboot or reload it"
        )
        return Check(name, False, f"NVML does not start: {error}", mend)
    if divided:
        mend = "utilisation is not told by NVML for a GPU divided by MIG; memory and power are"
        return Check(name, True, f"{count} GPUs, of which {len(divided)} divided by MIG", mend)
    return Check(name, bool(count) or None, f"{count} GPU{'s' * (count != 1)} can be sampled")


def cpus(root: Path, affinity: Callable[[], int]) -> Check:
    """How many cores this process really has."""
    cores, quota = affinity(), cgroup.find(root).cpu_quota
    if quota is None:
        return Check("cpus", True, f"{cores} cores by affinity, no CPU quota")
    effective = min(float(cores), quota)
    finding = f"{effective:g} effective cores: {cores} by affinity, a CPU quota of {quota:g}"
    if quota < cores:
        mend = (
            f"workers and library threads should fit {effective:g} cores; raise the container's "
            "CPU limit for more"
        )
        return Check("cpus", None, finding, mend)
    return Check("cpus", True, finding)


def memory(root: Path) -> Check:
    """The memory this process may use, page cache included."""
    total, limit = _mem_total(root), cgroup.find(root).mem_limit_bytes
    said = "unknown" if total is None else _size(total)
    if limit is None or (total is not None and limit >= total):
        return Check(
            "memory", True if total else None, f"{said} in this machine, no memory limit below it"
        )
    mend = (
        "the page cache counts as well: a data set larger than the limit is read from disk in "
        "every epoch"
    )
    return Check("memory", None, f"a memory limit of {_size(limit)} (the machine has {said})", mend)


def shared_memory(root: Path) -> Check:
    """Whether /dev/shm, through which workers hand over batches, is large enough."""
    name, mend = (
        "shared memory",
        "docker run --shm-size=8g (or --ipc=host); Kubernetes: an emptyDir of medium Memory there",
    )
    try:
        shm = os.statvfs(root / "dev/shm")
    except (OSError, AttributeError):
        return Check(name, None, "there is no /dev/shm: workers hand batches over in files", None)
    size, free = shm.f_blocks * shm.f_frsize, shm.f_bavail * shm.f_frsize
    return shared_memory_of(size, free, _mem_total(root), name, mend)


def shared_memory_of(size: int, free: int, total: int | None, name: str, mend: str) -> Check:
    """The verdict on a /dev/shm of `size` bytes, `free` of them, on a machine with `total` bytes of
    memory."""
    finding = f"/dev/shm holds {_size(size)}, {_size(free)} free"
    if size < SHM_LEAST_BYTES:
        return Check(
            name, False, f"{finding}: too little for large batches and several workers", mend
        )
    if free < SHM_LEAST_BYTES:
        return Check(
            name, False, f"{finding}: almost full", "remove what finished programs left in /dev/shm"
        )
    if total is not None and size < SHM_LEAST_SHARE * total:
        return Check(name, None, f"{finding}: little beside {_size(total)} of memory", mend)
    return Check(name, True, finding)


def open_files(descriptors: Callable[[], tuple[int, int]]) -> Check:
    """Whether the limit of open files leaves room for batches passed as descriptors."""
    soft, hard = descriptors()
    if soft < 0 or soft >= DESCRIPTORS_LEAST:
        return Check("open files", True, "no limit" if soft < 0 else f"up to {soft} a process")
    room = (
        f"ulimit -n {hard}"
        if hard > soft
        else "ulimit -n 65536"
        if hard < 0
        else "raise the hard limit"
    )
    mend = f'{room}, or torch.multiprocessing.set_sharing_strategy("file_system")'
    return Check(
        "open files",
        None,
        f"up to {soft} a process; each tensor on its way from a worker takes one",
        mend,
    )


def start(start_method: Callable[[], str]) -> Check:
    """How workers are started."""
    method = start_method()
    told = {
        "fork": "workers begin at once and share the dataset's memory until they write to it",
        "spawn": "every worker imports the program anew and gets the dataset pickled",
        "forkserver": "workers are forked from a clean server and get the dataset pickled",
    }
    return Check("start method", True, f"{method}: {told.get(method, 'of this platform')}")


def process_counters(root: Path) -> Check:
    """Whether page faults and bytes read can be told a process."""
    name, missing = "process counters", []
    for file, what in (
        ("stat", "CPU time and page faults"),
        ("status", "context switches"),
        ("io", "bytes read"),
    ):
        try:
            told = bool((root / "proc/self" / file).read_bytes())
        except OSError:
            told = False
        if not told:
            missing.append(f"{what} (/proc/PID/{file})")
    if not missing:
        return Check(
            name,
            True,
            "CPU time, page faults, context switches and bytes read can be told a process",
        )
    mend = (
        "run on Linux with /proc mounted; bytes read need a kernel with CONFIG_TASK_IO_ACCOUNTING"
    )
    return Check(name, None, f"cannot be read: {', '.join(missing)}", mend)


def process_memory(root: Path) -> Check:
    """Whether memory shared with others can be told from a process's own."""
    try:
        told = b"Pss:" in (root / "proc/self/smaps_rollup").read_bytes()
    except OSError:
        told = False
    if told:
        return Check(
            "process memory", True, "a process's own and shared memory can be told apart (USS, PSS)"
        )
    finding = (
        "/proc/PID/smaps_rollup cannot be read: own and shared memory of a process cannot be told "
        "apart"
    )
    return Check(
        "process memory", None, finding, "it needs Linux 4.14 or later, and the user who trains"
    )


def stacks(root: Path, program: str | None, read: Callable[[str], str | None]) -> Check:
    """Whether py-spy can say which functions the time goes to. It is tried, on a process started
    for that."""
    name, unaffected = "stacks", "all other figures are unaffected"
    if program is None:
        found, _, mend = MISSING.partition(": ")
        return Check(name, None, f"{found}: no shares of functions", mend)
    why = read(program)
    scope = ptrace_scope(root)
    if why is None:
        by = "" if not scope else f", which the processes of a run permit it (ptrace_scope {scope})"
        return Check(name, True, f"py-spy can read the stacks of a run's processes{by}")
    found, _, mend = why.partition(": ")
    return Check(
        name,
        None,
        f"py-spy cannot read stacks: {found}",
        f"{mend}; {unaffected}" if mend else unaffected,
    )


def threads(environ: Mapping[str, str]) -> Check:
    """The variables that decide how many threads libraries start in every worker."""
    said = [
        f"{key}={environ[key]}"
        for key in (*THREAD_VARIABLES, "TOKENIZERS_PARALLELISM")
        if environ.get(key)
    ]
    limited = any(environ.get(key) for key in THREAD_VARIABLES)
    mends = []
    if not limited:
        mends.append(
            "torch limits itself to one thread a worker; OpenCV and BLAS do not: OMP_NUM_THREADS=1 "
            "if they are used"
        )
    if environ.get("TOKENIZERS_PARALLELISM", "").lower() in ("1", "true", "yes", "on"):
        mends.append(
            "TOKENIZERS_PARALLELISM=false when workers tokenise: each would start a thread a core"
        )
    finding = ", ".join(said) if said else "no variable limits library threads"
    return Check("library threads", None if mends else True, finding, "; ".join(mends) or None)


def hot_path(why_python: str) -> Check:
    """Which form of the code that runs once a batch is in use."""
    if not why_python:
        return Check("hot path", True, "compiled: about 1 µs a batch")
    mend = (
        f"about 3 µs a batch instead of 1; for that, unset {form.PURE_VARIABLE}, or install where "
        "there is a C compiler"
    )
    return Check("hot path", None, f"in Python: {why_python}", mend)


def _divided(binding: Any, gpu: int) -> bool:
    try:
        return bool(binding.nvmlDeviceGetMigMode(binding.nvmlDeviceGetHandleByIndex(gpu))[0] == 1)
    except Exception:
        return False  # devices without MIG do not know the question


def _mem_total(root: Path) -> int | None:
    try:
        total = re.search(
            r"^MemTotal:\s*(\d+) kB", (root / "proc/meminfo").read_text(), re.MULTILINE
        )
    except OSError:
        return None
    return int(total[1]) * 1024 if total else None


def _descriptors() -> tuple[int, int]:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (-1 if soft == resource.RLIM_INFINITY else soft), (
        -1 if hard == resource.RLIM_INFINITY else hard
    )


def _size(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.0f} MiB"
