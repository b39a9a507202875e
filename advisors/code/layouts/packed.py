"""Many small files in one, as they are: a packed file with an index.

`PackedFiles` stands in for the list of paths, and its items are open files. Where the data set does
more with a path than open it, the code says by hand what to write.
"""

from __future__ import annotations

from ...case.case import Case
from ...case.code_text import Source
from ..loader_code import dataset_class, loader_code
from ..template import code_from
from .place import copied, file_lists


def packed_code(case: Case) -> str | None:
    """Conversion, reading and a loader; None where the data set lists no files."""
    lists = file_lists(case)
    if not lists:
        return None
    first, one = lists[0], len(lists) == 1
    root, lines = first.path.replace("dataset", "packed", 1), copied("packed", first.path)
    for each in lists:
        name = each.name if first.stands_in else "packed_files" if one else f"packed_{each.name}"
        lines += [
            *each.target(f"{'packed' if one else each.name}.bin"),
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
    lines += [*first.opens_packed(), "", loader_code(case, dataset=Source("packed")), ""]
    return code_from("packed", then="\n".join(lines))
