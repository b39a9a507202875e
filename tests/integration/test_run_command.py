"""A script run by `loaderscope run` is the script run by Python, and its loaders are recorded."""

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import textwrap
from pathlib import Path
from typing import Any

import pytest

import loaderscope
from loaderscope.profiler.launch import command_line, run_command
from started import LOADERSCOPE, Ended, all_kept, here, python, ran

TRAIN = """
    import os, sys
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Numbers(Dataset):
        def __len__(self):
            return 40
        def __getitem__(self, index):
            return index

    if __name__ == "__main__":
        print(sys.argv, __name__, __file__, sys.path[0], __spec__, "loaderscope" in " ".join(sys.path))
        for _ in range(2):
            for batch in DataLoader(Numbers(), batch_size=4, num_workers=1, multiprocessing_context="fork"):
                pass
        if "fail" in sys.argv:
            raise ValueError("on purpose")
        if "die" in sys.argv:
            os.kill(os.getpid(), 15)
"""

RANKS = """
    import time
    import torch.distributed as dist
    from torch.utils.data import DataLoader, DistributedSampler

    class Augment:
        def __call__(self, sample):
            if dist.get_rank() == 1:
                time.sleep(0.02)
            return sample

    class Rows:
        def __init__(self):
            self.transform = Augment()

        def __len__(self):
            return 360

        def __getitem__(self, index):
            return self.transform(index)

    dist.init_process_group("gloo")
    data = Rows()
    for batch in DataLoader(data, batch_size=4, sampler=DistributedSampler(data)):
        dist.barrier()
    dist.destroy_process_group()
"""


@pytest.fixture
def train(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(TRAIN))
    return path


def bare(train: Path, *arguments: str) -> Ended:
    return python(*arguments, cwd=train.parent)


def recorded(train: Path, *arguments: str) -> Ended:
    return bare(train, "-m", "loaderscope", "run", "--quiet", *arguments)


def said(result: Ended) -> list[str]:
    """Standard error, less what Python's resource tracker says at times, bare too."""
    theirs = ("resource_tracker", "warnings.warn(")
    return [line for line in result.stderr.splitlines() if not any(map(line.count, theirs))]


@pytest.mark.parametrize("how", ["--lr 0.1", "fail", "die"])
def test_a_script_sees_what_it_sees_without_and_ends_so(train, runs_dir, how):
    without, with_ = (of(train, "train.py", *how.split()) for of in (bare, recorded))
    assert with_.stdout == without.stdout
    assert said(with_) == said(without)
    code = without.returncode
    assert with_.returncode == (code if code >= 0 else 128 - code)
    assert (code == 0) == (how == "--lr 0.1")
    all_kept(runs_dir)
    (loader,) = loaderscope.open_run("latest").loaders
    assert len(loader.batches["t_ns"]) == 20
    assert (loader.batches["fetch_ns"] > 0).all()


def test_a_module_and_a_program_text(train: Path) -> None:
    for arguments in (["-m", "train", "x"], ["-c", "import sys; print(sys.argv)", "x"]):
        shown, expected = recorded(train, *arguments), bare(train, *arguments)
        same = [re.sub("0x[0-9a-f]+", "#", each.stdout) for each in (shown, expected)]
        assert same[0] == same[1] and shown.returncode == 0


def test_ranks_of_torchrun_record_into_one_run(tmp_path: Path, runs_dir: Path) -> None:
    script = tmp_path / "ranks.py"
    script.write_text(textwrap.dedent(RANKS))
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3"]
    code, directory, _ = run_command([sys.executable, *launcher, str(script)], runs_dir)
    assert code == 0 and directory is not None
    run = loaderscope.open_run(directory)
    assert sorted(process.rank for process in run.processes) == [0, 1, 2]
    assert [len(loader.batches["t_ns"]) for loader in run.loaders] == [30, 30, 30]
    assert len(list(directory.glob("system-*"))) == 1
    (section,) = loaderscope.report(run).loaders
    assert section.rank == 1 and len(section.ranks.each) == 3
    slow = section.ranks.slowest  # by 80 ms a step; the others wait for it at the barrier
    assert (slow.rank, slow.cause, slow.held_up) == (1, "fetch", True)
    assert slow.function in ("Augment", "Augment.__call__")  # as a transform, or by stacks


def test_nothing_recorded_leaves_no_directory(runs_dir: Path) -> None:
    assert run_command(["-c", "pass"], runs_dir) == (0, None, True)
    assert not list(runs_dir.iterdir())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signals_reach_the_script(number: signal.Signals) -> None:
    sleeps = f"import signal, sys, time\nsignal.signal({int(number)}, lambda *a: sys.exit(9))\n"
    command = [*LOADERSCOPE, "run", "-c", f"{sleeps}print(1, flush=True)\ntime.sleep(60)"]
    alone: Any = {"start_new_session": True}  # as under a scheduler
    with subprocess.Popen(command, stdout=subprocess.PIPE, **alone) as process:
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(timeout=100) == 9


def test_a_signal_that_comes_before_the_script_reaches_it(runs_dir, monkeypatch):
    begin = subprocess.Popen

    def late(*arguments: Any, **options: Any) -> Any:
        if any("sleep(60)" in str(part) for part in arguments[0]):
            signal.raise_signal(signal.SIGTERM)
        return begin(*arguments, **options)

    monkeypatch.setattr(subprocess, "Popen", late)
    code = run_command(["-c", "import time; time.sleep(60)"], runs_dir).code
    assert code == -signal.SIGTERM


COUNTS = """
import signal, time
count = 0
def another(number, frame):
    global count
    count += 1
signal.signal(signal.SIGINT, another)
print("ready", flush=True)
end = time.monotonic() + 60
while not count and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(1)
print("interrupts:", count, flush=True)
"""


def test_a_terminals_ctrl_c_reaches_the_script_once() -> None:
    terminal, other_end = pty.openpty()
    streams: Any = dict.fromkeys(("stdin", "stdout", "stderr"), other_end)
    process = subprocess.Popen(
        [*LOADERSCOPE, "run", "-c", COUNTS],
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 (no thread runs)
        **streams,
    )
    os.close(other_end)
    said = b""
    try:
        while b"ready" not in said:
            said += os.read(terminal, 1 << 16)
        os.write(terminal, b"\x03")
        while (counted := re.search(rb"interrupts: (\d+)\r", said)) is None:
            said += os.read(terminal, 1 << 16)
        assert counted[1] == b"1"
    finally:
        os.close(terminal)
        process.wait(100)


def test_ignored_signals_stay_ignored() -> None:
    """As under nohup, or in the background of a shell script."""
    ignored = "[int(n) for n in (1, 2, 15) if signal.getsignal(n) == signal.SIG_IGN]"

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    for run in ((), ("-m", "loaderscope", "run")):
        command = (*run, "-c", f"import signal\nprint({ignored})")
        assert python(*command, check=True, preexec_fn=ignore).stdout == "[1, 2]\n"


def test_the_environments_own_sitecustomize_still_runs(tmp_path: Path) -> None:
    site = tmp_path / "sitecustomize.py"
    site.write_text("print('their own', __name__)")
    env = here()
    env["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{env['PYTHONPATH']}"
    code = "import sitecustomize as s; print(s.__file__)"
    result = ran([*LOADERSCOPE, "run", "--quiet", "-c", code], env=env, check=True)
    assert result.stdout.splitlines()[-2:] == ["their own sitecustomize", str(site)]
    assert result.stderr == ""


NOTHING = {"": "nothing to run", "-m": "needs a module", "no_such.py": "no script"}
NOTHING["nosuchcommand"] = "no script"


@pytest.mark.parametrize("argv", NOTHING)
def test_nothing_to_run_is_one_sentence(argv: str) -> None:
    with pytest.raises(loaderscope.LoaderscopeError, match=NOTHING[argv]):
        command_line(argv.split())


def test_a_run_stays_within_its_limit_and_counts_every_batch(runs_dir: Path) -> None:
    code = "import loaderscope\nfor _ in loaderscope.watch([0] * 50_000): pass\n"
    python("-c", code, env={**os.environ, "LOADERSCOPE_MAX_MB": "32"}, check=True)
    (directory,) = runs_dir.glob("2*")
    size = sum(path.stat().st_size for path in directory.glob("p*/*.seg"))
    assert size <= 8_000_000  # 32 MB less the system sampler's; 50,000 records would be 11 MB
    run = loaderscope.open_run(directory)
    (loader,) = run.loaders
    assert len(loader.batches["t_ns"]) < 50_000
    report = loaderscope.report(run)
    assert report.loaders[0].batches == 50_000
    assert report.loaders[0].stages["wait"].count == loader.batches.rows
