"""Which samplers do not depend on the loop within an epoch, so that their indices may be drawn
early."""

from typing import Any

from ...profiler.guard.static_access import instance_vars, is_one_of
from . import program

# What samplers of torch's own read between two indices, or once an epoch.
_READ = ("batch_size", "drop_last", "indices", "data_source", "num_samples")


def _drawn_from(sampler: Any) -> tuple[type, dict[str, Any]]:
    """The class and the attributes of a sampler, inside torch's BatchSampler if it is in one."""
    from torch.utils.data import BatchSampler

    while type(sampler) is BatchSampler:
        sampler = instance_vars(sampler).get("sampler")
    return type(sampler), instance_vars(sampler)


def drawn_at_once(sampler: Any) -> bool:
    """Whether this is a sampler of torch's own that decides on all its indices when an epoch
    begins, and the program's source changes nothing that it reads."""
    import torch.utils.data as torch_s
    from torch.utils.data.distributed import DistributedSampler

    kind, held = _drawn_from(sampler)
    on_the_way = held.get("replacement") or held.get("_num_samples") is not None
    if kind is torch_s.RandomSampler and on_the_way and generator_of(sampler) is not None:
        return False  # it draws on as it goes, from a generator that the program has
    known = (
        torch_s.SequentialSampler,
        torch_s.RandomSampler,
        torch_s.SubsetRandomSampler,
        torch_s.WeightedRandomSampler,
        DistributedSampler,
    )
    return is_one_of(kind, known) and not any(map(program.assigned, _READ))


def generator_of(sampler: Any) -> Any:
    """The generator that a sampler of torch's own was given; None for one without."""
    return _drawn_from(sampler)[1].get("generator")
