"""A session, from the first loop to its end: where it is recorded, and what its facts say."""

import errno
import itertools
import json
import os
import signal
import sys
from unittest.mock import DEFAULT, Mock

import pytest

from closing import close_session
from loaderscope.profiler.record.session import session
from loaderscope.profiler.record.session.begin_run import begin_run
from loaderscope.profiler.record.session.start_sampler import start_sampler, why_not_kept
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.rundir import create_run


def facts(opened):
    return json.loads((opened.directory / "process.json").read_text())


def open_one():
    opened = session.open_session()
    assert opened is not None
    return opened


def test_its_end_is_noted_once():
    opened = open_one()
    assert "ended_clock_ns" not in facts(opened)
    opened.finish()
    ended = facts(opened)["ended_clock_ns"]
    opened.finish()
    assert facts(opened)["ended_clock_ns"] == ended > 0


def test_at_exit_an_interrupt_does_not_keep_the_end_from_being_noted(monkeypatch):
    opened = open_one()
    interrupts = itertools.chain((SystemExit, KeyboardInterrupt), itertools.repeat(DEFAULT))
    monkeypatch.setattr(opened, "flush", Mock(wraps=opened.flush, side_effect=interrupts))
    opened.finish_at_exit()
    assert facts(opened)["ended_clock_ns"] > 0


@pytest.mark.parametrize(
    ("error", "outcome"), [(KeyboardInterrupt, "interrupted"), (ValueError, "failed")]
)
def test_what_an_error_ended_says_so(error, outcome, runs_dir, monkeypatch):
    monkeypatch.setattr(sys, "last_type", error, raising=False)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    opened = open_one()
    opened.finish_at_exit()
    assert facts(opened)["ended_by"] == error.__name__
    assert open_run(opened.run_directory).outcome == outcome


def test_a_run_named_in_the_environment_is_joined_and_one_that_is_gone_is_said(
    runs_dir, monkeypatch, capsys
):
    run = create_run(runs_dir, ["train.py"])
    monkeypatch.setenv(session.RUN_VARIABLE, str(run))
    assert open_one().run_directory == run
    close_session()
    monkeypatch.setenv(session.RUN_VARIABLE, str(runs_dir / "gone"))
    assert open_one().run_directory.parent == runs_dir
    said = capsys.readouterr().err
    assert said.count("loaderscope:") == 1 and "gone cannot be written" in said
    assert "instead" in said


def test_a_worker_opens_none(monkeypatch, runs_dir):
    monkeypatch.setattr(session._process, "in_worker", False)  # set back afterwards
    session.leave_worker_alone()
    assert session.in_worker() and not session.may_open()
    assert session.open_session() is None and not runs_dir.exists()


@pytest.mark.parametrize(("text", "limit_mb"), [("", 256), ("64", 64), ("1", 32), ("a lot", 256)])
def test_the_limit_of_the_environment(text, limit_mb, monkeypatch, capsys):
    monkeypatch.setenv(session.LIMIT_VARIABLE, text)
    assert open_one().budget.max_bytes == limit_mb * 1_000_000 - session.SYSTEM_LIMIT_BYTES
    assert ("is not a number" in capsys.readouterr().err) is (text == "a lot")


def test_the_processes_of_a_run_divide_its_limit(monkeypatch):
    monkeypatch.setenv(session.LIMIT_VARIABLE, "32")
    opened = open_one()
    for number in range(3):
        (opened.run_directory / f"p{number}-0").mkdir()
    opened._counted_ns = -session.COUNT_NS
    assert opened.budget.admit(2_000_000) and not opened.budget.admit(1)


def test_why_something_is_not_measured_is_in_its_facts():
    opened = open_one()
    opened.note_reason("device", "there is none")
    assert facts(opened)["reasons"]["device"] == "there is none"
    assert "LOADERSCOPE_SYSTEM=0" in facts(opened)["reasons"]["system"]


@pytest.mark.parametrize(
    ("variable", "wanted"), [("", "on"), ("0", "off"), ("eager", "eager"), ("EAGER ", "eager")]
)
def test_stacks_are_wanted_as_the_environment_says(variable, wanted, monkeypatch):
    monkeypatch.setenv(session.STACKS_VARIABLE, variable)
    opened = open_one()
    assert facts(opened)["stacks"] == wanted
    session.take_no_stacks()  # while it is open
    assert facts(opened)["stacks"] == "off"


def test_what_is_told_is_told_once(capsys):
    for _ in range(2):
        session.tell("something to say")
    assert capsys.readouterr().err == "loaderscope: something to say\n"


def test_what_cannot_begin_leaves_no_run(runs_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def begin(directory):
        if directory.parent == runs_dir:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return directory

    begun, said = begin_run(lambda: runs_dir, ["train.py"], begin)
    assert begun.parent == tmp_path / f"loaderscope-{os.getuid()}" / "runs"
    why = f"{runs_dir} cannot be written (No space left on device)"
    assert said == f"{why}; recording to {begun} instead"
    assert not list(runs_dir.iterdir())


def test_what_a_signal_s_handler_raises_arrives(runs_dir):
    def handler(number, frame):
        raise TimeoutError("time is up")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(TimeoutError, match="time is up"):
            begin_run(lambda: runs_dir, [], lambda run: signal.raise_signal(signal.SIGUSR1))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not list(runs_dir.iterdir())


@pytest.mark.skipif(bool(why_not_kept()), reason=f"{why_not_kept()}")
@pytest.mark.parametrize(
    ("space", "name", "value", "why"),
    [
        (sys.modules, "loaderscope.profiler.native._spawn", None, "no C compiler"),
        (vars(sys), "executable", "", "does not know its own Python"),
    ],
)
def test_why_no_sampler_is_started(tmp_path, monkeypatch, space, name, value, why):
    """Where it is, nobody sees it: `children/*` of tests/harmless."""
    monkeypatch.delenv("LOADERSCOPE_SYSTEM")
    monkeypatch.setitem(space, name, value)
    started = start_sampler(tmp_path)
    assert (started.pid, started.keeper) == (None, None)
    assert started.reason is not None and why in started.reason
