"""Lists of CPUs, written and read."""

import pytest

from loaderscope.profiler.base.cpu_list import cpu_list, cpus_of


@pytest.mark.parametrize(
    ("cpus", "text"), [((3, 0, 1, 2, 8), "0-3,8"), ((5,), "5"), ((0, 2, 4), "0,2,4")]
)
def test_there_and_back(cpus, text):
    assert cpu_list(cpus) == text
    assert cpus_of(text) == frozenset(cpus)


@pytest.mark.parametrize("text", ["", "a", "0-", "99999999", "0-999999", "1;2"])
def test_what_is_no_list_names_none(text):
    assert cpus_of(text) == frozenset()
