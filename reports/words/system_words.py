"""The machine in words."""

from collections.abc import Iterator

from ...advisors.schema.report_model import GpuSummary, SystemSummary
from .units import known, percent, plural, size

# A note on what is not there is worth a line only where a reader would look for it.
_WORTH_SAYING = {"gpus": "GPU", "system": "system"}


def machine_line(s: SystemSummary) -> str | None:
    """The CPU in a few words: what may have limited the run. None where nothing was sampled."""
    cpu = dict(system_rows(s)).get("CPU") if s.cores_logical else None
    return f"The machine: {cpu}." if cpu else None


def _others(s: SystemSummary) -> str:
    return (
        f"other programs kept {s.others_cores or 0.0:.1f} of your {_cores(s)} busy: times are "
        "inflated"
    )


def _large(value: float | None, least: float) -> float | None:
    return value if value is not None and value >= least else None


def _cores(s: SystemSummary) -> str:
    return plural(s.cores_logical or 0, "core")


def _limit(s: SystemSummary) -> str | None:
    each = s.effective_cpus
    limited = each is not None and each != s.cores_logical
    return f"{each:g} for each training process" if limited else None


def system_rows(system: SystemSummary) -> list[tuple[str, str]]:
    """(label, sentence) pairs of what is known of the machine; what is missing says why."""
    return [(label, said) for label, said in _rows(system) if said]


def _rows(s: SystemSummary) -> Iterator[tuple[str, str]]:
    busy, iowait = s.cpu_busy_mean_share, s.cpu_iowait_mean_share
    stolen, throttled = s.cpu_stolen_mean_share, s.throttled_share
    most = known("", (f", {percent(s.cpu_busy_max_share)} at most", s.cpu_busy_max_share))
    yield (
        "CPU",
        known(
            " · ",
            (f"{percent(busy)} busy on average{most}", busy),
            (_cores(s), s.cores_logical),
            (f"{_limit(s)}", _limit(s)),
            (f"{percent(iowait)} idle with I/O outstanding", _large(iowait, 0.005)),
            (_others(s), s.crowded_by_others or None),
            (f"{percent(stolen)} taken by the hypervisor (steal)", _large(stolen, 0.005)),
            (
                f"throttled by the container's quota {percent(throttled)} of the time",
                throttled or None,
            ),
        ),
    )
    main, worker = s.main_cpu_cores, s.worker_cpu_mean_cores
    yield (
        "used by",
        known(
            " · ",
            (f"training process {main or 0:.2f} cores", main),
            (f"a worker {worker or 0:.2f} cores on average ({s.workers} seen)", worker),
        ),
    )
    free, limit, shm = s.mem_available_min_bytes, s.cgroup_mem_limit_bytes, s.shm_used_peak_bytes
    of = f" of {size(s.mem_total_bytes)}" if s.mem_total_bytes else ""
    shared = f"/dev/shm {size(shm)} of {size(s.shm_total_bytes)} at most"
    yield (
        "memory",
        known(
            " · ",
            (f"never less than {size(free)}{of} free", free),
            (f"container {size(s.cgroup_mem_peak_bytes)} of {size(limit)}", limit),
            (shared, shm if s.shm_total_bytes else None),
        ),
    )
    read, every, net = s.disk_read_bytes_s, s.read_all_bytes, s.net_recv_bytes_s
    disk = known("", (f", {size(s.read_disk_bytes)} came from disk", s.read_disk_bytes))
    calls = f"all processes, imports included: {size(every)} read by calls{disk}"
    yield (
        "reading",
        known(
            " · ",
            (f"disk {size(read)}/s read", read),
            (calls, every or None),
            (f"network {size(net)}/s received", _large(net, 1e6)),
        ),
    )
    for gpu in s.gpus:
        yield f"GPU {gpu.index}", _gpu(gpu) or "nothing was measured"
    for name, label in _WORTH_SAYING.items():
        yield label, s.reasons.get(name, "")


def _gpu(gpu: GpuSummary) -> str:
    used, total, power = gpu.mem_peak_bytes, gpu.mem_total_bytes, gpu.power_mean_w
    return known(
        " · ",
        (gpu.name or "", gpu.name or None),
        (f"some kernel running {percent(gpu.util_mean_share)} of the time", gpu.util_mean_share),
        (f"{size(used)} of {size(total)} in use at most", used),
        (f"{power or 0:.0f} W", power),
    )
