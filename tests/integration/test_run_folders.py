"""Runs go to the folder asked for, else to the temporary one, else nowhere; all else as bare."""

import functools
import os
import resource
import subprocess
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import loaderscope
from started import Ended, here, python

TRAIN = """
    import os, sys
    import loaderscope
    import multiprocessing
    from torch.utils.data import DataLoader

    def train(how):
        loader = DataLoader(list(range(40)), batch_size=4)
        return sum(int(batch.sum()) for batch in (loaderscope.watch(loader) if how else loader))

    def child(how, name):
        try:
            with open(name, "w") as file:
                file.write(str(train(how)))
        except OSError as error:
            print(error, flush=True)

    if __name__ == "__main__":
        how, start, folder = sys.argv[1:]
        os.makedirs(folder, exist_ok=True)
        os.chdir(folder)
        print(train(how), os.getcwd(), flush=True)
        child(how, "result.txt")
        if start:
            process = multiprocessing.get_context(start).Process(target=child, args=(how, "child.txt"))
            process.start()
            process.join()
            print(process.exitcode, flush=True)
        sys.exit(3)
"""
RUN = ("-m", "loaderscope", "run", "--quiet")
TUNE = ("-m", "loaderscope", "tune", "--quiet", "--dry")


@contextmanager
def laid_out() -> Iterator[Path]:
    """Where a program is started; a short name, for what multiprocessing makes under TMPDIR."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t") as name:
        Path(name, "train.py").write_text(textwrap.dedent(TRAIN))
        Path(name, "tmp").mkdir()
        Path(name, "file").write_text("no folder")
        yield Path(name)


@pytest.fixture
def folder() -> Iterator[Path]:
    with laid_out() as found:
        yield found


def started(folder, *arguments, runs="runs", limit=None):
    env = {name: value for name, value in here().items() if not name.startswith("LOADERSCOPE_")}
    env |= {"LOADERSCOPE_DIR": runs, "TMPDIR": str(folder / "tmp"), "HOME": str(folder)}
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return python(*arguments, cwd=folder, env=env, preexec_fn=limit)


def seen(folder: Path, done: Ended) -> tuple[int, str, dict[str, str]]:
    """How a program ended, what it printed, and its files, none of ours."""
    files = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    left = {
        str(path): (folder / path).read_text()
        for path in files
        if not any(part.startswith("2") for part in path.parts[:-1])
    }
    return done.returncode, done.stdout.replace(str(folder), "FOLDER"), left


@functools.cache
def bare(
    told: tuple[str, ...], limit: Callable[[], None] | None
) -> tuple[int, str, dict[str, str]]:
    with laid_out() as folder:
        done = started(folder, "train.py", "", *told, limit=limit)
        assert done.returncode == 3, done.stderr
        return seen(folder, done)


def assert_bare(folder: Path, done: Ended, *told: str, **more: Callable[[], None]) -> None:
    """The run `done` is what a bare one is, but for one line of ours if there is one."""
    assert seen(folder, done) == bare(told, more.get("limit")), done.stderr


def recorded(runs: Path) -> list[int]:
    """How many batches each run in the folder has."""
    opened = [loaderscope.open_run(path) for path in runs.glob("2*")]
    return [sum(len(loader.batches["t_ns"]) for loader in run.loaders) for run in opened]


WAYS = {
    "watch": (("train.py", "watch"), "runs"),
    "run": ((*RUN, "train.py", ""), "runs"),
    "run --runs": ((*RUN, "--runs", "runs", "train.py", ""), "elsewhere"),
    "tune --runs": ((*TUNE, "--runs", "runs", "train.py", ""), "elsewhere"),
}


def marked(way: str, quick: tuple[str, ...]) -> Any:
    return pytest.param(way, marks=[] if way in quick else [pytest.mark.slow])


@pytest.mark.parametrize("way", [marked(way, ("watch", "run --runs")) for way in WAYS])
def test_a_relative_folder_is_one_of_where_the_program_was_started(folder: Path, way: str) -> None:
    command, runs = WAYS[way]
    done = started(folder, *command, "", "made/by/hydra", runs=runs)
    assert recorded(folder / "runs") == [20]
    assert {path.parent.parent for path in folder.rglob("run.json")} == {folder / "runs"}
    assert list(folder.glob("runs/2*/system-*/sampler.json"))  # the sampler too knows where
    assert_bare(folder, done, "", "made/by/hydra")


def each_once(kinds: tuple[str, ...], ways: tuple[str, ...]) -> list[Any]:
    """Each way and each kind; their further combinations are slow."""
    return [
        pytest.param(
            kind, way, marks=[pytest.mark.slow] if (kind != kinds[0]) == (way != "run") else []
        )
        for kind in kinds
        for way in ways
    ]


@pytest.mark.parametrize(("start", "way"), each_once(("fork", "spawn"), ("watch", "run")))
def test_children_record_beside_their_parent(folder: Path, way: str, start: str) -> None:
    command, _ = WAYS[way]
    done = started(folder, *command, start, "out")
    assert sum(recorded(folder / "runs")) == 30
    assert {path.parent.parent for path in folder.rglob("run.json")} == {folder / "runs"}
    assert_bare(folder, done, start, "out")


@pytest.fixture
def refusing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A folder that takes no run, whoever asks."""
    if request.param == "a file":
        yield "file/runs"
        return
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this container may not mount a file system")
    try:
        with suppress(OSError), open(small / "filling", "wb", buffering=0) as file:
            while file.write(b"x" * 4096):
                pass
        yield str(small)
        assert os.listdir(small) == ["filling"], "an empty run was left"
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


KINDS, REFUSED = ("a file", "a full disk"), ("watch", "run", "tune --runs")
in_refusing_folders = pytest.mark.parametrize(
    ("refusing", "way"), each_once(KINDS, REFUSED), indirect=["refusing"]
)


def refused(folder: Path, refusing: str, way: str) -> Ended:
    command = [refusing if word == "runs" else word for word in WAYS[way][0]]
    return started(folder, *command, "", "out", runs=refusing)


@in_refusing_folders
def test_a_folder_that_takes_no_run(folder: Path, refusing: str, way: str) -> None:
    done = refused(folder, refusing, way)
    said = [line for line in done.stderr.splitlines() if "cannot be written" in line]
    assert len(said) == 1 and "recording to" in said[0], done.stderr
    assert way == "tune --runs" or done.stderr.count("\n") == 1
    assert recorded(next(folder.glob("tmp/loaderscope-*/runs"))) == [20]
    assert_bare(folder, done, "", "out")


@in_refusing_folders
def test_no_folder_that_takes_a_run(folder: Path, refusing: str, way: str) -> None:
    in_the_way = folder / "tmp" / f"loaderscope-{os.getuid()}"
    in_the_way.write_text("in the way")
    done = refused(folder, refusing, way)
    assert done.stderr.count("\n") == 1 and "nothing is recorded: " in done.stderr, done.stderr
    assert "LOADERSCOPE_DIR" in done.stderr
    in_the_way.unlink()
    assert_bare(folder, done, "", "out")


def no_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.parametrize("way", ["watch", pytest.param("tune --runs", marks=pytest.mark.slow)])
def test_no_file_may_be_written_at_all(folder: Path, way: str) -> None:
    command, _ = WAYS[way]
    done = started(folder, *command, "", "out", limit=no_files)
    assert "File too large" in done.stdout
    assert done.stderr.count("\n") == 1 and "nothing is recorded: " in done.stderr, done.stderr
    assert not list(folder.rglob("run.json")) and not list(folder.glob("runs/2*"))
    assert_bare(folder, done, "", "out", limit=no_files)
