"""Each framework for real: what is recorded, how it is called, and the same result as without."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

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


@dataclass(frozen=True)
class Framework:
    """`loaders`: (phase, epochs, batches, samples). `words`: how more workers are said. `patched`:
    what each line has that asks for three workers that stay, where a framework makes the loader."""

    packages: tuple[str, ...]
    program: tuple[str, ...]
    named: str | None
    loaders: tuple[tuple[str | None, int, int, int | None], ...]
    words: str
    kind: str = "dataloader"
    patched: tuple[str, ...] = ()


WANTED = {"num_workers": "3", "persistent_workers": "True"}
ASKED = ", ".join(f"{name}={value}" for name, value in WANTED.items())
FRAMEWORKS = {
    "transformers": Framework(
        ("transformers", "accelerate"),
        ("hf_trainer.py", "FOLDER"),
        "Hugging Face Trainer",
        (("training", 2, 24, 96), ("validation", 8, 32, 128)),
        "TrainingArguments(dataloader_num_workers=2)",
        patched=("dataloader_num_workers=3,", "dataloader_persistent_workers=True,"),
    ),
    "accelerate": Framework(
        ("accelerate",),
        ("accelerate_loop.py",),
        "Accelerate",
        (("training", 2, 24, 96), ("evaluation", 2, 8, 32)),
        "accelerator.prepare(DataLoader(",
        patched=(f"DataLoader(Rows(), BATCH, shuffle=True, {ASKED})",),
    ),
    "lightning": Framework(
        ("lightning",),
        ("lightning_fit.py", "1"),
        "Lightning",
        (("validation", 3, 10, 40), ("training", 2, 24, 96), ("test", 1, 4, 16)),
        "val_dataloader() returns it",
        patched=(f"return DataLoader(Rows(), BATCH, shuffle=True, {ASKED})",),
    ),
    "timm": Framework(
        ("timm",),
        ("timm_loader.py",),
        "timm",
        (("training", 2, 24, 96),),
        "create_loader(dataset, input_size, num_w",
        patched=('"num_workers": 3,', "use_multi_epochs_loader=True, persistent_workers=True"),
    ),
    "fastai": Framework(
        ("fastai",),
        ("fastai_learner.py",),
        "fastai",
        (("training", 2, 24, None), ("validation", 2, 8, None)),
        "dataloaders(source, num_workers=2)",
        "iterable",
    ),
    "ignite": Framework(
        ("ignite",),
        ("ignite_engine.py",),
        "Ignite",
        (("training", 2, 24, 96), ("validation", 2, 8, 32)),
        "engine.run()",
    ),
    "monai": Framework(
        ("monai", "ignite"),
        ("monai_loader.py",),
        "MONAI",
        (("training", 2, 24, 96), ("validation", 1, 12, 48)),
        "from monai.data import DataLoader",
    ),
    "torch_geometric": Framework(
        ("torch_geometric",),
        ("pyg_loader.py",),
        "PyG",
        (("training", 2, 24, 96),),
        "from torch_geometric.loader import DataLoader",
    ),
    "ultralytics": Framework(
        ("ultralytics",),
        ("yolo.py", "FOLDER"),
        "Ultralytics",
        (("training", 2, 8, 32), ("validation", 3, 3, 24)),
        "model.train(workers=2)",
    ),
    "webdataset": Framework(
        ("webdataset",),
        ("webloader.py", "FOLDER"),
        "WebDataset",
        ((None, 2, 24, None),),
        "wds.WebLoader(",
    ),
    "Grain": Framework(
        ("grain",), ("grain_loops.py",), None, ((None, 2, 24, None),) * 2, "", "iterable"
    ),
    "SPDL": Framework(
        ("spdl.dataloader",),
        ("spdl_loops.py",),
        None,
        ((None, 2, 24, None),) * 2 + ((None, 1, 12, None),),
        "",
        "iterable",
    ),
}


# What torchdata brings is in the environment of `make test`, where every stage of it is tested.
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_framework(name: str, runs_dir: Path) -> None:
    framework = FRAMEWORKS[name]
    needs(*framework.packages)
    run, report, came_to = recorded(runs_dir, *program(*framework.program))
    found = [
        (each.config.get("phase"), each.epochs, each.batches, each.samples)
        for each in report.loaders
    ]
    assert sorted(found, key=str) == sorted(framework.loaders, key=str)
    assert run.state == "finished" and {each.kind for each in run.loaders} == {framework.kind}
    for each in report.loaders:
        use = use_of(each) or ""
        use, _, made = use.partition(", made at ")
        assert f"{framework.program[0]}:" in use
        named = framework.named
        assert use.endswith(named) if named else use.rstrip(")")[-1].isdigit()
        assert not made or made.startswith(framework.program[0])
    code = code_for(run)
    assert framework.words in code
    ast.parse(code)
    if framework.patched:
        assert_patched(run, name, framework.patched)
    assert came_to == bare(sys.executable, *program(*framework.program)) and came_to


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
    """How two workers are said for the first loader."""
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


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("transformers", ("hf_trainer.py", "FOLDER")),
        ("lightning", ("lightning_fit.py", "1")),
    ],
)
def test_callback(package: str, command: tuple[str, ...]) -> None:
    needs(package)
    said = output_of(*program(*command, "callback"))
    assert re.search(r"loaderscope: \w+( 2)? \(training\): input-bound", said)
    logged = said.partition("LOGGED ")[2].splitlines()[0]
    assert all(f"/{figure}'" in logged for figure in ("wait_share", "batches_per_s", "headroom"))
    without = output_of(*program(*command))
    assert "loaderscope:" not in without and "LOGGED []" in without
    assert result(said) == result(without) != []
