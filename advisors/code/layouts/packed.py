"""Many small files in one, as they are: a packed file with an index, or an LMDB file.

Both read alike: `PackedFiles` stands in for the list of paths, and its items are open files.
Where the data set does more with a path than open it, the code says by hand what to write.
"""

from __future__ import annotations

import math
from typing import Literal

from ...case.case import Case
from ...case.code_text import Source
from ..loader_code import dataset_class, loader_code
from ..template import code_from
from .place import copied, file_lists

Backend = Literal["bin", "lmdb"]

# LMDB keeps a value of more than half a page in pages of its own: at most one page is wasted a
# file, and its key and header take some bytes more.
ENTRY_BYTES = 4096 + 128
ROOM = 1.1
STEP_BYTES = 1 << 24


def map_size(nbytes: float, files: float) -> int:
    """Bytes of an LMDB map for so many files of so many bytes together, in steps of 16 MiB."""
    steps = ROOM * (nbytes + files * ENTRY_BYTES) / STEP_BYTES
    return max(1, math.ceil(steps)) * STEP_BYTES


def packed_code(case: Case, backend: Backend = "bin") -> str | None:
    """Conversion, reading and a loader; None where the data set lists no files."""
    lists = file_lists(case)
    if not lists:
        return None
    first, one = lists[0], len(lists) == 1
    root, lines = first.path.replace("dataset", "packed", 1), copied("packed", first.path)
    for each in lists:
        name = each.name if first.stands_in else "packed_files" if one else f"packed_{each.name}"
        lines += [
            *each.target(f"{'packed' if one else each.name}.{backend}"),
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
        then="\n".join(lines),
        BACKEND=backend,
        ENTRY_BYTES=ENTRY_BYTES,
        ROOM=ROOM,
    )
