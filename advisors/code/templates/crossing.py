"""Batches in a form that crosses from workers, or to the device, at less cost."""

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from .placeholders import COLLATE


def pack(batch):
    """One tensor a dtype, where each leaf is in it, and how they belong together."""
    leaves, structure = tree_flatten(batch)
    parts, places = {}, []
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            parts.setdefault(leaf.dtype, []).append(leaf.reshape(-1))
            places.append((leaf.dtype, leaf.shape))
        else:
            places.append((None, leaf))
    return {dtype: torch.cat(part) for dtype, part in parts.items()}, places, structure


def unpack(packed):
    """In the loop: `batch = unpack(packed)`. The fields are views, nothing is copied."""
    flat, places, structure = packed
    at, leaves = dict.fromkeys(flat, 0), []
    for dtype, shape in places:
        if dtype is None:
            leaves.append(shape)
            continue
        end = at[dtype] + shape.numel()
        leaves.append(flat[dtype][at[dtype] : end].view(shape))
        at[dtype] = end
    return tree_unflatten(leaves, structure)


def collate_packed(samples):
    """Runs in the worker: one tensor a dtype crosses to the training process, not one a field."""
    return pack(COLLATE(samples))


def as_tensor(leaf):
    """Numbers cross in shared memory only as tensors."""
    numbers = isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf"
    return torch.from_numpy(np.ascontiguousarray(leaf)) if numbers else leaf


def collate_tensors(samples):
    return tree_map(as_tensor, COLLATE(samples))


def narrow(leaf):
    return leaf.float() if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float64 else leaf


def collate_narrow(samples):
    return tree_map(narrow, COLLATE(samples))


def to_device(batch, device):
    """A batch on the device, in one copy for each dtype."""
    flat, places, structure = pack(batch)
    flat = {dtype: part.to(device, non_blocking=True) for dtype, part in flat.items()}
    return unpack((flat, places, structure))
