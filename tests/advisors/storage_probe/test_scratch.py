"""The temporary folder goes away, and its files are made cold for real."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from loaderscope.advisors.storage_probe.page_cache import flush, make_cold, resident_share
from loaderscope.advisors.storage_probe.scratch import PREFIX, RESERVE_BYTES, place, room, scratch
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.base.mounts import Mounts
from started import here

PROGRAM = """
import sys, time
from pathlib import Path
from loaderscope.advisors.storage_probe.scratch import scratch
with scratch(Path(sys.argv[1])) as folder:
    (folder / "file").write_bytes(b"x")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_the_folder_goes_when_the_process_is_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, env=here(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        assert [name.startswith(PREFIX) for name in os.listdir(tmp_path)] == [True]
        process.send_signal(signal.SIGHUP)
        time.sleep(0.01)
        process.send_signal(signal.SIGHUP)  # impatience must not leave half of it
        returned = process.wait(100)
    assert os.listdir(tmp_path) == []
    # The second signal may arrive when all is cleaned up and the first is already on its way out.
    assert returned in (129, -signal.SIGHUP)


def test_handlers_are_as_they_were(tmp_path: Path) -> None:
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = [signal.getsignal(number) for number in numbers]
    with scratch(tmp_path):
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    assert [signal.getsignal(number) for number in numbers] == before


def test_the_place_is_above_the_data_and_not_within_it(tmp_path, monkeypatch):
    data = tmp_path / "above/data"
    (data / "tmp").mkdir(parents=True)
    assert place([data], None) == data.parent
    assert place([data / "a", data.parent], None) == tmp_path
    monkeypatch.setattr(tempfile, "tempdir", str(data / "tmp"))  # TMPDIR within the data
    monkeypatch.setattr(os, "access", lambda path, mode: path == data / "tmp")
    with pytest.raises(UsageError, match="name one with --temp"):
        place([data], None)


def test_a_folder_that_cannot_serve_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data/below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "data/below")
    for name in ("data", "data/below", "link", "gone"):
        with pytest.raises(UsageError, match="not a folder outside of the data"):
            place([tmp_path / "data"], tmp_path / name)


def test_others_keep_some_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for beyond, usable in ((-1, 0), (1_000, 1_000)):
        free = shutil._ntuple_diskusage(0, 0, RESERVE_BYTES + beyond)
        monkeypatch.setattr(shutil, "disk_usage", lambda path, free=free: free)
        assert room(tmp_path) == usable


of_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's page cache")


def files(folder: Path, number: int) -> list[Path]:
    paths = [folder / str(n) for n in range(number)]
    for path in paths:
        path.write_bytes(os.urandom(20_000))
    flush(paths)
    for path in paths:  # fast storage may have let go of what was written
        path.read_bytes()
    return paths


@of_linux
def test_what_was_written_is_resident_and_after_dropping_it_is_not(tmp_path: Path) -> None:
    mount = Mounts().of(str(tmp_path))
    if mount is None or mount.type not in ("ext4", "xfs", "btrfs"):
        pytest.skip("a file system whose pages can be dropped is needed")
    (tmp_path / "empty").touch()
    paths = [*files(tmp_path, 100), tmp_path / "empty"]
    few = 0.05  # a busy machine takes single pages back, and keeps others, when it likes
    assert resident_share(paths) == pytest.approx(1.0, abs=few)
    assert make_cold(paths) is None
    assert resident_share(paths) == pytest.approx(0.0, abs=few)
    for path in paths[:50]:
        path.read_bytes()
    assert resident_share(paths) == pytest.approx(0.5, abs=few)


@of_linux
@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no second file system")
def test_where_files_live_in_memory_that_is_said() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        reason = make_cold(files(Path(folder), 3))
    assert "100% of the pages stayed in memory" in (reason or "")


@of_linux
def test_a_file_that_is_gone_is_a_reason_too(tmp_path: Path) -> None:
    assert "cannot be dropped" in (make_cold([tmp_path / "gone"]) or "")
