"""Arguments are changed where a good engineer would change them, for each form of a call in
benchmarks/fix_projects.py; everything else stays byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from loaderscope.fixing.deciding_call import change_arguments
from loaderscope.fixing.edits import Edits
from loaderscope.fixing.project import CannotPatch, Project
from made_projects import PROJECTS, lay, made_in, without_loop

WANTED = {"num_workers": "8", "persistent_workers": "True"}
pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
OF_CALLS = [name for name, each in PROJECTS.items() if each.advice == "num-workers"]


@pytest.mark.parametrize("name", OF_CALLS)
def test_the_patch_is_the_one_an_engineer_would_write(name: str, tmp_path: Path) -> None:
    project = PROJECTS[name]
    for module in project.needs:
        pytest.importorskip(module)
    files = without_loop(project.files)
    hashes = lay(tmp_path, files)
    made, argv = made_in(tmp_path, project.arguments), ("train.py", *project.arguments)
    edits = Edits()
    opened = Project(tmp_path, hashes, argv)
    if project.refused:
        with pytest.raises(
            CannotPatch, match=project.refused.replace("(", r"\(").replace(")", r"\)")
        ):
            change_arguments(opened, edits, made, WANTED)
        return
    change_arguments(opened, edits, made, WANTED)
    after = dict(files)
    for change in edits.changes():
        assert change.before.decode() == files[change.path]
        after[change.path] = change.after.decode()
    assert after == without_loop(project.patched())
    lay(tmp_path, after)
    made_in(tmp_path, project.arguments)  # and torch takes it
