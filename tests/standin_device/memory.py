"""What the stand-in's tensors hold: a tensor of the CPU behind each storage of the device."""

from typing import Any

import torch


class StandinTensor(torch.Tensor):
    """Torch makes a parameter of a Python tensor only where it has a class of its own."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        return f"{self.detach().cpu()!r} on {self.device}"


# So many new tensors between two looks at which of them are gone.
EVERY = 64


class Memory:
    def __init__(self) -> None:
        self._held: dict[int, tuple[Any, torch.Tensor]] = {}
        self._added = 0
        self.untouched: set[int] = set()  # made empty, and not used since

    def wrapped(self, held: torch.Tensor) -> torch.Tensor:
        """A tensor of the device that holds this."""
        made: torch.Tensor = torch._C._acc.create_empty_tensor(tuple(held.shape), held.dtype)
        made.__class__ = StandinTensor
        storage = made.untyped_storage()
        # While it is referred to, though weakly, no other storage takes its address.
        self._held[storage._cdata] = (storage._weak_ref(), held)
        self._added += 1
        if self._added % EVERY == 0:
            self._forget()
        return made

    def held(self, tensor: torch.Tensor) -> torch.Tensor:
        """What a tensor of the device holds, on the CPU."""
        key = tensor.untyped_storage()._cdata
        self.untouched.discard(key)
        return self._held[key][1]

    def lend(self, source: torch.Tensor, target: torch.Tensor) -> bool:
        """Let a tensor just made hold the source's own memory; False where it cannot."""
        key = target.untyped_storage()._cdata
        alike = source.dtype is target.dtype and source.shape == target.shape
        if not alike or not source.is_contiguous() or key not in self.untouched:
            return False
        self._held[key] = (self._held[key][0], source.detach())
        return True

    def _forget(self) -> None:
        for key, (weak, _) in list(self._held.items()):
            if torch.UntypedStorage._expired(weak):
                torch.UntypedStorage._free_weak_ref(weak)
                del self._held[key]
                self.untouched.discard(key)
