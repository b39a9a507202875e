"""Many small files packed into one: code that converts a data set's files, and a loader that reads
them.

Pasted code works on a copy of the data set, so that the one at hand stays as it is.
"""

import re

from ....profiler.store.inspection import Attribute, Part
from ...case.case import Case
from ...case.code_text import Source
from ..inputs import is_name, reached
from ..loader_code import dataset_class, loader_code
from ..template import code_from

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


def packed_code(case: Case) -> str | None:
    """Conversion, reading and a loader; None where the data set lists no files."""
    for part, path in reached(case.dataset or Part()):
        lists = [a for a in part.attributes if a.kind == "paths" and is_name(a.name)]
        used = [a for a in lists if a.name in part.names] or lists
        if used and "[" not in path:
            then = [*_packed(case, part, path, used[0])]
            then += ["", loader_code(case, dataset=Source("packed")), ""]
            return code_from("packed", then="\n".join(then))
    return None


def _packed(case: Case, part: Part, path: str, listed: Attribute) -> list[str]:
    """Code that makes `packed` of `dataset`, where this part of it (at this path) lists files."""
    code, name, folders = f"{path}.{listed.name}", listed.name, part.is_a(*_FOLDERS)
    pairs = (listed.items or "").rpartition(".")[2] in ("tuple", "list")
    paths = f"[item[0] for item in {code}]" if pairs else f"list({code})"
    lines, inner = ["packed = copy.copy(dataset)  # the data set at hand stays as it is"], "packed"
    for step in path.split(".")[1:]:
        inner = f"{inner}.{step}"
        lines.append(f"{inner} = copy.copy({inner})")
    note: list[str] = []
    if not _stands_in(part):
        name = "packed_files"
        note = [
            f"# in {dataset_class(case)}, where self.{listed.name}[index] is opened, read the open "
            f"file\n# self.{name}[index] instead"
        ]
    elif folders or "open" in part.names:
        method = "__iter__" if part.iter and not part.getitem else "__getitem__"
        note = [
            "# From here on, `open` in the module of that class takes packed files, too (spawned "
            "workers need it\n# written into that module).",
            f"names = type({path}).{method}.__globals__",
            'names["open"] = through(names.get("open", open))',
        ]
    return [
        *lines,
        f"paths = {paths}",
        # Each folder inside of a root is a class.
        f"folder = Path({path}.root).absolute()" if folders else "folder = folder_of(paths)",
        'target = folder.with_name(f"{folder.name}-packed") / "packed.bin"  # not among the data',
        "if not target.exists():",
        "    pack(paths, target)  # once, by one process; delete it when the files change",
        f"{inner}.{name} = PackedFiles({code}, target)",
        *note,
    ]


def _stands_in(part: Part) -> bool:
    """Whether open files can replace the paths."""
    loader = part.attribute("loader")
    if part.is_a(*_FOLDERS) and loader is not None and loader.type in _OPENS:
        return True
    return any(map(_TAKES_FILES.fullmatch, part.names)) and not any(
        map(_WANTS_NAMES.fullmatch, part.names)
    )
