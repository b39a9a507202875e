"""How far a command is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def steps(*names: str) -> Iterator[Callable[[], None]]:
    """A progress bar on standard error if that is a terminal, for runs that take long to read; else
    nothing.

    Each call of what it yields ends a step.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    left = iter(names[1:])
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(names[0], total=len(names))
        yield lambda: progress.update(task, advance=1, description=next(left, names[-1]))
