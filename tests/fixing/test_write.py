"""A patch is written whole, in place, below the root, or not at all: whatever a run directory or a
project says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from loaderscope.fixing import write
from loaderscope.fixing.edits import FileChange
from loaderscope.fixing.write import write_changes
from loaderscope.profiler.base.errors import UsageError

OLD, NEW = b"x = 1\n", b"x = 2\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a file in a folder, and something beside it that must never change."""
    (tmp_path / "project/package").mkdir(parents=True)
    (tmp_path / "project/package/a.py").write_bytes(OLD)
    (tmp_path / "project/b.py").write_bytes(OLD)
    (tmp_path / "secret.py").write_bytes(OLD)
    return tmp_path / "project"


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def test_files_are_replaced_and_keep_their_mode(root: Path) -> None:
    (root / "b.py").chmod(0o754)
    write_changes(root, [FileChange("package/a.py", OLD, NEW), FileChange("b.py", OLD, NEW)])
    assert files(root) == {"package/a.py": NEW, "b.py": NEW}
    assert (root / "b.py").stat().st_mode & 0o777 == 0o754


@pytest.mark.parametrize(
    "path", ["../secret.py", "package/../../secret.py", "/etc/hostname", "", ".", "package"]
)
def test_paths_that_lead_elsewhere_are_refused(path: str, root: Path) -> None:
    before = files(root.parent)
    with pytest.raises(UsageError, match="nothing was written"):
        write_changes(root, [FileChange("b.py", OLD, NEW), FileChange(path, OLD, NEW)])
    assert files(root.parent) == before


@pytest.mark.parametrize("link", ["b.py", "package"])
def test_links_are_not_followed(link: str, root: Path) -> None:
    target = root.parent / ("secret.py" if link == "b.py" else "other")
    if link == "package":
        target.mkdir()
        (target / "a.py").write_bytes(OLD)
        (root / "package").rename(root.parent / "moved")
    else:
        (root / "b.py").unlink()
    (root / link).symlink_to(target)
    before = files(root.parent)
    change = FileChange("package/a.py" if link == "package" else "b.py", OLD, NEW)
    with pytest.raises(UsageError, match="nothing was written"):
        write_changes(root, [change])
    assert files(root.parent) == before


def test_a_pipe_in_place_of_a_file_is_refused(root: Path) -> None:
    (root / "b.py").unlink()
    os.mkfifo(root / "b.py")
    with pytest.raises(UsageError, match="no plain file"):
        write_changes(root, [FileChange("b.py", OLD, NEW)])


def test_a_file_that_was_edited_meanwhile_stays(root: Path) -> None:
    (root / "package/a.py").write_bytes(b"x = 3\n")
    with pytest.raises(UsageError, match=r"a\.py was changed meanwhile"):
        write_changes(root, [FileChange("b.py", OLD, NEW), FileChange("package/a.py", OLD, NEW)])
    assert files(root) == {"package/a.py": b"x = 3\n", "b.py": OLD}


def test_a_file_that_is_swapped_during_the_writing_stays(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right before the first file is replaced, another becomes a link to what lies outside."""
    checked: list[str] = []
    check = write._check

    def swapping(folder: int, name: str, change: FileChange) -> Any:
        checked.append(name)
        if len(checked) == 3:  # all have been looked at once
            (root / "b.py").unlink()
            (root / "b.py").symlink_to(root.parent / "secret.py")
        return check(folder, name, change)

    monkeypatch.setattr(write, "_check", swapping)
    with pytest.raises(UsageError, match=r"b\.py is no plain file"):
        write_changes(root, [FileChange("package/a.py", OLD, NEW), FileChange("b.py", OLD, NEW)])
    assert files(root.parent) == {"secret.py": OLD, "project/package/a.py": OLD}


def test_a_folder_that_becomes_a_link_is_still_the_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is open by then: what replaces it on the way is not looked at."""
    (root.parent / "other").mkdir()
    (root.parent / "other/a.py").write_bytes(OLD)
    replace = os.replace

    def swapping(*args: Any, **options: Any) -> None:
        (root / "package").rename(root.parent / "moved")
        (root / "package").symlink_to(root.parent / "other")
        replace(*args, **options)

    monkeypatch.setattr(os, "replace", swapping)
    write_changes(root, [FileChange("package/a.py", OLD, NEW)])
    assert (root.parent / "other/a.py").read_bytes() == OLD
    assert (root.parent / "moved/a.py").read_bytes() == NEW


def test_nothing_is_left_where_there_is_no_room(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device; nothing was written"):
        write_changes(root, [FileChange("b.py", OLD, NEW)])
    assert files(root) == {"package/a.py": OLD, "b.py": OLD}
