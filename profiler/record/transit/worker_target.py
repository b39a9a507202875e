"""The target of a worker process, and the first module of ours that it imports.

A spawned process unpickles its target first, and under `loaderscope run` torch's import starts us
there. So nothing here, nor in its imports, may import torch, which would find us half imported.
Torch is imported when the target is called, and then the rest of us.
"""

from __future__ import annotations

import threading
from typing import Any

from ...base import torch_parts
from ...guard.error_origin import returning_errors
from ...native.form import hooks
from ...store.gaps import Place

handed = threading.local()  # `place`: where the workers of the iterator being made keep their sums


def _begin(target: Target, *args: Any) -> tuple[Any, tuple[Any, ...], Any]:
    """(torch's loop, its arguments, what to call at its end)."""
    loop = torch_parts.worker_loop(target.kind)
    from .worker import prepared

    return loop, args, prepared(loop, args, target.place())


class Target:
    """Runs in a worker process of this kind of loader. Compiled, it calls torch's loop without a
    frame of ours. It takes the place of its sums in the forked child, or when it is pickled."""

    def __init__(self, kind: torch_parts.Kind, place: Place = None) -> None:
        self.kind = kind
        self._place = place

    def place(self) -> Place:
        """Where this worker keeps its sums."""
        return self._place or getattr(handed, "place", None)

    __call__ = hooks.working(returning_errors(_begin))

    def __reduce__(self) -> Any:
        return Target, (self.kind, self.place())
