"""Looking at an object without its code, and without a trace."""

import gc
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


AS_INLINE = pytest.mark.skipif(
    not (3, 11) <= sys.version_info < (3, 13), reason="attributes are inline there"
)


@AS_INLINE
def test_looking_makes_no_dict_of_the_attributes() -> None:
    rows, more = Rows(), Rows()
    more.set_later = None  # by no name in the class: only `__dict__` has it
    assert [*instance_vars(rows)] == ["x", "y", "z"]
    assert [*instance_vars(more)] == ["x", "y", "z", "set_later"] == [*instance_vars(more)]
    assert [any(type(e) is dict for e in gc.get_referents(each)) for each in (rows, more)] == [
        False,
        True,
    ]


class Defaults(Rows):
    x: Any = 0


@AS_INLINE
def test_the_attributes_no_longer_share_their_keys() -> None:
    rows, other = Defaults(), Defaults()
    instance_vars(rows)  # with shared keys, each access in `__getitem__` takes 20 ns more
    assert sys.getsizeof(rows.__dict__) > sys.getsizeof(other.__dict__)
