"""What happens to a recording, and to the training, when things go wrong around it."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from loaderscope.profiler.store.lanes.lane_reader import read_segment, segments

PROGRAMS = Path(__file__).parent / "programs.py"
NUMBERS_40 = sum(range(40))


def environment(runs: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ,
        "LOADERSCOPE_DIR": str(runs),
        "PYTHONPATH": os.pathsep.join(sys.path),
        **more,
    }


def run(
    program: str, runs: Path, *arguments: str, limit_s: float = 100, **more: str
) -> subprocess.CompletedProcess[str]:
    """The program, run to its end. Past the limit it and its workers are killed:
    subprocess.TimeoutExpired."""
    command = [sys.executable, str(PROGRAMS), program, *arguments]
    env = environment(runs, **more)
    with subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(
                    process.pid, signal.SIGKILL
                )  # a worker left behind would hold the pipes open
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def recorded(runs: Path, process: int = 0) -> np.ndarray:
    """All batch records of the `process`-th recording process of the only run."""
    (directory,) = runs.glob("2*")
    folder = sorted(directory.glob("p*"))[process]
    return np.concatenate([read_segment(path)[0] for path in segments(folder, "batches0x0")])


def await_sampler(runs: Path) -> None:
    """Until the sampler of the only run has ended too."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if any(
            "ended_clock_ns" in told.read_text() for told in runs.glob("2*/system-*/sampler.json")
        ):
            return
        time.sleep(0.05)


@pytest.mark.parametrize("program", ["endless", "endless_workers"])
@pytest.mark.parametrize(
    "attempt", [0, 1, *(pytest.param(more, marks=pytest.mark.slow) for more in (2, 3, 4))]
)
def test_kill_loses_nothing_recorded(tmp_path: Path, program: str, attempt: int) -> None:
    process = subprocess.Popen(
        [sys.executable, str(PROGRAMS), program],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    # A worker whose parent dies before it has started its watchdog never ends (torch's own race):
    # wait for a batch.
    process.stdout.readline()
    time.sleep(random.Random(f"{program}{attempt}").uniform(0.0, 0.8))
    process.kill()
    lines = [line for line in process.stdout.read().splitlines() if line.isdigit()]
    process.wait()
    process.stdout.close()
    await_sampler(tmp_path)  # which keeps the memory that the program recorded into
    records = recorded(tmp_path)
    # The program counts a batch after it was handed over, and so after it was recorded.
    assert len(records) >= int(lines[-1]) if lines else True
    assert (records["seq"] == np.arange(1, len(records) + 1)).all()
    assert (records["t_ns"] > 0).all()
    assert (records["wait_ns"] > 0).all()
    assert (records["samples"] == 4).all()


def ended(program: str, runs: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Torch left in the middle may hang, also when nobody watches (seen once in some hundreds of
    runs on a machine with other work): each way gets a second chance."""
    try:
        return run(program, runs, *arguments, limit_s=50)
    except subprocess.TimeoutExpired:
        return run(program, runs, *arguments, limit_s=50)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("program", ["interrupted", "worker_dies"])
def test_ends_like_the_bare_program(tmp_path: Path, program: str) -> None:
    bare = ended(program, tmp_path, "bare")
    watched = ended(program, tmp_path)
    assert watched.returncode == bare.returncode
    assert watched.stdout == bare.stdout
    # torch raises from a signal handler, wherever main happens to be: what it says is the same,
    # where is not.
    why = {"interrupted": "KeyboardInterrupt", "worker_dies": "is killed by signal: Killed"}[
        program
    ]
    assert why in bare.stderr
    assert why in watched.stderr
    assert "loaderscope:" not in watched.stderr


def test_a_forked_child_records_into_a_folder_of_its_own(tmp_path: Path) -> None:
    result = run("forks_and_trains", tmp_path)
    assert result.stdout.split() == [str(NUMBERS_40)] * 4 + ["0"]
    assert result.stderr == ""
    assert len(recorded(tmp_path, 0)) == 20
    assert len(recorded(tmp_path, 1)) == 10


def test_a_removed_directory_stops_recording_not_training(tmp_path: Path) -> None:
    result = run("loses_its_directory", tmp_path)
    assert result.returncode == 0
    assert int(result.stdout) == sum(range(4000))
    assert result.stderr.count("loaderscope:") == 1
    assert "recording stopped" in result.stderr
    assert "training goes on" in result.stderr


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for TMPDIR: multiprocessing makes its sockets there, and from 108 characters on a
    worker's tensors are lost without a word and the loop waits for ever, with us or without."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def test_a_read_only_home_moves_the_recording(tmp_path: Path, short_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    elsewhere = short_path
    result = run("short", blocked / "runs", TMPDIR=str(elsewhere))
    assert result.returncode == 0
    assert int(result.stdout) == sum(range(400))
    assert result.stderr.count("loaderscope:") == 1
    assert "instead" in result.stderr
    assert list(elsewhere.glob("loaderscope-*/runs/2*/run.json"))


def test_nowhere_to_write_is_one_sentence(tmp_path: Path, short_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    # gettempdir falls back to the working directory, so that is made unusable by name instead.
    result = run("short", blocked / "runs", TMPDIR=str(short_path), HOME=str(short_path))
    assert result.returncode == 0
    uid = os.getuid()
    (short_path / f"loaderscope-{uid}").rename(tmp_path / "moved")
    (short_path / f"loaderscope-{uid}").write_text("in the way")
    result = run("short", blocked / "runs", TMPDIR=str(short_path), HOME=str(short_path))
    assert result.returncode == 0
    assert int(result.stdout) == sum(range(400))
    assert "nothing is recorded" in result.stderr
    assert "LOADERSCOPE_DIR" in result.stderr


def test_a_limit_on_file_size_stops_recording_not_training(tmp_path: Path) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    result = subprocess.run(
        [sys.executable, str(PROGRAMS), "fills_the_disk"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=limit,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout) == sum(range(20_000))
    assert "recording stopped" in result.stderr
    assert len(recorded(tmp_path)) > 100


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_stops_recording_not_training(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1500k", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this container may not mount a file system")
    try:
        result = run("fills_the_disk", small)
        assert result.returncode == 0, result.stderr
        assert int(result.stdout) == sum(range(20_000))
        assert result.stderr.count("No space left on device") == 1
        assert len(recorded(small)) > 500
        deadline = time.monotonic() + 60
        while _users_of(small) and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def _users_of(directory: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(directory) in (process / "cmdline").read_text():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def test_the_sampler_ends_with_a_killed_program(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, str(PROGRAMS), "endless"],
        env=environment(tmp_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("2*/system-*/sampler.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _users_of(tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    while _users_of(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _users_of(tmp_path)
