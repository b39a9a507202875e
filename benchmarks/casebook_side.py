"""A script of benchmarks/casebook.py: runs it, and tells of each batch that its loaders give.

    python casebook_side.py count|digest SCRIPT FILE [CODE]

`count` appends when each batch was handed over, and its number of samples (`RATE`); `digest` writes
what is in the first batches, and ends. CODE is pasted below the loader first.
"""

from __future__ import annotations

import hashlib
import itertools
import runpy
import struct
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

DIGESTED = 6  # batches of which the contents are compared
RATE = struct.Struct("dd")


def side(mode: str, script: str, told: str, code: str = "") -> None:
    """Runs `script`, and writes to the file `told` of each batch."""
    import torch.utils.data as data

    plain = data.DataLoader.__iter__
    changed: dict[int, Any] = {}
    seen, handed = hashlib.sha256(), itertools.count(1)  # of all iterators: some give one batch
    out = Path(told).open("wb", buffering=0)  # noqa: SIM115 as long as the process

    def iterate(loader: Any) -> Iterator[Any]:
        if code and id(loader) not in changed:
            new = pasted(loader, code)
            changed[id(loader)] = changed[id(new)] = new  # the script's own name may be bound to it
        loader = changed.get(id(loader), loader)
        for batch in plain(loader):
            if mode == "count":
                out.write(RATE.pack(time.perf_counter(), samples_in(loader, batch)))
            else:
                digest(batch, seen.update)
                if next(handed) == DIGESTED:
                    raise SystemExit
            yield batch

    data.DataLoader.__iter__ = iterate  # type: ignore[method-assign,assignment]
    sys.path[0] = str(Path(script).parent)
    sys.argv = [script]
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        if mode == "digest":
            out.write(seen.digest())


def pasted(loader: Any, code: str) -> Any:
    """The loader after this code, which knows the names that the script has."""
    scope = vars(sys.modules["__main__"])
    scope.update(dataset=loader.dataset, loader=loader, sampler=loader.sampler)
    for name in ("generator", "collate_fn", "worker_init_fn", "batch_sampler"):
        scope.setdefault(name, getattr(loader, name))  # "yours, as in your own call"
    for part in (loader.collate_fn, loader.sampler, loader.batch_sampler, loader.worker_init_fn):
        scope.setdefault(getattr(part, "__name__", type(part).__name__), part)
    exec(compile(code, "<pasted>", "exec"), scope)
    return scope["loader"]


def samples_in(loader: Any, batch: Any) -> float:
    """As many as the loader, or its sampler, puts into a batch, or as the batch's first tensor has
    rows."""
    for asked in (loader, loader.sampler):
        if isinstance(size := getattr(asked, "batch_size", None), int):
            return float(size)
    while isinstance(batch, (Mapping, list, tuple)) and batch:
        batch = next(iter(batch.values())) if isinstance(batch, Mapping) else batch[0]
    return float(len(batch)) if getattr(batch, "shape", ()) else 1.0


def digest(value: Any, update: Any) -> None:
    """The tensors, arrays, numbers and texts of a batch; what else is in it does not count."""
    if isinstance(value, Mapping):
        for key in sorted(value):
            digest(value[key], update)
    elif isinstance(value, (list, tuple)):
        for each in value:
            digest(each, update)
    elif hasattr(value, "numpy"):
        update(str(value.dtype).encode() + value.contiguous().numpy().tobytes())
    elif isinstance(value, (int, float, str)):
        update(repr(value).encode())


if __name__ == "__main__":
    side(*sys.argv[1:])
