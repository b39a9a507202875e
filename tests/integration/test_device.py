"""Copies, device time and stalls: on the stand-in, and on a GPU where there is one."""

import itertools
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

import loaderscope
import standin_device
from closing import close_session
from loaderscope.profiler.record.iterate.watch import loader_place

ROWS, WIDTH, BATCH = 512, 4096, 16
BYTES = BATCH * WIDTH * 4


def on_cuda(test: Any) -> Any:
    return pytest.mark.gpu(pytest.mark.parametrize("device", ["cuda"], indirect=True)(test))


class Rows(Dataset):
    def __init__(self, delay_s: float = 0.0, rows: int = ROWS) -> None:
        self.delay_s, self.rows = delay_s, rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, index: int) -> Any:
        if self.delay_s:
            time.sleep(self.delay_s / BATCH)
        return {"x": torch.full((WIDTH,), float(index)), "more": [torch.tensor(index)]}


@pytest.fixture(params=["standin", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request):
    """Torch's name for it, its module, how to keep it busy without a word from the host, and of the
    stand-in, what it did when."""
    if request.param == "cuda":
        made = SimpleNamespace(module=torch.cuda, account=None)
        made.spin = lambda ms: torch.cuda._sleep(int(ms * 1e6 * 1.5))
    else:
        module = request.getfixturevalue("standin_on")()
        made = SimpleNamespace(module=module, account=module.engine, spin=module.spin)
    made.kind = request.param
    torch.zeros(1, device=made.kind)
    yield made
    loaderscope.unwatch()
    close_session()
    assert not {"to", "copy_", "cuda"} & set(vars(torch.Tensor))


def watched(delay_s: float = 0.0, rows: int = ROWS, **how: Any) -> Any:
    return loaderscope.watch(DataLoader(Rows(delay_s, rows), batch_size=BATCH, **how))


def trained(device: Any, loader: Any, spin_ms: float) -> Any:
    """The columns of a loop that copies each batch, and keeps the device busy for so long."""
    for batch in loader:
        batch["x"].to(device.kind, non_blocking=True)
        device.spin(spin_ms)
    device.module.synchronize()
    return columns(loader)


def run_of(loader: Any) -> Path:
    return loader_place(loader)[0].parent


def columns(loader: Any) -> Any:
    return loaderscope.open_run(run_of(loader)).loaders[-1].batches


def looked_at(loader: Any, least: int = 8) -> Any:
    """The columns, of the batches whose copies were looked at: of the first, and then of some."""
    got = columns(loader)
    rows = np.flatnonzero(got["h2d_copies"] >= 0)
    rows = rows[(rows >= 2) & (rows < len(got["h2d_copies"]) - 4)]
    assert len(rows) >= least
    return {name: got[name][rows] for name in got.keys()}  # noqa: SIM118


@pytest.mark.parametrize(("way", "workers"), [("to", 2), ("named", 0), ("derived", 0)])
def test_copies_are_counted_and_timed(device: Any, workers: int, way: str) -> None:
    loader = watched(num_workers=workers, pin_memory=True)
    for batch in loader:
        if way == "to":
            batch["x"].to(device.kind, non_blocking=True)
        elif way == "named":
            getattr(batch["x"], device.kind)(non_blocking=True)
        else:
            (batch["x"] + 1).to(device.kind)
        batch["more"][0].to(device.kind)
    device.module.synchronize()
    got = looked_at(loader)
    expected = {"h2d_copies": 2, "h2d_bytes": BYTES + BATCH * 8}
    expected |= {"h2d_pinned": 2 - (way == "derived"), "h2d_blocking": 1 + (way == "derived")}
    for name, value in expected.items():
        assert (got[name] == value).all(), name
    assert (got["h2d_host_ns"] > 0).all() and (got["pin_ns"] > 0).all()
    timed = got["h2d_ns"]
    assert (timed > 0).mean() > 0.9
    # At least 2 µs on any link there is; on the stand-in, a busy host comes between the events.
    most = 50_000_000 if device.kind == "cuda" else 500_000_000
    assert 2_000 < np.median(timed[timed > 0]) < most


def test_a_busy_device_is_not_stalled_by_a_quick_loader(device: Any) -> None:
    got = trained(device, watched(rows=BATCH * 60), 8)
    stall, computed = got["stall_ns"], got["compute_device_ns"]
    seen = (stall >= 0) & (computed >= 0)
    assert seen.sum() > 10
    # The host runs ahead: the device never waits though next() takes its time.
    assert stall[seen][3:].sum() < 0.2 * computed[seen][3:].sum()


def test_a_slow_loader_stalls_the_device(device: Any) -> None:
    got = trained(device, watched(0.02, BATCH * 40), 1)
    seen = got["stall_ns"] >= 0
    assert seen.sum() > 20
    assert 0.7 < got["stall_ns"][seen][3:].sum() / got["wait_ns"][seen][3:].sum() <= 1.0


def test_a_program_far_ahead_of_the_device_is_bound_by_it(standin_on: Any) -> None:
    """Almost all of its time is next()'s, and when that is over the device has done nothing yet."""
    module = standin_on(clock=standin_device.SetClock())
    module.init()
    loader = loaderscope.watch(DataLoader(Rows(rows=400), batch_size=None))
    for _ in loader:
        module.spin(5)
    path = run_of(loader)
    known = columns(loader)["stall_ns"] >= 0
    assert 30 < known.sum() < 300  # those of which it is certain without the device
    assert loaderscope.report(path).loaders[0].verdict == "compute-bound"


def test_recording_never_synchronises(device: Any) -> None:
    loader = watched(pin_memory=True)
    device.module.synchronize()
    on_gpu = device.account is None  # where nothing counts all ways of waiting
    if on_gpu:
        torch.cuda.set_sync_debug_mode("error")
    else:
        device.account.synchronised.clear()
    start = time.perf_counter()
    try:
        for batch in loader:
            batch["x"].to(device.kind, non_blocking=True)
            device.spin(40)
        issued = time.perf_counter() - start
    finally:
        if on_gpu:
            torch.cuda.set_sync_debug_mode("default")
    assert on_gpu or not device.account.synchronised
    device.module.synchronize()
    assert not on_gpu or issued < 0.8 * (time.perf_counter() - start)


def test_the_same_model_is_trained(device: Any) -> None:
    def losses(watched: bool) -> list[float]:
        torch.manual_seed(3)
        model = torch.nn.Linear(WIDTH, 4).to(device.kind)
        optimiser = torch.optim.SGD(model.parameters(), lr=1e-11)
        loader = DataLoader(Rows(), batch_size=BATCH, shuffle=True, num_workers=2, pin_memory=True)
        if watched:
            loaderscope.watch(loader)
        seen = []
        for batch in loader:
            loss = model(batch["x"].to(device.kind, non_blocking=True)).square().mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            seen.append(loss.item())
        drawn = torch.cuda.get_rng_state().sum().item() if device.kind == "cuda" else 0
        return [*seen, drawn, torch.get_rng_state().sum().item()]

    assert losses(True) == losses(False)


def test_a_prefetcher_on_a_side_stream(device: Any) -> None:
    """As prefetchers copy: one batch ahead, on a stream of their own."""
    loader, side = watched(pin_memory=True), device.module.Stream()
    for number, batch in enumerate(loader):
        with device.module.stream(side):
            batch["x"].to(device.kind, non_blocking=True)
        if number:
            device.spin(5)
        device.module.current_stream().wait_stream(side)
    device.spin(5)
    device.module.synchronize()
    got = looked_at(loader)
    assert (got["h2d_copies"] == 1).all() and (got["h2d_bytes"] == BYTES).all()
    timed = got["h2d_ns"][got["h2d_ns"] >= 0]
    assert len(timed) > 5
    assert np.median(timed) < 5_000_000  # beside the kernels, not after them


@pytest.mark.parametrize("device", ["standin"], indirect=True)
def test_figures_are_those_of_the_account(device: Any) -> None:
    """Of a loop partly bound by its loader; the benchmark holds them closer than a busy machine."""
    loader = watched(0.02, pin_memory=True)
    engine, clock = device.account, device.account.clock
    moments = []
    batches = iter(loader)
    while True:
        entered = clock.now_ns()
        batch = next(batches, None)
        moments.append((entered, clock.now_ns()))
        if batch is None:
            break
        batch["x"].to("standin", non_blocking=True)
        device.spin(6)
    device.module.synchronize()
    got = columns(loader)
    idle = [end - begin - engine.busy_ns(begin, end) for begin, end in moments[:-1]]
    computed = [
        engine.busy_ns(handed, entered) for (_, handed), (entered, _) in itertools.pairwise(moments)
    ]
    copied = [work.end_ns - work.start_ns for work in engine.account if work.kind == "h2d"]
    seen = slice(4, -4)
    assert (got["stall_ns"][seen] > 0).all()
    assert got["stall_ns"][seen].sum() == pytest.approx(sum(idle[seen]), rel=0.25)
    assert (got["compute_device_ns"][seen] >= 6_000_000).all()
    assert sum(computed) <= 6_100_000 * len(computed)
    looked = looked_at(loader)
    # The link was idle: of the time between the events, issuing is taken off, by an estimate.
    assert np.median(looked["h2d_ns"]) >= copied[5] / 2
    assert (looked["h2d_pinned"] == 1).all()


def test_a_backend_whose_events_carry_no_times(standin_on: Any, tmp_path: Path) -> None:
    module = standin_on(standin_device.Spec(timed_events=False))
    module.init()
    loader = watched()
    for batch in loader:
        batch["x"].to("standin")
    path = run_of(loader)
    (recorded,) = loaderscope.open_run(path).loaders
    assert (looked_at(loader)["h2d_copies"] == 1).all()
    assert (recorded.batches["h2d_ns"] == -1).all()
    assert "torch.standin carry no times" in recorded.reasons["h2d"]
    stages = loaderscope.report(path).loaders[0].stages
    for stage in (stages["h2d"], stages["compute_device"]):
        assert stage.count == 0 and "carry no times" in str(stage.reason)


def test_a_device_nobody_uses_is_not_set_up(standin_on: Any) -> None:
    module = standin_on()
    loader = watched()
    for _ in loader:
        pass
    assert not module.is_initialized()
    assert (columns(loader)["h2d_copies"] == -1).all()


@on_cuda
def test_under_torch_compile(device: Any) -> None:
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
            assert (looked_at(loader)["h2d_copies"] == 1).all()
        return values, graphs, sum(dynamo.utils.counters["graph_break"].values())

    assert run(True) == run(False)


@on_cuda
def test_inside_a_graph_capture(device: Any) -> None:
    static = torch.zeros(BATCH, WIDTH, device="cuda")
    out = torch.zeros((), device="cuda")
    loader = watched(pin_memory=True)
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


@on_cuda
def test_the_sampler_sees_the_gpu(device: Any) -> None:
    loader = watched(0.04, BATCH * 60)
    trained(device, loader, 10)
    path = run_of(loader)
    assert loaderscope.report(path).to_json()
    (system,) = loaderscope.open_run(path).systems
    gpu = system.gpu
    assert len(gpu["t_ns"]) >= 3
    assert (gpu["mem_used_bytes"] > 0).all()
    assert (gpu["power_mw"] > 0).any() or "power" in str(system.reasons)
