"""Where the parts of a data set are, as code says it, and where new files should be.

Pasted code works on a copy of the data set, so that the one at hand stays as it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ....profiler.store.inspection import Part
from ...case.case import Case
from ...storage.files import text_of
from ..inputs import is_name, reached

# What needs a path by its name, where an open file cannot stand in for it.
_WANTS_NAMES = re.compile(
    "basename|dirname|stem|suffix|parents?|r?split|splitext|r?partition|replace|with_suffix"
    "|startswith|endswith|relative_to|joinpath|join|fspath|str|exists|isfile|stat|getsize"
    "|isinstance|lower|imread|read_image|decode_file|read_file|VideoReader|VideoCapture|fromfile"
    "|memmap|Path|open_memmap|Dataset|connect|Environment"
)
# Readers that take an open file in place of a name.
_TAKES_FILES = re.compile("open|load|read_bytes|read_text|loadtxt|genfromtxt|read_csv|read_table")
_FOLDERS = ("torchvision.datasets.folder.DatasetFolder", "torchvision.datasets.folder.ImageFolder")
# Its own ways to read a picture, which open the file; others may want a name.
_OPENS = ("torchvision.datasets.folder.default_loader", "torchvision.datasets.folder.pil_loader")


@dataclass(frozen=True)
class FileList:
    """An attribute that lists files. `path` is the code of the data set that holds it. `pairs`: its
    items are tuples or lists that begin with a path. `stands_in`: open files can replace the
    paths."""

    name: str
    path: str
    part: Part
    pairs: bool
    stands_in: bool

    @property
    def code(self) -> str:
        """The attribute, as code: 'dataset.dataset.files'."""
        return f"{self.path}.{self.name}"

    @property
    def paths(self) -> str:
        """All paths of it, as code."""
        return f"[item[0] for item in {self.code}]" if self.pairs else f"list({self.code})"

    def target(self, name: str) -> list[str]:
        """Code that calls a new file of this name `target`: beside the folder of its files."""
        folder = f"{self.path}.root"  # each folder inside of it is a class
        if not self.part.is_a(*_FOLDERS):
            folder = (
                "os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in "
                f"{self.paths}])"
            )
        return _beside(f"Path({folder})", name)

    def opens_packed(self) -> list[str]:
        """Code after which `open` takes packed files too, in the module of the data set's class,
        if its files are, or may be, opened so."""
        names = self.part.names
        by_open = "open" in names or not names or self.part.is_a(*_FOLDERS)
        if not self.stands_in or not by_open:
            return []
        method = "__iter__" if self.part.iter and not self.part.getitem else "__getitem__"
        return [
            "# From here on, `open` in the module of that class takes packed files, too (spawned "
            "workers need it",
            "# written into that module).",
            f"names = type({self.path}).{method}.__globals__",
            'names["open"] = through(names.get("open", open))',
        ]


def file_lists(case: Case) -> tuple[FileList, ...]:
    """The lists of files that the access methods of the data set, or of one inside it, use."""
    for part, path in reached(case.dataset or Part()):
        lists = [a for a in part.attributes if a.kind == "paths" and is_name(a.name)]
        used = [a for a in lists if a.name in part.names] or lists[:1]
        if used and "[" not in path:
            loader = part.attribute("loader")
            folder = part.is_a(*_FOLDERS) and loader is not None and loader.type in _OPENS
            fits = folder or (
                any(map(_TAKES_FILES.fullmatch, part.names))
                and not any(map(_WANTS_NAMES.fullmatch, part.names))
            )
            pairs = ("tuple", "list")
            return tuple(
                FileList(a.name, path, part, (a.items or "").rpartition(".")[2] in pairs, fits)
                for a in used
            )
    return ()


def copied(name: str, path: str = "dataset") -> list[str]:
    """Code that copies `dataset` under this name, and what it wraps along this path."""
    lines = [f"{name} = copy.copy(dataset)  # the data set at hand stays as it is"]
    for step in path.split(".")[1:]:
        name = f"{name}.{step}"
        lines.append(f"{name} = copy.copy({name})")
    return lines


def target_code(case: Case, name: str) -> list[str]:
    """Code that calls a new file of this name `target`: beside the data if it is known where they
    are, else where the script runs. Never among them: new files would become samples."""
    lists, path, storage = file_lists(case), text_path(case), case.report.storage
    if lists:
        return lists[0].target(name)
    if path is not None:
        return [
            f"data = Path(dataset.{path}).absolute()",
            *_beside("(data if data.is_dir() else data.parent)", name),
        ]
    known = [c.path for c in storage.containers if "/" in c.path] if storage is not None else []
    folder = known[0].rpartition("/")[0] if known else next(iter(case.loader.looks.folders), "")
    return _beside(f"Path({folder!r})", name) if folder else [f'target = Path.cwd() / "{name}"']


def _beside(folder: str, name: str) -> list[str]:
    return [
        f"folder = {folder}.absolute()",
        f'target = folder.with_name(f"{{folder.name}}-packed") / "{name}"  # not among the data',
        "target.parent.mkdir(exist_ok=True)",
    ]


def text_path(case: Case) -> str | None:
    """The attribute of the data set that most likely holds its path, if code may name it."""
    found = text_of(case.dataset or Part())
    return found if found is not None and is_name(found) else None
