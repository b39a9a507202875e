"""Batches in a form that crosses from workers, or to the device, at less cost."""

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten
from torch.utils.data import get_worker_info

from .placeholders import COLLATE


def pack(batch):
    """One tensor a dtype, where each leaf is in it, and the batch with its leaves' numbers."""
    leaves, structure = tree_flatten(batch)
    parts, places = {}, []
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            parts.setdefault(leaf.dtype, []).append(leaf.reshape(-1))
            places.append((leaf.dtype, leaf.shape))
        else:
            places.append((None, leaf))
    order = tree_unflatten(list(range(len(leaves))), structure)
    return {dtype: torch.cat(part) for dtype, part in parts.items()}, places, order


def unpack(packed):
    """The batch again. Its tensors are views, nothing is copied."""
    flat, places, order = packed
    at, leaves = dict.fromkeys(flat, 0), []
    for dtype, shape in places:
        if dtype is None:
            leaves.append(shape)
            continue
        end = at[dtype] + shape.numel()
        leaves.append(flat[dtype][at[dtype] : end].view(shape))
        at[dtype] = end
    return tree_map(leaves.__getitem__, order)


class Packed:
    """A batch that leaves its worker as one tensor a dtype, and arrives as it was."""

    def __init__(self, batch):
        self.batch = batch

    def __reduce__(self):
        return unpack, (pack(self.batch),)


def collate_packed(samples):
    batch = COLLATE(samples)
    return batch if get_worker_info() is None else Packed(batch)


def as_tensor(leaf):
    """Numbers cross in shared memory only as tensors."""
    numbers = isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf"
    return torch.from_numpy(np.ascontiguousarray(leaf)) if numbers else leaf


def collate_tensors(samples):
    return tree_map(as_tensor, COLLATE(samples))


def cloned(leaf):
    return leaf.clone() if isinstance(leaf, torch.Tensor) else leaf


def collate_cloned(samples):
    return tree_map(cloned, COLLATE(samples))


def narrow(leaf):
    return leaf.float() if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float64 else leaf


def collate_narrow(samples):
    return tree_map(narrow, COLLATE(samples))


def to_device(batch, device):
    """A batch on the device, in one copy for each dtype."""
    flat, places, order = pack(batch)
    flat = {dtype: part.to(device, non_blocking=True) for dtype, part in flat.items()}
    return unpack((flat, places, order))
