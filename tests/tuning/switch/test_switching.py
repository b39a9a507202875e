"""Settings change in mid-epoch; batches, their order and the training's random numbers do not."""

import gc
import itertools
import multiprocessing.connection
import os
import random
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

import loaderscope
from loaderscope.profiler.base import torch_parts
from loaderscope.profiler.record.iterate.watch import recorder_of, watch
from loaderscope.tuning.evidence import evidence
from loaderscope.tuning.evidence.settings import Settings, settings_of, why_fixed, why_refused
from loaderscope.tuning.switch.comparison import SpotChecks, Unequal
from loaderscope.tuning.switch.order import Order
from loaderscope.tuning.switch.switching import Switching
from switch_data import Drawing, FailsElsewhere, Rows, Script, same, scripted

pytestmark = [  # more workers than some machine has
    pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning"),
    pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning"),
]


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loaders count as functions of their indices from the first batch, and nothing is compared."""
    monkeypatch.setattr(evidence, "ENOUGH", 0)
    monkeypatch.setattr(Script, "COMPARED", 0)
    monkeypatch.setattr(evidence.Evidence, "nothing_changed_here", True)


some_settings = st.builds(Settings, st.integers(0, 3), st.integers(1, 4))


@st.composite
def loops(draw: Any) -> Any:
    size, length = draw(st.integers(1, 5)), draw(st.integers(1, 60))
    own = draw(some_settings)
    arguments = {**own.arguments(), "batch_size": size, "drop_last": draw(st.booleans())}
    if own.num_workers:
        arguments["persistent_workers"] = draw(st.booleans())
    own_generator = draw(st.booleans())

    def make() -> Any:
        generator = torch.Generator().manual_seed(5) if own_generator else None
        return DataLoader(Rows(length), shuffle=True, generator=generator, **arguments)

    epochs = draw(st.integers(1, 3))
    batches = st.integers(1, epochs * (length // size + 1))
    plan = draw(st.dictionaries(batches, some_settings, max_size=6))
    return make, epochs, plan, draw(st.booleans()), draw(st.booleans())


def looped(loader: Any, epochs: int) -> list[Any]:
    """All that a training sees: batches, and random numbers drawn in between."""
    torch.manual_seed(1)
    return [(batch, torch.rand(1)) for _ in range(epochs) for batch in loader] + [torch.rand(1)]


def holds(loop: Any) -> None:
    make, epochs, plan, kept, at_once = loop
    bare = looped(make(), epochs)
    loader = make()
    script = scripted(loader, plan, kept, at_once)
    try:
        assert same(looped(loader, epochs), bare)
        assert not script.failures
    finally:
        loaderscope.unwatch(loader)


free = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=5)


@free
@given(loops())
def test_random_switches_change_no_batch_and_no_order(loop: Any) -> None:
    holds(loop)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(free, max_examples=150)
@given(loops())
def test_many_random_switches(loop: Any) -> None:
    holds(loop)


def switched(data: Any, plan: dict[int, Settings], at_once: bool = True, **arguments: Any) -> Any:
    loader = DataLoader(data, batch_size=2, **arguments)
    return loader, scripted(loader, plan, at_once=at_once)


def recorded(loader: Any) -> Any:
    loaderscope.unwatch(loader)
    (found,) = loaderscope.open_run("latest").loaders
    return found


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class DrawsLate(Rows):
    """Draws nothing for long: what is looked for in the first fetches is not there."""

    def __getitem__(self, index: int) -> Any:
        if index >= 70:
            return index, torch.rand(1), np.random.randn(2), random.random()
        return index, torch.zeros(1), np.zeros(2), 0.0


@pytest.mark.parametrize(
    ("data", "plan"),
    [
        (DrawsLate(100), {3: Settings(0)}),  # draws nothing from the training's streams
        (Drawing(24), {3: Settings(0), 8: Settings(2), 15: Settings(0)}),  # from its own
    ],
)
def test_a_data_set_draws_nothing_from_the_training_s_streams(data, plan):
    def after(plan: dict[int, Settings]) -> Any:
        torch.manual_seed(1)
        np.random.seed(1)
        random.seed(1)
        loader = DataLoader(data, batch_size=2, shuffle=len(data) < 100, num_workers=1)
        scripted(loader, plan)
        batches = (batch[0] for _ in range(2) for batch in loader)
        drawn = [(each, torch.rand(1), np.random.rand(), random.random()) for each in batches]
        loaderscope.unwatch(loader)
        return drawn, [torch.get_rng_state(), str(np.random.get_state()), random.getstate()]

    assert same(after({}), after(plan))


@pytest.mark.usefixtures("trusted")
def test_epochs_show_one_row_and_all_their_batches() -> None:
    plan = {4: Settings(0), 9: Settings(1, 3), 30: Settings(1)}
    loader, script = switched(Rows(40), plan, num_workers=1)
    for _ in range(2):
        assert len(list(loader)) == 20
    found = recorded(loader)
    assert found.epochs["batches"].tolist() == [20, 20] and found.epochs["how"].tolist() == [1, 1]
    assert np.bincount(found.batches["epoch"]).tolist() == [20, 20]
    assert (found.batches["compute_ns"] >= 0).all()
    assert [made for _, made in script.events][1:3] == [Settings(0), Settings(1, 3)]


@pytest.mark.usefixtures("trusted")
def test_starting_workers_is_waiting_and_no_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    hold = torch_parts.hold
    monkeypatch.setattr(torch_parts, "hold", lambda iterator: (time.sleep(0.3), hold(iterator)))
    loader, _ = switched(Rows(20), {4: Settings(1)})
    list(loader)
    found = recorded(loader).batches
    at = int(np.argmax(found["wait_ns"]))
    # With the batch that finds the worker ready, which may be a later one.
    assert at >= 4 and found["wait_ns"][at] >= 3e8 > found["compute_ns"][at]


def workers() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


class Dying(Rows):
    def __getitem__(self, index: int) -> Any:
        info = torch.utils.data.get_worker_info()
        if index == 20 and info and info.num_workers == 2:
            os._exit(3)
        return super().__getitem__(index)


@pytest.mark.parametrize(
    ("data", "elsewhere", "said"),
    [
        (FailsElsewhere(40, workers=1), Settings(0), "not in this process"),
        (FailsElsewhere(40, workers=1), Settings(2), "not in this process"),
        # Torch asks every five seconds whether a worker lives.
        pytest.param(Dying(40), Settings(2), "DataLoader worker", marks=pytest.mark.slow),
    ],
)
def test_settings_that_do_not_work_are_left_and_no_batch_is_lost(data, elsewhere, said):
    loader, script = switched(data, {3: elsewhere}, num_workers=1)
    assert same(list(loader), list(DataLoader(Rows(40), batch_size=2)))
    assert len(script.failures) == 1 and said in str(script.failures[0])
    assert script.events[-1][1] == settings_of(loader)


class Failing(Rows):
    def __getitem__(self, index: int) -> Any:
        if index == 21:
            raise LookupError("bad sample")
        return super().__getitem__(index)


@pytest.mark.usefixtures("trusted")
def test_idle_workers_are_told_to_end_when_an_error_reaches_the_loop() -> None:
    loader, _ = switched(Failing(40), {3: Settings(1), 6: Settings(0)})
    iterator = iter(loader)
    for _ in range(10):
        next(iterator)
    kept = psutil.Process().children()
    with pytest.raises(LookupError):
        next(iterator)
    assert {*kept} - _others and not alive()
    assert len(list(iterator)) == 9


@pytest.mark.usefixtures("trusted")
def test_workers_that_had_no_task_end_quietly_where_their_iterator_is_garbage(monkeypatch):
    failed: list[Any] = []
    monkeypatch.setattr("threading.excepthook", failed.append)
    close = multiprocessing.connection.Connection.close

    def late(connection: Any) -> None:
        """As on a busy machine: the thread that feeds a queue is slow to close its pipe."""
        if threading.current_thread().name == "QueueFeederThread":
            time.sleep(0.05)
        close(connection)

    monkeypatch.setattr("multiprocessing.connection._ConnectionBase.close", late)
    monkeypatch.setattr("torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL", 0.2)
    loader, _ = switched(Rows(16), {2: Settings(3)})
    cycle: list[Any] = [iter(loader)]
    next(cycle[0]), next(cycle[0]), next(cycle[0])
    assert cycle[0].next_pool.settings == Settings(3)
    cycle.append(cycle)
    del cycle
    gc.collect()
    while any(thread.name == "QueueFeederThread" for thread in threading.enumerate()):
        time.sleep(0.01)
    assert not failed


@pytest.mark.usefixtures("trusted")
def test_workers_start_one_by_one_while_the_others_go_on() -> None:
    loader, script = switched(Rows(4000), {5: Settings(3)}, at_once=False, num_workers=1)
    seen, counts, before = [], [], workers()
    for batch in loader:
        seen.append(batch)
        if len(seen) == 6:
            counts.append(len(workers() - before))
        if script.events[-1][1] == Settings(3):
            counts.append(len(workers() - before))
            break
        time.sleep(0.001)
    assert counts == [2, 4] and not script.failures and 7 < script.events[-1][0] == len(seen) - 1
    assert same(seen, list(itertools.islice(DataLoader(Rows(4000), batch_size=2), len(seen))))
    gc.collect()
    assert not alive()


class OfArray(Rows):
    """Reads an array that is too large to be compared each time."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.values = np.arange(1 << 21)

    def __getitem__(self, index: int) -> Any:
        return int(self.values[index])


def test_workers_of_mid_epoch_have_the_data_that_the_code_s_own_began_with() -> None:
    """The loop changes the end of a large array once, and asks for other workers later."""

    def looped(watched: bool) -> tuple[list[Any], Any]:
        data = OfArray(1600)
        loader = DataLoader(data, batch_size=2, num_workers=1)
        script = scripted(loader, {1200: Settings(2)}) if watched else None
        seen = []
        for batch in itertools.chain.from_iterable(iter(loader) for _ in range(2)):
            seen.append(batch)
            if len(seen) == 1190:
                data.values[1500:1600] = 0
        return seen, script

    seen, script = looped(watched=True)
    assert same(seen, looped(watched=False)[0])
    (failure,) = script.failures
    assert str(failure) == "the loop changes OfArray.values between batches"


def test_a_loader_s_data_set_lives_no_longer_than_without_us(no_collection: None) -> None:
    data = Rows(60)
    data.held = [np.zeros(3), {"a": [1]}]
    loader, _ = switched(data, {20: Settings(1), 25: Settings(0)})
    list(loader)
    alive = weakref.ref(data)
    del loader, data
    assert alive() is None


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("ends", ["asked for others", "the epoch", "left", "an error"])
def test_workers_that_are_being_started_end_where_they_are_not_wanted(ends: str) -> None:
    plan = {4: Settings(3), **({6: Settings(0)} if ends == "asked for others" else {})}
    loader, script = switched(Failing(24 if ends == "an error" else 12), plan, at_once=False)
    iterator = iter(loader)
    if ends == "left":
        for _ in range(5):
            next(iterator)
        assert alive_now()
    else:
        with pytest.raises(LookupError) if ends == "an error" else nullcontext():
            assert len(list(iterator)) == 6
    del iterator
    gc.collect()
    assert not alive() and all(isinstance(each, LookupError) for each in script.failures)


@pytest.fixture(autouse=True)
def others() -> None:
    """Children that an earlier test's fork server left are none of these tests'."""
    _others.clear()
    _others.update(psutil.Process().children())


_others: set[psutil.Process] = set()


def alive_now() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child not in _others]


def alive() -> list[psutil.Process]:
    return psutil.wait_procs(alive_now(), timeout=60)[1]


@pytest.mark.usefixtures("trusted")
def test_what_a_signal_s_handler_raises_is_no_failure_of_the_settings() -> None:
    class Waiting(Rows):
        def __getitem__(self, index: int) -> Any:
            if index == 20:
                time.sleep(60)  # until the signal
            return index

    def raises(number: int, frame: Any) -> None:
        raise TimeoutError("time is up")

    loader, script = switched(Waiting(40), {3: Settings(0)}, num_workers=1)
    before = signal.signal(signal.SIGALRM, raises)
    try:
        iterator = iter(loader)
        for _ in range(10):
            next(iterator)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(TimeoutError):
            next(iterator)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not script.failures and len(list(iterator)) == 9


def test_the_iterator_passes_for_torch_s_own() -> None:
    loader, _ = switched(Rows(12), {2: Settings(0)}, num_workers=1, persistent_workers=True)
    iterator: Any = iter(loader)
    torchs = torch.utils.data.dataloader._MultiProcessingDataLoaderIter
    assert isinstance(iterator, torchs) and loader._iterator is iterator is iter(iterator)
    kind = type(iterator)
    assert (kind.__name__, kind.__module__) == (torchs.__name__, torchs.__module__)
    assert len(iterator) == len(loader) == 6 and iterator._collate_fn is loader.collate_fn
    assert len(list(iterator)) == 6 and len(list(loader)) == 6
    loader._iterator._shutdown_workers()
    assert not alive()


def test_once_settled_epochs_are_torch_s_own_and_recorded() -> None:
    loader, script = switched(Rows(12), {2: Settings(1)}, shuffle=True)
    torch.manual_seed(0)
    tuned, then = list(loader), torch.get_rng_state()
    script.settled = True
    iterator: Any = iter(loader)
    assert not isinstance(iterator, Switching)
    tuned += iterator
    torch.manual_seed(0)
    bare = DataLoader(Rows(12), batch_size=2, shuffle=True)
    first = list(bare)
    assert torch.equal(then, torch.get_rng_state())
    assert all(map(same, tuned, first + list(bare)))
    assert recorder_of(loader).begun == 2


class Stream(torch.utils.data.IterableDataset[int]):
    def __iter__(self) -> Any:
        return iter(range(4))


class OwnWay(DataLoader[Any]):
    def _get_iterator(self) -> Any:
        return super()._get_iterator()


def test_settings_and_loaders_that_cannot_be_switched_say_why() -> None:
    plain = DataLoader(Rows(4), num_workers=1)
    own = settings_of(plain)
    assert why_refused(plain, own, Settings(0)) is None
    if hasattr(plain, "in_order"):
        loose = DataLoader(Rows(4), num_workers=1, in_order=False)
        assert "in_order=False" in str(why_fixed(watch(loose)))
    for name, value in {"timeout": 9, "worker_init_fn": print}.items():
        told = DataLoader(Rows(4), num_workers=1, **{name: value})
        assert name in str(why_refused(told, own, Settings(0)))
    assert Settings(4, 3).changed_from(own) == {"num_workers": 4, "prefetch_factor": 3}
    assert Settings(0).changed_from(own) == {"num_workers": 0}
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    assert why_fixed(watch(DataLoader(Rows(4)))) is None
    assert "iterable" in str(why_fixed(watch(DataLoader(Stream()))))
    assert "StatefulDataLoader" in str(why_fixed(watch(stateful(Rows(4)))))
    assert "its own iterators" in str(why_fixed(watch(OwnWay(Rows(4)))))


class FailingSampler:
    def __iter__(self) -> Any:
        yield from range(6)
        raise LookupError("no more indices")

    def __len__(self) -> int:
        return 12


@pytest.mark.parametrize("when", [1, 3, 6])
def test_an_error_of_the_sampler_is_the_loop_s_and_no_failure_of_the_settings(when: int) -> None:
    loader = DataLoader(Rows(12), batch_size=1, sampler=FailingSampler())  # type: ignore[arg-type]
    script = scripted(loader, {when: Settings(1, 2)})
    iterator = iter(loader)
    assert [int(next(iterator)[0][0, 0]) for _ in range(6)] == list(range(6))
    with pytest.raises(LookupError, match="no more indices"):
        next(iterator)
    assert not script.failures


class OutOfTime(Exception):
    """Unlike an exception of Python's own, it can be referred to weakly."""


def test_what_a_handler_raises_while_a_batch_is_handed_over_is_freed_with_it(no_collection):
    def interrupt(*given: Any) -> None:
        raise OutOfTime

    loader = DataLoader(Rows(20), 4)
    scripted(loader, {}).handed = lambda *given: signal.raise_signal(signal.SIGUSR1)  # type: ignore[method-assign]
    before = signal.signal(signal.SIGUSR1, interrupt)
    batches, alive = iter(loader), None
    try:
        next(batches)
    except OutOfTime as error:
        alive = weakref.ref(error)
    assert alive is not None and alive() is None
    signal.signal(signal.SIGUSR1, before)


ONE, OTHER = Settings(2), Settings(3)


def test_ever_fewer_are_made_again_and_the_first_after_each_change() -> None:
    checks, made = SpotChecks(), []

    def run(settings: Settings, batches: int) -> list[int]:
        made.clear()
        for number in range(batches):
            checks.checked(settings, number, number, lambda n: made.append(n) or n)
        return [*made]

    assert run(ONE, 9) == [0, 1, 3, 7]
    assert run(OTHER, 3) == [0, 1]
    checks.unneeded()
    assert run(ONE, 9) == [0, 6]  # its tenth, for it comes after a change, and its 16th
    assert run(OTHER, 2) == [0]  # its fourth


def test_how_long_it_took_is_known_of_the_batch_handed_over_last() -> None:
    checks, batch = SpotChecks(), torch.zeros(2)

    def slowly(index: int) -> torch.Tensor:
        time.sleep(0.02)
        return batch.clone()

    assert checks.took_ns == 0
    checks.checked(ONE, 0, batch, slowly)
    assert checks.took_ns >= 20_000_000
    checks.checked(ONE, 1, batch, lambda index: None)  # nobody can make it again
    assert checks.took_ns == 0
    checks.checked(OTHER, 2, batch, slowly)
    checks.unneeded()
    assert checks.took_ns == 0
    with pytest.raises(Unequal):
        checks.checked(ONE, 3, batch, lambda index: batch + 1)


class Source:
    """A sampler that notes after how many batches of the loop it was asked."""

    def __init__(self, length: int, fails_at: int = -1) -> None:
        self.length, self.fails_at, self.handed, self.asked = length, fails_at, 0, []

    def __iter__(self) -> Iterator[int]:
        for index in range(self.length):
            self.asked.append(self.handed)
            if index == self.fails_at:
                raise LookupError("no such sample")
            yield index


def early(allowed: bool) -> Any:
    return SimpleNamespace(draws_early=lambda drawn: allowed)


def ran(order: Order, source: Source, guest: bool, ahead: int) -> list[Any]:
    """A loop whose batches are made by a pool that takes all it can get, up to so many ahead."""
    found: list[Any] = []
    while True:
        order.asked(guest)
        while len(order.waiting) < max(1, ahead):
            try:
                next(order)
            except StopIteration:
                break
        if not order.waiting:
            return found
        found.append(order.handed())
        order.catch_up()
        source.handed += 1


@pytest.mark.parametrize("own", [0, 2, 6])
@pytest.mark.parametrize("ahead", [1, 4, 12])
def test_each_index_is_drawn_when_the_code_s_own_settings_draw_it(own: int, ahead: int) -> None:
    source = Source(10)
    order = Order(iter(source), own, early(False))
    assert ran(order, source, guest=True, ahead=ahead) == list(range(10))
    assert source.asked == [max(0, index - own) for index in range(10)]


def test_what_hears_of_nothing_is_drawn_as_far_ahead_as_is_asked_for_but_never_the_first() -> None:
    source = Source(10)
    order = Order(iter(source), 0, early(True))
    with pytest.raises(StopIteration):
        next(order)
    order.asked(True)
    assert [next(order) for _ in range(10)] == list(range(10)) and source.asked == [0] * 10


@pytest.mark.parametrize("allowed", [False, True])
def test_an_error_of_the_sampler_comes_where_the_loop_would_meet_it(allowed: bool) -> None:
    source = Source(9, fails_at=3)
    order = Order(iter(source), 0, early(allowed))
    found: list[Any] = []
    with pytest.raises(LookupError) as raised:
        found += ran(order, source, guest=True, ahead=5)
    assert source.handed == 3 and order.raised(raised.value) and not order.raised(raised.value)
