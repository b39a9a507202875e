"""How a loader draws its samples, told through the wrappers around its sampler."""

import functools
import multiprocessing
import sys
from types import ModuleType

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    RandomSampler,
    Sampler,
    WeightedRandomSampler,
)

from loaderscope.profiler.record.inspect.describe import describe_loader
from loaderscope.profiler.record.inspect.inspect_loader import inspect_loader

TORCH = "torch.utils.data.sampler."


class Rows(Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.tensor([float(index)])


DATA = Rows()


def told(loader, **expected):
    found = describe_loader(loader)
    assert {name: found[name] for name in expected} == expected


def over(sampler):
    return DataLoader(DATA, 8, sampler=sampler)


RANDOM = TORCH + "RandomSampler"
DISTRIBUTED = "torch.utils.data.distributed.DistributedSampler"
IN_TURN = {"sampler": TORCH + "SequentialSampler", "shuffle": False, "sampler_plain": True}
DRAWN = {"sampler": RANDOM, "shuffle": True, "sampler_plain": True}
GIVEN = {"batching": "batch_size", "batch_size": 8, "shuffle": True}
ODD = {**GIVEN, "sampler": RANDOM, "sampler_plain": False}
ONES, WHOLE = {"batching": "batch_size", "batch_size": 1}, {"batching": "none", "batch_size": None}
BATCH_SAMPLER = {"batching": "batch_sampler", "sampler_path": "batch_sampler.sampler"}
BATCH_SAMPLER |= {"sampler_wrappers": "BatchSampler", "drop_last": True}
BATCHES = BatchSampler(RandomSampler(DATA), 8, True)
WEIGHTED = TORCH + "WeightedRandomSampler"
ROUND_ROBIN = {"sampler": DISTRIBUTED, "shuffle": False, "replicas": 4}


@pytest.mark.parametrize(
    ("loader", "expected"),
    [
        (DataLoader(DATA, drop_last=True), {**IN_TURN, **ONES, "drop_last": True}),
        (DataLoader(DATA, 8, shuffle=True), {**GIVEN, **DRAWN, "sampler_wrappers": None}),
        (DataLoader(DATA, batch_sampler=BATCHES), {**GIVEN, **DRAWN, **BATCH_SAMPLER}),
        (DataLoader(DATA, None), {**IN_TURN, **WHOLE}),
        (
            DataLoader(DATA, None, sampler=BATCHES),
            {**DRAWN, **WHOLE, "sampler_path": "sampler.sampler"},
        ),
        (over(RandomSampler(DATA, num_samples=5)), ODD),
        (over(RandomSampler(DATA, generator=torch.Generator())), ODD),
        (over(RandomSampler(Rows())), ODD),
        (over(WeightedRandomSampler([1.0] * 20, 20)), {**ODD, "sampler": WEIGHTED}),
        (over(DistributedSampler(DATA, 4, 1, shuffle=False)), {**ODD, **ROUND_ROBIN}),
    ],
)
def test_torchs_own(loader, expected):
    told(loader, **{"sampler_path": "sampler"} | expected)


class Twice(Sampler):
    """A wrapper that nobody knows: what it draws is its own."""

    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        for index in self.sampler:
            yield from (index, index)


def test_an_unknown_wrapper_is_named_as_it_is():
    own = f"{Twice.__module__}.Twice"
    loader = over(Twice(RandomSampler(DATA)))
    told(loader, sampler=own, shuffle=None, sampler_plain=False, batch_size=8)
    given = DataLoader(DATA, batch_sampler=Twice(BatchSampler(RandomSampler(DATA), 8, False)))
    told(given, sampler=own, batch_size=None, batching="batch_sampler")


class _RepeatSampler(Twice):
    """As timm's and ultralytics'."""


class EndlessLoader(DataLoader):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        object.__setattr__(self, "batch_sampler", _RepeatSampler(self.batch_sampler))


class OwnLoader(DataLoader):
    def __init__(self, dataset, tokens):
        super().__init__(dataset, batch_size=tokens // 10)


def test_an_endless_repeater_is_looked_through():
    wrappers = "_RepeatSampler, BatchSampler"
    told(EndlessLoader(DATA, 8, shuffle=True), **GIVEN | DRAWN, sampler_wrappers=wrappers)


FORK = multiprocessing.get_context("fork")


@pytest.mark.parametrize(("given", "name"), [("spawn", "spawn"), (None, None), (FORK, "fork")])
def test_how_workers_start(given, name):
    loader = DataLoader(DATA, num_workers=1, multiprocessing_context=given)
    told(loader, multiprocessing_context=name)


def test_whose_constructor():
    told(DataLoader(DATA), own_constructor=False)
    told(EndlessLoader(DATA), own_constructor=False)  # it hands everything on
    told(OwnLoader(DATA, 40), own_constructor=True, batch_size=4)


def a_module(name, *classes):
    """A module that these are of."""
    module = ModuleType(name)
    for each in classes:
        each.__module__ = name
        setattr(module, each.__name__, each)
    return module


# As Accelerate's.
class BatchSamplerShard(BatchSampler):
    def __init__(self, batch_sampler, num_processes, split_batches=False):
        self.batch_sampler, self.num_processes = batch_sampler, num_processes
        self.split_batches = split_batches
        self.batch_size, self.drop_last = batch_sampler.batch_size, batch_sampler.drop_last


class SkipBatchSampler(BatchSampler):
    def __init__(self, batch_sampler):
        self.batch_sampler, self.skip_batches = batch_sampler, 1


class SeedableRandomSampler(RandomSampler): ...


class DataLoaderShard:
    """As Accelerate's: the loader that works is inside."""

    def __init__(self, **options):
        self.base_dataloader = DataLoader(**options)


def seed_worker(worker_id, num_workers=0):
    """As the one of transformers' Trainer."""


ACCELERATES = (BatchSamplerShard, SkipBatchSampler, SeedableRandomSampler, DataLoaderShard)
a_module("accelerate.data_loader", *ACCELERATES)
a_module("transformers.trainer_utils", seed_worker)


@pytest.mark.parametrize(("split", "size"), [(False, 8), (True, 4)])
def test_accelerates_shards(split, size):
    inner = BatchSampler(SeedableRandomSampler(DATA), 8, True)
    batches = SkipBatchSampler(BatchSamplerShard(inner, 2, split))
    loader = DataLoaderShard(dataset=DATA, batch_sampler=batches)
    told(loader, sampler="accelerate.data_loader.SeedableRandomSampler", sampler_plain=False)
    told(loader, batch_size=size, drop_last=True, replicas=2, shuffle=True, made_by="accelerate")
    seen = inspect_loader(loader)
    assert (seen["sampler"]["name"], seen["dataset"]["name"]) == ("SeedableRandomSampler", "Rows")


def test_the_trainers_loaders():
    init = functools.partial(seed_worker, num_workers=2)
    batches = BatchSampler(SeedableRandomSampler(DATA), 8, False)
    loader = DataLoaderShard(dataset=DATA, batch_sampler=batches, worker_init_fn=init)
    told(loader, made_by="transformers", own_constructor=True)


class _DatasetSamplerWrapper(Rows):
    def __init__(self, sampler):
        self._sampler = sampler


class DistributedSamplerWrapper(DistributedSampler):
    """As Lightning's, around a sampler of the user's."""

    def __init__(self, sampler, **options):
        super().__init__(_DatasetSamplerWrapper(sampler), **options)


LIGHTNINGS = (DistributedSamplerWrapper, _DatasetSamplerWrapper)
a_module("lightning.fabric.utilities.distributed", *LIGHTNINGS)


def test_lightnings_injected_samplers(monkeypatch):
    weighted = WeightedRandomSampler([1.0] * 20, 20)
    loader = over(DistributedSamplerWrapper(weighted, num_replicas=2, rank=0))
    told(loader, sampler=WEIGHTED, replicas=2, batch_size=8, shuffle=True, made_by="lightning")
    plain = over(DistributedSampler(DATA, 2, 0))
    told(plain, made_by=None)
    trainer = a_module("lightning.pytorch.trainer.trainer", type("Trainer", (), {}))
    monkeypatch.setitem(sys.modules, trainer.__name__, trainer)
    told(plain, made_by="lightning")  # it may be Lightning's, so code does not name it


@pytest.mark.filterwarnings("ignore:'set_vital':UserWarning")
def test_torchdatas_stateful_loader():
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    told(stateful(DATA, 8, shuffle=True), **GIVEN, own_constructor=False, sampler_plain=True)
