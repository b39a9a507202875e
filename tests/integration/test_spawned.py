"""Processes that begin with nothing imported: torch's own import starts us there."""

import os
import textwrap
from pathlib import Path

import pytest

import loaderscope
from started import here, python

# No torch at the top: in a spawned process it comes with the data set, or later still.
LATE = """
    import multiprocessing, sys

    class Numbers:
        def __len__(self):
            return 24
        def __getitem__(self, index):
            return float(index)

    def plain(samples):
        return samples

    def train(context):
        from torch.utils.data import DataLoader
        loader = DataLoader(Numbers(), batch_size=4, num_workers=1, multiprocessing_context=context, collate_fn=plain)
        print([value for batch in loader for value in batch] == [float(i) for i in range(24)], flush=True)

    if __name__ == "__main__":
        how, context = sys.argv[1:]
        if how == "here":
            train(context)
        else:
            child = multiprocessing.get_context(how).Process(target=train, args=(context,))
            child.start()
            child.join()
            print(child.exitcode, flush=True)
"""

IN_PYTEST = """
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Squares(Dataset):
        def __len__(self):
            return 24
        def __getitem__(self, index):
            return torch.full((2,), float(index))

    def test_spawned_workers():
        loader = DataLoader(Squares(), batch_size=4, num_workers=1, multiprocessing_context="spawn")
        assert sum(len(batch) for batch in loader) == 24
"""

# As in a notebook: spawned processes cannot import the program, and its data set is in a module.
NOTEBOOK = """
    from squares import Squares
    from torch.utils.data import DataLoader
    for context in ("spawn", "fork"):
        loader = DataLoader(Squares(), batch_size=4, num_workers=1, multiprocessing_context=context)
        print(sum(len(batch) for batch in loader), flush=True)
"""


def ran(folder: Path, *arguments: str) -> str:
    """What it prints under `loaderscope run`, which says nothing. Its modules lie in the folder."""
    env = here()
    env["PYTHONPATH"] = os.pathsep.join([str(folder), env["PYTHONPATH"]])
    result = python("-m", "loaderscope", "run", "--quiet", *arguments, cwd=folder, env=env)
    assert "loaderscope:" not in result.stderr and "Error" not in result.stderr, result.stderr
    return result.stdout


def script(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(textwrap.dedent(text))
    return folder


def assert_measured(loaders: int) -> None:
    run = loaderscope.open_run("latest")
    assert len(run.loaders) == loaders
    for loader in run.loaders:
        assert loader.batches.rows == 6
        for stage in ["wait", "index", "fetch", "collate", "pack", "queued", "unpack"]:
            assert (loader.column(f"{stage}_ns") >= 0).all(), stage
    assert loaderscope.report(run).missing == ()


# The import of ours that torch's import interrupts may be the user's own.
OURS = "from loaderscope import watch"
PRELOAD = "multiprocessing.set_forkserver_preload(['torch', 'torch.utils.data'])"


@pytest.mark.parametrize(
    ("process", "workers", "more"),
    [
        *(("here", "spawn", ""), ("spawn", "forkserver", ""), ("forkserver", "fork", "")),
        *(("here", "spawn", OURS), ("forkserver", "fork", PRELOAD)),
    ],
)
def test_torch_imported_in_functions_only(tmp_path, process, workers, more):
    text = LATE.replace("import multiprocessing, sys", f"import multiprocessing, sys; {more}")
    said = ran(script(tmp_path, "late.py", text), "late.py", process, workers)
    assert said.split() == ["True"] + ["0"] * (process != "here")
    assert_measured(1)


def test_under_pytest(tmp_path: Path) -> None:
    script(tmp_path, "test_spawning.py", IN_PYTEST)
    said = ran(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path))
    assert "1 passed" in said, said
    assert_measured(1)


def test_a_program_that_is_no_file(tmp_path: Path) -> None:
    script(tmp_path, "squares.py", IN_PYTEST)
    said = ran(tmp_path, "-c", textwrap.dedent(NOTEBOOK))
    assert said.split() == ["24", "24"]
    assert_measured(2)
