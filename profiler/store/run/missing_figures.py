"""What a report says first: which figures the torch of a run kept from being measured, and which
loaders were not."""

from __future__ import annotations

from ..gaps import INSIDE_WORKERS, KEY, OTHER_LOADER, listed
from .run import LoaderRun, Run


def missing_figures(run: Run) -> tuple[str, ...]:
    """One sentence for each way in which the torch of this run kept figures from being measured."""
    found: dict[str, None] = {}
    for process in run.processes:
        for key, sentence in process.reasons.items():
            if key.startswith((KEY, OTHER_LOADER)):
                found[sentence] = None
        for loader in process.loaders:
            why = loader.bare or _silent(loader)
            if why is not None:
                version = f"torch {process.torch}" if process.torch else "This torch"
                found[
                    f"{version}: the workers of {loader.name} were not measured ({why}). Missing "
                    f"from these figures: {listed(INSIDE_WORKERS)} of this loader."
                ] = None
    return tuple(found)


def _silent(loader: LoaderRun) -> str | None:
    """Workers whose batches came without their times, and nobody knows why."""
    if (
        loader.kind != "dataloader"
        or not loader.num_workers
        or "fetch" in loader.reasons
        or loader.older
    ):
        return None
    if not loader.batches.rows or (loader.batches["fetch_ns"] >= 0).any():
        return None
    return "their batches came without times"
