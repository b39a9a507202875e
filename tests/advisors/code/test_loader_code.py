"""DataLoader calls as code, also in the words of the framework that a loader comes from; the templates
of other code."""

import ast
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.case import Case
from loaderscope.advisors.case.code_text import Source, identifier, with_imports
from loaderscope.advisors.code import templates
from loaderscope.advisors.code.dialects import NAMES
from loaderscope.advisors.code.loader_code import DROP, LINE, loader_code
from loaderscope.advisors.code.loader_form import form_of
from loaderscope.advisors.code.templates import placeholders
from rule_cases import case_of, workers_config
from rule_rows import main_loop


@pytest.mark.parametrize(
    ("told", "name"),
    [("train.Rows", "Rows"), ("Rows", "Rows"), ("main.<locals>.join", "join")]
    + [(told, "x") for told in (None, "a.<lambda>", "class", "ﬁle", "a;b")],
)
def test_identifier(told: str | None, name: str) -> None:
    assert identifier(told, "x") == name


def configured(path: Path, config: dict[str, Any]) -> Case:
    return case_of(path, main_loop(30, fetch=1.0), config=config)


def call(path: Path, config: dict[str, Any], **changes: Any) -> str:
    return loader_code(configured(path, config), **changes).rpartition("loader = ")[2]


SAMPLERS = "torch.utils.data.sampler"
PLAIN = {"sampler": f"{SAMPLERS}.RandomSampler", "sampler_plain": True, "shuffle": True}
GIVEN = {"batching": "batch_sampler", "batch_size": 8, **PLAIN}
GIVEN |= {"batch_sampler": f"{SAMPLERS}.BatchSampler"}
NONE = {"batching": "none", "batch_size": None}
STATEFUL = "torchdata.stateful_dataloader.stateful_dataloader.StatefulDataLoader"
SEED = "partial(lightning.fabric.utilities.seed.pl_worker_init_function)"
FOUR, TWO, EIGHT = "batch_size=4, shuffle=True", {"num_workers": 2}, {"num_workers": 8}
SPAWNED = f"{FOUR}, num_workers=2, multiprocessing_context='spawn'"
INNER = "batch_sampler=BatchSampler({}, batch_size={}, drop_last=False)"


@pytest.mark.parametrize(
    ("config", "changes", "code"),
    [
        (workers_config(2, prefetch_factor=8), {"num_workers": 0}, f"{FOUR}, num_workers=0"),
        ({"collate_fn": "train.join"}, {}, f"{FOUR}, collate_fn=join"),
        ({"collate_fn": "train.default_collate"}, {}, f"{FOUR}, collate_fn=collate_fn"),
        ({}, {"batch_sampler": Source("mine(3)")}, "batch_sampler=mine(3)"),
        # A loader that was given batches keeps them; their size changes in a batch sampler of
        # torch's own.
        (GIVEN, {"batch_size": 32}, INNER.format("batch_sampler.sampler", 32)),
        (GIVEN, {"sampler": Source("sampler")}, INNER.format("sampler", 8)),
        ({**NONE, "sampler_path": "sampler.sampler"}, {}, "batch_size=None, sampler=sampler"),
        ({"multiprocessing_context": "spawn", **TWO}, {}, SPAWNED),
        ({"worker_init_fn": SEED, **TWO}, {}, f"{FOUR}, num_workers=2"),
        ({"drop_last": True}, {"drop_last": DROP}, FOUR),
        ({"batch_size": None}, {"shuffle": DROP}, "batch_size=None"),
    ],
)
def test_loader_call(tmp_path, config, changes, code):
    line = f"DataLoader(dataset, {code})"
    if len(line) > LINE:
        line = f"DataLoader(\n    dataset,\n    {code},\n)"
    assert call(tmp_path, config, **changes) == line


@pytest.mark.parametrize(("loader", "name"), [(STATEFUL, "StatefulDataLoader"), ("t.Own", "Own")])
def test_a_class_of_ones_own_is_called_by_its_name(tmp_path: Path, loader: str, name: str) -> None:
    assert call(tmp_path, {"loader": loader}) == f"{name}(dataset, {FOUR})"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"made_by": "accelerate", "sampler_plain": False}, "Accelerate makes this loader out of"),
        ({"made_by": "lightning", "sampler_plain": False}, "Lightning gives this loader its"),
        ({"loader": "train.Tokens"}, "Tokens has a constructor of its own"),
        ({"loader": "other.DataLoader"}, "DataLoader has a constructor of its own"),
    ],
)
def test_a_call_that_is_not_known_is_changed_by_hand(tmp_path, config, said):
    config = {"own_constructor": "loader" in config, **config}
    case = configured(tmp_path, config)
    code = loader_code(case, num_workers=2, worker_init_fn=DROP)
    first, *changes = code.splitlines()
    assert said in first
    assert changes == ["#     num_workers=2", "#     leave out worker_init_fn"]
    assert not ast.parse(code).body  # pasted, it changes nothing
    assert loader_code(case) == "# The loader stays as it is."


def test_batches_of_the_users_own_change_by_hand(tmp_path: Path) -> None:
    config = {**GIVEN, "batch_sampler": "train.Buckets"}
    case = configured(tmp_path, config)
    assert "your batch sampler" in loader_code(case, batch_size=32)
    assert loader_code(case, num_workers=1) == (
        "# yours, as in your own call: batch_sampler\n"
        "loader = DataLoader(dataset, batch_sampler=batch_sampler, num_workers=1)"
    )


DATA, STATE = "from torch.utils.data import", "from torchdata.stateful_dataloader import"


@pytest.mark.parametrize(
    ("code", "complete"),
    [
        ("x = DataLoader(dataset)", f"{DATA} DataLoader\n\nx = DataLoader(dataset)"),
        (
            "import torch\n\nx = default_convert(1)\n",
            f"import torch\n{DATA} default_convert\n\nx = default_convert(1)\n",
        ),
        (
            f"{DATA} DataLoader\n\nx = StatefulDataLoader(Sampler())\n",
            f"{STATE} StatefulDataLoader\n{DATA} Sampler\n\nx = StatefulDataLoader(Sampler())\n",
        ),
        ("def default_collate(x):\n    return x\ny = default_collate(1)\n", None),
        ("not code (", None),
    ],
)
def test_code_imports_what_it_uses(code: str, complete: str | None) -> None:
    found = with_imports(code)
    assert sorted(found.splitlines()) == sorted((complete or code).splitlines())
    assert with_imports(found) == found


def test_a_call_is_laid_out_and_names_what_must_be_at_hand(tmp_path: Path) -> None:
    more = {"pin_memory": True, "drop_last": True, "persistent_workers": True, "prefetch_factor": 4}
    long = call(tmp_path / "long", workers_config(4, **more))  # an argument a line
    assert long.startswith("DataLoader(\n    dataset,\n    batch_size=4,\n") and ast.parse(long)
    own = {"sampler_plain": False, "generator": True, "collate_fn": "t.Joiner"}
    case = configured(tmp_path / "own", {"loader": "t.Loader", **own})
    note = "# yours, as in your own call: Loader, sampler, collate_fn, generator\n"
    assert loader_code(case).startswith(f"{note}loader = Loader(") and ast.parse(loader_code(case))


def test_hostile_values_are_literals(tmp_path: Path) -> None:
    evil = "1); import os; ("
    code = call(tmp_path, {"batch_size": evil, "prefetch_factor": "x", "num_workers": 2})
    assert ast.parse(code).body[0].value.keywords[0].value.value == evil  # type: ignore[attr-defined]


SHARED_OUT = {"sampler": "torch.utils.data.distributed.DistributedSampler", "replicas": 2}
SHARED_OUT |= {"sampler_plain": False, "shuffle": True}
SHARD = {"made_by": "accelerate", "batching": "batch_sampler", "replicas": 2, **PLAIN}
SHARD |= {"batch_sampler": "accelerate.data_loader.BatchSamplerShard"}
SHARD |= {"sampler_wrappers": "BatchSamplerShard, BatchSampler"}
GEOMETRIC = {"loader": "torch_geometric.loader.dataloader.DataLoader"}
MONAI = {"loader": "monai.data.dataloader.DataLoader"}
OWN_MONAI = {**MONAI, "own_constructor": True, "collate_fn": "monai.data.utils.list_data_collate"}
OWN_MONAI |= {"worker_init_fn": "monai.data.utils.worker_init_fn"}
HF, TIMM = {"framework": "transformers"}, {"made_by": "timm", "framework": "timm"}
HF_TRAINS, HF_TESTS = {**HF, "phase": "training"}, {**HF, "phase": "validation"}
RAY, ULTRALYTICS = {"framework": "ray", **SHARED_OUT}, {"made_by": "ultralytics"}
STREAM = {"framework": "webdataset", **NONE, "sampler_plain": True, "shuffle": False}
PINNED, KEPT = {**TWO, "pin_memory": True}, {**TWO, "persistent_workers": True}
CALL = "DataLoader(dataset, batch_size=4, shuffle=True, num_workers=2)"
OVERRIDE = "# By hand: override Trainer."


def args(**given: Any) -> str:
    told = ", ".join(f"dataloader_{name}={value}" for name, value in given.items())
    return f"args = TrainingArguments({told})"


@pytest.mark.parametrize(
    ("config", "changes", "line"),
    [
        ({"made_by": "transformers"}, PINNED, args(**PINNED)),
        ({**HF, "made_by": "accelerate"}, KEPT, args(**KEPT)),
        # Options of workers without workers are refused by TrainingArguments, too.
        (HF, {"prefetch_factor": 4, "drop_last": True}, args(drop_last=True)),
        (HF_TRAINS, {"batch_size": 8}, "args = TrainingArguments(per_device_train_batch_size=8)"),
        (HF_TESTS, {"batch_size": 8}, "args = TrainingArguments(per_device_eval_batch_size=8)"),
        (HF_TESTS, {"dataset": Source("x")}, f"{OVERRIDE}get_eval_dataloader() for dataset=x"),
        (HF, {"worker_init_fn": DROP}, "# By hand: leave out worker_init_fn"),
        (HF, {"timeout": 3, **TWO}, f"{OVERRIDE}get_train_dataloader() for timeout=3"),
        (HF, {}, "# The loader stays as it is."),
        (TIMM, EIGHT, "loader = create_loader(dataset, input_size, num_workers=8)"),
        (ULTRALYTICS, {**EIGHT, "batch_size": 32}, "model.train(workers=8, batch=32)"),
        ({"framework": "fastai"}, EIGHT, "dls = data_block.dataloaders(source, num_workers=8)"),
        ({"framework": "accelerate"}, TWO, f"loader = accelerator.prepare({CALL})"),
        (SHARD, TWO, f"loader = accelerator.prepare({CALL.replace('=4', '=batch_size')})"),
        ({"made_by": "lightning", **SHARED_OUT}, TWO, f"loader = {CALL}"),
        (RAY, TWO, f"loader = ray.train.torch.prepare_data_loader({CALL})"),
        (OWN_MONAI, TWO, f"loader = {CALL}"),
        (STREAM, TWO, "loader = wds.WebLoader(dataset, batch_size=None, num_workers=2)"),
        # Of timm, a loader that is the user's own.
        ({"framework": "timm"}, TWO, f"loader = {CALL}"),
    ],
)
def test_in_its_words(tmp_path, config, changes, line):
    assert loader_code(configured(tmp_path, config), **changes).splitlines()[-1] == line


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (HF, "from transformers import TrainingArguments"),
        ({"framework": "lightning", "phase": "validation"}, "DataModule returns it"),
        (RAY, "import ray.train.torch"),
        (GEOMETRIC, "from torch_geometric.loader import DataLoader"),
        (MONAI, "from monai.data import DataLoader"),
    ],
)
def test_with_the_place_it_stands_at(tmp_path: Path, config: dict[str, Any], words: str) -> None:
    made = loader_code(configured(tmp_path, config), num_workers=2)
    assert words in made
    # A library whose loader is its own is not imported from torch.
    assert config not in (GEOMETRIC, MONAI) or "torch.utils.data" not in with_imports(made)


@pytest.mark.parametrize("framework", [*NAMES, "unheard-of"])
def test_all_of_it_is_code(tmp_path: Path, framework: str) -> None:
    for name in ("made_by", "framework"):
        case = configured(tmp_path / name, {name: framework})
        ast.parse(loader_code(case, num_workers=2, in_order=False))
        ast.parse(loader_code(case, batch_sampler=Source("x"), prefetch_factor=DROP))
        ast.parse(loader_code(case, dataset=Source("x")))
    # A loader made of options has no call to write out.
    assert framework != "transformers" or form_of(case).by_hand is not None


FILES = sorted(
    path
    for path in Path(templates.__path__[0]).glob("*.py")
    if path.stem not in ("__init__", "placeholders")
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_placeholder_is_declared(path: Path) -> None:
    """Else it would be pasted as it stands."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    declared = {*vars(placeholders), *placeholders.__annotations__}
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    used = {node.id for node in nodes if node.id in declared and node.id.isupper()}
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]
    assert used <= {each.name for node in imports for each in node.names} <= declared
