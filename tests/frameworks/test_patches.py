"""Where a framework makes or remakes the loader, the call that decides is patched."""

import pytest

from loaderscope.fixing.deciding_call import change_arguments
from loaderscope.fixing.edits import Edits, unified_diff
from loaderscope.fixing.patch import open_project
from running import PROGRAMS, needs, program, recorded

WANTED = {"num_workers": "3", "persistent_workers": "True"}


@pytest.mark.parametrize(
    ("package", "command", "made", "added"),
    [
        (
            "transformers",
            ("hf_trainer.py", "FOLDER"),
            "transformers",
            ["dataloader_num_workers=3,", "dataloader_persistent_workers=True,"],
        ),
        (
            "accelerate",
            ("accelerate_loop.py",),
            "accelerate",
            ["DataLoader(Rows(), BATCH, shuffle=True, num_workers=3, persistent_workers=True)"],
        ),
        (
            "lightning",
            ("lightning_fit.py", "1"),
            "lightning",
            [
                "return DataLoader(Rows(), BATCH, shuffle=True, num_workers=3, "
                "persistent_workers=True)"
            ],
        ),
        (
            "timm",
            ("timm_loader.py",),
            "timm",
            ['"num_workers": 3,', "use_multi_epochs_loader=True, persistent_workers=True"],
        ),
    ],
)
def test_the_call_that_decides_is_patched(package, command, made, added, tmp_path):
    needs(package)
    run, _, _ = recorded(tmp_path, *program(*command))
    training = [each for each in run.loaders if "training" in str(each.config.get("phase"))]
    loader = next(iter(training or run.loaders))
    assert loader.made.through == made
    edits = Edits()
    change_arguments(open_project(run, PROGRAMS), edits, loader.made, WANTED)
    diff = unified_diff(edits.changes())
    new = [line for line in diff.splitlines() if line.startswith("+") and line[:3] != "+++"]
    for text in added:
        assert sum(text in line for line in new) == 1, diff
