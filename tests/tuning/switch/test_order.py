"""Indices are drawn when the code's own settings would draw them, whoever makes the batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from loaderscope.tuning.switch.order import Order


class Source:
    """A sampler that notes after how many batches of the loop it was asked."""

    def __init__(self, length: int, fails_at: int = -1) -> None:
        self.length, self.fails_at, self.handed, self.asked = length, fails_at, 0, []

    def __iter__(self) -> Iterator[int]:
        for index in range(self.length):
            self.asked.append(self.handed)
            if index == self.fails_at:
                raise LookupError("no such sample")
            yield index


class Early:
    """Says whether indices may be drawn early."""

    def __init__(self, early: bool = True) -> None:
        self.draws_early = lambda drawn: early


def ran(order: Order, source: Source, guest: bool, ahead: int) -> list[Any]:
    """A loop whose batches are made by a pool that takes all it can get, up to so many ahead."""
    found: list[Any] = []
    while True:
        order.asked(guest)
        while len(order.waiting) < max(1, ahead):
            try:
                next(order)
            except StopIteration:
                break
        if not order.waiting:
            return found
        found.append(order.handed())
        order.catch_up()
        source.handed += 1


@pytest.mark.parametrize("own", [0, 2, 6])
@pytest.mark.parametrize("ahead", [1, 4, 12])
def test_each_index_is_drawn_when_the_code_s_own_settings_draw_it(own: int, ahead: int) -> None:
    source = Source(10)
    order = Order(iter(source), own, Early(False))
    assert ran(order, source, guest=True, ahead=ahead) == list(range(10))
    assert source.asked == [max(0, index - own) for index in range(10)]


def test_what_hears_of_nothing_is_drawn_as_far_ahead_as_is_asked_for_but_never_the_first() -> None:
    source = Source(10)
    order = Order(iter(source), 0, Early())
    with pytest.raises(StopIteration):
        next(order)
    order.asked(True)
    assert [next(order) for _ in range(10)] == list(range(10)) and source.asked == [0] * 10


def test_what_was_taken_is_given_back_handed_over_or_lost() -> None:
    order = Order(iter(range(9)), 4, Early(False))
    order.catch_up()
    assert [next(order) for _ in range(3)] == [0, 1, 2]
    order.give_back(1)
    assert [*order.waiting] == [0]
    assert [next(order) for _ in range(3)] == [1, 2, 3]
    assert [order.handed() for _ in range(4)] == [0, 1, 2, 3] and not order.waiting
    order = Order(iter(range(6)), 6, Early(False))
    for _ in range(6):
        next(order)
    order.keep(2)
    assert [*order.waiting] == [4, 5]


@pytest.mark.parametrize("early", [False, True])
def test_an_error_of_the_sampler_comes_where_the_loop_would_meet_it(early: bool) -> None:
    source = Source(9, fails_at=3)
    order = Order(iter(source), 0, Early(early))
    found: list[Any] = []
    with pytest.raises(LookupError) as raised:
        found += ran(order, source, guest=True, ahead=5)
    assert source.handed == 3 and order.raised(raised.value) and not order.raised(raised.value)


@pytest.mark.parametrize("own", [0, 3])
def test_a_pool_that_takes_one_index_for_each_batch_keeps_as_many_under_way(own: int) -> None:
    order = Order(iter(Source(60)), own, Early())
    order.asked(True)
    while len(order.waiting) < 12:
        next(order)
    for _ in range(40):
        order.handed()
        order.catch_up()
        order.asked(True)
        next(order)
    assert len(order.waiting) == 12
