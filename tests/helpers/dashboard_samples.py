"""What tests of the dashboard show: a fixed run, fixed advice, a reader that reads when told."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from textual.pilot import Pilot

import inside_samples
from builders import MS, T0, ProcessBuilder, RunBuilder, epoch_row, loop
from loaderscope.advisors.schema.evidence import measured
from loaderscope.advisors.schema.report_model import (
    Basis,
    Change,
    LoaderReport,
    Range,
    Recommendation,
)
from loaderscope.profiler.store.run.follow import Follower, Place
from loaderscope.profiler.store.run.run import Run
from loaderscope.tui.app import Dashboard, Fresh
from loaderscope.tui.live import LiveDashboard
from loaderscope.tui.reader import Reader
from loaderscope.tui.snapshot import AdviceView
from report_samples import advice, pipeline

App = TypeVar("App", bound=Dashboard)

HOSTILE = "<script>[b]red[/b]\x1b[31m"

CODE = "loader = DataLoader(\n    dataset,\n    batch_size=32,\n    num_workers=8,\n)"


def recommendation(
    rule: str, title: str, low: float, mid: float, high: float, **values: Any
) -> Recommendation:
    given: dict[str, Any] = {
        "why": "Every worker was busy while the loop waited.",
        "evidence": measured({"waiting": "37 %", "workers busy": "93 %"}),
        "change": Change({}, CODE),
        "caveat": "Each worker holds a copy of what the data set caches.",
        "doc": None,
    }
    return advice(title, rule=rule, predicted=Range(low, mid, high), **{**given, **values})


CORRECTNESS = {"kind": "correctness"}
RATES = ("batches_per_s", "samples_per_s", "bytes_per_batch")
FACTS: dict[str, Any] = dict.fromkeys(("samples", "wall_s", "waiting", *RATES))
FACTS |= {"name": "Pictures", "kind": "dataloader", "index": 0, "pid": 4000, "rank": 0}
FACTS |= {"batches": 400, "epochs": 4, "folded_batches": 0, "config": {}, "stages": {}}
REPORT = LoaderReport(
    verdict="input-bound",
    basis=Basis("", "high", 390, 0.4, 0.38, 0.42, None, "wait"),
    headroom=1.6,
    recommendations=(
        recommendation("num-workers", "Raise num_workers from 4 to 8", 1.31, 1.42, 1.52),
        recommendation("distributed-sampler", "Call set_epoch each epoch", 1, 1, 1, **CORRECTNESS),
    ),
    rejected=(recommendation("pin-memory", "pin_memory=True", 0.98, 1.0, 1.02),),
    unmeasured={"h2d-copies": "no device: copies were not seen"},
    code=inside_samples.CODE,
    storage=inside_samples.STORAGE,
    **FACTS,
)


def advised(**changes: Any) -> AdviceView:
    """The fixed advice, with these fields of its report changed."""
    return AdviceView(replace(REPORT, **changes))


ADVICE = advised()


def train(run: RunBuilder, name: str = "Pictures", ended: bool = True, **facts: Any) -> None:
    """Four workers whose fetching varies, so that batches overtake each other, in four epochs; and a
    validation loader."""
    process = run.process(ended=ended, **facts)
    rows: list[dict[str, Any]] = []
    epochs = []
    for epoch in range(4):
        start_ns = epochs[-1]["t_end_ns"] if epochs else T0
        own = pipeline(100, 8.0, 40.0, epoch, start_ns, epoch, device=False)
        rows += [{**row, "ready": row["task"] % 3} for row in own]  # a later batch, at times
        epochs.append(epoch_row(own, num_workers=4))
    config = {"num_workers": 4, "prefetch_factor": 2, "dataset": "train.Pictures", "batch_size": 32}
    process.loader(rows, epochs=epochs, config=config, name=name)
    process.loader(loop(60), config={"dataset": "train.Validation"}, name="Validation")


def ranks(runs: Path) -> tuple[RunBuilder, ProcessBuilder]:
    """A run of two, of which the second has yet to begin."""
    run = RunBuilder(runs)
    train(run, rank=0, world_size=2)
    process = run.process(pid=4001, rank=1, world_size=2)
    process.loader([], config={"num_workers": 4}, name="Pictures")
    sampled(run)
    return run, process


def sampled(run: RunBuilder, samples: int = 30) -> None:
    """A machine without a GPU."""
    machine: list[dict[str, Any]] = []
    process: list[dict[str, Any]] = []
    shm = {"shm_total_bytes": 16 * 10**9, "shm_used_bytes": 10**9}
    for n in range(samples):
        t = {"t_ns": T0 + n * 170 * MS}
        cpu = {"cpu_idle_pct": 27.0 - n % 9, "cpu_user_pct": 60.0 + n % 9}
        cpu |= {"cpu_iowait_pct": 5.0, "cpu_system_pct": 8.0, "sampler_cpu_ns": n * MS}
        memory = {"mem_total_bytes": 32 * 10**9, "mem_available_bytes": 20 * 10**9 - n * 10**8}
        disk = {"disk_read_bytes": 10**9 + n * 10**7, "disk_write_bytes": 10**9}
        machine.append({**t, **shm, **cpu, **memory, **disk, "page_cache_bytes": 5 * 10**9})
        for w in range(-1, 4):
            who = {"role": int(w >= 0), "worker": w, "loader": 0, "owner_pid": 4000}
            used = {"cpu_user_ns": n * 170 * MS * (9 if w >= 0 else 4) // 10, "cpu_system_ns": 0}
            held = {"rss_bytes": 5 * 10**8, "uss_bytes": 3 * 10**8 if w >= 0 else None}
            process.append({**t, "pid": 4000 if w < 0 else 4101 + w, **who, **used, **held})
    reasons = {"gpus": "no NVIDIA driver on this machine"}
    run.system(machine=machine, process=process, reasons=reasons)


class StillScript:
    """A script that has written a line and goes on."""

    argv = ("train.py",)
    code = None

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._written = [b"epoch 1\r\n"]

    def read(self) -> bytes:
        return self._written.pop() if self._written else b""

    def resize(self, rows: int, columns: int) -> None:
        """No terminal."""

    def wait(self) -> int:
        return 0


def live_dashboard(path: Path) -> LiveDashboard:
    """That of `run --live`, whose reader waits to be told."""
    return _told(LiveDashboard(cast("Any", StillScript(path))), path)


class Told(Reader):
    """Reads when `step` is called, in the thread that calls it."""

    def start(self) -> None:
        """No thread."""


def advise(run: Run, place: Place) -> AdviceView:
    return ADVICE


def dashboard(path: Path) -> Dashboard:
    """A dashboard whose reader waits to be told."""
    return _told(Dashboard(path), path)


def _told(app: App, path: Path) -> App:
    app.reader = Told(
        Follower(path), lambda snapshot: app.post_message(Fresh(snapshot)), advise=advise
    )
    return app


async def refresh(app: Dashboard, pilot: Pilot[None]) -> None:
    """Read now, with advice, and wait until it is drawn."""
    app.reader.step()
    app.reader.advisor.finish()
    snapshot = app.reader.step()
    assert snapshot is not None
    app.post_message(Fresh(snapshot))
    await pilot.pause()
    await pilot.pause()


Act = Callable[[Dashboard, Pilot[None]], Awaitable[None]]


async def press(app: Dashboard, pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await refresh(app, pilot)


def with_dashboard(path: Path, act: Act, size: tuple[int, int] = (100, 30)) -> None:
    async def whole() -> None:
        app = dashboard(path)
        async with app.run_test(size=size) as pilot:
            await refresh(app, pilot)
            await act(app, pilot)

    asyncio.run(whole())


def on_dashboard(size: tuple[int, int] = (100, 30)) -> Callable[[Act], Callable[[Path], None]]:
    """A test that acts on a dashboard of the run at `path`."""

    def made(act: Act) -> Callable[[Path], None]:
        return lambda path: with_dashboard(path, act, size)

    return made


OWN = {"num_workers": 4, "prefetch_factor": 2, "pin_memory": False}
OWN |= {"persistent_workers": False, "in_order": True}


def tuning(**facts: Any) -> dict[str, Any]:
    """`tune0.json` of a loader that is in the middle of its third trial."""

    def trial(outcome, measured, windows, predicted=(1.4, 1.7, 1.8), **changes):
        base = [20 + each % 3 for each in range(windows)]
        gain = measured[1] if measured else 1.0
        rates = {"base_rates": base, "rates": [gain * each for each in base[:-1]]}
        how = {"base": OWN, "settings": {**OWN, **changes}, "seconds": 2.5 * windows}
        what = {"outcome": outcome, "why": None, "predicted": predicted, "measured": measured}
        return {**how, **what, **rates}

    full = trial("not tried", None, 0, num_workers=64)
    return {
        "format": 1,
        "own": OWN,
        "chosen": {**OWN, "num_workers": 8},
        "decided": False,
        "said": "the loop ended before anything was decided",
        "trials": [
            trial("proven", [1.55, 1.63, 1.70], 4, num_workers=8),
            trial("not faster", [0.85, 0.93, 1.01], 5, num_workers=2),
            {**full, "why": "its workers may take 9,000 MB of memory, and 4,000 MB are left"},
            trial(None, [1.4, 1.76, 2.3], 3, None, num_workers=8, prefetch_factor=4),
        ],
        "waiting": [trial(None, None, 0, num_workers=7)],
        "switches": [],
        "follows": None,
        **facts,
    }
