"""What a process runs of the user's source, by hash."""

import hashlib
import json
import os
import sys
from types import ModuleType

import pytest

from loaderscope.profiler.record.inspect.source_hashes import hashes_of_sources
from loaderscope.profiler.store.making import MAX_FILES, Sources, read_sources


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's whose attributes must not be asked for."""

    class Lazy(ModuleType):
        def __getattr__(self, name):
            raise AssertionError(f"{name} was asked for")

    (tmp_path / "mine.py").write_text("x = 1\n")
    found = Lazy("mine")
    vars(found)["__file__"] = str(tmp_path / "mine.py")
    monkeypatch.setitem(sys.modules, "mine", found)
    monkeypatch.setitem(sys.modules, "lazy", Lazy("lazy"))
    return found


def test_imported_modules_of_the_user_are_hashed_as_they_were_at_the_start(module, tmp_path):
    path = str(tmp_path / "mine.py")
    written = os.stat(path).st_mtime
    found = hashes_of_sources(written, ())
    assert found[path] == hashlib.sha256(b"x = 1\n").hexdigest()
    assert pytest.__file__ not in found and os.__file__ not in found
    assert path not in hashes_of_sources(written, found)
    os.utime(path, (written + 60, written + 60))
    assert path not in hashes_of_sources(written, ())


@pytest.mark.parametrize("gone", ["missing", "folder"])
def test_what_cannot_be_read_is_left_out(gone, module, tmp_path):
    path = tmp_path / "mine.py"
    path.unlink()
    if gone == "folder":
        path.mkdir()
    assert str(path) not in hashes_of_sources(1e12, ())


@pytest.mark.parametrize("text", ["[]", '{"files": 3}', '{"files": {"a": 1}}', "{"])
def test_damaged_files_and_those_of_too_many_are_read_as_nothing(text, tmp_path):
    (tmp_path / "sources.json").write_text(text)
    assert read_sources(tmp_path) == Sources()
    assert read_sources(tmp_path / "nowhere") == Sources()
    files = {f"/p/{number}.py": "0" for number in range(MAX_FILES + 9)}
    (tmp_path / "sources.json").write_text(json.dumps({"format": 1, "files": files}))
    assert read_sources(tmp_path) == Sources(1)
