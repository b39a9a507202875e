"""A loader's changes in the words of the framework it comes from."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.code_text import with_imports
from loaderscope.advisors.code.dialects import NAMES
from loaderscope.advisors.code.loader_code import DROP, Source, loader_code
from loaderscope.advisors.code.loader_form import form_of
from rule_cases import case_of
from rule_rows import main_loop

SHARED_OUT = {
    "sampler": "torch.utils.data.distributed.DistributedSampler",
    "sampler_plain": False,
    "shuffle": True,
    "replicas": 2,
}
SHARD = {
    "batching": "batch_sampler",
    "batch_sampler": "accelerate.data_loader.BatchSamplerShard",
    "replicas": 2,
    "sampler_wrappers": "BatchSamplerShard, BatchSampler",
    "sampler_plain": True,
    "shuffle": True,
    "sampler": "torch.utils.data.sampler.RandomSampler",
}
GEOMETRIC = {"loader": "torch_geometric.loader.dataloader.DataLoader"}
MONAI = {"loader": "monai.data.dataloader.DataLoader"}
CALL = "DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2)"


def code(path: Path, config: dict[str, Any], **changes: Any) -> str:
    return loader_code(case_of(path, main_loop(30, fetch=1.0), config=config), **changes)


HF, TIMM = {"framework": "transformers"}, {"made_by": "timm", "framework": "timm"}
HF_TRAINS, HF_TESTS = {**HF, "phase": "training"}, {**HF, "phase": "validation"}
OWN_MONAI = {
    **MONAI,
    "own_constructor": True,
    "collate_fn": "monai.data.utils.list_data_collate",
    "worker_init_fn": "monai.data.utils.worker_init_fn",
}
STREAM = {"batching": "none", "batch_size": None, "sampler_plain": True, "shuffle": False}
TWO, EIGHT = {"num_workers": 2}, {"num_workers": 8}


@pytest.mark.parametrize(
    ("config", "changes", "line"),
    [
        (
            {"made_by": "transformers"},
            {**TWO, "pin_memory": True},
            "args = TrainingArguments(dataloader_num_workers=2, dataloader_pin_memory=True)",
        ),
        (
            {**HF, "made_by": "accelerate"},
            {**TWO, "persistent_workers": True},
            "args = TrainingArguments(dataloader_num_workers=2, dataloader_persistent_workers=True)",
        ),
        # Options of workers without workers are refused by TrainingArguments, too.
        (
            HF,
            {"prefetch_factor": 4, "drop_last": True},
            "args = TrainingArguments(dataloader_drop_last=True)",
        ),
        (HF_TRAINS, {"batch_size": 8}, "args = TrainingArguments(per_device_train_batch_size=8)"),
        (HF_TESTS, {"batch_size": 8}, "args = TrainingArguments(per_device_eval_batch_size=8)"),
        (HF_TESTS, {"dataset": Source("packed")}, "# By hand: Trainer(eval_dataset=packed)"),
        (HF, {"collate_fn": Source("stack")}, "# By hand: Trainer(data_collator=stack)"),
        (HF, {"worker_init_fn": DROP}, "# By hand: leave out worker_init_fn"),
        (
            HF,
            {"timeout": 3, **TWO},
            "# By hand: override Trainer.get_train_dataloader() for timeout=3",
        ),
        (HF, {}, "# The loader stays as it is."),
        (TIMM, EIGHT, "loader = create_loader(dataset, input_size, num_workers=8)"),
        (
            {"made_by": "ultralytics"},
            {**EIGHT, "batch_size": 32},
            "model.train(workers=8, batch=32)",
        ),
        ({"framework": "fastai"}, EIGHT, "dls = data_block.dataloaders(source, num_workers=8)"),
        ({"framework": "accelerate"}, TWO, f"loader = accelerator.prepare({CALL})"),
        (
            {"made_by": "accelerate", **SHARD},
            TWO,
            f"loader = accelerator.prepare({CALL.replace('=4', '=batch_size')})",
        ),
        ({"framework": "lightning"}, TWO, f"loader = {CALL}"),
        ({"made_by": "lightning", **SHARED_OUT}, TWO, f"loader = {CALL}"),
        ({"framework": "ignite"}, TWO, f"loader = {CALL}"),
        (
            {"framework": "ray", **SHARED_OUT},
            TWO,
            f"loader = ray.train.torch.prepare_data_loader({CALL})",
        ),
        (OWN_MONAI, TWO, f"loader = {CALL}"),
        (
            {"framework": "webdataset", **STREAM},
            TWO,
            "loader = wds.WebLoader(dataset, batch_size=None, num_workers=2)",
        ),
        # Of timm, a loader that is the user's own.
        ({"framework": "timm"}, TWO, f"loader = {CALL}"),
    ],
)
def test_in_its_words(tmp_path, config, changes, line):
    """The last line is the one that is to be typed."""
    assert code(tmp_path, config, **changes).splitlines()[-1] == line


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (HF, "from transformers import TrainingArguments"),
        (HF, "they are for the loaders of training and of evaluation"),
        ({"made_by": "timm"}, "--workers"),
        ({"framework": "lightning", "phase": "training"}, "train_dataloader() returns it"),
        ({"framework": "lightning", "phase": "validation"}, "val_dataloader() returns it"),
        ({"framework": "lightning", "phase": "test"}, "test_dataloader() returns it"),
        ({"framework": "ignite"}, "engine.run()"),
        ({"framework": "ray", **SHARED_OUT}, "import ray.train.torch"),
        (GEOMETRIC, "from torch_geometric.loader import DataLoader"),
        (MONAI, "from monai.data import DataLoader"),
    ],
)
def test_with_the_place_it_stands_at(tmp_path: Path, config: dict[str, Any], words: str) -> None:
    made = code(tmp_path, config, num_workers=2)
    assert words in made
    # A library whose loader is its own is not imported from torch.
    assert config not in (GEOMETRIC, MONAI) or "torch.utils.data" not in with_imports(made)


@pytest.mark.parametrize("framework", [*NAMES, "unheard-of"])
def test_all_of_it_is_code(tmp_path: Path, framework: str) -> None:
    for name in ("made_by", "framework"):
        case = case_of(tmp_path / name, main_loop(30, fetch=1.0), config={name: framework})
        ast.parse(loader_code(case, num_workers=2, in_order=False))
        ast.parse(loader_code(case, batch_sampler=Source("x"), prefetch_factor=DROP))
        ast.parse(loader_code(case, dataset=Source("x")))
    # A loader made of options has no call to write out.
    assert framework != "transformers" or form_of(case).by_hand is not None
