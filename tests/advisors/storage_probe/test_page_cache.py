"""Files are made cold for real, and where they cannot be, that is found out."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

from loaderscope.advisors.storage_probe.page_cache import (
    COLD_BELOW,
    flush,
    make_cold,
    resident_share,
)
from loaderscope.advisors.storage_probe.scratch import file_system

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's page cache")
SHM = Path("/dev/shm")


def files(folder: Path, number: int) -> list[Path]:
    paths = [folder / str(n) for n in range(number)]
    for path in paths:
        path.write_bytes(os.urandom(20_000))
    flush(paths)
    for path in paths:  # fast storage may have let go of what was written
        path.read_bytes()
    return paths


def test_what_was_written_is_resident_and_after_dropping_it_is_not(tmp_path: Path) -> None:
    if file_system(tmp_path) not in ("ext4", "xfs", "btrfs"):
        pytest.skip("a file system whose pages can be dropped is needed")
    paths = files(tmp_path, 100)
    (tmp_path / "empty").touch()
    paths.append(tmp_path / "empty")
    few = COLD_BELOW  # a busy machine takes single pages back, and keeps others, when it likes
    assert resident_share(paths) == pytest.approx(1.0, abs=few)
    assert make_cold(paths) is None
    assert resident_share(paths) == pytest.approx(0.0, abs=few)
    for path in paths[:50]:
        path.read_bytes()
    assert resident_share(paths) == pytest.approx(0.5, abs=few)


@pytest.mark.skipif(not SHM.is_dir(), reason="no /dev/shm")
def test_where_files_live_in_memory_that_is_said() -> None:
    with tempfile.TemporaryDirectory(dir=SHM) as folder:
        reason = make_cold(files(Path(folder), 3))
    assert reason is not None
    assert "100% of the pages were still in memory" in reason


def test_a_file_that_is_gone_is_a_reason_too(tmp_path: Path) -> None:
    reason = make_cold([tmp_path / "gone"])
    assert reason is not None
    assert "cannot be dropped" in reason
