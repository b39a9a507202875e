"""Only sources that are what the run recorded, below the project's root, are read for a patch."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from loaderscope.fixing.project import CannotPatch, Project
from made_projects import lay

SOURCE = "import torch\nx = 1\n"


def test_a_source_as_it_was_recorded_is_read(tmp_path: Path) -> None:
    project = Project(tmp_path, lay(tmp_path, {"a.py": SOURCE, "b/c.py": "y = 2\n"}))
    assert project.source(str(tmp_path / "a.py")).data == SOURCE.encode()
    assert [each.path for each in project.sources()] == ["a.py", "b/c.py"]


def test_a_root_behind_a_link_is_the_same_root(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    hashes = lay(tmp_path / "link", {"a.py": SOURCE})
    for root in ("real", "link"):
        assert Project(tmp_path / root, hashes).source(str(tmp_path / "link/a.py")).path == "a.py"


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
