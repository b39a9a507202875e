"""Finds how a loader draws its samples, through the wrappers around its sampler.

Known wrappers (torch's BatchSampler, Accelerate's shards, Lightning's injected samplers, endless
repeaters) are opened by their attributes. An unknown one may draw in any order, and is named as it
is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...base.metadata import Facts
from ...guard.static_access import class_name, instance_vars
from .uses import library_of

MAX_WRAPPERS = 8

# By class: the attributes that may hold the wrapped sampler. The first one found counts.
_WRAPPERS = {
    "torch.utils.data.sampler.BatchSampler": ("sampler",),
    "torchdata.stateful_dataloader.sampler.BatchSampler": ("sampler",),
    "accelerate.data_loader.BatchSamplerShard": ("batch_sampler",),
    "accelerate.data_loader.SkipBatchSampler": ("batch_sampler",),
    "DistributedSamplerWrapper": ("dataset",),
    "UnrepeatedDistributedSamplerWrapper": ("dataset",),
    "_DatasetSamplerWrapper": ("_sampler",),
    "_IndexBatchSamplerWrapper": ("_batch_sampler", "_sampler"),
}
# Classes that always shuffle.
_SHUFFLES = (
    "RandomSampler",
    "SeedableRandomSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
)
_TORCHS_OWN = (
    "torch.utils.data.sampler",
    "torch.utils.data.dataloader",
    "torchdata.stateful_dataloader.sampler",
    "torchdata.stateful_dataloader.stateful_dataloader",
)


@dataclass
class Sampling:
    """Who draws, in what batches, and by which arguments.

    `sampler` draws the samples. `path` is how code reaches it from the loader
    ("batch_sampler.sampler"), `wrappers` are the known wrappers around it, outermost first.
    `batching` is the argument that makes batches: "batch_size", "batch_sampler", or "none" if the
    data set does. `batch_size` is that of this process, None if unknown. `replicas` share the
    samples. `shuffle` is None if the order is unknown, and `plain`
    if DataLoader makes this sampler itself, from `shuffle` alone.
    """

    sampler: Any
    path: str
    batch_sampler: Any
    batching: str
    batch_size: int | None
    drop_last: bool
    wrappers: tuple[str, ...] = ()
    replicas: int | None = None

    shuffle: bool | None = None
    plain: bool = False


def own_of(loader: Any) -> Facts:
    """The attributes of a loader; of Accelerate's, those of the loader inside."""
    own = instance_vars(loader)
    if "dataset" not in own and "base_dataloader" in own:
        return instance_vars(own["base_dataloader"])
    return own


def sampling_of(own: Facts) -> Sampling:
    """How the loader with these attributes draws."""
    batch_sampler, size = own.get("batch_sampler"), own.get("batch_size")
    path = "sampler" if batch_sampler is None else "batch_sampler"
    batching = "none" if batch_sampler is None else "batch_sampler"
    if type(size) is int:
        batching = "batch_size"
    else:
        size = None
    drop_last = own.get("drop_last") is True
    found = Sampling(own.get(path), path, batch_sampler, batching, size, drop_last)
    for _ in range(MAX_WRAPPERS):
        _unwrap(found)
    # A loader that makes its batch sampler itself also keeps the sampler it was given.
    if batching == "batch_size" and own.get("sampler") is found.sampler:
        found.path = "sampler"
    if batching == "none":  # the data set gets what the sampler draws, an index or a list of them
        found.batch_size, found.drop_last = None, False
    _judge(found, own)
    return found


def _unwrap(found: Sampling) -> None:
    """Leave out the outermost known wrapper, if there is one."""
    name = class_name(type(found.sampler))
    short = _last(name)
    roles = _WRAPPERS.get(short if library_of(name) == "lightning" else name)
    if short == "_RepeatSampler":  # endless; of timm, and copied into many code bases
        roles = ("sampler",)
    held = instance_vars(found.sampler) if roles else {}
    role = next((each for each in roles or () if held.get(each) is not None), None)
    if role is None:
        return
    found.replicas = _first_int(held, "num_replicas", "num_processes") or found.replicas
    found.batch_size = found.batch_size or _first_int(held, "batch_size")
    if found.batch_size and found.replicas and held.get("split_batches") is True:
        found.batch_size //= found.replicas
    found.sampler = held[role]
    found.path += f".{role}"
    found.drop_last = found.drop_last or held.get("drop_last") is True
    found.wrappers += (short,)


def _first_int(held: Facts, *names: str) -> int | None:
    return next((held[name] for name in names if type(held.get(name)) is int), None)


def _judge(found: Sampling, own: Facts) -> None:
    """Add the order, as far as the sampler's class tells, and whether DataLoader makes it."""
    name, held = class_name(type(found.sampler)), instance_vars(found.sampler)
    if _last(name) in _SHUFFLES:
        found.shuffle = True
    elif _last(name) == "SequentialSampler":
        found.shuffle = False
    elif type(held.get("shuffle")) is bool:
        found.shuffle = held["shuffle"]
    found.plain = name.rpartition(".")[0] in _TORCHS_OWN and _plain(name, held, own)
    found.replicas = _first_int(held, "num_replicas", "num_processes") or found.replicas


def _plain(name: str, held: Facts, own: Facts) -> bool:
    if _last(name) == "_InfiniteConstantSampler":
        return True
    if held.get("data_source") is not own.get("dataset"):
        return False
    if _last(name) != "RandomSampler":
        return _last(name) == "SequentialSampler"
    given = own.get("generator")
    # torchdata's RandomSampler makes a generator of its own where it is given none.
    same = held.get("generator") is given or (given is None and library_of(name) == "torchdata")
    return same and held.get("replacement") is False and held.get("_num_samples") is None


def _last(name: str) -> str:
    return name.rpartition(".")[2]
