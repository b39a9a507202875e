"""Backends for live figures, one class each. `write` takes new figures, `close` ends. Both may
raise; `scalars.Live` reports that in one line. A backend imports its library when it is created."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..profiler.base.atomic_write import write_atomically
from ..profiler.base.errors import UsageError
from .live_figures import FIGURES, Figure

PREFIX = "loaderscope"
OF_THE_FILE = {
    "live": "1 while the run goes on",
    "updated_seconds": "When this file was written, in seconds of Unix time",
}
READABLE = 0o644  # node_exporter runs as a user of its own


class Backend(Protocol):
    def write(self, figures: Sequence[Figure]) -> None: ...

    def close(self) -> None:
        return  # most have nothing to close


def name_of(figure: Figure) -> str:
    """'loaderscope/Images/rank 1/wait_share'."""
    rank = [f"rank {figure.labels['rank']}"] if "rank" in figure.labels else []
    return "/".join([PREFIX, figure.labels["loader"], *rank, figure.name])


class TensorBoard(Backend):
    """Scalars at the loader's count of batches. `writer`: a SummaryWriter, or the folder of a new
    one."""

    def __init__(self, writer: Any) -> None:
        self._own = isinstance(writer, str | os.PathLike)
        if self._own:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise UsageError(f"{error}: pip install tensorboard") from error
            writer = SummaryWriter(os.fspath(writer))
        self._writer = writer

    def write(self, figures: Sequence[Figure]) -> None:
        for figure in figures:
            self._writer.add_scalar(name_of(figure), figure.value, figure.batches)
        self._writer.flush()

    def close(self) -> None:
        if self._own:
            self._writer.close()


class WandB(Backend):
    """Metrics of a W&B run, `run = wandb.init(...)`. They are added to the training's next log
    call, so its step numbers do not change. The charts' x axis is the loader's count of batches."""

    def __init__(self, run: Any) -> None:
        self._run = run
        run.define_metric(f"{PREFIX}/*", step_metric=f"{PREFIX}/batches")

    def write(self, figures: Sequence[Figure]) -> None:
        if figures:
            values = {name_of(figure): figure.value for figure in figures}
            self._run.log(
                {**values, f"{PREFIX}/batches": max(figure.batches for figure in figures)},
                commit=False,
            )


class Prometheus(Backend):
    """A text file for node_exporter's textfile collector, replaced at each reading. No port is
    opened. A loader without new batches keeps its last figures. `loaderscope_live` is 0 after the
    run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        if not self._path.parent.is_dir():
            raise UsageError(
                f"there is no folder {self._path.parent}: make it, or choose another place for the "
                "metrics"
            )
        self._latest: dict[str, dict[str, float]] = {name: {} for name in FIGURES}

    def write(self, figures: Sequence[Figure]) -> None:
        for figure in figures:
            self._latest[figure.name][_labelled(figure.labels)] = figure.value
        self._replace(live=1)

    def close(self) -> None:
        self._replace(live=0)

    def _replace(self, live: int) -> None:
        self._latest |= {"live": {"": live}, "updated_seconds": {"": round(time.time(), 3)}}
        lines = []
        for name, values in self._latest.items():
            meaning = OF_THE_FILE.get(name) or FIGURES[name]
            if values:
                lines += [f"# HELP {PREFIX}_{name} {meaning}", f"# TYPE {PREFIX}_{name} gauge"]
            lines += [f"{PREFIX}_{name}{labels} {value!r}" for labels, value in values.items()]
        write_atomically(self._path, "\n".join(lines) + "\n", READABLE)


def _labelled(labels: Mapping[str, str]) -> str:
    escapes = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
    named = (f'{name}="{value.translate(escapes)}"' for name, value in labels.items())
    return "{" + ",".join(named) + "}"
