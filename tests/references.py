"""On a debug Python, a recorded batch leaves as many references behind as a bare one, of which
torch, built without, counts none: `python tests/sanitize.py references` runs this."""

from __future__ import annotations

import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.multiprocessing.reductions import shared_cache
from torch.utils.data import DataLoader, Dataset, IterableDataset

import loaderscope
from loaderscope.profiler.native import form

BATCHES = 10_000
# References by which the two may differ: one a batch would be ten to fifty times that.
LEFT_BY_ALL = 200
# What happens once in a while (torch's caches, blocks of memory) may fall into one of two loops.
TRIES = 3


class Rows(Dataset):
    def __len__(self) -> int:
        return 2000

    def __getitem__(self, index: int) -> Any:
        return {"x": torch.zeros(2), "y": index}


class Failing(Rows):
    def __getitem__(self, index: int) -> Any:
        if index == 1000:
            raise ValueError("planted")
        return index


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[int]:
        return iter(range(2000))


class Batched(Rows):
    def __getitems__(self, indices: list[int]) -> list[int]:
        return indices


def whole(loader: Any) -> int:
    return sum(1 for _ in loader)


def broken_off(loader: Any) -> int:
    count = 0
    for count, _ in enumerate(loader, 1):
        if count == 50:
            break
    return count


def failing(loader: Any) -> int:
    count = 0
    try:
        for _ in loader:
            count += 1
    except ValueError:
        pass
    return count


def by_hand(loader: Any) -> int:
    iterator = iter(loader)
    count = 0
    while next(iterator, None) is not None:
        count += 1
    return count


KINDS: dict[str, tuple[Callable[[], DataLoader[Any]], Callable[[Any], int]]] = {
    "single": (lambda: DataLoader(Rows(), batch_size=4), whole),
    "by hand": (lambda: DataLoader(Rows(), batch_size=4, shuffle=True), by_hand),
    "own collate": (lambda: DataLoader(Rows(), batch_size=4, collate_fn=list), whole),
    "stream": (lambda: DataLoader(Stream(), batch_size=4), whole),
    "getitems": (lambda: DataLoader(Batched(), batch_size=4), whole),
    "unbatched": (lambda: DataLoader(Rows(), batch_size=None), whole),
    "broken off": (lambda: DataLoader(Rows(), batch_size=4), broken_off),
    "failing": (lambda: DataLoader(Failing(), batch_size=4), failing),
    "workers": (
        lambda: DataLoader(Rows(), batch_size=4, num_workers=2, persistent_workers=True),
        whole,
    ),
    "workers, lists": (
        lambda: DataLoader(
            Rows(), batch_size=4, num_workers=1, collate_fn=list, persistent_workers=True
        ),
        whole,
    ),
}


def settle() -> None:
    """Cycles are cleaned up, and what torch remembers of tensors that came from workers."""
    gc.collect()
    shared_cache.free_dead_references()


def left_behind(loader: Any, loop: Callable[[Any], int], batches: int) -> int:
    """By how much the sum of all reference counts grew in so many batches."""
    settle()
    before = sys.gettotalrefcount()
    done = 0
    while done < batches:
        done += loop(loader)
    settle()
    return int(sys.gettotalrefcount() - before)


def main() -> int:
    if not hasattr(sys, "gettotalrefcount"):
        sys.exit("this Python does not count references: run it with python3.11-dbg")
    assert form.native is not None, form.why_python
    failed: list[str] = []
    for name, (make, loop) in KINDS.items():
        bare, watched = make(), loaderscope.watch(make())
        batches = BATCHES // 5 if "workers" in name else BATCHES
        left_behind(bare, loop, batches // 5)
        left_behind(watched, loop, batches // 5)
        for _ in range(TRIES):
            in_bare, in_watched = (left_behind(each, loop, batches) for each in (bare, watched))
            ok = abs(in_watched - in_bare) <= LEFT_BY_ALL
            said = f"{'ok  ' if ok else 'FAIL'} {name}: {batches:,} batches left {in_watched}"
            print(f"{said} references, bare {in_bare}", flush=True)
            if ok:
                break
        else:
            failed.append(name)
        del bare, watched
    loaderscope.unwatch()
    return 1 if failed else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LOADERSCOPE_DIR"] = folder
        sys.exit(main())
