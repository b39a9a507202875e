"""Where a run is recorded: what is tried, in which order, and what is left of it."""

import errno
import os
import signal
from pathlib import Path

import pytest

from loaderscope.profiler.record.session.begin_run import begin_run
from loaderscope.profiler.store.rundir import create_run


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / f"loaderscope-{os.getuid()}" / "runs"


def itself(directory):
    return directory


def test_the_folder_asked_for_comes_first_and_a_run_that_is_there_is_joined(runs_dir):
    begun, said = begin_run(lambda: runs_dir, ["train.py"], itself)
    assert begun is not None and begun.parent == runs_dir and said == ""
    joined = create_run(runs_dir, ["train.py"])
    assert begin_run(lambda: runs_dir, ["train.py"], itself, joined) == (joined, "")


def test_what_cannot_begin_leaves_no_run(runs_dir, temporary):
    def begin(directory):
        if directory.parent == runs_dir:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return directory

    begun, said = begin_run(lambda: runs_dir, ["train.py"], begin)
    assert begun is not None and begun.parent == temporary
    why = f"{runs_dir} cannot be written (No space left on device)"
    assert said == f"{why}; recording to {begun} instead"
    assert not list(runs_dir.iterdir())


def test_no_folder_for_temporary_files_is_no_error(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/proc/none")
    assert begin_run(lambda: Path("/proc/runs"), ["train.py"], itself)[0] is None


def test_what_a_signal_s_handler_raises_arrives(runs_dir):
    def handler(number, frame):
        raise TimeoutError("time is up")

    def begin(directory):
        signal.raise_signal(signal.SIGUSR1)
        return directory

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(TimeoutError, match="time is up"):
            begin_run(lambda: runs_dir, ["train.py"], begin)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not list(runs_dir.iterdir())
