"""What a loader is iterated over for (training, validation, test), and where, as the stack tells at
its `iter()`.

Frameworks name their phases by the functions they are in; elsewhere gradients that are switched off
mean evaluation, and a shuffled loader with them on means training. Only names of code and lines are
read: no frame's variables.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import FrameType
from typing import Any

from ...base.metadata import clean
from ...base.own_frames import HERE
from ...guard.static_access import in_class, loaded

TRAINING, VALIDATION, TEST, PREDICTION = "training", "validation", "test", "prediction"
SANITY_CHECK, EVALUATION = "sanity check", "evaluation"

MAX_FRAMES = 200
MAX_KEY = 40

# By framework: the function that is being run, and what it is run for; the first one found counts.
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
# Who runs the loop, the outermost framework first where one is made of another.
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
_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\]([^/\\]+)")
_OURS = os.path.dirname(HERE.rstrip(os.sep)) + os.sep  # the whole package
_STANDARD = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")})


@dataclass(frozen=True)
class Use:
    """`phase` is None where it is not known, `place` ("train.py:41") where no code of the user's is
    on the stack.

    `key` is equal for loops at the same place: the user's lines, and the framework's functions in
    between.
    """

    phase: str | None
    place: str | None
    framework: str | None
    key: tuple[str, ...]
    # Accelerate's dispatcher iterates, and gives the other ranks their parts of each batch
    dispatched: bool = False

    def same_phase(self, other: Use) -> bool:
        """Whether both are for the same, as far as that is known; a sanity check is a
        validation's."""
        phases = {
            VALIDATION if each.phase == SANITY_CHECK else each.phase for each in (self, other)
        } - {None}
        return len(phases) < 2


def use_now(shuffle: bool | None = None) -> Use:
    """What for and where the code that runs now iterates; `shuffle`: whether the loader mixes its
    samples."""
    frame: FrameType | None = sys._getframe(1)
    running: dict[str, set[str]] = {}
    place: str | None = None
    key: list[str] = []
    dispatched, dispatcher = False, _dispatcher()
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        code, line, frame = frame.f_code, frame.f_lineno, frame.f_back
        dispatched = dispatched or code is dispatcher
        file = code.co_filename
        package, users = _owner(file)
        if package is not None:
            if package in FRAMEWORKS:
                running.setdefault(package, set()).update((code.co_name, os.path.basename(file)))
                key.append(f"{package}:{code.co_name}")
        elif users:
            key.append(f"{file}:{line}")
            place = place or place_of(file, line)
    framework = next((name for name in FRAMEWORKS if name in running), None)
    phase = (
        VALIDATION if key.count("ignite:run") > 1 else _phase(running)
    )  # an engine run by another's handler
    return Use(phase or _by_gradients(shuffle), place, framework, tuple(key[:MAX_KEY]), dispatched)


def _dispatcher() -> Any:
    """The code of the dispatcher's loop, which other loaders of Accelerate do not run; None where
    there is none."""
    cls = loaded("accelerate.data_loader").get("DataLoaderDispatcher")
    return getattr(in_class(cls, "__iter__"), "__code__", None) if isinstance(cls, type) else None


def users_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code from there on, None where there is none."""
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        package, users = _owner(frame.f_code.co_filename)
        if package is None and users:
            return frame
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=4096)
def _owner(file: str) -> tuple[str | None, bool]:
    """(the installed package that the code of this file belongs to, whether it is the user's
    own)."""
    installed = _INSTALLED.match(file)
    if installed is not None:
        return _PACKAGES.get(installed[1], installed[1]), False
    return None, not file.startswith(("<frozen", _OURS, *_STANDARD))


def _phase(running: dict[str, set[str]]) -> str | None:
    for package, names in running.items():
        for name, phase in _PHASES.get(package, ()):
            if name in names:
                return phase
    return None


def _by_gradients(shuffle: bool | None) -> str | None:
    enabled = loaded("torch").get("is_grad_enabled")
    if enabled is None:
        return None
    if not enabled():
        return EVALUATION
    return TRAINING if shuffle else None


def library_of(loader: Any) -> str | None:
    """The framework whose loader class has this name."""
    root = loader.partition(".")[0] if type(loader) is str else None
    return root if root in FRAMEWORKS else None


def place_of(file: str | None, line: int | None) -> str:
    """'train.py:41': a place in words, without its folders, clean enough to print; of the notebook
    that asks, 'cell 3, line 6'."""
    cell = cell_of(file) if file else None
    return f"cell {cell}, line {line}" if cell is not None and line else _in_file(file, line)


@functools.lru_cache(maxsize=8192)
def _in_file(file: str | None, line: int | None) -> str:
    name = clean(PurePosixPath((file or "").replace("\\", "/")).name or "?", 80)
    return f"{name}:{line}" if line and line > 0 else name


def cell_of(file: str) -> int | None:
    """The execution number of the notebook's cell whose code IPython has given this file name; None
    for other files, and in any process but the notebook's."""
    shell = loaded("IPython.core.interactiveshell").get("InteractiveShell")
    compiler = getattr(getattr(shell, "_instance", None), "compile", None)
    cells = getattr(compiler, "_filename_map", None)
    return cells.get(file) if type(cells) is dict else None


def joined(phases: list[str]) -> str | None:
    """'training and validation', of the phases in the order in which they came; a sanity check is a
    validation's."""
    if VALIDATION in phases:
        phases = [each for each in phases if each != SANITY_CHECK]
    return " and ".join(dict.fromkeys(phases)) or None
