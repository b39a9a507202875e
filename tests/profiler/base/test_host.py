"""This machine has one name, whoever asks; its CPUs, and lists of them."""

import os
import platform
import socket
from unittest.mock import Mock

import pytest

from loaderscope.profiler.base.cpu_list import cpu_list, cpus_of
from loaderscope.profiler.base.host import allowed_cores, boot_id, host_name, usable_cores
from loaderscope.profiler.base.liveness import Liveness
from loaderscope.profiler.record.session.process_facts import process_facts


def test_one_name():
    told = process_facts()
    assert told["host"] == host_name() == Liveness().host == socket.gethostname() == platform.node()
    assert told["boot_id"] == boot_id() == Liveness().boot_id
    assert len(cpus_of(told["cpus"])) == told["affinity"]


def test_no_boot_id_where_there_is_none(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "empty").write_text("\n")
    assert [boot_id(tmp_path / name) for name in ("missing", "binary", "empty")] == [None] * 3


def test_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 3, 7}, raising=False)
    assert (allowed_cores(), usable_cores()) == (3, 3)
    monkeypatch.setattr(os, "cpu_count", lambda: 12)
    monkeypatch.setattr(os, "sched_getaffinity", Mock(side_effect=OSError))
    assert (allowed_cores(), usable_cores()) == (None, 12)
    monkeypatch.delattr(os, "sched_getaffinity")
    assert (allowed_cores(), usable_cores()) == (None, 12)


@pytest.mark.parametrize(
    ("cpus", "text"), [((3, 0, 1, 2, 8), "0-3,8"), ((5,), "5"), ((0, 2, 4), "0,2,4")]
)
def test_lists_of_cpus_there_and_back(cpus, text):
    assert (cpu_list(cpus), cpus_of(text)) == (text, frozenset(cpus))


@pytest.mark.parametrize("text", ["", "a", "0-", "99999999", "0-999999", "1;2"])
def test_what_is_no_list_names_none(text):
    assert cpus_of(text) == frozenset()
