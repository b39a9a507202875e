"""Every test has folders of its own, leaves no hook behind, and talks to no network."""

import functools
import gc
import multiprocessing.util
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from closing import close_session

HERE = Path(__file__).parent
LOOPBACK = ("127.", "::1", "localhost")


@pytest.fixture(autouse=True)
def runs_dir(tmp_path, monkeypatch):
    """Where this test's runs are recorded; nothing of the user's environment is touched."""
    ours = ("RUN", "HOME", "MAX_MB", "SYSTEM", "INSPECT", "STACKS", "LOOKS")
    for name in (*(f"LOADERSCOPE_{each}" for each in ours), "NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    runs = tmp_path / "runs"
    monkeypatch.setenv("LOADERSCOPE_DIR", str(runs))
    return runs


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections go to this machine only (torch.distributed needs the loopback)."""
    connect = socket.socket.connect

    def only_here(self: socket.socket, address: Any) -> None:
        outside = self.family in (socket.AF_INET, socket.AF_INET6)
        if outside and not str(address[0]).startswith(LOOPBACK):
            raise AssertionError(f"a test tried to connect to {address[0]}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", only_here)


@pytest.fixture(autouse=True)
def no_hook_left(runs_dir: Path) -> Iterator[None]:
    """After a test, nothing is watched, the run is closed, and torch's classes are as they were."""
    yield
    watch = sys.modules.get("loaderscope.profiler.record.iterate.watch")
    if watch is not None:
        watch.unwatch()
        watch.registry.names.clear()
    session = sys.modules.get("loaderscope.profiler.record.session.session")
    if session is not None:
        close_session(session)
    loading = sys.modules.get("torch.utils.data.dataloader")
    if loading is not None:
        getter = loading.DataLoader._get_iterator
        assert getter.__module__ == "torch.utils.data.dataloader", "a hook was left on DataLoader"
        own = vars(loading.DataLoader)["check_worker_number_rationality"]
        assert type(own) is type(_skip), "a hook was left on DataLoader"


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are forked, as they are by default on Linux before Python 3.14."""
    context = multiprocessing.get_context("fork")
    monkeypatch.setattr(multiprocessing.context._default_context, "_actual_context", context)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast", action="store_true", help="skip a test as soon as it starts a process"
    )


# What takes long, and where a test that is cut off at a fork leaves behind what the next one finds.
NOT_FAST = (
    "harmless",
    "integration",
    "test_packaging.py",
    "test_readme_commands.py",
    "test_standin.py",
    "test_without_torch.py",
    "reports/html/test_html_browser.py",
    "reports/test_fuzz_formats.py",
    "advisors/code/test_code_runs.py",
    "profiler/record/fetch_probe/test_probe.py",
    "profiler/record/transit/test_worker_loops.py",
)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    fast = config.getoption("--fast")
    return True if fast and collection_path.relative_to(HERE).as_posix() in NOT_FAST else None


class _Clone:
    """The root is the package, but no package of tests: its folder's name may be no identifier."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Dir | None:
        return pytest.Dir.from_parent(parent, path=path) if path == HERE.parent else None


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(_Clone())
    _start_with_default_signals()
    if config.getoption("--fast"):
        # An iterator whose workers may not start has nothing to end: an error in `__del__`, told in
        # the midst of parsing, would break that (python/cpython#106905).
        from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

        _MultiProcessingDataLoaderIter._shutdown = True


def _skip(*args: object, **kwargs: object) -> NoReturn:
    """In the place of what starts a process; the system sampler, not waited for, may start."""
    pytest.skip("starts a process")


def _start_with_default_signals() -> None:
    """Programs that tests start react to signals as at a terminal: a handler, unlike what a
    background job or nohup ignores, is not handed on. We go on ignoring all but SIGINT."""
    handlers = dict.fromkeys((signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT), lambda *_: None)
    handlers[signal.SIGINT] = signal.default_int_handler
    for number, handler in handlers.items():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, handlers)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A virtual machine may compute at full speed for some minutes only.
    items.sort(key=lambda item: item.get_closest_marker("quiet") is None)
    for item in items:
        if item.get_closest_marker("gpu"):
            import torch

            if not torch.cuda.is_available():
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Forks share what is frozen: a collection in one would copy all of torch's objects."""
    gc.collect()
    gc.freeze()
    if session.config.getoption("--fast"):
        # Not earlier: importing a torch with CUDA starts ldconfig.
        os.fork = subprocess.Popen._execute_child = multiprocessing.util.spawnv_passfds = _skip  # type: ignore[assignment, attr-defined]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What failed once and passed when run again is a defect all the same: it is shown."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"failed once: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `--dist loadscope`, groups of our own: `loadgroup` groups nothing since pytest 9.2."""
    if config.getoption("dist") != "loadscope":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):  # type: ignore[misc, unused-ignore]
        def _split_scope(self, nodeid: str) -> str:
            return _group(nodeid)

    return Grouped(config, log)


def _group(nodeid: str) -> str:
    """One of xdist's processes runs a group: a file, or all of tests/harmless, which has a stage.
    Of tests/integration, whose time is spent waiting, each runs wherever there is room."""
    file = nodeid.partition("::")[0]
    folder = Path(file).parts[1]
    if folder == "harmless":
        return folder
    return nodeid if folder == "integration" and not _shares(file) else file


@functools.cache
def _shares(file: str) -> bool:
    return 'scope="module"' in (Path(__file__).parent.parent / file).read_text()


@pytest.fixture
def standin_on() -> Iterator[Any]:
    """Switches on the stand-in for this test: called with a `standin.Spec` and a clock, or none."""
    import standin_device as standin

    if (why := standin.missing()) is not None:
        pytest.skip(why)
    yield standin.switch_on
    standin.switch_off()


@pytest.fixture
def nothing_left_over() -> None:
    """Iterators that earlier tests left in cycles are gone: `watch_all` would take them over."""
    gc.collect()
