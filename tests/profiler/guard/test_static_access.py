"""Looking at an object without its code, and without a trace."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from loaderscope.profiler.guard.static_access import instance_vars


class Rows:
    def __init__(self) -> None:
        self.x, self.y, self.z = [1], "two", 3.0


class Private:
    __dict__: Any = property(lambda self: pytest.fail("the user's code ran"))


def test_a_copy_of_the_attributes_in_their_order() -> None:
    rows = Rows()
    held = rows.__dict__
    assert [*instance_vars(rows).items()] == [("x", [1]), ("y", "two"), ("z", 3.0)]
    assert rows.__dict__ is held and [*held] == ["x", "y", "z"]
    instance_vars(rows)["x"] = None
    assert rows.x == [1]
    assert instance_vars(Private()) == {} == instance_vars(object()) == instance_vars(3)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="attributes are read as fast there")
def test_the_attributes_no_longer_share_their_keys() -> None:
    rows, other = Rows(), Rows()
    instance_vars(rows)  # with shared keys, each access in `__getitem__` takes 20 ns more
    assert sys.getsizeof(rows.__dict__) > sys.getsizeof(other.__dict__)
