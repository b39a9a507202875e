"""Only sources that are what the run recorded, below the project's root, are read for a patch. It is
written whole, in place, below the root, or not at all: whatever a run directory or a project says."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from loaderscope.fixing.edits import FileChange
from loaderscope.fixing.project import CannotPatch, Project
from loaderscope.fixing.write import write_changes
from loaderscope.profiler.base.errors import UsageError
from made_projects import lay

SOURCE = "import torch\nx = 1\n"


def test_a_source_as_it_was_recorded_is_read_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    hashes = lay(tmp_path / "link", {"a.py": SOURCE, "b/c.py": "y = 2\n"})
    for root in ("real", "link"):
        project = Project(tmp_path / root, hashes)
        assert project.source(str(tmp_path / "link/a.py")).data == SOURCE.encode()
        assert [each.path for each in project.sources()] == ["a.py", "b/c.py"]


@pytest.mark.parametrize(
    ("recorded", "now", "says"),
    [
        (SOURCE, SOURCE + "\n", "a.py was changed since the run: record it again"),
        (SOURCE, None, "a.py cannot be read: No such file"),
        ("def f(:\n", "", "a.py cannot be parsed"),
        ("x = '\udce9'\n", "", "a.py cannot be parsed"),
    ],
)
def test_other_sources_are_refused_in_a_sentence(recorded, now, says, tmp_path):
    raw, path = recorded.encode("utf-8", "surrogateescape"), tmp_path / "a.py"
    path.write_bytes(raw)
    hashes = {str(path): hashlib.sha256(raw).hexdigest()}
    if now is None:
        path.unlink()
    elif now:
        path.write_text(now)
    with pytest.raises(CannotPatch, match=says):
        Project(tmp_path, hashes).source(str(path))


def test_files_that_lie_elsewhere_are_refused(tmp_path: Path) -> None:
    inside, outside = tmp_path / "project", tmp_path / "elsewhere"
    hashes = lay(inside, {"a.py": SOURCE}) | lay(outside, {"b.py": SOURCE})
    project = Project(inside, hashes)
    for file, says in (
        (outside / "b.py", "lies outside .*project: run this in your project"),
        (f"{inside}/../elsewhere/b.py", "lies outside"),
        (os.__file__, "belongs to an installed package"),
        (pytest.__file__, "belongs to an installed package"),
        ("", "is in no file"),
        ("<string>", "is in no file"),
        (inside / "unknown.py", "the run did not record what unknown.py was like"),
    ):
        with pytest.raises(CannotPatch, match=says):
            project.source(str(file))
    assert [each.path for each in project.sources()] == ["a.py"]


OLD, NEW = b"x = 1\n", b"x = 2\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with a file in a folder, and something beside it that must never change."""
    names = ("project/package/a.py", "project/b.py", "secret.py", "other/a.py")
    lay(tmp_path, dict.fromkeys(names, OLD.decode()))
    return tmp_path / "project"


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def write(root: Path, *paths: str) -> None:
    write_changes(root, [FileChange(path, OLD, NEW) for path in paths])


def test_files_are_replaced_and_keep_their_mode(root: Path) -> None:
    (root / "b.py").chmod(0o754)
    write(root, "package/a.py", "b.py")
    assert files(root) == {"package/a.py": NEW, "b.py": NEW}
    assert (root / "b.py").stat().st_mode & 0o777 == 0o754


ELSEWHERE = ["../secret.py", "package/../../secret.py", "/etc/hostname", "", ".", "package"]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_paths_that_lead_elsewhere_are_refused(path: str, root: Path) -> None:
    before = files(root.parent)
    with pytest.raises(UsageError, match="nothing was written"):
        write(root, "b.py", path)
    assert files(root.parent) == before


LINKS = [("b.py", "secret.py", "b.py"), ("package", "other", "package/a.py")]


@pytest.mark.parametrize(("link", "target", "path"), LINKS)
def test_links_are_not_followed_nor_pipes_written_to(link, target, path, root):
    (root / link).rename(root.parent / "moved")
    (root / link).symlink_to(root.parent / target)
    before = files(root.parent)
    with pytest.raises(UsageError, match="nothing was written"):
        write(root, path)
    assert files(root.parent) == before
    (root / "b.py").unlink(missing_ok=True)
    os.mkfifo(root / "b.py")
    with pytest.raises(UsageError, match="no plain file"):
        write(root, "b.py")


def test_a_file_that_was_edited_meanwhile_stays(root: Path) -> None:
    (root / "package/a.py").write_bytes(b"x = 3\n")
    with pytest.raises(UsageError, match=r"a\.py was changed meanwhile"):
        write(root, "b.py", "package/a.py")
    assert files(root) == {"package/a.py": b"x = 3\n", "b.py": OLD}


def test_nothing_is_left_where_there_is_no_room(root, monkeypatch):
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UsageError, match="No space left on device; nothing was written"):
        write(root, "b.py")
    assert files(root) == {"package/a.py": OLD, "b.py": OLD}
