"""The machine in words."""

from __future__ import annotations

from collections.abc import Iterator

from ...advisors.schema.report_model import GpuSummary, SystemSummary
from ...profiler.base.metadata import clean
from .units import percent, plural, size

# A note on what is not there is worth a line only where a reader would look for it.
_WORTH_SAYING = {"gpus": "GPU", "system": "system"}


def system_rows(system: SystemSummary) -> list[tuple[str, str]]:
    """(label, sentence) pairs of what is known of the machine; what is missing says why."""
    return list(_lines(system))


def machine_line(s: SystemSummary) -> str | None:
    """The machine in a few words: what may have limited the run. None where nothing was sampled."""
    parts = []
    if s.cores_logical is not None:
        cores = plural(s.cores_logical, "core", "cores")
        if s.effective_cpus is not None and s.effective_cpus != s.cores_logical:
            cores += f" ({s.effective_cpus:g} for each training process)"
        busy = (
            f" {percent(s.cpu_busy_mean_share)} busy" if s.cpu_busy_mean_share is not None else ""
        )
        parts.append(cores + busy)
    if s.cpu_stolen_mean_share is not None and s.cpu_stolen_mean_share >= 0.01:
        parts.append(f"{percent(s.cpu_stolen_mean_share)} stolen")
    if s.throttled_share:
        parts.append(f"throttled {percent(s.throttled_share)} of the time")
    if s.mem_available_min_bytes is not None:
        parts.append(f"{size(s.mem_available_min_bytes)} of memory free")
    busy_gpus = [gpu.util_mean_share for gpu in s.gpus if gpu.util_mean_share is not None]
    if busy_gpus:
        parts.append(
            f"{plural(len(s.gpus), 'GPU', 'GPUs')} {percent(sum(busy_gpus) / len(busy_gpus))} in "
            "use"
        )
    if s.disk_read_bytes_s is not None and s.disk_read_bytes_s >= 1e6:
        parts.append(f"disk {size(s.disk_read_bytes_s)}/s")
    return f"The machine: {', '.join(parts)}." if parts else None


def _lines(s: SystemSummary) -> Iterator[tuple[str, str]]:
    cpu = []
    if s.cpu_busy_mean_share is not None:
        most = (
            f", {percent(s.cpu_busy_max_share)} at most" if s.cpu_busy_max_share is not None else ""
        )
        cpu.append(f"{percent(s.cpu_busy_mean_share)} busy on average{most}")
    if s.cores_logical is not None:
        cpu.append(plural(s.cores_logical, "core", "cores"))
    if s.effective_cpus is not None and s.effective_cpus != s.cores_logical:
        cores = "core" if s.effective_cpus == 1 else "cores"
        cpu.append(f"{s.effective_cpus:g} {cores} for each training process")
    if s.cpu_iowait_mean_share is not None and s.cpu_iowait_mean_share >= 0.005:
        cpu.append(f"{percent(s.cpu_iowait_mean_share)} idle with I/O outstanding")
    if s.cpu_stolen_mean_share is not None and s.cpu_stolen_mean_share >= 0.005:
        cpu.append(f"{percent(s.cpu_stolen_mean_share)} taken by the hypervisor (steal)")
    if s.throttled_share:
        cpu.append(f"held back by the container's quota {percent(s.throttled_share)} of the time")
    if cpu:
        yield "CPU", " · ".join(cpu)
    used = []
    if s.main_cpu_cores is not None:
        used.append(f"training process {s.main_cpu_cores:.2f} cores")
    if s.worker_cpu_mean_cores is not None:
        used.append(f"a worker {s.worker_cpu_mean_cores:.2f} cores on average ({s.workers} seen)")
    if used:
        yield "used by", " · ".join(used)
    memory = []
    if s.mem_available_min_bytes is not None:
        of = f" of {size(s.mem_total_bytes)}" if s.mem_total_bytes else ""
        memory.append(f"never less than {size(s.mem_available_min_bytes)}{of} free")
    if s.cgroup_mem_limit_bytes is not None:
        memory.append(
            f"container {size(s.cgroup_mem_peak_bytes)} of {size(s.cgroup_mem_limit_bytes)}"
        )
    if s.shm_used_peak_bytes is not None and s.shm_total_bytes:
        memory.append(
            f"/dev/shm {size(s.shm_used_peak_bytes)} of {size(s.shm_total_bytes)} at most"
        )
    if memory:
        yield "memory", " · ".join(memory)
    reads = []
    if s.disk_read_bytes_s is not None:
        reads.append(f"disk {size(s.disk_read_bytes_s)}/s read")
    if s.read_all_bytes:
        disk = (
            f", {size(s.read_disk_bytes)} came from disk" if s.read_disk_bytes is not None else ""
        )
        reads.append(
            f"all processes, imports included: {size(s.read_all_bytes)} read by calls{disk}"
        )
    if s.net_recv_bytes_s is not None and s.net_recv_bytes_s >= 1e6:
        reads.append(f"network {size(s.net_recv_bytes_s)}/s received")
    if reads:
        yield "reading", " · ".join(reads)
    for gpu in s.gpus:
        yield f"GPU {gpu.index}", _gpu(gpu)
    for name, label in _WORTH_SAYING.items():
        if name in s.reasons:
            yield label, clean(s.reasons[name], 200)


def _gpu(gpu: GpuSummary) -> str:
    parts = [clean(gpu.name, 60)] if gpu.name else []
    if gpu.util_mean_share is not None:
        parts.append(f"some kernel running {percent(gpu.util_mean_share)} of the time")
    if gpu.mem_peak_bytes is not None:
        parts.append(f"{size(gpu.mem_peak_bytes)} of {size(gpu.mem_total_bytes)} in use at most")
    if gpu.power_mean_w is not None:
        parts.append(f"{gpu.power_mean_w:.0f} W")
    return " · ".join(parts) or "nothing was measured"
