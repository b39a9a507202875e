"""Code that puts something better in the place of a known slow function, written for a loader's data set."""

from __future__ import annotations

from collections.abc import Callable

from ....profiler.base.metadata import clean
from ...case.case import Case
from ...case.code_text import identifier
from ...case.fetching import held
from ..batched.hugging_face import hugging_face_code, is_hugging_face
from ..inputs import held_code
from ..loader_code import dataset_class
from ..loader_form import form_of
from ..template import code_from, whole
from .functions import Hot


def here(hot: Hot) -> str:
    """'patches.py:41: image = Image.open(path)' for a comment in code: one line, whatever a run says."""
    text = f": {hot.text}" if hot.text else ""
    return clean(f"{hot.place or '__getitem__'}{text}", 100)


def _stored(name: str, hot: Hot, use: str, ragged: bool) -> str:
    """What is to be done once, and the use of what is stored: until then nothing changes."""
    then = (
        f'# once: store(make_{name}, len(dataset), "{name}.npy"), where make_{name}(index) does what is done at\n'
        f"#     {here(hot)}\n"
        f'if os.path.exists("{name}.npy"):\n    {use}'
    )
    return code_from("once", "store", then=then, RAGGED=ragged)


def stored_code(name: str) -> Callable[[Case, Hot], str]:
    """The result of one step, stored as rows; `name` is what the step makes."""

    def code(case: Case, hot: Hot) -> str:
        use = (
            f'dataset.{name} = np.load("{name}.npy", mmap_mode="r")  # or in __init__\n'
            f"# in {dataset_class(case)}, instead: {name} = np.array(self.{name}[index])\n"
        )
        return _stored(name, hot, use, ragged=False)

    return code


def ragged_code(name: str) -> Callable[[Case, Hot], str]:
    """The same where samples differ in length."""

    def code(case: Case, hot: Hot) -> str:
        use = (
            f'dataset.{name}, dataset.ends = np.load("{name}.npy", mmap_mode="r"), np.load("{name}.npy.ends.npy")\n'
            f"# in {dataset_class(case)}, instead:\n"
            "#     begin = self.ends[index - 1] if index else 0\n"
            f"#     {name} = np.array(self.{name}[begin : self.ends[index]])\n"
        )
        return _stored(name, hot, use, ragged=True)

    return code


def _paths(case: Case) -> str:
    found = held(case, "paths")
    return identifier(found[1].name if found is not None else None, "paths")


def small_jpeg_code(case: Case, hot: Hot) -> str:
    then = (
        f"# shrink(dataset.{_paths(case)}, (256, 256)): "
        "the size that is used, or what random crops need; then open\n"
        '# f"{path}.small.jpg". Without new files: picture.draft("RGB", size) right after Image.open, at\n'
        f"#     {here(hot)}\n"
    )
    return code_from("once", "shrink", then=then)


def jpeg_code(case: Case, hot: Hot) -> str:
    then = f"# in {dataset_class(case)}, instead of PIL at\n#     {here(hot)}\n"
    return code_from("readers", "read_picture", then=then)


def resize_code(case: Case, hot: Hot) -> str:
    return (
        "# where the size does not change from epoch to epoch, keep the small pictures (once, before training):\n"
        "#     small.save(path) or np.save(path, np.asarray(small))\n"
        "# else let PIL shrink by whole numbers first, with next to no visible difference, at\n"
        f"#     {here(hot)}\n"
        "#     picture.resize(size, resample, reducing_gap=2.0)\n"
    )


def v2_code(case: Case, hot: Hot) -> str:
    return whole("v2_transforms")


def chunks_code(case: Case, hot: Hot) -> str:
    then = (
        "# where it fits into memory: rows = file[name][:], once. "
        "For a whole batch: sort its indices and ask once,\n"
        f"# in __getitems__ of {dataset_class(case)}, instead of row by row at\n#     {here(hot)}\n"
    )
    return code_from("once", "rechunk", then=then, BACKEND="h5py")


def kept_open_code(case: Case, hot: Hot) -> str:
    then = f"# in {dataset_class(case)}: self.file[name][index] instead of opening at\n#     {here(hot)}\n"
    return code_from("readers", "KeptOpen", then=then)


def listed_code(case: Case, hot: Hot) -> str:
    return (
        f"# once, in __init__ of {dataset_class(case)}:\n"
        "#     self.names = sorted(os.listdir(folder))\n"
        "# in __getitem__: self.names[index] instead of listing at\n"
        f"#     {here(hot)}\n"
    )


def zarr_code(case: Case, hot: Hot) -> str:
    return code_from("once", "rechunk", BACKEND="zarr")


def hf_code(case: Case, hot: Hot) -> str:
    if is_hugging_face(case) and form_of(case).by_hand is None:
        return hugging_face_code(case)
    found = held_code(case.dataset, "hf")
    if found is None or found.attribute.type.endswith("IterableDataset"):
        return (
            '# where the rows come from, before they are asked for one by one: .with_format("numpy"), and\n'
            "# .batch(batch_size) with batch_size=None in the loader, instead of a row at a time at\n"
            f"#     {here(hot)}\n"
        )
    return (
        f'columns = {found.code}.with_format("numpy")[:]  # every column as one array, if they fit into memory\n'
        f"# in {dataset_class(case)}: columns[name][index] instead of a row of the table at\n#     {here(hot)}\n"
        "# too large for that: __getitems__(self, indices), which asks the table once for all the indices of a batch\n"
    )


def numbers_code(case: Case, hot: Hot) -> str:
    then = (
        f"# in {dataset_class(case)}: make it at the first sample, "
        "`self.rng = self.rng or generator()`; draw from\n"
        f"# self.rng at\n#     {here(hot)}\n"
    )
    return code_from("readers", "generator", then=then)


def copies_code(case: Case, hot: Hot) -> str:
    return (
        "# copy only what is changed, for example\n"
        "#     sample = {**template}                       # values that are replaced\n"
        '#     sample["boxes"] = template["boxes"].copy()  # an array that is written to\n'
        f"# instead of copying everything at\n#     {here(hot)}\n"
    )


def lock_code(case: Case, hot: Hot) -> str:
    return (
        "# hold the lock only to replace a finished value, never while working or waiting:\n"
        "#     new = make_table()          # without the lock\n"
        "#     self.table = new            # one assignment: readers need no lock\n"
        "# or give each worker process its own copy. It waits at\n"
        f"#     {here(hot)}\n"
    )


def json_code(case: Case, hot: Hot) -> str:
    then = (
        "# where the text itself must stay: orjson.loads(text) reads the same two to four times as fast, at\n"
        f"#     {here(hot)}\n"
    )
    return code_from("once", "convert", then=then, BACKEND="json")


def yaml_code(case: Case, hot: Hot) -> str:
    then = f"# instead of parsing YAML for each sample at\n#     {here(hot)}\n"
    return code_from("once", "convert", then=then, BACKEND="yaml")
