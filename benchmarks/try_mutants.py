"""Changes of a program that change a batch, each in one of its first 64, and some that change none."""

from __future__ import annotations

from typing import NamedTuple

BASE = '''\
"""A training without a model: its batches hold most of what batches hold."""
import random
from collections import OrderedDict, namedtuple

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, default_collate

Meta = namedtuple("Meta", "weight tags")


class Box:
    def __init__(self, corner, label):
        self.corner, self.label = corner, label


class Samples(Dataset):
    def __init__(self, count=150):
        self.rows = torch.arange(count * 12, dtype=torch.float32).reshape(count, 3, 4)
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image = self.rows[index] / 255.0
        if random.random() < 0.5:
            image = image.flip(1)
        image = image + 0.01 * torch.randn(3, 4)
        noise = np.random.rand(5)
        label = index % 10
        name = f"sample-{index:04d}"
        return image, noise, label, name, index


def collate(samples):
    images, noises, labels, names, indices = zip(*samples)
    images = torch.stack(images)
    lengths = torch.tensor([1 + index % 3 for index in indices])
    return {
        "image": images,
        "noise": np.stack(noises),
        "label": torch.tensor(labels),
        "name": list(names),
        "meta": Meta(0.5, {"train", "small"}),
        "boxes": [Box((index, 2.0), "cat") for index in indices[:2]],
        "mask": torch.arange(3)[None] < lengths[:, None],
        "sparse": torch.eye(3).to_sparse(),
        "deep": OrderedDict(a=[[[[[[[[[int(indices[0])]]]]]]]]]),
        "raw": bytes(indices),
        "zero": torch.zeros(1),
        "none": None,
    }


def make_loader():
    torch.manual_seed(7)
    random.seed(8)
    np.random.seed(9)
    data = Samples()
    return DataLoader(data, batch_size=4, shuffle=True, collate_fn=collate)


if __name__ == "__main__":
    loader = make_loader()
    for epoch in range(10_000):
        for batch in loader:
            batch["image"].sum().item()
'''


class Mutant(NamedTuple):
    """`old` is replaced by `new` in the base."""

    name: str
    old: str
    new: str


_IMAGE = "image = self.rows[index] / 255.0"
_RETURN = "        return image, noise, label, name, index\n"
_STACK = "    images = torch.stack(images)\n"
_LOADER = "DataLoader(data, batch_size=4, shuffle=True, collate_fn=collate)"


def _for_one(change: str) -> str:
    """For one sample alone."""
    return f"        if index == 77:\n            {change}\n{_RETURN}"


MUTANTS = (
    # values
    Mutant("another scale", _IMAGE, "image = self.rows[index] / 256.0"),
    Mutant(
        "the last bit of a float",
        _IMAGE,
        "image = torch.nextafter(self.rows[index] / 255.0, torch.tensor(9e9))",
    ),
    Mutant(
        "rounded to half precision", _IMAGE, "image = (self.rows[index] / 255.0).half().float()"
    ),
    Mutant("the flip left out", "image.flip(1)", "image"),
    Mutant("the other axis flipped", "image.flip(1)", "image.flip(0)"),
    Mutant("the other chance", "random.random() < 0.5", "random.random() < 0.45"),
    Mutant("less noise", "0.01 * torch.randn", "0.0099 * torch.randn"),
    Mutant("another distribution", "torch.randn(3, 4)", "torch.rand(3, 4)"),
    Mutant("a negative zero", "torch.zeros(1)", "-torch.zeros(1)"),
    Mutant("one pixel", _STACK, _STACK + "    images[-1, -1, -1] += 1e-6\n"),
    Mutant("a NaN", _STACK, _STACK + "    images[0, 0, 0] = float('nan')\n"),
    Mutant("a label shifted", "label = index % 10", "label = (index + 1) % 10"),
    Mutant("a label merged", "label = index % 10", "label = min(index % 10, 8)"),
    Mutant("a name", 'f"sample-{index:04d}"', 'f"sample-{index:05d}"'),
    Mutant("a name's case", 'f"sample-{index:04d}"', 'f"Sample-{index:04d}"'),
    Mutant("a value in a named tuple", "Meta(0.5, ", "Meta(0.25, "),
    Mutant("an item of a set", '{"train", "small"}', '{"train", "large"}'),
    Mutant("an attribute of an object", '"cat")', '"dog")'),
    Mutant("a number in an object", "(index, 2.0)", "(index, 2.5)"),
    Mutant("a mask", "1 + index % 3 for", "1 + index % 2 for"),
    Mutant("a sparse value", "torch.eye(3).to_sparse()", "(2 * torch.eye(3)).to_sparse()"),
    Mutant(
        "where a sparse value is", "torch.eye(3).to_sparse()", "torch.eye(3).flip(0).to_sparse()"
    ),
    Mutant("ten levels deep", "int(indices[0])", "int(indices[-1])"),
    Mutant("bytes", "bytes(indices)", "bytes(indices[:-1] + (0,))"),
    Mutant("no None", '"none": None', '"none": 0'),
    # order
    Mutant("no shuffle", "shuffle=True", "shuffle=False"),
    Mutant(
        "another permutation",
        _LOADER,
        "DataLoader(data, batch_size=4, sampler=torch.utils.data.RandomSampler(data, generator=torch.Generator().manual_seed(1)), collate_fn=collate)",
    ),
    Mutant("samples of a batch reversed", "zip(*samples)", "zip(*samples[::-1])"),
    Mutant(
        "samples of a batch sorted", "zip(*samples)", "zip(*sorted(samples, key=lambda s: s[-1]))"
    ),
    Mutant("channels reversed", _STACK, _STACK + "    images = images.flip(1)\n"),
    Mutant("transposed", _STACK, "    images = torch.stack(images).transpose(1, 2)\n"),
    Mutant(
        "keys in another order",
        '        "image": images,\n        "noise": np.stack(noises),\n',
        '        "noise": np.stack(noises),\n        "image": images,\n',
    ),
    Mutant("names in another order", "list(names)", "sorted(names)"),
    Mutant(
        "random draws in another order",
        "noise = np.random.rand(5)",
        "noise = np.random.rand(5)[::-1].copy()",
    ),
    # dtypes and containers
    Mutant("double precision", _STACK, "    images = torch.stack(images).double()\n"),
    Mutant("half precision", _STACK, "    images = torch.stack(images).half()\n"),
    Mutant("bfloat16 for float16's width", _STACK, "    images = torch.stack(images).bfloat16()\n"),
    Mutant("labels of 32 bits", "torch.tensor(labels)", "torch.tensor(labels, dtype=torch.int32)"),
    Mutant("an array for a tensor", "torch.tensor(labels)", "np.array(labels)"),
    Mutant("a tensor for an array", "np.stack(noises)", "torch.as_tensor(np.stack(noises))"),
    Mutant("an array of 32 bits", "np.stack(noises)", "np.stack(noises).astype(np.float32)"),
    Mutant(
        "a mask of bytes",
        "torch.arange(3)[None] < lengths[:, None]",
        "(torch.arange(3)[None] < lengths[:, None]).byte()",
    ),
    Mutant("a tuple for a list", "list(names)", "names"),
    Mutant(
        "a list for a named tuple", 'Meta(0.5, {"train", "small"})', '[0.5, {"train", "small"}]'
    ),
    Mutant("a dense tensor for a sparse one", "torch.eye(3).to_sparse()", "torch.eye(3)"),
    Mutant("a float for an integer", "label = index % 10", "label = float(index % 10)"),
    # shapes
    Mutant("an axis more", _STACK, "    images = torch.stack(images)[:, None]\n"),
    Mutant("an axis less", _STACK, "    images = torch.stack(images).flatten(1)\n"),
    Mutant("a row less", _STACK, "    images = torch.stack(images)[:, :, :3]\n"),
    # one sample
    Mutant("one sample's value", _RETURN, _for_one("image = image + 1")),
    Mutant("one sample's label", _RETURN, _for_one("label = 0")),
    Mutant("one sample's name", _RETURN, _for_one('name = "x"')),
    Mutant("one sample taken for another", _RETURN, _for_one("return self[78]")),
    Mutant("one sample draws once more", _RETURN, _for_one("random.random()")),
    # seeds
    Mutant("torch's seed", "torch.manual_seed(7)", "torch.manual_seed(6)"),
    Mutant("Python's seed", "random.seed(8)", "random.seed(6)"),
    Mutant("NumPy's seed", "np.random.seed(9)", "np.random.seed(6)"),
    Mutant(
        "a draw before the loop",
        "    data = Samples()\n",
        "    data = Samples()\n    torch.rand(1)\n",
    ),
    Mutant("workers' streams", _LOADER, _LOADER[:-1] + ", num_workers=1)"),
    # lengths
    Mutant("a sample less", "count=150", "count=149"),
    Mutant("a sample more in the last batch", "count=150", "count=151"),
    Mutant("the last batch dropped", _LOADER, _LOADER[:-1] + ", drop_last=True)"),
    Mutant("another batch size", "batch_size=4", "batch_size=5"),
    Mutant(
        "an epoch that ends early",
        "        for batch in loader:\n",
        "        for batch, _ in zip(loader, range(30)):\n",
    ),
)

SAME = (
    Mutant("nothing", "Meta(0.5, ", "Meta( 0.5, "),
    Mutant(
        "another layout in memory",
        _STACK,
        "    images = torch.stack(images, dim=-1).movedim(-1, 0)\n",
    ),
    Mutant("an equal set", '{"train", "small"}', '{"small", "train"}'),
    Mutant("a stack made in one go", "torch.tensor(labels)", "torch.as_tensor(labels)"),
    Mutant("memory kept", "self.rows[index] / 255.0", "(self.rows[index] / 255.0).clone()"),
)


def source_of(mutant: Mutant) -> str:
    """The base with the change. Raises ValueError where it changes nothing."""
    if BASE.count(mutant.old) < 1:
        raise ValueError(mutant.name)
    return BASE.replace(mutant.old, mutant.new, 1)
