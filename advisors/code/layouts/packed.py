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
from .place import FileList, copied, file_lists

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
    stands_in = lists[0].stands_in
    return code_from(
        "packed",
        *(["MAP_SIZE"] if backend == "lmdb" else []),
        *("PackedFile", "pack", "PackedFiles"),
        *(["through"] if stands_in and lists[0].opened else []),
        then=(_stands_in if stands_in else _by_hand)(case, lists, backend),
        BACKEND=backend,
        SIZE=f"{size or STEP_BYTES:_}",
        PAGE_BYTES=PAGE_BYTES,
        ENTRY_BYTES=ENTRY_BYTES,
        ROOM=ROOM,
        STEP_BYTES=STEP_BYTES,
        READAHEAD=readahead,
    )


def _converted(case: Case, each: FileList, backend: Backend, several: bool) -> list[str]:
    name = f"{each.name}.{_SUFFIX[backend]}" if several else f"packed.{_SUFFIX[backend]}"
    return [
        f"target = {each.beside(name)}",
        "if not target.exists():",
        f"    pack({each.paths}, target)  # once, by one process; delete it when the files change",
    ]


def _stands_in(case: Case, lists: tuple[FileList, ...], backend: Backend) -> str:
    lines = copied(lists[0].steps)
    for each in lists:
        lines += _converted(case, each, backend, len(lists) > 1)
        lines.append(
            f"{each.expression('packed')} = PackedFiles({each.expression('dataset')}, target)"
        )
    if lists[0].opened:
        lines += lists[0].opens_packed(
            "# From here on, `open` in the module of that class takes packed files, too (workers "
            "that are spawned, not",
            "# forked, need it written into that module).",
        )
    lines += ["", loader_code(case, dataset=Source("packed"))]
    return "\n".join(lines) + "\n"


def _by_hand(case: Case, lists: tuple[FileList, ...], backend: Backend) -> str:
    lines = copied(lists[0].steps)
    at = ".".join(("packed", *lists[0].steps))
    for each in lists:
        lines += _converted(case, each, backend, len(lists) > 1)
        kept = "packed_files" if len(lists) == 1 else f"packed_{each.name}"
        lines.append(f"{at}.{kept} = PackedFiles({each.expression('dataset')}, target)")
        lines.append(
            f"# in {dataset_class(case)}, where self.{each.name}[index] is opened, read the open "
            "file"
        )
        lines.append(f"# self.{kept}[index] instead")
    lines += ["", loader_code(case, dataset=Source("packed"))]
    return "\n".join(lines) + "\n"
