"""Each framework for real: what is recorded, how it is called, and the same result as without."""

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import standin_device
from loaderscope.advisors.assemble.build_report import loader_report
from loaderscope.advisors.assemble.make_case import case_of
from loaderscope.advisors.code.dialects import DIALECTS
from loaderscope.advisors.code.loader_code import loader_code
from loaderscope.advisors.stage_model.summary import summarise
from loaderscope.fixing.deciding_call import change_arguments
from loaderscope.fixing.edits import Edits, unified_diff
from loaderscope.fixing.patch import open_project
from loaderscope.profiler.store.run.run import Run
from loaderscope.reports.words.loaders import use_of
from running import PROGRAMS, bare, needs, output_of, program, recorded, result

pytestmark = pytest.mark.timeout(600)


WANTED = {"num_workers": "3", "persistent_workers": "True"}
ASKED = ", ".join(f"{name}={value}" for name, value in WANTED.items())
TRAINING = ("training", 2, 24, 96)
NAMELESS = (None, 2, 24, None)
EVERY_THIRD_STEP = ("validation", 8, 32, 128)
OF_LIGHTNING = (("validation", 3, 10, 40), TRAINING, ("test", 1, 4, 16))
NO_SAMPLES = (("training", 2, 24, None), ("validation", 2, 8, None))
OF_YOLO = (("training", 1, 8, 32), ("validation", 1, 3, 24))  # samplers that never end
# The program, who is said to use the loader, and (phase, epochs, batches, samples) of each loader.
FRAMEWORKS: dict[str, tuple[str, str | None, tuple[Any, ...]]] = {
    "transformers": ("hf_trainer.py FOLDER", "Hugging Face Trainer", (TRAINING, EVERY_THIRD_STEP)),
    "accelerate": ("accelerate_loop.py", "Accelerate", (TRAINING, ("evaluation", 2, 8, 32))),
    "lightning": ("lightning_fit.py 1", "Lightning", OF_LIGHTNING),
    "timm": ("timm_loader.py", "timm", (("training", 1, 24, 96),)),  # its sampler never ends
    "fastai": ("fastai_learner.py", "fastai", NO_SAMPLES),
    "ignite": ("ignite_engine.py", "Ignite", (TRAINING, ("validation", 2, 8, 32))),
    "monai": ("monai_loader.py", "MONAI", (TRAINING, ("validation", 1, 12, 48))),
    "torch_geometric": ("pyg_loader.py", "PyG", (TRAINING,)),
    "ultralytics": ("yolo.py FOLDER", "Ultralytics", OF_YOLO),
    "webdataset": ("webloader.py FOLDER", "WebDataset", (NAMELESS,)),
    "grain": ("grain_loops.py", None, (NAMELESS,) * 2),
    "spdl.dataloader": ("spdl_loops.py", None, ((None, 1, 12, None), *(NAMELESS,) * 2)),
}
NO_DATALOADERS = ("fastai", "grain", "spdl.dataloader")
ALSO_NEEDED = {"transformers": "accelerate", "monai": "ignite"}
# How more workers are said.
WORDS = {
    "transformers": "TrainingArguments(dataloader_num_workers=2)",
    "accelerate": "accelerator.prepare(DataLoader(",
    "lightning": "where your module or DataModule returns it",
    "timm": "create_loader(dataset, input_size, num_w",
    "fastai": "dataloaders(source, num_workers=2)",
    "ignite": "engine.run()",
    "monai": "from monai.data import DataLoader",
    "torch_geometric": "from torch_geometric.loader import DataLoader",
    "ultralytics": "model.train(workers=2)",
    "webdataset": "wds.WebLoader(",
}
# What each line has that asks for three workers that stay, where a framework makes the loader.
PATCHED = {
    "transformers": ("dataloader_num_workers=3,", "dataloader_persistent_workers=True,"),
    "accelerate": (f"DataLoader(Rows(), BATCH, shuffle=True, {ASKED})",),
    "lightning": (f"return DataLoader(Rows(), BATCH, shuffle=True, {ASKED})",),
}


# What torchdata brings is in the environment of `make test`, where every stage of it is tested.
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_framework(name: str, runs_dir: Path) -> None:
    needs(name, *filter(None, [ALSO_NEEDED.get(name)]))
    script, named, loaders = FRAMEWORKS[name]
    command, file = script.split(), script.split()[0]
    run, report, came_to = recorded(runs_dir, *program(*command))
    found = [
        (each.config.get("phase"), each.epochs, each.batches, each.samples)
        for each in report.loaders
    ]
    assert sorted(found, key=str) == sorted(loaders, key=str)
    kind = "iterable" if name in NO_DATALOADERS else "dataloader"
    assert run.state == "finished" and {each.kind for each in run.loaders} == {kind}
    for each in report.loaders:
        use, _, made = (use_of(each) or "").partition(", made at ")
        assert f"{file}:" in use
        assert use.endswith(named) if named else use.rstrip(")")[-1].isdigit()
        assert not made or made.startswith(file)
    code = code_for(run)
    assert WORDS.get(name, "") in code
    ast.parse(code)
    if name in PATCHED:
        assert_patched(run, name, PATCHED[name])
    assert came_to == bare(sys.executable, *program(*command)) and came_to


def assert_patched(run: Run, made: str, added: tuple[str, ...]) -> None:
    """Where a framework makes or remakes the loader, the call that decides is patched."""
    training = [each for each in run.loaders if "training" in str(each.config.get("phase"))]
    loader = next(iter(training or run.loaders))
    assert loader.made.through == made
    edits = Edits()
    change_arguments(open_project(run, PROGRAMS), edits, loader.made, WANTED)
    diff = unified_diff(edits.changes())
    new = [line for line in diff.splitlines() if line.startswith("+") and line[:3] != "+++"]
    for text in added:
        assert sum(text in line for line in new) == 1, diff


def code_for(run: Run) -> str:
    process, loader = run.processes[0], run.processes[0].loaders[0]
    report = loader_report(run, process, loader)
    return loader_code(case_of(run, process, loader, report, summarise(run)), num_workers=2)


def _parameters(path: str) -> Callable[[Any], set[str]]:
    return lambda module: set(inspect.signature(attrgetter(path)(module)).parameters)


OPTIONS: dict[str, tuple[str, Callable[[Any], set[str]]]] = {
    "transformers": ("transformers", _parameters("TrainingArguments")),
    "timm": ("timm.data", _parameters("create_loader")),
    "fastai": ("fastai.data.load", _parameters("DataLoader.__init__")),
    "ultralytics": ("ultralytics.utils", lambda module: set(module.DEFAULT_CFG_DICT)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPTIONS)
def test_the_options_that_are_advised_are_those_it_has(name: str) -> None:
    needs(name, *(["accelerate"] if name == "transformers" else []))
    module, options = OPTIONS[name]
    assert set(DIALECTS[name].options.values()) <= options(importlib.import_module(module))


@pytest.mark.parametrize("package", ["transformers", "lightning"])
def test_callback(package: str) -> None:
    needs(package)
    command = FRAMEWORKS[package][0].split()
    said = output_of(*program(*command, "callback"))
    assert re.search(r"loaderscope: \w+( 2)? \(training\): input-bound", said)
    logged = said.partition("LOGGED ")[2].splitlines()[0]
    assert all(f"/{figure}'" in logged for figure in ("wait_share", "batches_per_s", "headroom"))
    without = output_of(*program(*command))
    assert "loaderscope:" not in without and "LOGGED []" in without
    assert result(said) == result(without) != []


# Batches of each library, sent to the stand-in as its users do.
# A batch of four: 300 floats and a number each; of graphs, also which node is of which, and where each begins.
TWO = (2, 4 * (300 * 4 + 8))
COPIED = {
    "tensordict": TWO,
    "transformers": TWO,
    "accelerate": TWO,
    "lightning": TWO,
    "torch_geometric": (4, TWO[1] + 4 * 8 + 5 * 8),
}


@pytest.mark.skipif(standin_device.missing() is not None, reason="no stand-in with this torch")
@pytest.mark.parametrize("library", COPIED)
def test_all_tensors_of_a_batch_are_seen(library: str, tmp_path: Path) -> None:
    needs(library)
    run, *_ = recorded(tmp_path / "runs", *program("copied_batches.py", library))
    (loader,) = run.loaders
    copies, sizes = loader.batches["h2d_copies"], loader.batches["h2d_bytes"]
    seen = np.flatnonzero(copies >= 0)[2:]  # the device is noticed in the first
    assert len(seen) >= 8
    assert {(int(copies[row]), int(sizes[row])) for row in seen} == {COPIED[library]}
    assert (loader.batches["h2d_ns"][seen] > 0).all()
    assert loader.device_steps is not None
    # Of the program's own lines, whoever calls `to` in the end.
    (copied,) = loader.device_steps.copies
    assert copied.place.startswith("copied_batches.py:") and copied.a_step == COPIED[library][0]
