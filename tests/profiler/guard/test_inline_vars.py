"""Attributes are found without making a `__dict__`, and only where all of them are."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from loaderscope.profiler.guard.inline_vars import NEEDED, inline_vars

needed = pytest.mark.skipif(not NEEDED, reason="`__dict__` does no harm in this Python")


class Plain:
    def __init__(self) -> None:
        self.rows = [1, 2]
        self.width = self.again = 7
        self.nothing = None


class Asked(Plain):
    """Counts how often its own code runs."""

    calls = 0

    def __getattribute__(self, name: str) -> Any:
        type(self).calls += 1
        return super().__getattribute__(name)

    @property
    def costly(self) -> int:
        type(self).calls += 1
        return 1

    def __getattr__(self, name: str) -> Any:
        type(self).calls += 1
        return 1


def has_dict(value: object) -> bool:
    return any(type(part) is dict for part in gc.get_referents(value))


@needed
def test_attributes_are_found_and_no_dict_is_made() -> None:
    value = Plain()
    found = inline_vars(value)
    assert found == {"rows": value.rows, "width": 7, "again": 7, "nothing": None}
    assert next(iter(found)) == "rows" and list(found)[-1] == "nothing"
    assert not has_dict(value)


@needed
def test_code_of_the_object_is_not_run() -> None:
    value = Asked()
    Asked.calls = 0
    assert set(inline_vars(value) or {}) == {"rows", "width", "again", "nothing"}
    assert Asked.calls == 0


def test_an_attribute_nobody_mentions_is_left_to_the_dict() -> None:
    value = Plain()
    setattr(value, "".join(["unmen", "tioned"]), 5)
    assert inline_vars(value) is None


def test_an_object_that_has_a_dict_is_left_to_it() -> None:
    value = Plain()
    assert len(vars(value)) == 4
    assert inline_vars(value) is None


def test_a_class_attribute_set_anew_is_left_to_the_dict() -> None:
    class Default(Plain):
        extra = 1

        def change(self) -> None:
            self.extra = object()  # type: ignore[assignment]

    value = Default()
    value.change()
    assert inline_vars(value) is None


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, 5, None, object(), int, len])
def test_builtins_have_no_attributes_of_their_own(value: object) -> None:
    assert not inline_vars(value)
