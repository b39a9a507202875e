"""How a framework's users say what DataLoader's arguments say: which options those are, and where
the call stands.

A change that a framework has an option for is written as that; what it has none for is named, with
the place where its users can put it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..case.case import Case
from ..case.code_text import literal
from .loader_form import NEEDS_WORKERS, framework_of

# Names of the frameworks as recorded, and as people write them.
NAMES = {
    "transformers": "Hugging Face Trainer",
    "accelerate": "Accelerate",
    "lightning": "Lightning",
    "timm": "timm",
    "fastai": "fastai",
    "ignite": "Ignite",
    "monai": "MONAI",
    "torch_geometric": "PyG",
    "ultralytics": "Ultralytics",
    "webdataset": "WebDataset",
    "ray": "Ray Train",
    "torchdata": "torchdata",
    "grain": "Grain",
}


@dataclass(frozen=True)
class Options:
    """A framework that makes the loader of options. `call` holds them, with "{}" in their place;
    `head` are the lines above; `elsewhere` says by DataLoader's argument what to change where there
    is no option."""

    imports: str
    head: str
    call: str
    options: Mapping[str, str]
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = ""


_TRAINER = Options(
    imports="from transformers import TrainingArguments\n\n",
    head="# beside the arguments you give it today; they are for the loaders of training and of "
    "evaluation\n",
    call="args = TrainingArguments({})",
    options={
        "num_workers": "dataloader_num_workers",
        "pin_memory": "dataloader_pin_memory",
        "persistent_workers": "dataloader_persistent_workers",
        "prefetch_factor": "dataloader_prefetch_factor",
        "drop_last": "dataloader_drop_last",
        "multiprocessing_context": "dataloader_multiprocessing_context",
        "in_order": "dataloader_in_order",
        "batch_size": "per_device_train_batch_size",
    },
    elsewhere={
        "dataset": "Trainer(train_dataset={})",
        "collate_fn": "Trainer(data_collator={})",
        "sampler": "override Trainer._get_train_sampler() to return {}",
        "batch_sampler": "override Trainer.get_train_dataloader() for batch_sampler={}",
    },
    otherwise="override Trainer.get_train_dataloader() for",
)
_EVALUATING = ("validation", "evaluation", "test", "prediction")

DIALECTS = {
    "transformers": _TRAINER,
    "timm": Options(
        imports="from timm.data import create_loader\n\n",
        head="# beside the arguments you give it today (of timm's train.py: --workers, --pin-mem, "
        "--batch-size)\n",
        call="loader = create_loader(dataset, input_size, {})",
        options={
            name: name
            for name in (
                "batch_size",
                "num_workers",
                "collate_fn",
                "pin_memory",
                "persistent_workers",
            )
        },
        otherwise="create_loader has no option for it: set on the DataLoader(…) that your script "
        "makes instead,",
    ),
    "ultralytics": Options(
        imports="",
        head="# beside the arguments you give it today; Ultralytics takes no more workers than "
        "CPUs a device\n",
        call="model.train({})",
        options={"num_workers": "workers", "batch_size": "batch"},
        elsewhere={"dataset": "override DetectionTrainer.build_dataset() to return {}"},
        otherwise="Ultralytics has no option for it: override DetectionTrainer.get_dataloader() "
        "for",
    ),
    "fastai": Options(
        imports="",
        head="# beside the arguments you give it today\n",
        call="dls = data_block.dataloaders(source, {})",
        options={
            "batch_size": "bs",
            "num_workers": "num_workers",
            "pin_memory": "pin_memory",
            "drop_last": "drop_last",
            "persistent_workers": "persistent_workers",
        },
        otherwise="fastai's DataLoader has no such argument:",
    ),
}


def in_options(case: Case, changes: Mapping[str, Any], drop: Any) -> str | None:
    """The changes as options of the framework that makes this loader; None where the user makes
    it."""
    dialect = dialect_of(case)
    if dialect is None:
        return None
    said, by_hand = _options(case, dialect), []
    found: dict[str, str] = {}
    for name, value in changes.items():
        if name in NEEDS_WORKERS and not changes.get("num_workers", case.num_workers):
            continue
        if value is not drop and name in said:
            found[said[name]] = literal(value)
        elif value is drop:
            by_hand.append(f"leave out {said.get(name, name)}")
        elif name in dialect.elsewhere:
            by_hand.append(_places(case)(dialect.elsewhere[name]).format(literal(value)))
        else:
            by_hand.append(f"{_places(case)(dialect.otherwise)} {name}={literal(value)}")
    lines = []
    if found:
        arguments = ", ".join(f"{name}={value}" for name, value in found.items())
        lines.append(f"{dialect.imports}{dialect.head}{dialect.call.format(arguments)}")
    lines += [f"# By hand: {each}" for each in by_hand]
    return "\n".join(lines) or "# The loader stays as it is."


def dialect_of(case: Case) -> Options | None:
    """The dialect of the framework that makes this loader of options, if one does."""
    return DIALECTS.get(framework_of(case) or "")


def around(case: Case, call: str) -> str:
    """A call of DataLoader, as it stands in the code of the framework's users."""
    wrapped = {
        "accelerate": "loader = accelerator.prepare({})",
        "ray": "loader = ray.train.torch.prepare_data_loader({})",
    }
    notes = {
        "lightning": "# where your module's or DataModule's {hook}() returns it, or where fit() is "
        "given it\n",
        "ignite": "# the loader that engine.run() is given\n",
    }
    framework = framework_of(case) or ""
    imports = "import ray.train.torch\n\n" if framework == "ray" else ""
    hook = f"{_hook(case)}_dataloader"
    return (
        imports
        + notes.get(framework, "").format(hook=hook)
        + wrapped.get(framework, "loader = {}").format(call)
    )


def _hook(case: Case) -> str:
    return {
        "validation": "val",
        "sanity check": "val",
        "test": "test",
        "prediction": "predict",
    }.get(_phase(case), "train")


def _phase(case: Case) -> str:
    value = case.config.get("phase")
    return value if isinstance(value, str) else ""


def _options(case: Case, dialect: Options) -> dict[str, str]:
    said = dict(dialect.options)
    if dialect is _TRAINER and _phase(case) in _EVALUATING:
        said["batch_size"] = "per_device_eval_batch_size"
    return said


def _places(case: Case) -> Callable[[str], str]:
    """The Trainer's names for evaluation where the loader is for that."""
    if _phase(case) not in _EVALUATING:
        return lambda text: text
    return lambda text: text.replace("train_", "eval_")
