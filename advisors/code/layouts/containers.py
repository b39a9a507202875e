"""Containers written or opened so that they can be read sample by sample: HDF5 chunks, Parquet row
groups, LMDB."""

from __future__ import annotations

from ....profiler.store.inspection import Part
from ...case.case import Case
from ...case.code_text import Source
from ..inputs import held_code, is_name
from ..loader_code import loader_code
from ..template import code_from
from .place import copied, text_path


def rechunk_code(case: Case) -> str | None:
    """HDF5 with a chunk a row; None where it is not known how the data set finds its file."""
    return _rewritten(case, "hdf5", "rechunk(source, target)", "h5")


def regroup_code(case: Case, rows: int) -> str | None:
    """Parquet with small row groups; None where it is not known how the data set finds its file."""
    return _rewritten(case, "parquet", f"regroup(source, target, {rows})", "parquet")


def readahead_code(case: Case) -> str:
    """LMDB without readahead; by hand where the data set does not hold its environment."""
    held = held_code(case.dataset, "lmdb")
    if held is None or "[" in held.code:
        return (
            "from torch.utils.data import DataLoader\n\n"
            "# where the file is opened:\n"
            "#     lmdb.open(path, readonly=True, lock=False, readahead=False, meminit=False)\n"
            f"{loader_code(case)}\n"
        )
    lines = [
        *copied("quiet", held.code.rpartition(".")[0]),
        f"path = {held.code}.path()",
        f"{held.code}.close()  # LMDB opens a file only once in a process: do not read `dataset` "
        "any more",
        'options = {"readonly": True, "lock": False, "readahead": False, "meminit": False}',
        'options["subdir"] = not path.endswith((".lmdb", ".mdb"))',
        f"{held.code.replace('dataset', 'quiet', 1)} = KeptOpen(lmdb.open, path, **options)",
        loader_code(case, dataset=Source("quiet")),
        "",
    ]
    return code_from("containers", then="\n".join(lines))


def _rewritten(case: Case, kind: str, call: str, suffix: str) -> str | None:
    part, path = case.dataset or Part(), text_path(case)
    own = [a for a in part.attributes if is_name(a.name)]
    handles = {a.name: a.type.endswith("File") for a in own if a.kind == kind == "hdf5"}
    # An attribute that is the file, or a data set in it.
    files = [f"dataset.{name}{'' if file else '.file'}" for name, file in handles.items()]
    if not files and path is None:
        return None
    lines = [
        f"source = Path({f'{files[0]}.filename' if files else f'dataset.{path}'})",
        "folder = source.absolute().parent",
        f'target = folder.with_name(f"{{folder.name}}-packed") / f"{{source.stem}}.{suffix}"',
        "target.parent.mkdir(exist_ok=True)",
        "if not target.exists():",
        f"    {call}  # once",
        *copied("rows"),
    ]
    if path is not None:
        lines.append(f"rows.{path} = type(dataset.{path})(target)")
    for name, file in handles.items():
        again = 'h5py.File(target, "r")'
        lines.append(f"rows.{name} = {again}{'' if file else f'[dataset.{name}.name]'}")
    if not handles:
        lazy = [a.name for a in own if a.kind == "none" and a.name in part.names]
        lines += [f"rows.{name} = None  # opened again, from the new file" for name in lazy]
    lines += [loader_code(case, dataset=Source("rows")), ""]
    return code_from("containers", then="\n".join(lines))
