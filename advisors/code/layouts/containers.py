"""Containers written or opened so that they can be read sample by sample: HDF5 chunks, Parquet row
groups, LMDB."""

from __future__ import annotations

from ....profiler.store.inspection import Attribute
from ...case.case import Case
from ...case.code_text import Source
from ..loader_code import loader_code
from ..template import code_from
from .place import is_name, text_path


def rechunk_code(case: Case) -> str | None:
    """HDF5 with a chunk a row; None where it is not known how the data set finds its file."""
    return _rewritten(case, "hdf5", "rechunk", "rechunk({source}, target)", "{stem}-rows.h5")


def regroup_code(case: Case, rows: int) -> str | None:
    """Parquet with small row groups; None where it is not known how the data set finds its file."""
    return _rewritten(
        case, "parquet", "regroup", f"regroup({{source}}, target, {rows})", "{stem}-rows.parquet"
    )


def readahead_code(case: Case) -> str | None:
    """LMDB without readahead; None where the data set does not hold its environment."""
    part = case.dataset
    held = (
        [a for a in part.attributes if a.kind == "lmdb" and is_name(a.name)]
        if part is not None
        else []
    )
    if not held:
        return None
    name = held[0].name
    lines = [
        "quiet = copy.copy(dataset)",
        f"path = dataset.{name}.path()",
        f"dataset.{name}.close()  # LMDB opens a file only once in a process: `dataset` itself is "
        "not read any more",
        f'quiet.{name} = Unread(path, subdir=not path.endswith((".lmdb", ".mdb")))',
        loader_code(case, dataset=Source("quiet")),
    ]
    return code_from("containers", "Unread", then="\n".join(lines) + "\n")


def readahead_hint(case: Case) -> str:
    """The same by hand, where the file is opened in a place that code cannot reach from outside."""
    return (
        "from torch.utils.data import DataLoader\n\n"
        "# where the file is opened:\n"
        "#     lmdb.open(path, readonly=True, lock=False, readahead=False, meminit=False)\n"
        + loader_code(case)
        + "\n"
    )


def _rewritten(case: Case, kind: str, function: str, call: str, named: str) -> str | None:
    part = case.dataset
    if part is None:
        return None
    handles = [a for a in part.attributes if a.kind == kind and is_name(a.name)]
    path = text_path(case)
    if kind == "hdf5" and handles:
        source = f"Path({_file_of(handles[0])}.filename)"
    elif path is not None:
        source = f"Path(dataset.{path})"
    else:
        return None
    target = named.replace("{stem}", "{source.stem}")
    lines = [
        f"source = {source}",
        f'target = source.with_name(f"{target}")',
        "if not target.exists():",
        f"    {call.replace('{source}', 'source')}  # once",
        "rows = copy.copy(dataset)  # the data set at hand stays as it is",
    ]
    if path is not None:
        lines.append(f"rows.{path} = type(dataset.{path})(target)")
    for handle in handles if kind == "hdf5" else ():
        last = handle.type.rpartition(".")[2]
        again = 'h5py.File(target, "r")'
        lines.append(
            f"rows.{handle.name} = "
            f"{again if last == 'File' else f'{again}[dataset.{handle.name}.name]'}"
        )
    lazy = [
        a.name
        for a in part.attributes
        if a.kind == "none" and a.name in part.names and is_name(a.name)
    ]
    lines += [
        f"rows.{name} = None  # opened again, from the new file" for name in lazy if not handles
    ]
    lines.append(loader_code(case, dataset=Source("rows")))
    return code_from("containers", function, then="\n".join(lines) + "\n")


def _file_of(handle: Attribute) -> str:
    name = f"dataset.{handle.name}"
    return name if handle.type.rpartition(".")[2] == "File" else f"{name}.file"
