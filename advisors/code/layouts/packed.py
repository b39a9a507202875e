"""Many small files in one, as they are: a packed file with an index, an LMDB file, an Arrow file.

All three read alike: `PackedFiles` stands in for the list of paths, and its items are open files.
Where the data set does more with a path than open it, the code says by hand what to write.
"""

from __future__ import annotations

from typing import Literal

from ...case.case import Case
from ...case.code_text import Source
from ..loader_code import dataset_class, loader_code
from ..template import code_from
from .place import copied, file_lists

Backend = Literal["packed", "lmdb", "arrow"]

# LMDB keeps a value of more than half a page in pages of its own: at most one page is wasted a
# file, and its key and header take some bytes more.
PAGE_BYTES = 4096
ENTRY_BYTES = 128
ROOM = 1.1
STEP_BYTES = 1 << 24

_SUFFIX = {"packed": "bin", "lmdb": "lmdb", "arrow": "arrow"}


def map_size(nbytes: float, files: float) -> int:
    """Bytes of an LMDB map for so many files of so many bytes together: 1.1 × (bytes + a page and
    an entry a file), rounded up to 16 MiB."""
    needed = ROOM * (nbytes + files * (PAGE_BYTES + ENTRY_BYTES))
    return max(1, -(-int(needed) // STEP_BYTES)) * STEP_BYTES


def packed_code(
    case: Case, backend: Backend, size: int | None = None, readahead: bool = False
) -> str | None:
    """Conversion, reading and a loader; None where the data set lists no files. `size`: LMDB's map,
    from the run."""
    lists = file_lists(case)
    if not lists:
        return None
    first, one = lists[0], len(lists) == 1
    root, lines = first.path.replace("dataset", "packed", 1), copied("packed", first.path)
    for each in lists:
        name = each.name if first.stands_in else "packed_files" if one else f"packed_{each.name}"
        target = each.beside(f"{'packed' if one else each.name}.{_SUFFIX[backend]}")
        lines += [
            f"target = {target}",
            "if not target.exists():",
            f"    pack({each.paths}, target)  # once, by one process; delete it when the files "
            "change",
            f"{root}.{name} = PackedFiles({each.code}, target)",
        ]
        if not first.stands_in:
            lines += [
                f"# in {dataset_class(case)}, where self.{each.name}[index] is opened, read the "
                "open file",
                f"# self.{name}[index] instead",
            ]
    opens = first.opens_packed() if first.stands_in else []
    lines += [*opens, "", loader_code(case, dataset=Source("packed")), ""]
    return code_from(
        "packed",
        *(["MAP_SIZE"] if backend == "lmdb" else []),
        *("PackedFile", "pack", "PackedFiles"),
        *(["through"] if opens else []),
        then="\n".join(lines),
        BACKEND=backend,
        SIZE=f"{size or STEP_BYTES:_}",
        PAGE_BYTES=PAGE_BYTES,
        ENTRY_BYTES=ENTRY_BYTES,
        ROOM=ROOM,
        STEP_BYTES=STEP_BYTES,
        READAHEAD=readahead,
    )
