"""Being told of an import leaves the import as it is."""

import importlib
import sys

from loaderscope.profiler.record.iterate.imports import after_import


def test_several_may_wait_for_one_module(tmp_path, monkeypatch):
    (tmp_path / "awaited_by_many.py").write_text(
        "loaded = hasattr(__spec__.loader, 'exec_module'), vars(__loader__)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    called = []
    finders = list(sys.meta_path)
    for number in range(3):
        after_import("awaited_by_many", lambda number=number: called.append(number))
    module = importlib.import_module("awaited_by_many")
    assert sorted(called) == [0, 1, 2]
    there, own = module.loaded
    assert there and "exec_module" not in own
    assert sys.meta_path == finders
    after_import("awaited_by_many", lambda: called.append(3))
    assert called[-1] == 3
