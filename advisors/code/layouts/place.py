"""Where the parts of a data set hang, as code says it, and where new files should lie.

Pasted code works on a copy of the data set (`packed`), so that the one at hand stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....profiler.store.inspection import Attribute, Part
from ...case.case import Case
from ...case.code_text import identifier

# What a method does with a path beside opening it: then a file cannot stand in for the path.
_TEXTS = frozenset(
    {
        "basename",
        "dirname",
        "stem",
        "suffix",
        "parent",
        "parents",
        "split",
        "rsplit",
        "splitext",
        "partition",
        "rpartition",
        "replace",
        "with_suffix",
        "startswith",
        "endswith",
        "relative_to",
        "joinpath",
        "join",
        "fspath",
        "str",
        "exists",
        "isfile",
        "stat",
        "getsize",
        "isinstance",
        "lower",
    }
)
# Readers that want a name and take no open file.
_WANT_NAMES = frozenset(
    {
        "imread",
        "read_image",
        "decode_file",
        "read_file",
        "VideoReader",
        "VideoCapture",
        "fromfile",
        "memmap",
        "Path",
        "open_memmap",
        "Dataset",
        "connect",
        "Environment",
    }
)
# Readers that take an open file in place of a name.
_TAKE_FILES = frozenset(
    {"open", "load", "read_bytes", "read_text", "loadtxt", "genfromtxt", "read_csv", "read_table"}
)
_FOLDERS = ("torchvision.datasets.folder.DatasetFolder", "torchvision.datasets.folder.ImageFolder")


@dataclass(frozen=True)
class FileList:
    """An attribute that lists files. `steps` lead from the data set to the set that holds it;
    `stands_in` says whether open files can take the place of the paths."""

    name: str
    steps: tuple[str, ...]
    part: Part
    attribute: Attribute
    stands_in: bool

    def expression(self, root: str) -> str:
        """The attribute, as code: 'dataset.dataset.files'."""
        return ".".join((root, *self.steps, self.name))

    @property
    def pairs(self) -> bool:
        """Whether its items are tuples or lists that begin with a path."""
        return (self.attribute.items or "").rpartition(".")[2] in ("tuple", "list")

    @property
    def paths(self) -> str:
        """All paths of it, as code."""
        own = self.expression("dataset")
        return f"[item[0] for item in {own}]" if self.pairs else f"list({own})"

    def beside(self, name: str) -> str:
        """A path beside its files, as code."""
        return (
            f'Path({self.expression("dataset")}[0]{"[0]" if self.pairs else ""}).parent / "{name}"'
        )

    @property
    def opened(self) -> bool:
        """Whether its files are, or may be, opened by `open`."""
        return "open" in self.part.names or not self.part.names

    def opens_packed(self, *note: str) -> list[str]:
        """Code after which `open` takes packed files too, where the data set that holds the list
        uses it."""
        method = "__iter__" if self.part.iter and not self.part.getitem else "__getitem__"
        return [
            *note,
            f"names = type({'.'.join(('dataset', *self.steps))}).{method}.__globals__",
            'names["open"] = through(names.get("open", open))',
        ]


def file_lists(case: Case) -> tuple[FileList, ...]:
    """The lists of files that the data set's access methods use, those of one of its parts; ()
    where there are none."""
    for part, steps in _placed(case.dataset, ()):
        lists = [a for a in part.attributes if a.kind == "paths" and is_name(a.name)]
        used = [a for a in lists if a.name in part.names] or lists[:1]
        if used:
            fits = takes_files(part)
            return tuple(FileList(a.name, steps, part, a, fits) for a in used)
    return ()


def takes_files(part: Part) -> bool:
    """Whether its access methods only open what the list holds, with functions that take an open
    file as well."""
    if part.is_a(*_FOLDERS):
        return True
    names = set(part.names)
    return bool(names & _TAKE_FILES) and not names & (_TEXTS | _WANT_NAMES)


def copied(steps: tuple[str, ...]) -> list[str]:
    """Code that makes `packed`, a copy of `dataset` down these steps."""
    lines = ["packed = copy.copy(dataset)  # the data set at hand stays as it is"]
    at = "packed"
    for step in steps:
        at = f"{at}.{step}"
        lines.append(f"{at} = copy.copy({at})")
    return lines


def target_code(case: Case, name: str) -> str:
    """An expression of where a new file of this name should lie: beside the data, where that is
    known, else where the script runs."""
    lists = file_lists(case)
    if lists:
        return lists[0].beside(name)
    told = text_path(case)
    if told is not None:
        return f'Path(dataset.{told}).parent / "{name}"'
    storage = case.report.storage
    known = [c.path for c in storage.containers if "/" in c.path] if storage is not None else []
    folder = known[0].rpartition("/")[0] if known else next(iter(case.loader.looks.folders), "")
    return f'{f"Path({folder!r})" if folder else "Path.cwd()"} / "{name}"'


def text_path(case: Case) -> str | None:
    """The one attribute of the data set that holds a text its access methods use: a path, most
    likely."""
    part = case.dataset
    if part is None:
        return None
    texts = [
        a.name
        for a in part.attributes
        if a.kind == "text" and a.name in part.names and is_name(a.name)
    ]
    return texts[0] if len(texts) == 1 else None


def is_name(text: str) -> bool:
    """Whether code may use this as the name of an attribute: names in a run are untrusted."""
    return bool(text) and identifier(text, "") == text


def _placed(part: Part | None, steps: tuple[str, ...]) -> list[tuple[Part, tuple[str, ...]]]:
    """The data set and those it wraps, as far as it is known by which attribute."""
    if part is None:
        return []
    found = [(part, steps)]
    for child in part.children:
        names = [a.name for a in part.attributes if a.kind in ("dataset", "hf") and is_name(a.name)]
        if len(names) == 1 and len(part.children) == 1:
            found += _placed(child, (*steps, names[0]))
    return found
