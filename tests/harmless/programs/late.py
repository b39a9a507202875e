"""Torch imported by functions, by `loaderscope run`, in interpreters of their own."""

from __future__ import annotations

import sys

from ..catalogue import Watch, program, say


def declare(method: str) -> None:
    def run(watch: Watch) -> None:
        say("imported before", "torch" in sys.modules)
        import torch
        from torch.utils.data import DataLoader

        torch.manual_seed(1)
        rows = [float(number) for number in range(24)]
        more = {"num_workers": 1, "multiprocessing_context": method} if method else {}
        for _ in range(1 if method else 2):  # a spawned worker imports torch, which takes seconds
            loader = DataLoader(rows, batch_size=4, shuffle=True, **more)
            say("batches", [batch.tolist() for batch in loader])

    program(f"late/{method or 'none'}", watched=("run",), options=("-B",), limit_s=120)(run)


for method in ("", "spawn"):
    declare(method)


@program("late/never", watched=("run",), options=("-B",), recorded=False)
def torch_is_never_imported(watch: Watch) -> None:
    """A script that has nothing to do with us, run by us."""
    imported = {name.partition(".")[0] for name in sys.modules}
    say("imported", sorted(imported & {"torch", "numpy", "psutil", "rich"}))
