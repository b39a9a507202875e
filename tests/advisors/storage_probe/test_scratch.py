"""The temporary folder: where it is made, and that it goes away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from loaderscope.advisors.storage_probe.scratch import PREFIX, RESERVE_BYTES, place, room, scratch
from loaderscope.profiler.base.errors import UsageError

PLENTY = 1 << 50


def leftovers(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(PREFIX)]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_the_folder_goes_whatever_ends_the_block(
    error: type[BaseException], tmp_path: Path
) -> None:
    def broken_off() -> None:
        with scratch(tmp_path) as folder:
            (folder / "deep/er").mkdir(parents=True)
            (folder / "deep/er/file").write_bytes(b"x")
            assert folder.stat().st_mode & 0o777 == 0o700
            raise error

    with pytest.raises(error):
        broken_off()
    assert leftovers(tmp_path) == []


PROGRAM = """
import sys, time
from pathlib import Path
from loaderscope.advisors.storage_probe.scratch import scratch
with scratch(Path(sys.argv[1])) as folder:
    (folder / "file").write_bytes(b"x")
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, None)]
)
def test_the_folder_goes_when_the_process_is_ended(
    number: signal.Signals, code: int | None, tmp_path: Path
) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert len(leftovers(tmp_path)) == 1
        process.send_signal(number)
        if number != signal.SIGINT:
            time.sleep(0.01)
            process.send_signal(number)  # impatience must not leave half of it
        returned = process.wait(100)
    assert leftovers(tmp_path) == []
    # The second signal may arrive when all is cleaned up and the first is already on its way out.
    assert returned != 0
    assert code is None or returned in (code, -number)


def test_handlers_are_as_they_were_and_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    def mine(number: int, frame: object) -> None:
        raise AssertionError

    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    default = signal.signal(signal.SIGHUP, mine)
    try:
        before = [signal.getsignal(number) for number in numbers]
        with scratch(tmp_path):
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
            assert signal.getsignal(signal.SIGHUP) is mine
        assert [signal.getsignal(number) for number in numbers] == before
    finally:
        signal.signal(signal.SIGHUP, default)


def test_the_place_is_on_the_datas_file_system_and_not_within_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, other = tmp_path / "data", tmp_path / "tmp"
    (data / "tmp").mkdir(parents=True)
    other.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    assert place([data], None, 0, lambda path: PLENTY) == (other, [])
    monkeypatch.setattr(tempfile, "tempdir", str(data / "tmp"))  # TMPDIR within the data
    monkeypatch.chdir(data)
    chosen, _ = place([data], None, 0, lambda path: PLENTY)
    assert chosen == tmp_path


def test_the_roomiest_is_taken_where_none_has_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    free = {tmp_path / "tmp": 10**9, tmp_path: 2 * 10**9}
    chosen, _ = place([tmp_path / "data"], None, 10**12, lambda path: free.get(path, 0))
    assert chosen == tmp_path


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no second file system")
def test_another_file_system_is_said(tmp_path: Path) -> None:
    _, notes = place([tmp_path], Path("/dev/shm"), 0)
    if os.stat("/dev/shm").st_dev != os.stat(tmp_path).st_dev:
        assert "another file system (tmpfs)" in notes[0]


def test_a_folder_that_cannot_serve_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data/below")
    for name in ("data", "data/below", "link"):
        with pytest.raises(UsageError, match="not a folder outside of the data"):
            place([tmp_path / "data"], tmp_path / name, 0)
    with pytest.raises(UsageError, match="not a folder outside of the data that can be written to"):
        place([tmp_path / "data"], tmp_path / "gone", 0)
    (tmp_path / "sealed").mkdir(mode=0o500)
    if os.getuid() != 0:
        with pytest.raises(
            UsageError, match="not a folder outside of the data that can be written to"
        ):
            place([tmp_path / "data"], tmp_path / "sealed", 0)


def test_others_keep_some_room(tmp_path: Path) -> None:
    assert room(tmp_path, lambda path: RESERVE_BYTES) == 0
    assert room(tmp_path, lambda path: RESERVE_BYTES + 1_100) == 1_000
