"""Many small files in one, as they are: a packed file with an index, an LMDB file, an Arrow file.

All three read alike: `PackedFiles` stands in for the list of paths, and its items are open files. Where the data set
does more with a path than open it, the code says by hand what to write.
"""

from __future__ import annotations

from typing import Literal

from ...case.case import Case
from ...case.code_text import Source
from ..loader_code import dataset_class, loader_code
from .place import FileList, copied, file_lists, target_code

Backend = Literal["packed", "lmdb", "arrow"]

# LMDB keeps a value of more than half a page in pages of its own: at most one page is wasted a file, and its key and
# header take some bytes more.
PAGE_BYTES = 4096
ENTRY_BYTES = 128
ROOM = 1.1
STEP_BYTES = 1 << 24

PACKED_FILE = '''class PackedFile(io.BytesIO):
    """One of the packed files: it goes wherever a file opened for reading does."""

    def __init__(self, data, name):
        super().__init__(data)
        self.name = name

    def read_bytes(self):
        return self.getvalue()

    def read_text(self, encoding="utf-8", errors=None):
        return self.getvalue().decode(encoding, errors or "strict")


'''

_PACK = {
    "packed": '''def pack(paths, target):
    """Once: the files one after another in `target`, and where each ends in `target`.npy."""
    part, ends = Path(f"{target}.part"), [0]
    with part.open("wb") as out:
        for path in paths:
            out.write(Path(path).read_bytes())
            ends.append(out.tell())
    np.save(f"{target}.npy", np.array(ends))
    part.replace(target)


''',
    "lmdb": '''def pack(paths, target):
    """Once: the files as values of one LMDB file, their places in the list as keys."""
    part = Path(f"{target}.part")
    part.unlink(missing_ok=True)
    # LMDB wants to know the size ahead: the bytes, a page and an entry a file, and a tenth more.
    needed = sum(os.path.getsize(path) + {page} + {entry} for path in paths)
    map_size = max(MAP_SIZE, -(-int(needed * {room}) // {step}) * {step})
    with lmdb.open(str(part), subdir=False, map_size=map_size, lock=False, meminit=False) as store:
        for first in range(0, len(paths), 1000):
            with store.begin(write=True) as writing:
                for number, path in enumerate(paths[first : first + 1000], first):
                    writing.put(b"%012d" % number, Path(path).read_bytes(), append=True)
    part.replace(target)


''',
    "arrow": '''def pack(paths, target):
    """Once: the files as a table of names and bytes in one Arrow file."""
    part = Path(f"{target}.part")
    schema = pa.schema([("name", pa.large_string()), ("bytes", pa.large_binary())])
    with pa.OSFile(str(part), "wb") as out, pa.ipc.new_file(out, schema) as table:
        for first in range(0, len(paths), 1000):
            names = [str(path) for path in paths[first : first + 1000]]
            columns = [pa.array(names, pa.large_string())]
            columns.append(pa.array([Path(name).read_bytes() for name in names], pa.large_binary()))
            table.write_batch(pa.record_batch(columns, schema=schema))
    part.replace(target)


''',
}

_OPEN = {
    "packed": """    def open(self):
        self.ends = np.load(f"{self.target}.npy")
        with open(self.target, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def data(self, place):
        return self.store[self.ends[place] : self.ends[place + 1]]
""",
    "lmdb": """    def open(self):
        return lmdb.open(self.target, subdir=False, readonly=True, lock=False, readahead={readahead}, meminit=False)

    def data(self, place):
        with self.store.begin() as reading:
            return reading.get(b"%012d" % place)
""",
    "arrow": """    def open(self):
        return pa.ipc.open_file(pa.memory_map(self.target)).read_all()["bytes"]

    def data(self, place):
        return self.store[place].as_buffer()
""",
}

_FILES = '''class PackedFiles:
    """Stands in for a list of paths (or of tuples that begin with one): its items are the packed files, open."""

    def __init__(self, items, target, places=None):
        self.items, self.target, self.store, self.pid = items, str(target), None, None
        self.places = range(len(items)) if places is None else places

    def __len__(self):
        return len(self.places)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return PackedFiles(self.items, self.target, self.places[index])
        if self.pid != os.getpid():  # opened where it is used: once in each worker
            self.store, self.pid = self.open(), os.getpid()
        place = self.places[index]
        item = self.items[place]
        if isinstance(item, (tuple, list)):
            return (PackedFile(self.data(place), str(item[0])), *item[1:])
        return PackedFile(self.data(place), str(item))

    def __getstate__(self):
        return {**self.__dict__, "store": None, "pid": None}

'''

THROUGH = '''def through(opens):
    """`open`, which also takes one of the packed files as it is."""

    def opened(file, mode="r", *args, **options):
        if not isinstance(file, PackedFile):
            return opens(file, mode, *args, **options)
        encoding = options.get("encoding")
        return file if "b" in mode else io.TextIOWrapper(file, encoding=encoding)

    return opened


'''

_IMPORTS = {
    "packed": "import copy\nimport io\nimport mmap\nimport os\nfrom pathlib import Path\n\nimport numpy as np\n",
    "lmdb": "import copy\nimport io\nimport os\nfrom pathlib import Path\n\nimport lmdb\n",
    "arrow": "import copy\nimport io\nimport os\nfrom pathlib import Path\n\nimport pyarrow as pa\n",
}
_SUFFIX = {"packed": "bin", "lmdb": "lmdb", "arrow": "arrow"}


def map_size(nbytes: float, files: float) -> int:
    """Bytes of an LMDB map for so many files of so many bytes together: 1.1 × (bytes + a page and an entry a file),
    rounded up to 16 MiB."""
    needed = ROOM * (nbytes + files * (PAGE_BYTES + ENTRY_BYTES))
    return max(1, -(-int(needed) // STEP_BYTES)) * STEP_BYTES


def packed_code(case: Case, backend: Backend, size: int | None = None, readahead: bool = False) -> str | None:
    """Conversion, reading and a loader; None where the data set lists no files. `size`: LMDB's map, from the run."""
    lists = file_lists(case)
    if not lists:
        return None
    by_hand = not lists[0].stands_in
    head = _IMPORTS[backend] + "from torch.utils.data import DataLoader\n\n"
    if backend == "lmdb":
        head += f"MAP_SIZE = {size or STEP_BYTES:_}  # bytes, from what this run has seen\n\n"
    pack = _PACK[backend]
    if backend == "lmdb":
        figures = {"page": PAGE_BYTES, "entry": ENTRY_BYTES, "room": ROOM, "step": STEP_BYTES}
        for figure, value in figures.items():
            pack = pack.replace(f"{{{figure}}}", str(value))
    opens = any("open" in each.part.names for each in lists) or not lists[0].part.names
    reader = _OPEN[backend].replace("{readahead}", repr(readahead))
    through = "" if by_hand or not opens else THROUGH
    body = _by_hand(case, lists, backend) if by_hand else _stands_in(case, lists, backend, opens)
    return f"{head}\n{PACKED_FILE}{pack}{_FILES}{reader}\n\n{through}{body}"


def _converted(case: Case, each: FileList, backend: Backend, several: bool) -> list[str]:
    name = f"{each.name}.{_SUFFIX[backend]}" if several else f"packed.{_SUFFIX[backend]}"
    own = each.expression("dataset")
    pairs = (each.attribute.items or "").rpartition(".")[2] in ("tuple", "list")
    paths = f"[item[0] for item in {own}]" if pairs else f"list({own})"
    first = f"{own}[0][0]" if pairs else f"{own}[0]"
    return [
        f'target = Path({first}).parent / "{name}"',
        "if not target.exists():",
        f"    pack({paths}, target)  # once, by one process; delete it when the files change",
    ]


def _stands_in(case: Case, lists: tuple[FileList, ...], backend: Backend, opens: bool) -> str:
    lines = copied(lists[0].steps)
    for each in lists:
        lines += _converted(case, each, backend, len(lists) > 1)
        lines.append(f"{each.expression('packed')} = PackedFiles({each.expression('dataset')}, target)")
    if opens:
        holder = ".".join(("dataset", *lists[0].steps))
        names = "__iter__" if lists[0].part.iter and not lists[0].part.getitem else "__getitem__"
        lines += [
            "# From here on, `open` in the module of that class takes packed files, too (workers that are spawned, not",
            "# forked, need it written into that module).",
            f"names = type({holder}).{names}.__globals__",
            'names["open"] = through(names.get("open", open))',
        ]
    lines += ["", loader_code(case, dataset=Source("packed"))]
    return "\n".join(lines) + "\n"


def _by_hand(case: Case, lists: tuple[FileList, ...], backend: Backend) -> str:
    lines = copied(lists[0].steps)
    at = ".".join(("packed", *lists[0].steps))
    for each in lists:
        lines += _converted(case, each, backend, len(lists) > 1)
        kept = "packed_files" if len(lists) == 1 else f"packed_{each.name}"
        lines.append(f"{at}.{kept} = PackedFiles({each.expression('dataset')}, target)")
        lines.append(f"# in {dataset_class(case)}, where self.{each.name}[index] is opened, read the open file")
        lines.append(f"# self.{kept}[index] instead")
    lines += ["", loader_code(case, dataset=Source("packed"))]
    return "\n".join(lines) + "\n"


def target_of(case: Case, backend: Backend) -> str:
    """Where the packed file will lie, as code."""
    return target_code(case, f"packed.{_SUFFIX[backend]}")
