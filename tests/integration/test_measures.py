"""What is recorded is what happened: times are planted with sleeps, so lower bounds are hard."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, SequentialSampler

import loaderscope
from loaderscope.profiler.record.iterate import watch
from loaderscope.profiler.record.session import session
from loaderscope.profiler.store.lanes.columns import derive_compute
from loaderscope.profiler.store.lanes.lane_reader import read_segment
from loaderscope.profiler.store.lanes.segment_file import segments

MS = 1_000_000
BATCH = 4


class Slow(Dataset):
    def __init__(self, length: int, sample_s: float = 0.0) -> None:
        self.length, self.sample_s = length, sample_s

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.sample_s * (3 if index % BATCH == 2 else 1))
        return torch.full((16,), float(index)), index


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[Any]:
        for i in range(20):
            time.sleep(0.002)
            yield torch.ones(3) * i


class SlowBatches(BatchSampler):
    def __iter__(self) -> Iterator[list[int]]:
        for indices in super().__iter__():
            time.sleep(0.003)
            yield indices


def slow_collate(samples: list[Any]) -> Any:
    time.sleep(0.006)
    return torch.utils.data.default_collate(samples)


def busy_collate(samples: list[Any]) -> Any:
    end = time.thread_time() + 0.006
    while time.thread_time() < end:
        pass
    return torch.utils.data.default_collate(samples)


class Unpinned:
    """A batch that takes its time being pickled and unpickled."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __reduce__(self) -> Any:
        time.sleep(0.004)
        return rebuild, (self.values,)


def rebuild(values: Any) -> Unpinned:
    time.sleep(0.005)
    return Unpinned(values)


def slow_to_send(samples: list[Any]) -> Unpinned:
    return Unpinned([index for _, index in samples])


def place(loader: Any) -> tuple[Path, int]:
    """Where it is recorded, with everything recorded so far."""
    session.flush()
    return watch.loader_place(loader)


def lane(loader: Any, name: str) -> np.ndarray:
    """All rows of a lane; `#` in its name is the loader's number."""
    folder, index = place(loader)
    paths = segments(folder, name.replace("#", str(index)))
    return np.concatenate([read_segment(path)[0] for path in paths])


def batches(loader: Any, number: int = 0) -> np.ndarray:
    return lane(loader, f"batches#x{number}")


def epochs(loader: Any) -> np.ndarray:
    return lane(loader, "epochs#")


def lanes(loader: Any) -> set[str]:
    """Names of the lanes of batches of a first loader."""
    return {path.name.rsplit("-", 1)[0] for path in place(loader)[0].glob("batches0x*.seg")}


def exhaust(loader: Any) -> Any:
    for _ in loader:
        pass
    return loader


def watched(dataset: Any, batch_size: int | None = BATCH, **how: Any) -> Any:
    return loaderscope.watch(DataLoader(dataset, batch_size=batch_size, **how))


def made(dataset: Any, **how: Any) -> np.ndarray:
    """What is recorded of a loader that is looped over."""
    return batches(exhaust(watched(dataset, **how)))


@pytest.mark.quiet
@pytest.mark.parametrize("workers", [0, 2])
def test_index_fetch_and_collate(workers: int) -> None:
    dataset = Slow(40, 0.001)
    sampler = SlowBatches(SequentialSampler(dataset), BATCH, False)
    how: Any = {"batch_sampler": sampler, "collate_fn": slow_collate, "num_workers": workers}
    loader = watched(dataset, 1, **how)
    for _ in loader:
        time.sleep(0.002)
    got = batches(loader)
    assert len(got) == 10
    # Of fetching, three samples of 1 ms and one of 3.
    least = {"index_ns": 3, "fetch_ns": 6, "collate_ns": 6, "sample_min_ns": 1, "sample_max_ns": 3}
    assert [name for name, ms in least.items() if not (got[name] >= ms * MS).all()] == []
    warm = got[max(1, workers) :]  # the first batch of a process runs its code for the first time
    for stage in ("fetch", "collate"):
        assert (got[f"{stage}_cpu_ns"] >= 0).all()
        assert (warm[f"{stage}_cpu_ns"] < warm[f"{stage}_ns"] / 2).all()  # asleep, not computing
    assert (got["sample_median_ns"] < got["sample_max_ns"]).all()
    for name, value in {"samples": BATCH, "tensors": 2, "bytes": BATCH * (16 * 4 + 8)}.items():
        assert (got[name] == value).all(), name
    compute = derive_compute(got)
    assert (compute >= 2 * MS).all()
    # Steps are all there is: they make up the loop to the nanosecond.
    assert (got["wait_ns"] + compute).sum() == epochs(loader)["t_end_ns"][0] - got["t_ns"][0]
    if not workers:
        assert (got["wait_ns"] >= got["index_ns"] + got["fetch_ns"] + got["collate_ns"]).all()
        assert (got["pack_ns"] == -1).all() and (got["worker"] == -1).all()


@pytest.mark.quiet
def test_computing_is_told_from_sleeping() -> None:
    got = made(Slow(20), collate_fn=busy_collate, num_workers=1)
    assert (got["collate_cpu_ns"] >= 6 * MS).all()
    assert (got["collate_cpu_ns"] <= got["collate_ns"] + MS).all()


@pytest.mark.quiet
def test_the_way_from_worker_to_main() -> None:
    loader = watched(Slow(48), collate_fn=slow_to_send, num_workers=2, prefetch_factor=2)
    seen = []
    for batch in loader:
        seen.append(batch.values)
        time.sleep(0.03)  # slow: batches are ready early
    assert seen == [list(range(i, i + BATCH)) for i in range(0, 48, BATCH)]
    got = batches(loader)
    assert (got["pack_ns"] >= 4 * MS).all() and (got["unpack_ns"] >= 5 * MS).all()
    assert np.median(got["wait_ns"][2:]) >= 5 * MS  # unpacking happens in main, inside next()
    assert np.median(got["queued_ns"][2:]) >= 20 * MS
    assert 10 < got["pickled_bytes"].min() <= got["pickled_bytes"].max() < 2000
    assert sorted(got["task"]) == list(range(12))
    assert set(got["worker"]) == {0, 1} and len(set(got["worker_pid"])) == 2
    # Two of four are on their way while main is at work, and no more than four ever are.
    assert got["outstanding"].max() <= 4
    assert got["ready"].min() >= 0 and got["ready"].max() >= 2
    assert (got["t_fetch_ns"] > 0).all()


def test_startup_and_ends_of_iterations() -> None:
    loader = exhaust(watched(Slow(16, 0.002), num_workers=1))
    for _ in loader:
        break
    next(iter(loader))
    rows = epochs(loader)
    assert list(rows["epoch"]) == [0, 1, 2]
    assert list(rows["how"]) == [1, -1, -1]
    assert rows["batches"][0] == 4
    assert (rows["t_first_ns"] - rows["t_iter_ns"] > 12 * MS).all()  # worker and first fetch
    assert rows["t_end_ns"][0] > rows["t_first_ns"][0]
    assert (rows["num_workers"] == 1).all()
    assert list(batches(loader)["epoch"]) == [0, 0, 0, 0, 1, 2]


def test_a_loop_that_takes_one_batch_of_each_iterator() -> None:
    loader, whole = watched(Slow(80, 0.002), shuffle=True), watched(Slow(BATCH))
    for _ in range(30):
        next(iter(loader))
        exhaust(whole)  # one batch is all there is
        time.sleep(0.004)
    found, other = loaderscope.report().loaders
    assert (found.verdict, found.findings[0].stage) == ("input-bound", "fetch")
    assert found.basis.steady_batches == 29 and found.stages["compute"].mean_us >= 4000
    assert (other.verdict, other.basis.steady_batches) == ("input-bound", 30)


class Sometimes(Slow):
    def __getitem__(self, index: int) -> Any:
        if index == 4:
            raise ValueError("this one is bad")
        return index


def test_an_exception_ends_an_iteration_unless_workers_go_on() -> None:
    for workers, how, count in ((0, 3, 1), (1, 1, 3)):
        loader = watched(Sometimes(16), num_workers=workers)
        iterator = iter(loader)
        next(iterator)
        with pytest.raises(ValueError, match="this one is bad"):
            next(iterator)
        if workers:
            assert len(list(iterator)) == 2
        assert (epochs(loader)["how"][0], epochs(loader)["batches"][0]) == (how, count)
        assert len(batches(loader)) == count


@pytest.mark.parametrize("workers", [0, 2])
def test_iterable_data(workers: int) -> None:
    got = made(Stream(), batch_size=5, num_workers=workers)
    assert len(got) == 4 * max(1, workers)
    assert (got["fetch_ns"] >= 10 * MS).all()


class Rows(BatchSampler):
    def __iter__(self) -> Iterator[Any]:
        return map(np.array, super().__iter__())


@pytest.mark.parametrize("workers", [0, 1])
def test_samples_are_counted_of_arrays_of_indices(workers: int) -> None:
    rows = Rows(SequentialSampler(range(10)), BATCH, False)
    how: Any = {"batch_sampler": rows, "num_workers": workers}
    assert list(batches(exhaust(watched(torch.arange(10), 1, **how)))["samples"]) == [4, 4, 2]
    single = watched(torch.arange(10), None, sampler=map(np.array, range(3)), num_workers=workers)
    assert list(batches(exhaust(single))["samples"]) == [1] * 3


@pytest.mark.parametrize("workers", [0, 1])
def test_samples_are_counted_without_automatic_batching(workers: int) -> None:
    assert list(made(Slow(6), batch_size=None, num_workers=workers)["samples"]) == [1] * 6
    lists = BatchSampler(SequentialSampler(range(10)), BATCH, False)
    whole = watched(torch.arange(10), None, sampler=lists, num_workers=workers)
    assert [batch.tolist() for batch in whole] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(batches(whole)["samples"]) == [4, 4, 2]


def test_a_failure_of_ours_at_the_end_costs_the_loop_nothing(monkeypatch, capsys):
    from loaderscope.profiler.record.iterate.iteration import Iteration

    def broken(*args: object) -> None:
        raise RuntimeError("device lost")

    monkeypatch.setattr(Iteration, "_patch_row", broken)
    assert len(list(watched(Slow(8)))) == 2
    assert capsys.readouterr().err.count("device lost") == 1


def test_in_order_false_matches_batches_to_their_tasks() -> None:
    loader = watched(Slow(40, 0.001), num_workers=2, in_order=False)
    firsts = [int(indices[0]) // BATCH for _, indices in loader]
    assert list(batches(loader)["task"]) == firsts


def test_plain_iterables() -> None:
    watched = loaderscope.watch(iter(Stream()), name="stream")
    for _ in watched:
        time.sleep(0.002)
    got = batches(watched)
    assert len(got) == 20
    assert (got["wait_ns"] >= 2 * MS).all() and (derive_compute(got) >= 2 * MS).all()
    assert (got["fetch_ns"] == -1).all() and got["bytes"][0] == 12


def test_threads_have_lanes_of_their_own() -> None:
    loader = watched(Slow(80, 0.0005))
    threads = [threading.Thread(target=lambda: [None for _ in loader]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    numbers = range(len(lanes(loader)))
    records = np.concatenate([batches(loader, number) for number in numbers])
    assert sorted(records["epoch"]) == [0] * 20 + [1] * 20 + [2] * 20
    for number in numbers:
        assert (np.diff(batches(loader, number)["t_ns"]) > 0).all()


@pytest.mark.quiet
def test_detail_is_sampled_in_fast_loops_only() -> None:
    got = made(Slow(4000), batch_size=1)
    assert 0.005 < (got["fetch_cpu_ns"] >= 0).mean() < 0.2
    assert np.isnan(got["own_ns"]).mean() > 0.8
    assert (got["own_ns"][~np.isnan(got["own_ns"])] > 0).all()


@pytest.mark.usefixtures("nothing_left_over")
def test_watch_all_takes_over_what_is_under_way() -> None:
    loader = DataLoader(Slow(40), batch_size=BATCH, num_workers=1, persistent_workers=True)
    exhaust(loader)
    running = iter(DataLoader(Slow(40), batch_size=BATCH))
    next(running)
    loaderscope.watch_all()
    assert len(list(running)) == 9
    assert len(list(loader)) == 10
    run = loaderscope.open_run("latest")
    assert sorted(len(found.batches["t_ns"]) for found in run.loaders) == [9, 10]


def test_unwatch_restores_everything() -> None:
    from torch.utils.data import dataloader

    original = dataloader.DataLoader.__dict__["_get_iterator"]
    loader = DataLoader(Slow(40), batch_size=BATCH, num_workers=1, persistent_workers=True)
    assert loaderscope.watch(loader) is loader
    assert dataloader.DataLoader.__dict__["_get_iterator"] is not original
    iterator = iter(loader)
    next(iterator)
    loaderscope.unwatch(loader)
    assert dataloader.DataLoader.__dict__["_get_iterator"] is original
    assert len(list(iterator)) == 9  # workers that send envelopes are still understood
    assert len(list(loader)) == 10
    with pytest.raises(loaderscope.LoaderscopeError, match="not watched"):
        loaderscope.unwatch(loader)
    with pytest.raises(loaderscope.LoaderscopeError, match="'int'"):
        loaderscope.watch(3)


def test_an_exhausted_iterator_that_is_kept_holds_no_lane() -> None:
    loader, kept = watched(Slow(8)), []
    for _ in range(5):
        iterator = iter(loader)
        assert len(list(iterator)) == 2
        assert list(iterator) == []  # exhausted again: the row keeps its count
        kept.append(iterator)
    assert list(epochs(loader)["batches"]) == [2] * 5
    assert len(lanes(loader)) == 1
