import os
from pathlib import Path

import pytest

from loaderscope.profiler.daemon import cgroup

GIB = 1 << 30


def found_of(root: Path, files: dict[str, str | bytes]) -> cgroup.Cgroup:
    """What is found in a file system with these files."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return cgroup.find(root)


def version_1(cpu: dict[str, str], memory: dict[str, str]) -> dict[str, str]:
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
