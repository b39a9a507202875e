"""When no system sampler is started. Where it is, nobody sees it: `children/*` of tests/harmless."""

import sys

import pytest

from loaderscope.profiler.record.session import start_sampler
from loaderscope.profiler.record.session.start_sampler import why_not_kept

pytestmark = pytest.mark.skipif(bool(why_not_kept()), reason=f"{why_not_kept()}")


@pytest.fixture(autouse=True)
def no_sampler(): ...  # it is started by hand


def test_without_the_extension_there_is_no_sampler(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "loaderscope.profiler.native._spawn", None)
    started = start_sampler.start_sampler(tmp_path)
    assert started.pid is None and started.keeper is None
    assert started.reason is not None and "no C compiler" in started.reason


def test_a_python_that_does_not_know_itself_gets_no_sampler(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    started = start_sampler.start_sampler(tmp_path)
    assert started.pid is None
    assert started.reason is not None and "does not know its own Python" in started.reason
