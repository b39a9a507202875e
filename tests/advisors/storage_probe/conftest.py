"""A file system of its own, for tests of what happens when there is no room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from started import ran


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    point = tmp_path / "small"
    point.mkdir()
    if ran(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", point]).returncode:
        pytest.skip("this user may not mount")
    yield point
    ran(["umount", point], check=True)
