"""Files that readers see whole or not at all."""

import os

import pytest

from loaderscope.profiler.base.atomic_write import write_atomically


@pytest.mark.parametrize("replaced", [False, True], ids=["before", "once it is replaced"])
def test_what_a_handler_raises_is_raised_and_no_part_stays(tmp_path, monkeypatch, replaced):
    replace = os.replace

    def interrupted(one, other):
        if replaced:
            replace(one, other)
        raise TimeoutError

    path = tmp_path / "process.json"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(TimeoutError):
        write_atomically(path, "new")
    assert [each.name for each in tmp_path.iterdir()] == ["process.json"]
    assert path.read_text() == ("new" if replaced else "old")
