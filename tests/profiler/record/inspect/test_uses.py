"""What a loader is iterated over for, by the stack."""

import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, Subset

import loaderscope
from loaderscope.profiler.record.inspect import uses
from loaderscope.profiler.record.inspect.uses import Use, joined, use_now
from loaderscope.profiler.store.run.run_reader import open_run


def through(*steps):
    """(file, function) a step, the outermost first."""
    inner = use_now
    for path, name in reversed(steps):
        held = {"inner": inner}
        exec(compile(f"def {name}():\n    return inner()\n", path, "exec"), held)
        inner = held[name]
    return inner()


SITE = "/env/lib/python3.11/site-packages/"
LIGHTNING = SITE + "lightning/pytorch/trainer/trainer.py"
FIT = (LIGHTNING, "_fit_impl")
LOOP = SITE + "lightning/pytorch/loops/evaluation_loop.py"
OLDER = SITE + "pytorch_lightning/trainer/trainer.py"
TRAINER, ACCELERATE = SITE + "transformers/trainer.py", SITE + "accelerate/data_loader.py"


@pytest.mark.parametrize(
    ("steps", "phase", "framework"),
    [
        ([FIT], "training", "lightning"),
        ([FIT, (LOOP, "run")], "validation", "lightning"),
        ([FIT, (LIGHTNING, "_run_sanity_check"), (LOOP, "run")], "sanity check", "lightning"),
        ([(LIGHTNING, "_test_impl"), (LOOP, "run")], "test", "lightning"),
        ([(OLDER, "_validate_impl")], "validation", "lightning"),
        ([(TRAINER, "train"), (ACCELERATE, "__iter__")], "training", "transformers"),
        ([(TRAINER, "train"), (TRAINER, "evaluate")], "validation", "transformers"),
        ([(TRAINER, "predict"), (TRAINER, "evaluation_loop")], "prediction", "transformers"),
        ([(SITE + "ignite/engine/engine.py", "run")], None, "ignite"),
        ([(SITE + "ignite/engine/engine.py", "run")] * 2, "validation", "ignite"),
        ([(SITE + "other/loop.py", "train")], None, None),
    ],
)
def test_frameworks_tell_the_phase(steps, phase, framework):
    use = through(*steps)
    assert (use.phase, use.framework) == (phase, framework)


def test_gradients_tell_it_elsewhere():
    assert use_now(shuffle=True).phase == "training"
    assert use_now(shuffle=False).phase is None
    with torch.no_grad():
        assert use_now(shuffle=True).phase == "evaluation"


def test_the_place_is_the_users():
    use = through(("/home/me/train.py", "main"), FIT)
    assert use.place == "train.py:2"
    assert use.key[:2] == ("lightning:_fit_impl", "/home/me/train.py:2")


def test_cells_of_a_notebook(monkeypatch):
    compiling = SimpleNamespace(_filename_map={"/tmp/ipykernel_7/99.py": 3})
    module = ModuleType("IPython.core.interactiveshell")
    module.InteractiveShell = SimpleNamespace(_instance=SimpleNamespace(compile=compiling))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert uses.place_of("/tmp/ipykernel_7/99.py", 6) == "cell 3, line 6"
    assert uses.place_of("/tmp/train.py", 6) == "train.py:6"


def test_several_phases():
    assert joined(["sanity check", "validation"]) == "validation"
    assert joined(["training", "validation"]) == "training and validation"
    assert joined([]) is None

    def use(phase):
        return Use(phase, None, None, ())

    assert use("sanity check").same_phase(use("validation"))
    assert use(None).same_phase(use("test"))
    assert not use("training").same_phase(use("test"))


@pytest.fixture
def loaders(runs_dir, nothing_left_over):
    """Everything is watched. Gives (name, phase, batches, times built) a loader."""
    loaderscope.watch_all()
    return lambda: [
        (each.name, each.config.get("phase"), each.count, int(each.epochs["instance"].max()) + 1)
        for each in open_run("latest", runs_dir).loaders
    ]


DATA = list(range(12))


def evaluate(kept, data=DATA):
    kept.append(DataLoader(data, batch_size=4))
    with torch.no_grad():
        list(kept[-1])


def test_a_loader_built_for_each_evaluation_is_one_even_if_the_last_is_kept(loaders):
    kept = []
    for _ in range(3):
        evaluate(kept)
    assert loaders() == [("list", "evaluation", 9, 3)]


def test_other_data_another_place_or_being_at_work_make_another_loader(loaders):
    kept = []
    for data in (DATA, list(DATA)):
        evaluate(kept, data)
    evaluate(kept)
    assert len(loaders()) == 3
    pair = [DataLoader(DATA, batch_size=3) for _ in range(2)]
    assert [len(both) for both in zip(*[iter(each) for each in pair], strict=True)] == [2] * 4
    assert len(loaders()) == 5


def test_training_and_evaluation_are_not_one_loader_built_again(loaders):
    for enabled in (True, False):
        with torch.set_grad_enabled(enabled):
            list(DataLoader(DATA, batch_size=4, shuffle=True))
    assert [each[1:3] for each in loaders()] == [("training", 3), ("evaluation", 3)]


def test_the_loop_s_name_for_a_loader_and_what_a_subset_is_of(runs_dir):
    class Rows(list[int]): ...

    def loader():
        part = Subset(Subset(Rows(range(8)), range(6)), range(4))
        return loaderscope.watch(DataLoader(part, batch_size=2))

    class Task:
        valid_loader = loader()

    train_loader = loader()
    for _ in train_loader:
        pass
    for _ in enumerate(Task.valid_loader):
        pass
    dataloader = loader()  # says no more than that it is one
    for _ in dataloader:
        pass
    for _ in zip(loader(), train_loader, strict=True):
        pass
    found = open_run("latest", runs_dir).loaders
    names = {"": "valid_loader", " 2": "train_loader", " 3": None, " 4": None}
    assert {each.name: each.config.get("variable") for each in found} == {
        f"Subset of Subset of Rows{number}": name for number, name in names.items()
    }
