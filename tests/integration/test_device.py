"""Copies, device time and stalls on a real GPU."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import loaderscope
from loaderscope.profiler.iterate.watch import loader_place
from loaderscope.profiler.session import session as sessions

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]

ROWS, WIDTH, BATCH = 512, 4096, 16
BYTES = BATCH * WIDTH * 4


class Rows(Dataset):
    def __init__(self, delay_s: float = 0.0, rows: int = ROWS) -> None:
        self.delay_s = delay_s
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> Any:
        if self.delay_s:
            time.sleep(self.delay_s / BATCH)
        return {"x": torch.full((WIDTH,), float(index)), "more": [torch.tensor(index)]}


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("LOADERSCOPE_DIR", str(tmp_path / "runs"))
    torch.zeros(1, device="cuda")
    yield
    loaderscope.unwatch()
    sessions.close_session()
    assert "to" not in vars(torch.Tensor)
    assert "copy_" not in vars(torch.Tensor)


def columns(loader: Any) -> Any:
    place = loader_place(loader)
    assert place is not None
    run = loaderscope.open_run(place[0].parent)
    return run.loaders[-1].batches


def spin(milliseconds: float) -> None:
    """Keep the device busy without a word from the host."""
    torch.cuda._sleep(int(milliseconds * 1e6 * 1.5))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("way", ["to", "to_kwargs", "cuda", "copy_", "derived"])
def test_copies_are_counted_and_timed(workers: int, way: str) -> None:
    loader = loaderscope.watch(DataLoader(Rows(), batch_size=BATCH, num_workers=workers, pin_memory=True))
    target = torch.empty(BATCH, WIDTH, device="cuda")
    for batch in loader:
        if way == "to":
            batch["x"].to("cuda", non_blocking=True)
        elif way == "to_kwargs":
            batch["x"].to(device=torch.device("cuda"), dtype=torch.float32, non_blocking=True)
        elif way == "cuda":
            batch["x"].cuda(non_blocking=True)
        elif way == "copy_":
            target.copy_(batch["x"], non_blocking=True)
        else:
            (batch["x"] + 1).to("cuda")
        batch["more"][0].to("cuda")
    torch.cuda.synchronize()
    got = columns(loader)
    steady = slice(2, -4)
    assert (got["h2d_copies"][steady] == 2).all()
    assert (got["h2d_bytes"][steady] == BYTES + BATCH * 8).all()
    assert (got["h2d_pinned"][steady] == (1 if way == "derived" else 2)).all()
    assert (got["h2d_blocking"][steady] == (2 if way == "derived" else 1)).all()
    assert (got["h2d_host_ns"][steady] > 0).all()
    timed = got["h2d_ns"][steady]
    assert (timed > 0).mean() > 0.9
    # 256 KiB take at least 2 µs on any link there is, and not 50 ms.
    assert 2_000 < sorted(timed[timed > 0])[len(timed) // 2] < 50_000_000
    assert (got["pin_ns"][steady] > 0).all()


def test_casts_on_the_host_are_no_copies() -> None:
    loader = loaderscope.watch(DataLoader(Rows(), batch_size=BATCH))
    for batch in loader:
        batch["x"].to(torch.float64)
        batch["x"].to("cpu")
        torch.tensor(1.0).to("cuda")
    torch.cuda.synchronize()
    assert (columns(loader)["h2d_copies"][2:-4] == 0).all()


def test_many_small_copies_are_all_counted() -> None:
    class Many(Rows):
        def __getitem__(self, index: int) -> Any:
            return {str(k): torch.ones(300) for k in range(40)}

    loader = loaderscope.watch(DataLoader(Many(), batch_size=BATCH))
    for batch in loader:
        for value in batch.values():
            value.to("cuda")
    torch.cuda.synchronize()
    assert (columns(loader)["h2d_copies"][3:-2] == 40).all()


def test_a_busy_device_is_not_stalled_by_a_quick_loader() -> None:
    loader = loaderscope.watch(DataLoader(Rows(rows=BATCH * 60), batch_size=BATCH))
    for batch in loader:
        batch["x"].to("cuda", non_blocking=True)
        spin(8)
    torch.cuda.synchronize()
    got = columns(loader)
    stall, device = got["stall_ns"], got["compute_device_ns"]
    seen = (stall >= 0) & (device >= 0)
    assert seen.sum() > 10
    # The host runs ahead: the device never waits though next() takes its time.
    assert stall[seen][3:].sum() < 0.2 * device[seen][3:].sum()


def test_a_slow_loader_stalls_the_device() -> None:
    loader = loaderscope.watch(DataLoader(Rows(delay_s=0.02, rows=BATCH * 40), batch_size=BATCH))
    for batch in loader:
        batch["x"].to("cuda", non_blocking=True)
        spin(1)
    torch.cuda.synchronize()
    got = columns(loader)
    seen = got["stall_ns"] >= 0
    assert seen.sum() > 20
    ratio = got["stall_ns"][seen][3:].sum() / got["wait_ns"][seen][3:].sum()
    assert 0.7 < ratio <= 1.0


def test_recording_never_synchronises() -> None:
    loader = loaderscope.watch(DataLoader(Rows(), batch_size=BATCH, pin_memory=True))
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        start = time.perf_counter()
        for batch in loader:
            batch["x"].to("cuda", non_blocking=True)
            spin(40)
        issued = time.perf_counter() - start
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    finished = time.perf_counter() - start
    assert issued < 0.8 * finished


def test_the_same_model_is_trained() -> None:
    def losses(watched: bool) -> list[float]:
        torch.manual_seed(3)
        model = torch.nn.Linear(WIDTH, 4).cuda()
        optimiser = torch.optim.SGD(model.parameters(), lr=1e-6)
        loader = DataLoader(Rows(), batch_size=BATCH, shuffle=True, num_workers=2, pin_memory=True)
        if watched:
            loaderscope.watch(loader)
        seen = []
        for batch in loader:
            loss = model(batch["x"].to("cuda", non_blocking=True)).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            seen.append(loss.item())
        return [*seen, torch.cuda.get_rng_state().sum().item(), torch.get_rng_state().sum().item()]

    assert losses(True) == losses(False)


def test_under_torch_compile() -> None:
    import torch._dynamo as dynamo

    model = torch.nn.Linear(WIDTH, 4).cuda()

    def step(x: torch.Tensor) -> torch.Tensor:
        return model(x.to("cuda") * 2).sum()

    def run(watched: bool) -> tuple[list[float], int, int]:
        dynamo.reset()
        dynamo.utils.counters.clear()
        loader = DataLoader(Rows(rows=BATCH * 40), batch_size=BATCH)
        if watched:
            loaderscope.watch(loader)
        compiled = torch.compile(step)
        values = [compiled(batch["x"]).item() for batch in loader]
        graphs = dynamo.utils.counters["stats"]["unique_graphs"]
        if watched:
            # Compiled code copies the batch by `copy_`, called from Python: seen there.
            copies = columns(loader)["h2d_copies"][3:-2]
            assert (copies == 1).all()
        return values, graphs, sum(dynamo.utils.counters["graph_break"].values())

    assert run(True) == run(False)


def test_inside_a_graph_capture() -> None:
    static = torch.zeros(BATCH, WIDTH, device="cuda")
    out = torch.zeros((), device="cuda")
    loader = loaderscope.watch(DataLoader(Rows(), batch_size=BATCH, pin_memory=True))
    graph: torch.cuda.CUDAGraph | None = None
    totals = []
    for batch in loader:
        static.copy_(batch["x"], non_blocking=True)
        if graph is None:
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out.copy_(static.sum())
        graph.replay()
        totals.append(out.item())
    assert totals == [float(sum(range(i, i + BATCH)) * WIDTH) for i in range(0, ROWS, BATCH)]


def test_the_sampler_sees_the_gpu() -> None:
    loader = loaderscope.watch(DataLoader(Rows(delay_s=0.04, rows=BATCH * 60), batch_size=BATCH))
    for batch in loader:
        batch["x"].to("cuda")
        spin(10)
    torch.cuda.synchronize()
    place = loader_place(loader)
    assert place is not None
    report = loaderscope.report(place[0].parent)
    text = report.to_json()
    run = loaderscope.open_run(place[0].parent)
    print(text[:20000])
    assert run.system is not None
    gpu = run.system.gpu
    assert len(gpu["t_ns"]) >= 3
    assert (gpu["mem_used_bytes"] > 0).all()
    assert (gpu["power_mw"] > 0).any() or "power" in str(run.system.reasons)
