"""Bursts of stacks of real runs: what they show, what causes they tell with the source, and that the
training does not notice."""

import ctypes
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.daemon.stack_capture.bursts import OFF
from loaderscope.profiler.daemon.stack_capture.py_spy import find_py_spy
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.stacks.stack_request import request_burst, wait_for_burst
from loaderscope.profiler.store.stacks.stack_samples import StackCapture
from loaderscope.reports.text.text import MOST_LINES, render_brief
from started import PATIENCE_S, here, python, until

NO_STACKS = sys.platform != "linux" or find_py_spy() is None
pytestmark = [
    pytest.mark.skipif(NO_STACKS, reason="stacks need Linux and py-spy"),
    pytest.mark.timeout(240),
]

PROGRAM = Path(__file__).with_name("stacks_programs.py")


def start(runs: Path, *arguments: str, stacks: str = "eager", **how: Any) -> subprocess.Popen[str]:
    env = here(LOADERSCOPE_DIR=str(runs), LOADERSCOPE_STACKS=stacks)
    command = [sys.executable, str(PROGRAM), *arguments]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, **how)


def run(runs: Path, *arguments: str, **how: Any) -> dict[str, Any]:
    """What the program saw."""
    with start(runs, *arguments, **how) as process:
        out, _ = process.communicate(timeout=180)
    assert process.returncode == 0
    return dict(json.loads(out.splitlines()[-1]))


def at_work(runs: Path) -> Path:
    """The run, once it has batches: before, nobody knows the workers."""
    (host,) = until(lambda: list(runs.glob("2*/system-*/host.json")), "a sampler")
    until(lambda: any(loader.count for loader in open_run(host.parents[1]).loaders), "a batch")
    return host.parents[1]


def burst_of(runs: Path) -> tuple[Run, StackCapture]:
    recorded = open_run("latest", runs)
    (system,) = recorded.systems
    assert system.bursts, system.reasons.get("stacks")
    assert system.bursts[0].stacks, system.bursts[0].reason
    return recorded, system.bursts[0]


def functions(burst: StackCapture, stage: str, pids: set[int] | None = None) -> dict[str, int]:
    """Samples by the function's own name, a stack counting for each function in it."""
    found: dict[str, int] = {"": 0}
    for stack in burst.stacks:
        if stack.stage == stage and (pids is None or stack.pid in pids):
            found[""] += stack.samples
            for name in {burst.frames[at].function.rpartition(".")[2] for at in stack.frames}:
                found[name] = found.get(name, 0) + stack.samples
    return found


def pure(samples: int, strange: int) -> bool:
    """Whether strangers are as few as torn stacks are: those read while they change. Where several
    tests share two cores, one in nine was torn."""
    return strange <= 1 + 0.15 * samples


@pytest.mark.parametrize(("kind", "workers"), [("custom", 2), ("default", 0)])
def test_time_is_found_where_it_goes(tmp_path: Path, kind: str, workers: int) -> None:
    """Of "custom", by a user without any of root's rights."""
    drop = no_capabilities if kind == "custom" and not os.geteuid() else None
    seen = run(tmp_path, kind, str(workers), "burst", preexec_fn=drop)
    recorded, burst = burst_of(tmp_path)
    main = seen["pid"]
    loading = set(burst.samples) - {main} if workers else {main}
    assert len(loading) == (workers or 1), burst.samples
    assert min(burst.samples[pid] for pid in loading) >= 30, burst.samples
    assert burst.why == "steady" and burst.reason is None
    fetch, collate = functions(burst, "fetch", loading), functions(burst, "collate", loading)
    compute = functions(burst, "compute", {main})
    assert fetch["fetch_work"] > 20 and pure(fetch[""], fetch[""] - fetch.get("__getitem__", 0))
    for strange in ("collate_work", "train_step"):
        assert pure(fetch[""], fetch.get(strange, 0))
    # Of fetch's torn stacks some count for collate, however short that is.
    assert pure(max(fetch[""], collate[""]), collate.get("fetch_work", 0))
    if kind != "default":
        # 16 ms of fetching and 8 ms of collating a batch.
        share = collate["collate_work"] / (collate["collate_work"] + fetch["fetch_work"])
        assert 0.1 < share < 0.5, (share, burst.samples)
    assert compute["train_step"] > 5 and pure(compute[""], compute[""] - compute["main"])
    begin = [one for one in burst.stacks if one.frames and one.samples > 2 and one.stage == "fetch"]
    outermost = {burst.frames[one.frames[0]].function.rpartition(".")[2] for one in begin}
    assert outermost == {"__getitem__"}
    if workers:
        assert functions(burst, "wait", {main})[""] > 5
        assert functions(burst, "fetch", {main})[""] == 0
        assert functions(burst, "idle", loading)[""] > 5  # of feeder threads
    assert set(burst.gil) <= set(burst.samples)
    assert all(0.0 <= share <= 1.0 for share in burst.gil.values())
    if not workers and burst.gil:
        assert burst.gil[main] > 0.3  # all in Python
    assert all("stacks" not in system.reasons for system in recorded.systems)


def test_a_report_right_after_the_loop_has_the_stacks_of_a_burst_at_work(tmp_path: Path) -> None:
    seen = run(tmp_path, "default", "2", "report", stacks="1")
    assert seen["fetch_samples"] > 0, seen["why_none"]
    recorded, _ = burst_of(tmp_path)
    (after,) = build_report(recorded).loaders
    # The end of the run adds nothing that the report had not seen.
    assert len(recorded.systems[0].bursts) == 1 and after.code is not None
    assert after.code.stages["fetch"].samples == seen["fetch_samples"]


def test_it_can_be_switched_off_and_asked_for(tmp_path: Path) -> None:
    with start(tmp_path, "off", "2", "burst") as process:
        process.stdout.readline()
        path = at_work(tmp_path)
        until(lambda: open_run(path).systems[0].reasons.get("stacks") == OFF, "the reason")
        nonce = request_burst(path, seconds=1)
        burst = wait_for_burst(path, nonce, PATIENCE_S)
        process.communicate(timeout=200)
    assert burst is not None and burst.why == "asked" and burst.reason is None
    assert len(burst.samples) == 3 and functions(burst, "fetch")["fetch_work"] > 5
    assert open_run(path).systems[0].bursts == (burst,)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_training_does_not_notice(tmp_path: Path, workers: str) -> None:
    """Beside a run that is recorded without stacks."""
    without = run(tmp_path / "without", "custom", workers, "240", stacks="0")
    assert OFF in open_run("latest", tmp_path / "without").systems[0].reasons.get("stacks", "")
    watched = run(tmp_path / "watched", "custom", workers, "240")
    burst_of(tmp_path / "watched")
    for seen in (without, watched):
        del seen["pid"]
        if workers != "0":
            del seen["fds"]  # batches on their way hold some
    assert watched == without


def readers(system: Path) -> list[int]:
    """The py-spies that write into this system directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            spies = (entry / "comm").read_text().strip() == "py-spy"
            if spies and any(str(system) in os.readlink(fd) for fd in (entry / "fd").iterdir()):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("victim", ["training", "sampler"])
def test_no_py_spy_outlives_a_killed_process(tmp_path: Path, victim: str) -> None:
    with start(tmp_path, "custom", "2", "burst") as process:
        try:
            system = until(lambda: list(tmp_path.glob("2*/system-*")), "a sampler")[0]
            assert len(until(lambda: readers(system), "py-spy")) >= 1
            sampler = json.loads((system / "sampler.json").read_text())["pid"]
            os.kill(process.pid if victim == "training" else sampler, signal.SIGKILL)
            until(lambda: not readers(system), "the end of py-spy")
            if victim == "sampler":
                assert process.poll() is None
            else:
                told = system / "sampler.json"
                until(lambda: "ended_clock_ns" in told.read_text(), "the end of the sampler")
                until(lambda: not list(system.glob(".stacks*")), "its tidying up")
        finally:
            process.kill()


KNOWING = """
import multiprocessing, sys, loaderscope
from torch.utils.data import DataLoader
class Told:
    def __len__(self): return 4
    def __getitem__(self, index):
        return multiprocessing.current_process()._config.get("loaderscope_tracer", 0)
if __name__ == "__main__":
    loader = DataLoader(Told(), num_workers=1, multiprocessing_context=sys.argv[1])
    print(*{int(batch) for batch in loaderscope.watch(loader)})
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_and_sampler_know_each_other(tmp_path: Path, method: str) -> None:
    """Each process of a run names the sampler, and no other, as the one that may read it."""
    program, runs = tmp_path / "train.py", tmp_path / "runs"
    program.write_text(KNOWING)
    told = python(program, method, env=here(LOADERSCOPE_DIR=str(runs)), check=True)
    (sampler,) = until(lambda: list(runs.glob("2*/system-*/sampler.json")), "the sampler")
    expected = [str(json.loads(sampler.read_text())["pid"])]
    assert re.findall(r"\d+", told.stdout) == expected, told.stderr


def no_capabilities() -> None:
    """What any user is to the kernel's ptrace rules, from the next program on."""
    prctl = ctypes.CDLL(None).prctl
    for capability in range(64):
        prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


# Causes that stacks and source tell together, of real loops; and a healthy loop that looks alike.

IN_LOOP, HDF5 = "Take this out of the loop", "Read HDF5 in large contiguous slices"


def first_screen(kind: str, folder: Path) -> str:
    """The brief report of the recorded program, in one line."""
    if kind == "lists" and importlib.util.find_spec("h5py") is None:
        pytest.skip("needs h5py")
    env = here(LOADERSCOPE_DIR=str(folder), LOADERSCOPE_STACKS="eager")
    program = folder / "train.py"  # a file of the package would not count as the user's
    program.write_text(PROGRAM.with_name("causes_programs.py").read_text())
    python("-W", "ignore", program, kind, env=env, check=True)
    text = render_brief(build_report(open_run("latest", folder)), width=100)
    assert text.count("\n") <= MOST_LINES
    return " ".join(text.split())


COSTS = {"counted": (IN_LOOP, "len([each for each in self.order"), "lists": (HDF5, '["x"][near]')}


@pytest.mark.parametrize("kind", COSTS)
def test_the_cause_is_on_the_first_screen(tmp_path: Path, kind: str) -> None:
    title, costs = COSTS[kind]
    said = first_screen(kind, tmp_path)
    found, _, advised = said.partition("What to do")
    assert costs in found.partition("What costs:")[2], said
    assert title in advised, said
    if title == IN_LOOP:
        assert "of all time, in the loop itself" in found
    assert "chunk" not in said


def test_a_healthy_loop_that_looks_alike_is_not_told_so(tmp_path: Path) -> None:
    said = first_screen("trains", tmp_path)
    assert IN_LOOP not in said and "chunk" not in said and "in the loop itself" not in said, said
