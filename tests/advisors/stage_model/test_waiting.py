"""Where waiting came from, on batches whose history is known, and by counts of bursts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import MS, RunBuilder, loader_of, loop
from loaderscope.advisors.stage_model.verdict import first_of_epoch
from loaderscope.advisors.stage_model.wait_kinds import LEAST_SAMPLES, wait_kinds
from loaderscope.advisors.stage_model.waiting import waiting
from loaderscope.profiler.store.stacks.stack_samples import Wait
from stack_cases import OWN, add_workers, burst, with_bursts


def waiting_of(tmp_path: Path, rows: list[dict[str, Any]]) -> Any:
    loader = loader_of(tmp_path, rows)
    return waiting(loader, first_of_epoch(loader.batches["epoch"]))


def seconds(found: Any) -> dict[str, float]:
    return {name: round(cause.seconds * 1000, 6) for name, cause in found.causes.items()}


def history(ms_before_next: float, wait: float, **parts: float) -> dict[str, Any]:
    """Columns of a batch whose fetching began so long before next(), all in ms."""
    parts["queued"] = wait + ms_before_next - sum(parts.values())
    columns: dict[str, Any] = {f"{name}_ns": round(ms * MS) for name, ms in parts.items()}
    return {**columns, "t_fetch_ns": lambda n, t, w: t - round(ms_before_next * MS)}


MADE = {"collate": 3, "hand-over": 1, "unpack": 2}


@pytest.mark.parametrize(
    ("before", "parts", "expected"),
    [
        # Fetching began 4 ms after next(): the workers were busy until then.
        (-4, {"wait": 20}, {"workers-busy": 4, "fetch": 8, **MADE, "queue": 2}),
        # Half of the fetch was over when next() was entered.
        (4, {"wait": 10}, {"fetch": 4, **MADE}),
        # Everything was over: what remains is taking it from the queue and rebuilding it.
        (50, {"wait": 3}, {"queue": 1, "unpack": 2}),
        # Ready and pinned in the background long before: nothing of that is waiting.
        (50, {"wait": 0.5, "pin": 4}, {"other": 0.5}),
        # Pinned while the loop waited.
        (0, {"wait": 20, "pin": 4}, {"fetch": 8, **MADE, "queue": 2, "pin": 4}),
    ],
)
def test_with_workers_the_wait_is_laid_over_the_batchs_history(tmp_path, before, parts, expected):
    times = {"fetch": 8, "collate": 3, "pack": 1, "unpack": 2, **parts}
    rows = loop(2, wait_ms=parts["wait"], compute_ms=100, **history(before, **times))
    found = seconds(waiting_of(tmp_path, rows))
    assert found.pop("startup") == pytest.approx(parts["wait"])  # the first batch's wait
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rows", "parts", "expected"),
    [
        ((10, 10), (1, 6, 2), {"index": 10, "fetch": 60, "collate": 20, "other": 10}),
        ((1, 5), (0, 9, 2), {"fetch": 5}),  # never more than the wait
        ((10, 2), (), {"unknown": 20}),  # a plain iterable: nothing inside next() was measured
    ],
)
def test_without_workers_waiting_is_the_work(tmp_path, rows, parts, expected):
    names = ("index_ns", "fetch_ns", "collate_ns")
    columns = {name: ms * MS for name, ms in zip(names, parts, strict=False)}
    assert seconds(waiting_of(tmp_path, loop(*rows, **columns))) == expected


def test_busy_workers_are_divided_by_what_they_do(tmp_path: Path) -> None:
    rows = loop(101, wait_ms=20, **history(-10, wait=20, fetch=6, collate=2, pack=2, unpack=0))
    found = waiting_of(tmp_path, rows)
    share = 100 / 101  # the first wait is startup
    assert found.causes["workers-busy"].share == pytest.approx(0.5 * share)
    assert found.work["fetch"] == pytest.approx((0.5 * 0.6 + 0.3) * share)
    assert found.work["collate"] == pytest.approx((0.5 * 0.2 + 0.1) * share)
    assert found.work["pack"] == pytest.approx(0.5 * 0.2 * share)


def test_causes_add_up_whatever_the_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)

    def some(scale: float, missing: float = 0.2) -> Any:
        return lambda n, t, w: int(rng.gamma(1, scale * MS)) if rng.random() > missing else None

    begun = lambda n, t, w: t + int(rng.normal(0, 5 * MS)) if rng.random() > 0.3 else None  # noqa: E731
    made = {"index_ns": some(0.1), "fetch_ns": some(3), "collate_ns": some(1), "t_fetch_ns": begun}
    sent = {"pack_ns": some(1), "unpack_ns": some(1), "queued_ns": some(2), "pin_ns": some(1, 0.7)}
    found = waiting_of(tmp_path, loop(3000, wait_ms=3, compute_ms=2, **made, **sent))
    assert all(cause.seconds >= 0 for cause in found.causes.values())
    assert sum(cause.seconds for cause in found.causes.values()) == pytest.approx(9.0)
    assert sum(cause.share for cause in found.causes.values()) == pytest.approx(1)


def test_waiting_for_io_is_told_from_computing(tmp_path: Path) -> None:
    cpu = lambda n, t, w: 2 * MS if n % 4 == 0 else None  # noqa: E731
    found = waiting_of(tmp_path / "a", loop(40, wait_ms=10, fetch_ns=8 * MS, fetch_cpu_ns=cpu))
    assert found.fetch_idle_share == pytest.approx(0.75)
    assert waiting(loader_of(tmp_path / "empty"), np.zeros(0, np.bool_)) is None


FETCH = f"Rows.__getitem__ {OWN}:41"
SLEEPS, COMPUTES = Wait("sleep"), Wait("compute")


def kinds(tmp_path: Path, workers: int, *stacks: tuple[object, ...]) -> Any:
    made = RunBuilder(tmp_path / "run")
    process = made.process(50)
    process.loader(loop(40), config={"num_workers": workers})
    made.system()
    add_workers(process.path, *((0, 0, 60 + number) for number in range(workers)))
    run = with_bursts(made.path, burst(*stacks))
    return wait_kinds(run, run.processes[0], run.loaders[0])


def test_only_waiting_while_batches_are_made_counts(tmp_path: Path) -> None:
    main = (50, "wait", "", 90, {Wait("pipe"): 90})
    one = (60, "fetch", FETCH, 40, {Wait("lock", "", 2): 20, SLEEPS: 10, COMPUTES: 10})
    other = (61, "collate", FETCH, 10, {Wait("lock", "", 1): 5, Wait("core"): 5})
    idle, stranger = (61, *main[1:]), (77, "fetch", FETCH, 90, {Wait("disk"): 90})
    found = kinds(tmp_path, 2, main, one, other, idle, stranger)
    assert found.shares == {"shared lock": 20 / 35, "sleep": 10 / 35, "lock": 5 / 35}
    assert found.shared_lock == 20 / 50
    assert found.share("sleep", "lock", "disk") == pytest.approx(15 / 35)


@pytest.mark.parametrize("waits", [{}, {SLEEPS: LEAST_SAMPLES - 1}])
def test_too_few_samples_are_none(tmp_path: Path, waits: dict[Wait, int]) -> None:
    assert kinds(tmp_path, 0, (50, "fetch", FETCH, 40, waits)) is None
