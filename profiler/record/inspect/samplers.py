"""How a loader draws its samples, told through the wrappers around its sampler.

A wrapper that is known (torch's BatchSampler, Accelerate's shards, Lightning's injected samplers,
endless repeaters) is looked through, by its attributes; one that is not may draw in any order, and
is named as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...guard.static_access import class_name, instance_vars

MAX_WRAPPERS = 8

# By class: the attributes that may hold what it wraps, the first that is there counts.
_ENDLESS = ("sampler",)
_SHARD = ("batch_sampler",)
_WRAPPERS = {
    "torch.utils.data.sampler.BatchSampler": ("sampler",),
    "torchdata.stateful_dataloader.sampler.BatchSampler": ("sampler",),
    "accelerate.data_loader.BatchSamplerShard": _SHARD,
    "accelerate.data_loader.SkipBatchSampler": _SHARD,
    "timm.data.loader._RepeatSampler": _ENDLESS,
    "ultralytics.data.build._RepeatSampler": _ENDLESS,
    "DistributedSamplerWrapper": ("dataset",),
    "UnrepeatedDistributedSamplerWrapper": ("dataset",),
    "_DatasetSamplerWrapper": ("_sampler",),
    "_IndexBatchSamplerWrapper": ("_batch_sampler", "_sampler"),
}
LIGHTNING = ("lightning", "pytorch_lightning", "lightning_fabric")
# Classes that mix the order, by themselves or where their attribute `shuffle` says so.
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


@dataclass(frozen=True)
class Sampling:
    """Who draws, in what batches, and how the loader was told to.

    `sampler` is what draws the samples, `path` how code reaches it from the loader
    ("batch_sampler.sampler"), `wrappers` the names of the known wrappers around it, outermost
    first. `batching` is the argument that says which samples make a batch: "batch_size",
    "batch_sampler", or "none" where the data set makes batches itself. `batch_size` is of what
    reaches this process, None where that is not known; `replicas` share the samples out, this one
    is number `replica`. `shuffle` is None where the order is not known, and `plain` says that
    DataLoader makes this sampler itself, from `shuffle` alone.
    """

    sampler: Any
    path: str
    batch_sampler: Any
    batching: str
    batch_size: int | None
    drop_last: bool
    wrappers: tuple[str, ...] = ()
    replicas: int | None = None
    replica: int | None = None
    shuffle: bool | None = None
    plain: bool = False


def own_of(loader: Any) -> dict[str, Any]:
    """The attributes of a loader; of the loader inside of one of Accelerate's."""
    own = instance_vars(loader)
    if "dataset" not in own and "base_dataloader" in own:
        return instance_vars(own["base_dataloader"])
    return own


def sampling_of(own: dict[str, Any]) -> Sampling:
    """How the loader with these attributes draws."""
    batch_sampler, size = own.get("batch_sampler"), own.get("batch_size")
    batching = (
        "batch_size" if type(size) is int else "none" if batch_sampler is None else "batch_sampler"
    )
    path = "sampler" if batch_sampler is None else "batch_sampler"
    found = Sampling(
        sampler=own.get(path),
        path=path,
        batch_sampler=batch_sampler,
        batching=batching,
        batch_size=size if type(size) is int else None,
        drop_last=own.get("drop_last") is True,
    )
    for _ in range(MAX_WRAPPERS):
        inner = _unwrapped(found)
        if inner is None:
            break
        found = inner
    # A loader that makes its batch sampler itself keeps the sampler it was given beside it.
    if (
        batching == "batch_size"
        and found.path.startswith("batch_sampler")
        and own.get("sampler") is found.sampler
    ):
        found = replace(found, path="sampler")
    if (
        batching == "none"
    ):  # whatever the sampler draws, one index or a list of them, is what the data set is asked for
        found = replace(found, batch_size=None, drop_last=False)
    return _judged(found, own)


def _unwrapped(found: Sampling) -> Sampling | None:
    """The same, one known wrapper further in; None where there is none."""
    name = class_name(type(found.sampler))
    roles = _WRAPPERS.get(name) or (
        _WRAPPERS.get(_last(name)) if _root(name) in LIGHTNING else None
    )
    if (
        roles is None and _last(name) == "_RepeatSampler"
    ):  # copied into many code bases, alike everywhere
        roles = _ENDLESS
    if roles is None:
        return None
    held = instance_vars(found.sampler)
    role = next((each for each in roles if held.get(each) is not None), None)
    if role is None:
        return None
    size, replicas, replica = found.batch_size, found.replicas, found.replica
    if type(held.get("batch_size")) is int:
        size = size or held["batch_size"]
    for each in ("num_processes", "num_replicas"):
        if type(held.get(each)) is int:
            replicas = held[each]
            replica = _replica(held, replica)
    if size and held.get("split_batches") is True and replicas:
        size = size // replicas
    return replace(
        found,
        sampler=held[role],
        path=f"{found.path}.{role}",
        batch_size=size,
        drop_last=found.drop_last or held.get("drop_last") is True,
        wrappers=(*found.wrappers, _last(name)),
        replicas=replicas,
        replica=replica,
    )


def _replica(held: dict[str, Any], otherwise: int | None) -> int | None:
    """Which of the replicas a sampler with these attributes draws for."""
    return next(
        (held[name] for name in ("rank", "process_index") if type(held.get(name)) is int), otherwise
    )


def _judged(found: Sampling, own: dict[str, Any]) -> Sampling:
    """With the order, as far as the sampler's class tells, and whether DataLoader makes such a
    sampler itself."""
    cls = type(found.sampler)
    name, held = class_name(cls), instance_vars(found.sampler)
    replicas, replica = found.replicas, found.replica
    shuffle: bool | None = None
    if _last(name) in _SHUFFLES:
        shuffle = True
    elif _last(name) == "SequentialSampler":
        shuffle = False
    elif type(held.get("shuffle")) is bool:
        shuffle = held["shuffle"]
    if type(held.get("num_replicas")) is int:
        replicas, replica = held["num_replicas"], _replica(held, replica)
    plain = name.rpartition(".")[0] in _TORCHS_OWN and _plain(name, held, own)
    return replace(found, shuffle=shuffle, replicas=replicas, replica=replica, plain=plain)


def _plain(name: str, held: dict[str, Any], own: dict[str, Any]) -> bool:
    if _last(name) == "_InfiniteConstantSampler":
        return True
    if held.get("data_source") is not own.get("dataset"):
        return False
    if _last(name) != "RandomSampler":
        return _last(name) == "SequentialSampler"
    given = own.get("generator")
    # torchdata's RandomSampler makes a generator of its own where it is given none.
    same = held.get("generator") is given or (given is None and _root(name) == "torchdata")
    return same and held.get("replacement") is False and held.get("_num_samples") is None


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _root(name: str) -> str:
    return name.partition(".")[0]
