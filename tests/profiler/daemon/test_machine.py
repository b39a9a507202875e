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


def write(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def kernel(root, user=100, idle=100):
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
    write(root, files)
    for device in ("block/sda", "class/net/eth0"):
        (root / "sys" / device / "device").mkdir(parents=True, exist_ok=True)
    (root / "dev/shm").mkdir(parents=True, exist_ok=True)
    return root


def machine(root):
    reasons = Reasons()
    return Machine(root, reasons), reasons


def sample(of, now_ns=0):
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
    limits = {"max": "250000 100000", "stat": "nr_throttled 4\nthrottled_usec 3\n"}
    write(tmp_path, {f"sys/fs/cgroup/cpu.{name}": text for name, text in limits.items()})
    write(tmp_path, {"proc/self/cgroup": "0::/\n"})
    assert math.isnan(sample(here, S)["cgroup_cpu_quota"])
    later = sample(here, 10 * S)
    assert (later["cgroup_cpu_quota"], later["cgroup_throttled_ns"]) == (2.5, 3000)
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


GIB = 1 << 30


def found_of(root, files):
    """What is found in a file system with these files."""
    return cgroup.find(write(root, files))


def version_1(cpu, memory):
    cpu = {f"sys/fs/cgroup/cpu/cpu.{name}": text for name, text in cpu.items()}
    return cpu | {f"sys/fs/cgroup/memory/memory.{name}": text for name, text in memory.items()}


def test_version_2_takes_the_tightest_limit_on_the_way_to_the_root(tmp_path):
    throttled = "usage_usec 9\nnr_periods 8\nnr_throttled 7\nthrottled_usec 6\n"
    group = {
        "cgroup.controllers": "cpu memory\n",
        "pod/cpu.max": "150000 100000\n",
        "pod/cpu.stat": throttled,
        "pod/memory.max": "max\n",
        "pod/memory.current": "5\n",
        "pod/box/cpu.max": "max 100000\n",
        "pod/box/cpu.stat": "nr_throttled 0\nthrottled_usec 0\n",
        "pod/box/memory.max": f"{2 * GIB}\n",
        "pod/box/memory.current": f"{GIB}\n",
        "pod/box/memory.stat": "anon 7\ninactive_file 300\nactive_file 9\n",
    }
    files = {f"sys/fs/cgroup/{name}": text for name, text in group.items()}
    found = found_of(tmp_path, {"proc/self/cgroup": "0::/pod/box\n", **files})
    assert (found.cpu_quota, found.mem_limit_bytes) == (1.5, 2 * GIB)
    assert found.cached_bytes() == 300
    assert found.throttled_ns() == 6000  # told where the limit is, in the pod
    assert found.memory_bytes() == GIB


OF_CONTAINER = "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc\n"
UNLIMITED = {"limit_in_bytes": "9223372036854771712\n", "usage_in_bytes": "5\n"}
HELD = {"usage_in_bytes": "99\n", "stat": "inactive_file 1\ntotal_inactive_file 44\n"}


@pytest.mark.parametrize(
    ("groups", "quota", "throttled", "memory", "figures"),
    [
        # The container's own part is mounted.
        (OF_CONTAINER, 200_000, 12345, HELD | {"limit_in_bytes": f"{GIB}\n"}, (2.0, GIB, 99, 44)),
        ("5:memory:/\n4:cpu:/\n", -1, -1, UNLIMITED, (None, None, 5, -1)),
    ],
)
def test_version_1(tmp_path, groups, quota, throttled, memory, figures):
    cpu = {"cfs_quota_us": f"{quota}\n", "cfs_period_us": "100000\n"}
    if throttled >= 0:
        cpu["stat"] = f"nr_throttled 2\nthrottled_time {throttled}\n"
    found = found_of(tmp_path, {"proc/self/cgroup": groups, **version_1(cpu, memory)})
    told = (found.cpu_quota, found.mem_limit_bytes, found.memory_bytes(), found.cached_bytes())
    assert (told, found.throttled_ns()) == (figures, throttled)


def test_a_version_2_mount_without_the_controller_leaves_it_to_version_1(tmp_path):
    files = {
        "proc/self/cgroup": "4:memory:/job\n0::/\n",
        "sys/fs/cgroup/unified/cgroup.controllers": "\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1000\n",
    }
    found = found_of(tmp_path, files)
    assert (found.cpu, found.mem_limit_bytes) == (None, 1000)


@pytest.mark.parametrize(
    "groups",
    [None, "garbage\n::\n0:\n", "0::/gone\n", "5:memory:/gone\n4:cpu:/\n", "0::/../../x\n"],
)
def test_nothing_to_be_found_is_no_error(tmp_path, groups):
    found = found_of(tmp_path, {"proc/self/cgroup": groups} if groups else {})
    assert (found.cpu_quota, found.mem_limit_bytes) == (None, None)
    assert found.throttled_ns() == found.memory_bytes() == -1


@pytest.mark.parametrize("group", ["/Bücher-数据".encode(), b"/B\xfccher"])
def test_limits_of_groups_with_such_names(tmp_path, group):
    """A container started by a user whose name, and so whose group, is not ASCII."""
    folder = f"sys/fs/cgroup/pod{os.fsdecode(group)}"
    files = {
        "proc/self/cgroup": b"0::/pod%s\n" % group,
        f"{folder}/cpu.max": "150000 100000\n",
        f"{folder}/memory.max": "1024\n",
        "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    }
    found = found_of(tmp_path, files)
    assert (found.cpu_quota, found.mem_limit_bytes) == (1.5, 1024)
