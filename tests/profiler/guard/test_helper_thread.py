"""Work in a thread of its own: given up on where it hangs, taken up once it is over after all."""

import threading

import pytest

from loaderscope.profiler.guard import helper_thread
from loaderscope.profiler.guard.helper_thread import in_helper_thread, is_late
from started import until


def test_what_it_returns_and_raises_arrives():
    assert in_helper_thread(lambda: threading.current_thread() is threading.main_thread()) is False
    with pytest.raises(ZeroDivisionError):
        in_helper_thread(lambda: 1 // 0)


def test_what_was_given_up_on_is_in_the_way_only_while_it_lasts(monkeypatch):
    go_on = threading.Event()
    monkeypatch.setattr(helper_thread, "PATIENCE_S", 0.02)
    with pytest.raises(RuntimeError, match="took more than"):
        in_helper_thread(go_on.wait)
    assert is_late()
    with pytest.raises(RuntimeError, match="hung before"):
        in_helper_thread(int)
    monkeypatch.undo()
    go_on.set()
    until(lambda: not is_late(), "its end")
    assert in_helper_thread(int) == 0
