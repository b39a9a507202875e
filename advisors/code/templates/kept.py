"""A container that is opened once in each worker, and kept."""

import copy
import os
import types

from torch.utils.data import DataLoader

from .placeholders import REWIND


class Kept:
    """Opens each container once in each process, and keeps it open."""

    def __init__(self, opens):
        self.opens, self.handles = opens, {}

    def __call__(self, *args, **options):
        key = os.getpid(), repr(args), repr(options)
        if key not in self.handles:
            self.handles[key] = self.opens(*args, **options)
        return Handle(self.handles[key])


class Handle:
    """An open container that stays open when it is closed."""

    def __init__(self, handle):
        self.handle = handle
        if REWIND:
            handle.seek(0)  # as if it had just been opened

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def close(self):
        pass

    def __getattr__(self, name):
        return getattr(self.handle, name)

    def __getitem__(self, key):
        return self.handle[key]

    def __contains__(self, key):
        return key in self.handle

    def __iter__(self):
        return iter(self.handle)

    def __len__(self):
        return len(self.handle)


def with_names(function, **changed):
    """The same function, in which these global names mean something else."""
    names = {**function.__globals__, **changed}
    made = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made
