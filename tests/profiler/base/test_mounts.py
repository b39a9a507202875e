"""The kernel's table of mounts: names may hold any byte, some as octal numbers."""

import os

import pytest

from loaderscope.profiler.base.mounts import Entry, Mounts, table
from loaderscope.profiler.daemon import cgroup

NAMES = {
    b"/data/with\\040space": b"/data/with space",
    b"/data/tab\\011and\\012line": b"/data/tab\tand\nline",
    b"/data/back\\134slash": b"/data/back\\slash",
    b"/data/not\\134040octal": b"/data/not\\040octal",  # a name that looks escaped once it is read
    "/data/Bücher/数据".encode(): "/data/Bücher/数据".encode(),
    b"/data/latin-1/B\xfccher": b"/data/latin-1/B\xfccher",
    "/data/next\x85line\u2028".encode(): "/data/next\x85line\u2028".encode(),
    b"/data/carriage\rreturn\x0b": b"/data/carriage\rreturn\x0b",
}


@pytest.mark.parametrize(("written", "name"), NAMES.items())
def test_names_of_mounts(tmp_path, written, name):
    file = tmp_path / "mountinfo"
    file.write_bytes(
        b"22 27 0:21 / / rw - ext4 /dev/x rw\n23 22 0:22 / %s rw shared:1 - nfs4 host:/y rw\n"
        % written
    )
    assert Mounts(str(file)).of(os.fsdecode(name + b"/set"))[:2] == (os.fsdecode(name), "nfs4")
    assert Mounts(str(file)).of(os.fsdecode(name + b"-other"))[:2] == ("/", "ext4")


def test_every_part_of_a_line(tmp_path):
    file = tmp_path / "mountinfo"
    file.write_bytes(
        b"30 23 0:26 /a\\040b /sys/fs/cgroup/cpu rw,nosuid shared:4 master:1 - cgroup cgroup "
        b"rw,cpu,cpuacct\n"
        b"31 23 0:27 / /x rw - fuse.a - b rw\n"  # the first separator counts
        b"32 23 0:28 / /y rw - tmpfs\nbroken\n\n1 2 3 4 - x\n"
    )
    assert list(table(file)) == [
        Entry("/sys/fs/cgroup/cpu", "cgroup"),
        Entry("/x", "fuse.a"),
        Entry("/y", "tmpfs"),
    ]
    assert list(table(tmp_path / "missing")) == []


@pytest.mark.parametrize("name", [*NAMES.values()][4:6])
def test_limits_of_groups_with_such_names(tmp_path, name):
    """A container started by a user whose name, and so whose group, is not ASCII."""
    group = b"/" + name.rsplit(b"/", 1)[1].replace(
        b"\n", b""
    )  # the kernel allows no line end in a group's name
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
    assert (found.version, found.cpu_quota, found.mem_limit_bytes) == (2, 1.5, 1024)
