import math
import os
from pathlib import Path

import pytest

from loaderscope.profiler.base import schema
from loaderscope.profiler.daemon import cgroup
from loaderscope.profiler.daemon.machine import Machine, explain, facts, parse_cpu, shares
from loaderscope.profiler.daemon.reasons import Reasons

pytestmark = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs Linux's /proc")

NAMES = [field.name for field in schema.MACHINE.fields][2:]
S = 1_000_000_000


def kernel(root: Path, user: int = 100, idle: int = 100) -> Path:
    files = {
        "proc/stat": f"cpu  {user} 0 50 {idle} 20 0 5 0 0 0\ncpu0 {user} 0 50 {idle} 20 0 5 0 0 0\n"
        "cpu3 1 1 1 1 1 1 1 1 0 0\nintr 5 0\nctxt 777\nbtime 5\n",
        "proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 600 kB\nBuffers: 9 kB\nCached: 300 kB\n"
        "SwapCached: 8 kB\nShmem: 100 kB\n",
        "proc/diskstats": " 8 0 sda 1 0 10 0 1 0 20 0 0 0 0\n 8 1 sda1 1 0 10 0 1 0 20 0 0 0 0\n"
        " 7 0 loop0 1 0 99 0 1 0 99 0 0 0 0\n 253 0 dm-0 1 0 10 0 1 0 20 0 0 0 0\n",
        "proc/self/net/dev": "Inter-| Receive | Transmit\n face |bytes\n"
        "    lo: 9 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0\n  eth0:1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n"
        "docker0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for device in ("block/sda", "class/net/eth0"):
        (root / "sys" / device / "device").mkdir(parents=True, exist_ok=True)
    (root / "dev/shm").mkdir(parents=True, exist_ok=True)
    return root


def machine(root: Path) -> tuple[Machine, Reasons]:
    reasons = Reasons()
    return Machine(root, reasons), reasons


def sample(of: Machine, now_ns: int = 0) -> dict[str, float]:
    return dict(zip(NAMES, of.sample(now_ns), strict=True))


def test_figures_of_a_known_kernel(tmp_path):
    here, reasons = machine(kernel(tmp_path))
    first = sample(here)
    assert math.isnan(first["cpu_user_pct"])
    expected = {
        "mem_total_bytes": 1000 * 1024,
        "mem_available_bytes": 600 * 1024,
        "page_cache_bytes": 200 * 1024,  # what lies in /dev/shm is no page cache
        # The disk once: not its partition, not the volume on it, no loop device.
        "disk_read_bytes": 10 * 512,
        "disk_write_bytes": 20 * 512,
        "net_recv_bytes": 1000,  # the card, not the bridge, not the loopback
        "net_sent_bytes": 2000,
        "cgroup_mem_limit_bytes": -1,
        "cgroup_throttled_ns": -1,
    }
    assert {name: first[name] for name in expected} == expected
    assert first["sampler_cpu_ns"] > 0 and first["sampler_rss_bytes"] > 1 << 20
    assert math.isnan(first["cgroup_cpu_quota"]) and "cgroup_cpu_quota" in reasons.sentences
    kernel(tmp_path, user=130, idle=170)
    second = sample(here)
    assert second["cpu_user_pct"] == pytest.approx(30)
    assert second["cpu_idle_pct"] == pytest.approx(70)


def test_a_container_s_limits_are_looked_up_again(tmp_path):
    here, reasons = machine(kernel(tmp_path))
    sample(here, 0)
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    for name, text in {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": "250000 100000",
        "sys/fs/cgroup/cpu.stat": "nr_throttled 4\nthrottled_usec 3\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert math.isnan(sample(here, S)["cgroup_cpu_quota"])
    later = sample(here, 10 * S)
    assert later["cgroup_cpu_quota"] == 2.5
    assert later["cgroup_throttled_ns"] == 3000
    assert "cgroup_cpu_quota" not in reasons.sentences


def test_a_machine_that_tells_nothing_gives_reasons_and_no_error(tmp_path):
    here, reasons = machine(tmp_path)
    values = sample(here)
    for name in ("mem_total", "disk_read", "net_recv", "shm_total", "cgroup_mem"):
        assert values[f"{name}_bytes"] == -1 and reasons.sentences[f"{name}_bytes"]
    assert math.isnan(values["cpu_user_pct"]) and reasons.sentences["cpu_user_pct"]


def test_odd_readings_of_cpu_times():
    # Time that steps back is no negative share, and no time has no shares.
    assert shares((10, 10, 10, 10, 0), (12, 10, 9, 18, 0)) == (20.0, 0.0, 0.0, 80.0)
    assert all(math.isnan(share) for share in shares((1, 2, 3, 4, 5), (1, 2, 3, 4, 5)))
    assert parse_cpu(b"cpu  1 2 3 4\ncpu0 1 2 3 4\n") == (3, 3, 0, 4, 0)  # old kernels


def test_reasons_tell_no_limit_from_no_cgroup():
    none, unlimited = Reasons(), Reasons()
    explain(cgroup.Cgroup(), none)
    explain(cgroup.Cgroup(None, None, (2, Path("/x")), (2, Path("/x"))), unlimited)
    assert none.sentences["cgroup_cpu_quota"] != unlimited.sentences["cgroup_cpu_quota"]
    assert "cgroup_mem_bytes" in none.sentences and "cgroup_mem_bytes" not in unlimited.sentences


def test_host_facts():
    here = facts(cgroup.find(), [])
    assert (here.host, here.gpus) == (os.uname().nodename, ())
    assert here.affinity == len(os.sched_getaffinity(0)) and here.mem_total_bytes > 0
