"""Finds out from the stack at `iter()` what a loop is for (training, validation, test), and where
it is.

Frameworks are recognised by their functions on the stack. Elsewhere, disabled gradients mean
evaluation, and a shuffled loader with gradients means training. Only code names and lines are read,
never variables.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import FrameType
from typing import Any

from ...base.metadata import clean
from ...guard.static_access import in_class, loaded
from ...guard.users_code import of_user, package_of

TRAINING, VALIDATION, TEST, PREDICTION = "training", "validation", "test", "prediction"
SANITY_CHECK, EVALUATION = "sanity check", "evaluation"

MAX_FRAMES = 200
MAX_KEY = 40

# By framework: a function or file on the stack, and its phase. The first match counts.
_PHASES: dict[str, tuple[tuple[str, str], ...]] = {
    "lightning": (
        ("_run_sanity_check", SANITY_CHECK),
        ("_test_impl", TEST),
        ("_predict_impl", PREDICTION),
        ("_validate_impl", VALIDATION),
        ("evaluation_loop.py", VALIDATION),
        ("_fit_impl", TRAINING),
    ),
    "transformers": (
        ("predict", PREDICTION),
        ("evaluate", VALIDATION),
        ("evaluation_loop", VALIDATION),
        ("train", TRAINING),
    ),
    "fastai": (
        ("get_preds", PREDICTION),
        ("_do_epoch_validate", VALIDATION),
        ("_do_epoch_train", TRAINING),
    ),
    "ultralytics": (
        ("validator.py", VALIDATION),
        ("predictor.py", PREDICTION),
        ("_do_train", TRAINING),
    ),
    "monai": (("evaluator.py", VALIDATION), ("trainer.py", TRAINING)),
}
# A framework built on another comes first.
FRAMEWORKS = (
    "transformers",
    "lightning",
    "monai",
    "fastai",
    "ultralytics",
    "ignite",
    "accelerate",
    "torch_geometric",
    "timm",
    "webdataset",
    "ray",
    "torchdata",
)
_PACKAGES = {"pytorch_lightning": "lightning", "lightning_fabric": "lightning"}


@dataclass(frozen=True)
class Use:
    """`phase` is None if unknown, `place` ("train.py:41") if no user's code is on the stack. `key`,
    the user's lines and the framework's functions on the stack, is equal for loops at one place.
    """

    phase: str | None
    place: str | None
    framework: str | None
    key: tuple[str, ...]
    # Accelerate's dispatcher iterates and sends the other ranks their parts of each batch.
    dispatched: bool = False

    def same_phase(self, other: Use) -> bool:
        """Whether both phases are the same as far as known. A sanity check counts as validation."""
        phases = {self.phase, other.phase} - {None}
        return len(phases) < 2 or phases == {SANITY_CHECK, VALIDATION}


def use_now(shuffle: bool | None = None) -> Use:
    """The use of the loader that the running code iterates over. `shuffle`: whether its order is
    random."""
    running: dict[str, set[str]] = {}
    place: str | None = None
    key: list[str] = []
    dispatched, dispatcher = False, _dispatcher()
    for frame in frames(sys._getframe(1)):
        code = frame.f_code
        dispatched = dispatched or code is dispatcher
        file = code.co_filename
        package = package_of(file)
        package = _PACKAGES.get(package or "", package)
        if package in FRAMEWORKS:
            running.setdefault(package, set()).update((code.co_name, os.path.basename(file)))
            key.append(f"{package}:{code.co_name}")
        elif of_user(file):
            key.append(f"{file}:{frame.f_lineno}")
            if place is None:
                place = place_of(file, frame.f_lineno)
    framework = next((name for name in FRAMEWORKS if name in running), None)
    # In ignite, a handler of one engine may run another engine.
    phase = VALIDATION if key.count("ignite:run") > 1 else _phase(running)
    found = phase or _by_gradients(shuffle)
    return Use(found, place, framework, tuple(key[:MAX_KEY]), dispatched)


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    for _ in range(MAX_FRAMES):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _dispatcher() -> Any:
    """The code of Accelerate's dispatcher loop, which its other loaders do not run."""
    cls = loaded("accelerate.data_loader").get("DataLoaderDispatcher")
    return getattr(in_class(cls, "__iter__"), "__code__", None) if isinstance(cls, type) else None


def users_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code, from this frame outwards."""
    return next((each for each in frames(frame) if of_user(each.f_code.co_filename)), None)


def _phase(running: dict[str, set[str]]) -> str | None:
    found = (
        phase
        for package, names in running.items()
        for name, phase in _PHASES.get(package, ())
        if name in names
    )
    return next(found, None)


def _by_gradients(shuffle: bool | None) -> str | None:
    enabled = loaded("torch").get("is_grad_enabled")
    if enabled is None:
        return None
    if not enabled():
        return EVALUATION
    return TRAINING if shuffle else None


def library_of(name: str) -> str | None:
    """The framework to which the class or function of this full name belongs."""
    root = name.partition(".")[0]
    root = _PACKAGES.get(root, root)
    return root if root in FRAMEWORKS else None


def place_of(file: str | None, line: int | None) -> str:
    """'train.py:41', without folders and safe to print; for a cell of this notebook, 'cell 3,
    line 6'."""
    cell = cell_of(file) if file else None
    return f"cell {cell}, line {line}" if cell is not None and line else _in_file(file, line)


@functools.lru_cache(maxsize=8192)
def _in_file(file: str | None, line: int | None) -> str:
    name = clean(PurePosixPath((file or "").replace("\\", "/")).name or "?", 80)
    return f"{name}:{line}" if line and line > 0 else name


def cell_of(file: str) -> int | None:
    """The execution number of the notebook cell that IPython has given this file name. None for
    other files, and outside the notebook's process."""
    shell = loaded("IPython.core.interactiveshell").get("InteractiveShell")
    compiler = getattr(getattr(shell, "_instance", None), "compile", None)
    cells = getattr(compiler, "_filename_map", None)
    return cells.get(file) if type(cells) is dict else None


def joined(phases: list[str]) -> str | None:
    """The phases in order, e.g. 'training and validation'. A sanity check is left out beside
    validation."""
    if VALIDATION in phases:
        phases = [each for each in phases if each != SANITY_CHECK]
    return " and ".join(dict.fromkeys(phases)) or None
