"""What a worker process starts with, and the first thing of ours that it imports.

A spawned process unpickles its target before anything else, and under `loaderscope run` it is
torch's own import that starts us there. So nothing here, nor in what it imports, may import torch:
it would find us half imported. Torch comes first, when the target is called; then we do.
"""

from __future__ import annotations

from typing import Any

from ...base import torch_parts
from ...guard.error_origin import returning_errors
from ...native.form import hooks
from ...store.gaps import Place


def _begin(target: Target, *args: Any) -> tuple[Any, tuple[Any, ...], Any]:
    """(torch's loop, what to call it with, what to call when it has ended)."""
    loop = torch_parts.worker_loop(target.kind)
    from .worker import prepared

    return loop, *prepared(loop, args, target.place())


class Target:
    """What a worker process of this kind of loader runs. Compiled, it calls torch's loop without a
    frame of ours."""

    def __init__(self, kind: torch_parts.Kind, place: Place = None) -> None:
        self.kind = kind
        self._place = place

    def place(self) -> Place:
        """Where this worker keeps what it sees."""
        return self._place

    __call__ = hooks.working(returning_errors(_begin))

    def __reduce__(self) -> Any:
        return Target, (self.kind, self.place())
