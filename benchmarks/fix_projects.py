"""Small projects whose loaders wait, each with the patch that a good engineer would write.

A project is a table of files. `engineer` replaces texts in them; without it, a good engineer would
not patch the source. `refused` is a part of the sentence that says why there is no patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

Swap = tuple[str, str, str]  # file, text, its replacement

# Waits as a disk or a server does: workers overlap it.
SLOW = """\
import time

import torch
from torch.utils.data import Dataset


class Slow(Dataset):
    def __init__(self, count=480):
        self.values = torch.arange(count)

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        time.sleep(0.003)
        return self.values[index] * 2
"""
LOOP = """\
for epoch in range(2):
    for batch in loader:
        float(batch.sum())
"""
WORKERS = "num_workers=0"
MORE = "num_workers=8, persistent_workers=True"


@dataclass(frozen=True)
class Project:
    """`arguments` follow `train.py` on the command line. `advice` is the rule whose patch is wanted:
    the plan's first step unless it is named."""

    name: str
    files: Mapping[str, str]
    engineer: tuple[Swap, ...] = ()
    refused: str = ""
    arguments: tuple[str, ...] = ()
    advice: str | None = None
    needs: tuple[str, ...] = field(default=())  # modules

    def patched(self) -> dict[str, str]:
        """The files with the engineer's patch."""
        files = dict(self.files)
        for file, old, new in self.engineer:
            assert files[file].count(old) == 1, (self.name, file, old)
            files[file] = files[file].replace(old, new)
        return files


def _calls() -> list[Project]:
    """Forms of the call."""
    imports = "import data\nfrom torch.utils.data import DataLoader\n\n"
    plain = imports + f"loader = DataLoader(data.Slow(), batch_size=16)\n{LOOP}"
    return [
        Project(
            "script",
            {"data.py": SLOW, "train.py": plain},
            (("train.py", "batch_size=16", f"batch_size=16, {MORE}"),),
        ),
        Project(
            "one_file",
            {
                "train.py": f"{SLOW}\n\nfrom torch.utils.data import DataLoader\n\n"
                f"loader = DataLoader(Slow(), 16, {WORKERS})\n{LOOP}"
            },
            (("train.py", WORKERS, MORE),),
        ),
        Project(
            "several_lines",
            {
                "data.py": SLOW,
                "train.py": imports + "loader = DataLoader(\n    data.Slow(),  # the slow one\n"
                "    batch_size=16,  # sixteen\n    # none yet:\n    num_workers = 0,\n)\n" + LOOP,
            },
            (("train.py", "num_workers = 0,", "num_workers = 8,\n    persistent_workers = True,"),),
        ),
        Project(
            "positional",
            {
                "data.py": SLOW,
                "train.py": f"{imports}loader = DataLoader(data.Slow(), 16, False, None, None, 0)\n{LOOP}",
            },
            (("train.py", "None, None, 0)", "None, None, 8, persistent_workers=True)"),),
        ),
        Project(
            "two_loaders",
            {
                "data.py": SLOW,
                "train.py": f"{imports}other = DataLoader(data.Slow(8), batch_size=4)\n"
                f"loader = DataLoader(data.Slow(), batch_size=16)\n\n"
                f"for batch in other:\n    pass\n{LOOP}",
            },
            (("train.py", "batch_size=16", f"batch_size=16, {MORE}"),),
        ),
        Project(
            "kwargs_dict",
            {
                "data.py": SLOW,
                "train.py": f'{imports}options = {{\n    "batch_size": 16,\n    "num_workers": 0,\n}}\n'
                f"loader = DataLoader(data.Slow(), **options)\n{LOOP}",
            },
            (
                ("train.py", '"num_workers": 0', '"num_workers": 8'),
                ("train.py", "data.Slow(), ", "data.Slow(), persistent_workers=True, "),
            ),
            refused="what `options` of",
        ),
        Project(
            "partial",
            {
                "data.py": SLOW,
                "train.py": "from functools import partial\n\n"
                + imports
                + f"make = partial(DataLoader, batch_size=16, {WORKERS})\nloader = make(data.Slow())\n{LOOP}",
            },
            (("train.py", "make(data.Slow())", f"make(data.Slow(), {MORE})"),),
        ),
        Project(
            "subclass",
            {
                "data.py": SLOW,
                "train.py": f"{imports}\nclass Loader(DataLoader):\n    pass\n\n\n"
                f"loader = Loader(data.Slow(), batch_size=16)\n{LOOP}",
            },
            (("train.py", "batch_size=16", f"batch_size=16, {MORE}"),),
        ),
        Project(
            "subclass_with_constructor",
            {
                "data.py": SLOW,
                "train.py": f"{imports}\nclass Loader(DataLoader):\n"
                "    def __init__(self, data, size=16, workers=0):\n"
                "        super().__init__(data, batch_size=size, num_workers=workers)\n\n\n"
                f"loader = Loader(data.Slow())\n{LOOP}",
            },
            (
                ("train.py", "workers=0", "workers=8"),
                (
                    "train.py",
                    "num_workers=workers)",
                    "num_workers=workers, persistent_workers=workers > 0)",
                ),
            ),
        ),
        Project(
            "subclass_of_keywords",
            {
                "data.py": SLOW,
                "train.py": f"{imports}\nclass Loader(DataLoader):\n    def __init__(self, *args, **more):\n"
                "        super().__init__(*args, **more)\n\n\n"
                f"loader = Loader(data.Slow(), batch_size=16)\n{LOOP}",
            },
            (("train.py", "batch_size=16", f"batch_size=16, {MORE}"),),
            refused="what `more` of",
        ),
        Project(
            "aliased_import",
            {
                "data.py": SLOW,
                "train.py": "import torch.utils.data as tud\nfrom data import Slow as Data\n\nDL = tud.DataLoader\n"
                f"loader = DL(Data(), batch_size=16, {WORKERS})\n{LOOP}",
            },
            (("train.py", WORKERS, MORE),),
        ),
        Project(
            "watched",
            {
                "data.py": SLOW,
                "train.py": f"import loaderscope\n{imports}loader = DataLoader(data.Slow(), batch_size=16)\n"
                f"loader = loaderscope.watch(loader)\n{LOOP}",
            },
            (("train.py", "batch_size=16", f"batch_size=16, {MORE}"),),
        ),
        Project(
            "crlf",
            {"data.py": SLOW, "train.py": plain.replace("\n", "\r\n")},
            (("train.py", "batch_size=16", f"batch_size=16, {MORE}"),),
        ),
        Project(
            "within_a_call",
            {
                "data.py": SLOW,
                "train.py": imports
                + "loader = list([DataLoader(data.Slow(), batch_size=16)])[0]\n"
                + LOOP,
            },
            (("train.py", "batch_size=16", f"batch_size=16, {MORE}"),),
        ),
    ]


def _values() -> list[Project]:
    """Where the value of an argument comes from."""
    imports = "import data\nfrom torch.utils.data import DataLoader\n\n"

    def added(value: str) -> Swap:
        needed = "True" if value.startswith("min") else f"{value} > 0"
        return "train.py", "batch_size=16", f"batch_size=16, persistent_workers={needed}"

    call = "loader = DataLoader(data.Slow(), num_workers={}, batch_size=16)\n" + LOOP

    def made(name: str, above: str, value: str, change: Swap, **more: object) -> Project:
        files = {
            "data.py": SLOW,
            "train.py": f"{imports}{above}\n{call.format(value)}",
            **more.pop("files", {}),
        }  # type: ignore[dict-item]
        return Project(name, files, (change, added(value)), **more)  # type: ignore[arg-type]

    argparse = (
        "import argparse\n\nparser = argparse.ArgumentParser()\n"
        'parser.add_argument("-j", "--workers", type=int, default=0, help="processes")\n'
        "args = parser.parse_args()"
    )
    return [
        made("argparse_default", argparse, "args.workers", ("train.py", "default=0", "default=8")),
        Project(
            "argparse_given",
            {"data.py": SLOW, "train.py": f"{imports}{argparse}\n{call.format('args.workers')}"},
            refused="pass --workers",
            arguments=("--workers", "0"),
        ),
        Project(
            "argparse_required",
            {
                "data.py": SLOW,
                "train.py": imports
                + argparse.replace("default=0", "required=True")
                + "\n"
                + call.format("args.workers"),
            },
            refused="pass --workers",
            arguments=("-j", "0"),
        ),
        made(
            "constant",
            "WORKERS = 0  # of the loader",
            "WORKERS",
            ("train.py", "WORKERS = 0", "WORKERS = 8"),
        ),
        made(
            "constant_elsewhere",
            "import settings",
            "settings.WORKERS",
            ("settings.py", "WORKERS = 0", "WORKERS = 8"),
            files={"settings.py": "# how it is trained\nWORKERS = 0\nSIZE = 16\n"},
        ),
        made(
            "constant_imported",
            "from settings import WORKERS as N",
            "N",
            ("settings.py", "WORKERS = 0", "WORKERS = 8"),
            files={"settings.py": "WORKERS = 0\n"},
        ),
        made(
            "dataclass_default",
            "from dataclasses import dataclass\n\n\n@dataclass\nclass Config:\n    size: int = 16\n"
            "    workers: int = 0\n\n\nconfig = Config()",
            "config.workers",
            ("train.py", "workers: int = 0", "workers: int = 8"),
        ),
        made(
            "dataclass_given",
            "from dataclasses import dataclass\n\n\n@dataclass\nclass Config:\n    size: int\n"
            "    workers: int\n\n\nconfig = Config(16, workers=0)",
            "config.workers",
            ("train.py", "workers=0", "workers=8"),
        ),
        made(
            "dict_config",
            'CONFIG = {"loader": {"workers": 0, "size": 16}, "epochs": 2}',
            'CONFIG["loader"]["workers"]',
            ("train.py", '"workers": 0', '"workers": 8'),
            refused="computed",
        ),
        made(
            "namespace",
            "from types import SimpleNamespace\n\nhp = SimpleNamespace(lr=0.1, workers=0)",
            "hp.workers",
            ("train.py", "workers=0)", "workers=8)"),
            refused="where workers of",
        ),
        made("cast", 'WORKERS = "0"', "int(WORKERS)", ("train.py", '"0"', '"8"')),
        made(
            "of_the_host",
            "import os",
            "min(0, os.cpu_count())",
            ("train.py", "min(0, os.cpu_count())", "8"),
        ),
        Project(
            "yaml",
            {
                "data.py": SLOW,
                "config.yaml": "model: small\nloader:\n  batch_size: 16\n  workers: 0  # processes\n",
                "train.py": f'{imports}import yaml\n\nwith open("config.yaml") as file:\n    cfg = yaml.safe_load(file)\n'
                + call.format('cfg["loader"]["workers"]'),
            },
            refused="computed",
            needs=("yaml",),
        ),
        Project(
            "environment",
            {
                "data.py": SLOW,
                "train.py": f"{imports}import os\n\n{call.format('int(os.environ.get(chr(87), 0))')}".replace(
                    "chr(87)", '"WORKERS"'
                ),
            },
            refused="computed",
        ),
        Project(
            "computed",
            {
                "data.py": SLOW,
                "train.py": f"{imports}{argparse}\n{call.format('args.workers // 2')}",
            },
            refused="computed",
        ),
    ]


def _functions() -> list[Project]:
    """Functions, packages and frameworks that make loaders."""
    build = (
        "from torch.utils.data import DataLoader\n\nfrom .sets import Slow\n\n\n"
        "def build(size, *, workers=0):\n    return DataLoader(Slow(), batch_size=size, num_workers=workers)\n"
    )
    module = (
        "from torch.utils.data import DataLoader\n\nimport data\n\n\nclass Module:\n"
        "    def __init__(self, size=16, workers=0):\n        self.size = size\n        self.workers = workers\n\n"
        "    def train_dataloader(self):\n        return DataLoader(\n            data.Slow(), batch_size=self.size, num_workers=self.workers\n        )\n\n\n"
    )
    persistent = (
        "train.py",
        "num_workers=self.workers",
        "num_workers=self.workers, persistent_workers=self.workers > 0",
    )
    return [
        Project(
            "package",
            {
                "project/__init__.py": "",
                "project/sets.py": SLOW,
                "project/loaders.py": build,
                "train.py": f"from project.loaders import build\n\nloader = build(16)\n{LOOP}",
            },
            (
                ("project/loaders.py", "workers=0", "workers=8"),
                (
                    "project/loaders.py",
                    "num_workers=workers",
                    "num_workers=workers, persistent_workers=workers > 0",
                ),
            ),
        ),
        Project(
            "caller_decides",
            {
                "project/__init__.py": "",
                "project/sets.py": SLOW,
                "project/loaders.py": build,
                "train.py": "from project.loaders import build\n\nother = build(4, workers=0)\n"
                f"loader = build(16, workers=0)\n{LOOP}",
            },
            (
                ("train.py", "build(16, workers=0)", "build(16, workers=8)"),
                (
                    "project/loaders.py",
                    "num_workers=workers",
                    "num_workers=workers, persistent_workers=workers > 0",
                ),
            ),
        ),
        Project(
            "function_of_keywords",
            {
                "data.py": SLOW,
                "train.py": "import data\nfrom torch.utils.data import DataLoader\n\n\ndef build(**more):\n"
                f"    return DataLoader(data.Slow(), **more)\n\n\nloader = build(batch_size=16)\n{LOOP}",
            },
            (("train.py", "build(batch_size=16)", f"build(batch_size=16, {MORE})"),),
            refused="what `more` of",
        ),
        Project(
            "data_module",
            {"data.py": SLOW, "train.py": f"{module}loader = Module().train_dataloader()\n{LOOP}"},
            (("train.py", "workers=0", "workers=8"), persistent),
        ),
        Project(
            "data_module_given",
            {
                "data.py": SLOW,
                "train.py": f"{module}loader = Module(workers=0).train_dataloader()\n{LOOP}",
            },
            (("train.py", "Module(workers=0)", "Module(workers=8)"), persistent),
        ),
        Project(
            "through_two_functions",
            {
                "data.py": SLOW,
                "train.py": "import data\nfrom torch.utils.data import DataLoader\n\n\n"
                "def make(dataset, n):\n    return DataLoader(dataset, batch_size=16, num_workers=n)\n\n\n"
                "def loaders(n=0):\n    return make(data.Slow(), n)\n\n\n"
                f"loader = loaders()\n{LOOP}",
            },
            (
                ("train.py", "n=0", "n=8"),
                ("train.py", "num_workers=n", "num_workers=n, persistent_workers=n > 0"),
            ),
        ),
    ]


def _sets() -> list[Project]:
    """Waste inside data sets and functions."""

    def made(name: str, data: str, *engineer: Swap, **more: object) -> Project:
        train = (
            "import data\nfrom torch.utils.data import DataLoader\n\n"
            f"loader = DataLoader(data.Samples(), batch_size=256{more.pop('given', '')})\n{LOOP}"
        )
        if more.pop("pairs", False):
            train = train.replace("batch.sum", "batch[0].sum")
        return Project(
            name,
            {"data.py": data, "train.py": train},
            tuple(("data.py", *swap) for swap in engineer),
            **more,
        )  # type: ignore[arg-type]

    return [
        made(
            "rows_one_by_one",
            _HEAD
            + """\


class Samples(Dataset):
    def __init__(self):
        self.x = torch.arange(200000.0).reshape(-1, 4)
        self.y = torch.arange(50000)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]
""",
            (
                "        return self.x[index], self.y[index]",
                "        return self.x[index], self.y[index]\n\n    def __getitems__(self, indices):\n"
                "        rows = torch.as_tensor(indices)\n        return list(zip(self.x[rows], self.y[rows]))",
            ),
            pairs=True,
        ),
    ]


_HEAD = """\
import os
import tempfile

import torch
from torch.utils.data import Dataset
"""


def _of_workers(projects: list[Project]) -> list[Project]:
    return [replace(each, advice="num-workers") for each in projects]


PROJECTS: tuple[Project, ...] = (*_of_workers([*_calls(), *_values(), *_functions()]), *_sets())
