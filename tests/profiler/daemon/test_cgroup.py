import os
from pathlib import Path

import pytest

from loaderscope.profiler.daemon import cgroup

GIB = 1 << 30


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


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
    files = {
        "proc/self/cgroup": "0::/pod/box\n",
        **{f"sys/fs/cgroup/{name}": text for name, text in group.items()},
    }
    found = cgroup.find(write(tmp_path, files))
    assert (found.cpu_quota, found.mem_limit_bytes) == (1.5, 2 * GIB)
    assert found.cached_bytes() == 300
    assert found.throttled_ns() == 6000  # told where the limit is, in the pod
    assert found.memory_bytes() == GIB


def test_version_1_with_the_container_s_own_part_mounted(tmp_path):
    files = {
        "proc/self/cgroup": "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/cpu/cpu.stat": "nr_throttled 2\nthrottled_time 12345\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{GIB}\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "99\n",
        "sys/fs/cgroup/memory/memory.stat": "inactive_file 1\ntotal_inactive_file 44\n",
    }
    found = cgroup.find(write(tmp_path, files))
    assert (found.cpu_quota, found.mem_limit_bytes) == (2.0, GIB)
    assert found.throttled_ns() == 12345
    assert (found.memory_bytes(), found.cached_bytes()) == (99, 44)


def test_version_1_without_limits(tmp_path):
    files = {
        "proc/self/cgroup": "5:memory:/\n4:cpu:/\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n",
    }
    found = cgroup.find(write(tmp_path, files))
    assert (found.cpu_quota, found.mem_limit_bytes) == (None, None)
    assert found.memory_bytes() == 5


def test_a_version_2_mount_without_the_controller_leaves_it_to_version_1(tmp_path):
    files = {
        "proc/self/cgroup": "4:memory:/job\n0::/\n",
        "sys/fs/cgroup/unified/cgroup.controllers": "\n",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "1000\n",
    }
    found = cgroup.find(write(tmp_path, files))
    assert (found.cpu, found.mem_limit_bytes) == (None, 1000)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/self/cgroup": "garbage\n::\n0:\n"},
        {"proc/self/cgroup": "0::/gone\n"},
        {"proc/self/cgroup": "5:memory:/gone\n4:cpu:/\n"},
        {"proc/self/cgroup": "0::/../../x\n"},
    ],
)
def test_nothing_to_be_found_is_no_error(tmp_path, files):
    found = cgroup.find(write(tmp_path, files))
    assert (found.cpu_quota, found.mem_limit_bytes) == (None, None)
    assert found.throttled_ns() == -1
    assert found.memory_bytes() == -1


@pytest.mark.parametrize("group", ["/Bücher-数据".encode(), b"/B\xfccher"])
def test_limits_of_groups_with_such_names(tmp_path, group):
    """A container started by a user whose name, and so whose group, is not ASCII."""
    root = os.fsencode(tmp_path)
    files = {
        b"proc/self/cgroup": b"0::/pod%s\n" % group,
        b"sys/fs/cgroup/pod" + group + b"/cpu.max": b"150000 100000\n",
        b"sys/fs/cgroup/pod" + group + b"/memory.max": b"1024\n",
        b"sys/fs/cgroup/cgroup.controllers": b"cpu memory\n",
    }
    for path, data in files.items():
        whole = os.path.join(root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "wb") as file:
            file.write(data)
    found = cgroup.find(tmp_path)
    assert (found.cpu_quota, found.mem_limit_bytes) == (1.5, 1024)
