"""Figures of a run that goes on: what is read of it, and what arrives where they are sent."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from builders import MS, T0, RunBuilder, loop, values_of, write_lane
from loaderscope.cli import main
from loaderscope.integrations import scalars
from loaderscope.integrations.live_figures import FIGURES, Figure, LiveFigures
from loaderscope.integrations.scalars import Prometheus, WandB, live
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.base.schema import BATCH
from rule_rows import rows_of
from started import LOADERSCOPE, ran

SAMPLE = [
    Figure("wait_share", 0.25, {"loader": 'Ima"ges\n', "phase": "training", "rank": "1"}, 40),
    Figure("headroom", 1.5, {"loader": "Rows"}, 7),
]


def two_ranks(runs: Path) -> RunBuilder:
    """Ranks that wait 1 ms and 6 ms of 10 a step."""
    run = RunBuilder(runs)
    for rank, wait in enumerate((1.0, 6.0)):
        made = {"fetch_ns": 4 * MS, "collate_ns": MS}
        rows, epochs = rows_of(1, 40, wait_ms=wait, compute_ms=10 - wait, **made)
        process = run.process(pid=4000 + rank, world_size=2, rank=rank)
        process.loader(rows, epochs=epochs, config={"phase": "training"})
    return run


def told(figures: Sequence[Figure], name: str) -> dict[str | None, float]:
    return {figure.labels.get("rank"): figure.value for figure in figures if figure.name == name}


def test_every_figure_of_every_rank(runs_dir: Path) -> None:
    figures = LiveFigures(two_ranks(runs_dir).path).read()
    expected = {"wait_share": (0.1, 0.6), "batches_per_s": (100, 100), "make_s": (0.005, 0.005)}
    expected["headroom"] = (1 / 0.9, 2.5)
    for name, (first, second) in expected.items():
        assert told(figures, name) == {"0": pytest.approx(first), "1": pytest.approx(second)}, name
    assert {figure.name for figure in figures} == set(FIGURES) == set(expected)
    assert {(each.labels.get("phase"), each.batches) for each in figures} == {("training", 40)}


def test_a_reading_has_what_is_new(runs_dir: Path) -> None:
    run = RunBuilder(runs_dir)
    process = run.process(ended=False)
    process.loader()
    lane = write_lane(process.path, "batches0x0", BATCH, loop(30, wait_ms=1, compute_ms=9))
    reader = LiveFigures(run.path)
    assert told(reader.read(), "wait_share") == {None: pytest.approx(0.1)}
    assert reader.read() == []
    for row in loop(30, wait_ms=8, compute_ms=2, epoch=1, start_ns=T0 + 1000 * MS):
        lane.append(*values_of(BATCH, row))
    later = reader.read()
    assert told(later, "wait_share") == {None: pytest.approx(0.8)}, "of the second epoch alone"
    assert {figure.batches for figure in later} == {60}


def test_prometheus(tmp_path: Path) -> None:
    parser = pytest.importorskip("prometheus_client.parser")

    def samples() -> dict[str, list[tuple[dict[str, str], float]]]:
        found = parser.text_string_to_metric_families(path.read_text())
        return {each.name: [(one.labels, one.value) for one in each.samples] for each in found}

    path = tmp_path / "run.prom"
    backend = Prometheus(path)
    backend.write(SAMPLE)
    backend.write([])
    found = samples()
    assert found["loaderscope_wait_share"] == [(dict(SAMPLE[0].labels), 0.25)]
    assert found["loaderscope_headroom"] == [({"loader": "Rows"}, 1.5)]
    assert found["loaderscope_live"] == [({}, 1.0)]
    assert found["loaderscope_updated_seconds"][0][1] > 1e9
    backend.close()
    assert samples()["loaderscope_live"] == [({}, 0.0)]
    assert list(tmp_path.iterdir()) == [path]  # nothing half written
    assert path.stat().st_mode & 0o444 == 0o444  # node_exporter must read it
    with pytest.raises(UsageError, match="there is no folder"):
        Prometheus(tmp_path / "missing" / "run.prom")


def test_wandb_keeps_the_numbers_of_the_trainings_steps() -> None:
    """Of wandb.Run, `commit=False` adds to what the training logs next."""
    calls: list[Any] = []
    run = SimpleNamespace(
        define_metric=lambda name, step_metric: calls.append((name, step_metric)),
        log=lambda data, commit: calls.append((data, commit)),
    )
    backend = WandB(run)
    backend.write(SAMPLE)
    backend.write([])
    backend.close()
    values = {'loaderscope/Ima"ges\n/rank 1/wait_share': 0.25, "loaderscope/Rows/headroom": 1.5}
    values["loaderscope/batches"] = 40
    assert calls == [("loaderscope/*", "loaderscope/batches"), (values, False)]


class Kept:
    """A backend that remembers, and fails where it is told to."""

    def __init__(self, fails: bool = False) -> None:
        self.figures: list[Figure] = []
        self.closed = threading.Event()
        self.fails = fails

    def write(self, figures: Sequence[Figure]) -> None:
        if self.fails:
            raise ConnectionError("the tracker is away")
        self.figures += figures

    def close(self) -> None:
        self.closed.set()


def test_live_hands_on_what_the_loop_does_and_raises_nothing(capfd):
    kept, failing = Kept(), Kept(fails=True)
    loader = DataLoader(TensorDataset(torch.arange(300.0)), batch_size=10)
    with live(failing, kept, every_s=0.02):
        for _ in range(2):
            assert sum(len(batch) for (batch,) in loader) == 300
    assert kept.closed.is_set() and failing.closed.is_set()
    assert {figure.name for figure in kept.figures} == set(FIGURES)
    assert max(figure.batches for figure in kept.figures) == 60
    told = capfd.readouterr().err
    assert told.count("Kept got no figures: ConnectionError: the tracker is away") == 1


@pytest.mark.parametrize(("rank", "tells"), [(None, True), (0, True), (1, False)])
def test_only_rank_0_tells(rank, tells, monkeypatch, runs_dir):
    session = SimpleNamespace(facts={"rank": rank}, run_directory=two_ranks(runs_dir).path)
    kept = Kept()
    with monkeypatch.context() as patched:
        patched.setattr(scalars.sessions, "current", lambda: session)
        with live(kept, every_s=60):
            pass
        assert kept.closed.wait(60) and bool(kept.figures) == tells


def test_a_fork_waits_for_the_reading_and_leaves_nothing_held(runs_dir: Path) -> None:
    kept = Kept()
    found = scalars.Live(lambda: two_ranks(runs_dir).path, [kept], every_s=60)
    try:
        pid = os.fork()
        if not pid:
            os._exit(0 if found._busy.acquire(blocking=False) else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert found._busy.acquire(blocking=False)
        found._busy.release()
    finally:
        found.stop()
    found.stop()
    assert kept.closed.is_set()


SCRIPT = """
import torch
from torch.utils.data import DataLoader, TensorDataset
for (batch,) in DataLoader(TensorDataset(torch.arange(200.0)), batch_size=10):
    pass
print("trained")
"""


def test_run_hands_on_from_outside(tmp_path: Path) -> None:
    """Of the training process nothing is asked: it may end before the first reading."""
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [*LOADERSCOPE, "run", "-q", "--metrics", f"prometheus:{tmp_path}/run.prom"]
    done = ran([*command, str(tmp_path / "train.py")], check=True)
    assert done.stdout == "trained\n" and done.stderr == ""
    text = (tmp_path / "run.prom").read_text()
    assert 'loaderscope_wait_share{loader="TensorDataset"} ' in text
    assert "loaderscope_live 0" in text


@pytest.mark.parametrize("wanted", ["prometheus", "prometheus:", "statsd:here"])
def test_a_place_that_cannot_be_meant(wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--metrics", wanted, "train.py"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"loaderscope: --metrics {wanted} names no place: write prometheus:FILE")
    assert said.count("\n") == 1
