"""What a worker process starts with, and the first thing of ours that it imports.

A spawned process unpickles its target before anything else, and under `loaderscope run` it is torch's own import that
starts us there. So nothing here, nor in what it imports, may import torch: it would find us half imported. Torch comes
first, when the target is called; then we do.
"""

from __future__ import annotations

from typing import Any

from . import torch_parts

# Where a worker keeps what its looks see: (folder of the session, number of the loader, epoch); None: it takes none.
Place = tuple[str, int, int] | None


def run_torch_worker(place: Place, *args: Any) -> None:
    """Target of a `torch.utils.data.DataLoader` worker."""
    loop = torch_parts.worker_loop(torch_parts.TORCH)
    from .worker import run_worker

    run_worker(loop, args, place)


def run_torchdata_worker(place: Place, *args: Any) -> None:
    """Target of a `torchdata.stateful_dataloader.StatefulDataLoader` worker."""
    loop = torch_parts.worker_loop(torch_parts.TORCHDATA)
    from .worker import run_worker

    run_worker(loop, args, place)
