"""How users of a framework set DataLoader's arguments: by which options, or where the call is.

A change without an option is described, with the place where it can be made.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..case.case import Case
from ..case.code_text import literal
from .loader_form import NEEDS_WORKERS, config_text, framework_of

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
    `head` is what comes above. `otherwise` says what to change for an argument of DataLoader that
    is no option."""

    call: str
    options: Mapping[str, str]
    otherwise: str
    head: str = ""


_THERE = "# besides the arguments you give it today"

DIALECTS = {
    "transformers": Options(
        head="from transformers import TrainingArguments\n\n"
        f"{_THERE}; they are for the loaders of training and of evaluation\n",
        call="args = TrainingArguments({})",
        options={
            **{
                name: f"dataloader_{name}"
                for name in (
                    "num_workers",
                    "pin_memory",
                    "persistent_workers",
                    "prefetch_factor",
                    "drop_last",
                    "multiprocessing_context",
                    "in_order",
                )
            },
            "batch_size": "per_device_train_batch_size",
        },
        otherwise="override Trainer.get_train_dataloader() for",
    ),
    "timm": Options(
        head="from timm.data import create_loader\n\n"
        f"{_THERE} (of timm's train.py: --workers, --pin-mem, --batch-size)\n",
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
        head=f"{_THERE}; Ultralytics takes no more workers than CPUs a device\n",
        call="model.train({})",
        options={"num_workers": "workers", "batch_size": "batch"},
        otherwise="Ultralytics has no option for it: override DetectionTrainer.get_dataloader() "
        "for",
    ),
    "fastai": Options(
        head=f"{_THERE}\n",
        call="dls = data_block.dataloaders(source, {})",
        options={
            "batch_size": "bs",
            **{
                name: name
                for name in ("num_workers", "pin_memory", "drop_last", "persistent_workers")
            },
        },
        otherwise="fastai's DataLoader has no such argument:",
    ),
}
EVALUATING = ("validation", "evaluation", "test", "prediction")
# Where the call of DataLoader is written with other frameworks.
_AROUND = {
    "accelerate": "loader = accelerator.prepare({call})",
    "ray": "import ray.train.torch\n\nloader = ray.train.torch.prepare_data_loader({call})",
    "lightning": "# where your module or DataModule returns it, or where fit() is given it\n"
    "loader = {call}",
    "ignite": "# the loader that engine.run() is given\nloader = {call}",
}


def in_options(case: Case, changes: Mapping[str, Any], drop: Any) -> str | None:
    """The changes as options of the framework that makes this loader; None where the user makes
    it."""
    dialect = DIALECTS.get(framework_of(case) or "")
    if dialect is None:
        return None
    evaluating = config_text(case, "phase") in EVALUATING

    def named(text: str) -> str:
        """The Trainer has other names for evaluation."""
        return text.replace("train_", "eval_") if evaluating else text

    found: dict[str, str] = {}
    by_hand = []
    for name, value in changes.items():
        if name in NEEDS_WORKERS and not changes.get("num_workers", case.num_workers):
            continue
        option = named(dialect.options.get(name, ""))
        if value is drop:
            by_hand.append(f"leave out {option or name}")
        elif option:
            found[option] = literal(value)
        else:
            by_hand.append(f"{named(dialect.otherwise)} {name}={literal(value)}")
    lines = []
    if found:
        arguments = ", ".join(f"{name}={value}" for name, value in found.items())
        lines.append(f"{dialect.head}{dialect.call.format(arguments)}")
    lines += [f"# By hand: {each}" for each in by_hand]
    return "\n".join(lines) or "# The loader stays as it is."


def around(case: Case, call: str) -> str:
    """A call of DataLoader, as it is written in the code of the framework's users."""
    return _AROUND.get(framework_of(case) or "", "loader = {call}").format(call=call)
