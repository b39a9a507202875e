"""The dashboard in a real terminal (tmux), attached to a real training run."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from builders import RunBuilder
from dashboard_samples import train as train_run
from started import LOADERSCOPE, going_on, here, ran, until

pytestmark = [
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
    pytest.mark.timeout(400),
]

TRAIN = """
    import sys, time
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Pictures(Dataset):
        def __len__(self):
            return 10**9  # it ends where it is told to, not by itself
        def __getitem__(self, index):
            time.sleep(0.006)  # three times as long as the loop, on however busy a machine
            return torch.zeros(3, 8, 8)

    if __name__ == "__main__":
        batches, code = int(sys.argv[1]), int(sys.argv[2])
        print("\\x1b[32mbegins\\x1b[0m", flush=True)
        for number, batch in enumerate(DataLoader(Pictures(), batch_size=4, num_workers=2), 1):
            time.sleep(0.004)
            if number == batches:
                break
        print("is over", flush=True)
        sys.exit(code)
"""

# `loaderscope top` whose advice never comes: it looks for what is unique, which NumPy does in C++.
NO_ADVICE = """
    import sys
    import numpy
    from loaderscope.cli import main
    from loaderscope.tui import reader

    class Unending(reader.Advisor):
        def __init__(self, advise):
            super().__init__(self.look)

        def look(self, run, place):
            numbers = numpy.random.default_rng(1).integers(0, 1000, 1_000_000)
            while True:
                numpy.unique(numbers)

    reader.Advisor = Unending
    sys.exit(main(["top", sys.argv[1]]))
"""


class Terminal:
    """One tmux server of our own with one window."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.socket = str(folder / "tmux")
        self.environ = environ

    def tmux(self, *arguments: str) -> str:
        command = ["tmux", "-f", "/dev/null", "-S", self.socket, *arguments]
        return ran(command, check=True, env={**os.environ, **self.environ}).stdout

    def start(self, command: str, width: int = 80, height: int = 24) -> None:
        """Run a shell command; its exit code stays on the screen."""
        script = f"{command}; echo CODE=$?; sleep 600"
        self.tmux("new-session", "-d", "-s", "it", "-x", str(width), "-y", str(height), script)

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "it")

    def resize(self, width: int, height: int) -> None:
        self.tmux(*f"resize-window -t it -x {width} -y {height}".split())

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "it", *keys)

    def until(self, said: str | Callable[[str], bool]) -> str:
        """The screen, once it says this."""
        right = said if callable(said) else lambda screen: said in screen

        def seen() -> str | None:
            screen = self.screen()
            return screen if right(screen) else None

        try:
            return str(until(seen, f"{said!r}"))
        except AssertionError as error:
            raise AssertionError(f"{error}; at last:\n{self.screen()}") from None

    def close(self, processes: list[psutil.Process]) -> None:
        """Close its window; these processes end."""
        self.tmux("kill-session", "-t", "it")
        assert not psutil.wait_procs(processes, timeout=60)[1]

    def children(self) -> list[psutil.Process]:
        pid = int(self.tmux("list-panes", "-t", "it", "-F", "#{pane_pid}"))
        return psutil.Process(pid).children(recursive=True)


@pytest.fixture
def train(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(textwrap.dedent(TRAIN))
    return path


@pytest.fixture
def terminal(runs_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    environ = here(LOADERSCOPE_DIR=str(runs_dir), TERM="xterm-256color", LC_ALL="C.UTF-8")
    found = Terminal(tmp_path_factory.mktemp("t"), environ)
    yield found
    ran(["tmux", "-S", found.socket, "kill-server"], timeout=30)


@pytest.fixture
def training(train: Path, runs_dir: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A training that goes on until it is ended, once it has recorded something."""
    command = [*LOADERSCOPE, "run", "-q", str(train), "1000000", "0"]
    with going_on(command, runs_dir) as process:
        yield process


TOP = f"{sys.executable} -m loaderscope top"
RUN_LIVE = f"{sys.executable} -m loaderscope run --live"


def left(terminal: Terminal, key: str = "q") -> str:
    """The screen once the command has ended, by this key."""
    terminal.press(key)
    return terminal.until("CODE=")


def test_it_attaches_to_a_live_run_and_sees_it_die(terminal, training, runs_dir):
    terminal.start(TOP)
    wanted = ("input-bound", "● live", "Pictures")
    terminal.until(lambda screen: all(word in screen for word in wanted))
    shown = {"3": "w1", "4": "page cache", "5": "Slowest", "2": "", "1": "Verdict"}
    for key, word in shown.items():  # what the rules say of a run this short is not for this test
        terminal.press(key)
        terminal.until(word)
    for step in range(40):  # a storm of sizes
        terminal.resize(40 + step * 13 % 160, 10 + step * 7 % 50)
    terminal.resize(100, 30)
    terminal.until("Verdict")
    os.killpg(training.pid, signal.SIGKILL)
    terminal.until("the run died")
    for directory in runs_dir.glob("2*"):
        while directory.exists():  # the process beside it may still write its last words
            shutil.rmtree(directory, ignore_errors=True)
    terminal.until("directory was removed")
    screen = left(terminal)
    assert "CODE=0" in screen and "Traceback" not in screen


def test_it_may_be_left_while_advice_is_being_worked_out(terminal, runs_dir, tmp_path):
    run = RunBuilder(runs_dir)
    train_run(run)
    program = tmp_path / "no_advice.py"
    program.write_text(textwrap.dedent(NO_ADVICE))
    terminal.start(f"{sys.executable} {program} {run.path}")
    terminal.until("no advice yet")
    screen = left(terminal)
    assert "CODE=0" in screen and "terminate called" not in screen


def test_a_terminal_closed_by_its_window_leaves_nothing_running(terminal, training):
    terminal.start(TOP)
    terminal.until("● live")
    ours = terminal.children()
    assert any("loaderscope" in " ".join(process.cmdline()) for process in ours)
    terminal.close(ours)
    assert training.poll() is None  # nothing was asked of it


def test_run_live_shows_the_script_and_passes_its_code_on(terminal: Terminal, train: Path) -> None:
    terminal.start(f"{RUN_LIVE} -q {train} 400 7", 100, 40)
    terminal.until(lambda screen: "begins" in screen and "● live" in screen)
    terminal.until("exited with 7")
    assert "Verdict" in terminal.until("is over")  # the dashboard stays
    screen = left(terminal)
    assert "CODE=7" in screen
    assert "is over" in screen  # what it wrote is not lost with the dashboard


def test_run_live_runs_the_script_where_nothing_can_be_recorded(terminal, train, tmp_path_factory):
    temporary = tmp_path_factory.mktemp("t")
    (temporary / f"loaderscope-{os.getuid()}").write_text("in the way")
    terminal.start(f"TMPDIR={temporary} LOADERSCOPE_DIR={train} {RUN_LIVE} {train} 4 7", 100, 40)
    screen = terminal.until("CODE=")
    assert "CODE=7" in screen and "is over" in screen
    assert screen.count("loaderscope: ") == 1 and "nothing is recorded" in screen


@pytest.fixture
def live(terminal: Terminal, train: Path) -> Terminal:
    terminal.start(f"{RUN_LIVE} -q {train} 1000000 0", 100, 40)
    terminal.until(lambda screen: "begins" in screen and "input-bound" in screen)
    return terminal


def test_run_live_hands_ctrl_c_on_and_may_be_left_early(live: Terminal) -> None:
    live.press("q")
    live.until(lambda screen: "Verdict" not in screen)
    assert "CODE" not in live.screen()  # it goes on
    assert_interrupted(left(live, "C-c"))


def test_run_live_hands_on_an_interrupt_that_is_no_key(live: Terminal) -> None:
    """As Ctrl-C is once the dashboard has put the terminal back, and before it has ended."""
    dashboard = next(process for process in live.children() if "--live" in process.cmdline())
    dashboard.send_signal(signal.SIGINT)
    screen = live.until(lambda screen: "exited with" in screen or "ended by signal" in screen)
    assert "Verdict" in screen  # the dashboard stays
    assert_interrupted(left(live))


def test_run_live_leaves_nothing_when_its_window_is_closed(live: Terminal) -> None:
    ours = live.children()
    assert len(ours) >= 4  # the dashboard, the script, its workers
    live.close(ours)


def assert_interrupted(screen: str) -> None:
    assert "KeyboardInterrupt" in screen and ("CODE=1" in screen or "CODE=130" in screen)
