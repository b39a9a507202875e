"""Finding chains without running anything, and timing them without wrapping anything."""

from __future__ import annotations

import copy
import functools
import pickle
import threading

import pytest
import torch

from loaderscope.profiler.record.fetch_probe import chain_timing
from loaderscope.profiler.record.fetch_probe.chain_timing import Times, timed
from loaderscope.profiler.record.fetch_probe.chains import MAX_CHAINS, Chains, find_chains


class Object:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, value):
        for t in self.transforms:
            value = t(value)
        return value


class Clock:
    """Every reading is 10 ns later than the one before."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        self.now += 10
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(chain_timing, "now_ns", clock)
    return clock


def double(value):
    return value * 2


def found(dataset):
    return [(link.chain, list(link.held)) for link in find_chains(dataset)]


def closing_over(chain):
    def apply(value):
        return chain(value)

    return apply


PAIR = [double, abs]


@pytest.mark.parametrize(
    ("dataset", "chain"),
    [
        (Object(steps=list(PAIR)), "dataset.steps"),
        (Object(transform=Compose(tuple(PAIR))), "dataset.transform"),
        (
            Object(dataset=Object(dataset=Object(transform=Compose(list(PAIR))))),
            "dataset.dataset.dataset.transform",
        ),
        (Object(transform=functools.partial(print, Compose(list(PAIR)))), "dataset.transform"),
        (Object(transform=Compose(list(PAIR)).__call__), "dataset.transform"),
        (
            Object(datasets=[Object(), Object(transform=Compose(list(PAIR)))]),
            "dataset.datasets[1].transform",
        ),
        (Object(transform={"image": Compose(list(PAIR))}), "dataset.transform.image"),
        (Object(transform=closing_over(Compose(list(PAIR)))), "dataset.transform"),
    ],
)
def test_where_chains_are_found(dataset, chain):
    assert found(dataset) == [(chain, PAIR)]


INNER = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())


@pytest.mark.parametrize(
    "dataset",
    [
        Object(transform=Compose([double])),
        Object(classes=[int, float, str]),
        Object(values=[1, 2, 3], names=["a", "b"]),
        Object(steps=[double] * 65),
        Object(steps=[double, "not callable"]),
        Object(net=torch.nn.TransformerEncoderLayer(4, 1)),  # modules, and no sequence
        [1, 2],
        None,
        torch.ones(3),
    ],
)
def test_what_is_no_chain(dataset):
    assert found(dataset) == []


def test_modules_are_those_of_a_sequential():
    net = torch.nn.Sequential(INNER, INNER)
    assert [link.chain for link in find_chains(Object(net=net))] == [
        "dataset.net",
        "dataset.net[0]",
    ]


def test_the_search_runs_no_code_and_ends():
    def fail(*args, **kwargs):
        raise AssertionError("code of the user's was run")

    methods = ("getattr", "len", "iter", "bool", "eq", "repr", "call")
    body = dict.fromkeys((f"__{name}__" for name in methods), fail)
    body |= {"__hash__": None, "transforms": property(fail), "__class__": property(fail)}
    hostile = type("Hostile", (), body)
    knot = Object(hostile=hostile(), steps=[hostile(), hostile()])
    knot.knot = knot
    knot.many = [Object(number=i, steps=list(PAIR)) for i in range(60)]
    assert "dataset.steps" in [link.chain for link in find_chains(knot)]
    assert len(find_chains(knot)) == MAX_CHAINS


class Slots:
    __slots__ = ("transforms",)

    def __init__(self):
        self.transforms = list(PAIR)


class Setter(Compose):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value)


class Property(Object):
    @property
    def transforms(self):
        return self.__dict__["transforms"]

    @transforms.setter
    def transforms(self, value):
        raise AssertionError("set")


@pytest.mark.parametrize("owner", [Slots(), Setter(list(PAIR)), Property(transforms=list(PAIR))])
def test_owners_left_alone(owner):
    assert found(Object(transform=owner)) == []


def run(dataset, call=None):
    chains = Chains()
    chains.start(dataset)
    try:
        (call or (lambda: dataset.transform(3)))()
    finally:
        found = chains.stop()
    return found


@pytest.mark.parametrize("kind", [list, tuple])
def test_each_callable_is_timed_and_keeps_its_place_in_slices(kind):
    held = kind([double, abs, double])
    dataset = Object(transform=Compose(held))
    steps = run(dataset, lambda: [dataset.transform(3) for _ in range(2)])
    assert steps == [
        ("dataset.transform", 0, "double", 2, 20),
        ("dataset.transform", 1, "abs", 2, 20),
        ("dataset.transform", 2, "double", 2, 20),
    ]
    assert dataset.transform.transforms is held
    sliced = Object(steps=held)
    steps = run(sliced, lambda: [step(1) for step in sliced.steps[1:]])
    assert [(step[1], step[3]) for step in steps] == [(1, 1), (2, 1)]


def test_results_and_items_are_the_same():
    dataset = Object(transform=Compose([double, double]))
    chains = Chains()
    assert chains.start(dataset)
    seen = dataset.transform.transforms
    assert isinstance(seen, list) and seen == [double, double] and seen[0] is double
    assert len(seen) == 2
    assert dataset.transform(3) == 12
    assert list(seen) == [double, double] and [*reversed(seen)] == [double, double]
    for plain in (seen * 1, seen.copy()):
        assert type(plain) is list and plain == [double, double]
    chains.stop()


@pytest.mark.parametrize("chain", [[double, abs], (double, abs), {"0": double, "1": abs}])
def test_what_others_make_of_the_type_is_plain(chain):
    stand_in = timed(chain, Times(2))
    pickled = pickle.loads(pickle.dumps(stand_in))
    for made in (type(stand_in)(chain), copy.copy(stand_in), copy.deepcopy(stand_in), pickled):
        assert type(made) is type(chain) and made == chain


def test_an_exception_passes_and_all_is_put_back():
    def fail(value):
        raise KeyError(value)

    held = [double, fail, double]
    dataset = Object(transform=Compose(held))
    with pytest.raises(KeyError) as caught:
        run(dataset)
    assert dataset.transform.transforms is held
    assert [entry.name for entry in caught.traceback][-2:] == ["__call__", "fail"]


def test_changes_during_a_look_stay():
    held = [double, abs]
    dataset = Object(transform=Compose(held))
    run(dataset, lambda: dataset.transform.transforms.append(double))
    run(dataset, lambda: held.append(abs))  # through another name
    assert dataset.transform.transforms is held == [double, abs, double, abs]
    run(dataset, lambda: setattr(dataset.transform, "transforms", [abs]))
    assert dataset.transform.transforms == [abs]
    net = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.ReLU())
    modules = net._modules
    steps = run(
        Object(transform=net), lambda: net(torch.ones(1)) + len(net.append(torch.nn.Tanh()))
    )
    assert [step[3] for step in steps] == [1, 1]
    assert net._modules is modules and len(modules) == 3


def test_other_threads_are_not_timed():
    dataset = Object(transform=Compose([double, double]))
    results = []

    def elsewhere():
        thread = threading.Thread(target=lambda: results.append(dataset.transform(1)))
        thread.start()
        thread.join()

    assert run(dataset, elsewhere) == []
    assert results == [4]


def test_a_loop_that_outlives_its_look_goes_on_untimed(clock):
    times = Times(2)
    loop = iter(timed([double, abs], times))
    assert next(loop) is double
    times.active = False
    assert next(loop) is abs
    assert times.steps == [[0, 0], [0, 0]]


def test_a_chain_made_late_is_found_and_a_replaced_one_again():
    dataset = Object(transform=None)
    chains = Chains()
    assert not chains.start(dataset)
    dataset.transform = Compose([double, abs])
    assert chains.start(dataset)
    chains.stop()
    dataset.transform.transforms = [abs, double, abs]
    assert not chains.start(dataset)  # the third start: the search is not made each time
    assert chains.start(dataset)
    dataset.transform(1)
    assert len(chains.stop()) == 3
