"""Whole batches by one lookup (`__getitems__`), for data sets whose source shows nothing but
lookups.

The source of `__getitem__` is read, and code for a whole batch is written from it. The compiled
form shows that this source is what runs.
"""

from __future__ import annotations

import textwrap
import types
import weakref
from collections.abc import Callable
from typing import Any

from ...advisors.code.batched.batch_access import Access, batch_access
from ...advisors.code.batched.batch_values import NotArrays
from ...advisors.code.batched.look_up_cost import look_up_us
from ...profiler.base.torch_parts import codes
from ...profiler.guard.static_access import in_class, instance_vars
from ...profiler.record.inspect.inspect_loader import inspect_loader, inspection_wanted
from ...profiler.record.inspect.samplers import own_of, sampling_of
from ...profiler.store.inspection import Part, read_inspection
from .guards import Depends

# By the loader's id, as long as it lives: a class of the user's may hash or compare as it likes. Or
# why there are none. Nothing here may keep a data set alive.
_known: dict[int, tuple[Callable[[], Any], WholeBatches | str]] = {}


def whole_batches(loader: Any) -> WholeBatches:
    """What gives this loader's data set a batch at a time. Raises NotArrays with the reason if
    there is none."""
    key = id(loader)
    of, found = _known.get(key, (None, None))
    if of is None or of() is not loader or (isinstance(found, WholeBatches) and not found.current):
        try:
            found = _read(loader)
        except NotArrays as reason:
            found = str(reason)  # the error holds the frames it came through, and so the loader
        _known[key] = weakref.ref(loader, lambda _: _known.pop(key, None)), found
    if isinstance(found, WholeBatches):
        return found
    raise NotArrays(found)


def _read(loader: Any) -> WholeBatches:
    from torch.utils.data import default_collate

    if not inspection_wanted():
        raise NotArrays("its data set may not be looked at")
    if loader.batch_sampler is None:
        raise NotArrays("it is asked for whole batches already")
    if loader.collate_fn is not default_collate:
        raise NotArrays("the loader has a collate function of its own")
    part = read_inspection({"inspection": inspect_loader(loader)}).dataset
    if part is None:
        raise NotArrays("its data set could not be looked at")
    dataset, chosen = loader.dataset, []
    while _is_torch_s(dataset, "Subset") and len(part.children) == 1:
        chosen.append(dataset)
        dataset, part = dataset.dataset, part.children[0]
    leaves = _leaves(dataset, part)
    access = batch_access(part)
    return WholeBatches(
        loader.dataset, sampling_of(own_of(loader)).batch_size, chosen, leaves, access
    )


def _leaves(dataset: Any, part: Part) -> list[tuple[Any, frozenset[str]]]:
    """The data sets that hold arrays, and the names of the attributes by which they are read.
    Raises NotArrays."""
    if _is_torch_s(dataset, "ConcatDataset"):
        if len(part.children) != len(dataset.datasets):
            raise NotArrays("it joins more data sets than can be looked at")
        ends = [sum(map(len, dataset.datasets[: at + 1])) for at in range(len(dataset.datasets))]
        if ends != dataset.cumulative_sizes:
            raise NotArrays("a data set that it joins has another length by now")
        return [
            leaf
            for pair in zip(dataset.datasets, part.children, strict=True)
            for leaf in _leaves(*pair)
        ]
    tensors = _is_torch_s(dataset, "TensorDataset")
    return [(dataset, frozenset({"tensors"}) if tensors else _as_written(dataset, part))]


def _is_torch_s(dataset: Any, name: str) -> bool:
    from torch.utils.data import dataset as torch_s

    return type(dataset) is getattr(torch_s, name)


def _as_written(dataset: Any, part: Part) -> frozenset[str]:
    """The names in its `__getitem__`. Raises NotArrays if asking for a sample may run more than the
    source that was read."""
    cls, held = type(dataset), instance_vars(dataset)
    if in_class(cls, "__getitems__") is not None or "__getitems__" in held:
        raise NotArrays("it has __getitems__ already")
    makes = in_class(cls, "__getattr__") is not None
    if makes or in_class(cls, "__getattribute__") is not object.__getattribute__:
        raise NotArrays("it makes attributes as they are asked for")
    if any(in_class(type(in_class(cls, name)), "__set__") is not None for name in held):
        raise NotArrays("its class makes an attribute that it holds")
    method = in_class(cls, "__getitem__")
    if type(method) is not types.FunctionType or not _runs(method, part.getitem):
        raise NotArrays("its source is not what runs")
    return frozenset(method.__code__.co_names)


def _runs(method: types.FunctionType, lines: tuple[str, ...]) -> bool:
    """Whether these lines compile to this very function: a file may be edited while its program
    runs."""
    of = method.__qualname__.rpartition(".")[0].rpartition(".")[2]
    if not of.isidentifier() or method.__defaults__:
        return False
    # Python compiles calls of what a module imports otherwise.
    held, names = method.__globals__, method.__code__.co_names
    imports = [f"import {each}\n" for each in names if type(held.get(each)) is types.ModuleType]
    source = "".join(imports) + f"class {of}:\n" + textwrap.indent("\n".join(lines), "    ")
    try:
        code = compile(source, "<read>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    found = [each for each in codes(code) if each.co_name == method.__code__.co_name]
    return len(found) == 1 and _effect(found[0]) == _effect(method.__code__)


def _effect(code: types.CodeType) -> list[Any]:
    """What the code does. Spaces in texts do not count, because docstrings may be indented
    otherwise."""
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    constants = [
        " ".join(each.split()) if isinstance(each, str) else repr(each) for each in code.co_consts
    ]
    return [code.co_code, names, constants]


class WholeBatches:
    """Replaces a data set for torch's fetcher: gives it whole, collated batches."""

    def __init__(
        self,
        dataset: Any,
        size: int | None,
        chosen: list[Any],
        leaves: list[tuple[Any, frozenset[str]]],
        access: Access,
    ) -> None:
        """`size`: samples a batch, if known; `chosen`: `Subset`s around what `access` reads, the
        outermost first; `leaves`: the data sets of its arrays, with the names of attributes by
        which they are read."""
        self.dataset, self.access = dataset, access
        self._size, self._chosen, self._leaves = size, chosen, leaves
        self._view = access.batches(chosen[-1].dataset if chosen else dataset)
        self._attributes = self._named()

    def cost_us(self, batch_bytes: float) -> tuple[float, float]:
        """(low, high) of a batch, as the advice on `__getitems__` expects it."""
        access = self.access
        return look_up_us(
            self._size or 1, access.leaves, batch_bytes, len(self.dataset), access.lists
        )

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: Any) -> Any:
        return self.dataset[index]

    def __getitems__(self, indices: Any) -> Any:
        """The batch of these indices. Raises Depends if the data set has other attributes than when
        it was read; other errors come from the lookup, not from the data set."""
        if not self.current:
            raise Depends("the loop changes the data set between batches")
        import torch

        for each in self._chosen:  # a list that the program may change
            indices = [each.indices[index] for index in indices]
        rows = torch.as_tensor(indices)
        plain = rows.dtype == torch.int64 and rows.ndim == 1 and bool not in map(type, indices)
        if not plain or not len(rows):
            raise NotArrays("its sampler draws more than numbers of samples")
        return self._view[rows]

    @property
    def current(self) -> bool:
        """Whether the data set has the attributes with which it was read."""
        return self._named() == self._attributes

    def _named(self) -> list[Any]:
        held = ((names, instance_vars(each)) for each, names in self._leaves)
        return [
            (name, id(value)) for names, own in held for name, value in own.items() if name in names
        ]


def as_made(batch: Any) -> Any:
    """Replaces collate_fn."""
    return batch
