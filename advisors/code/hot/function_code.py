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
from .functions import Hot


def here(hot: Hot) -> str:
    """'patches.py:41: image = Image.open(path)' for a comment in code: one line, whatever a run says."""
    text = f": {hot.text}" if hot.text else ""
    return clean(f"{hot.place or '__getitem__'}{text}", 100)


_STORE = '''\
import os

import numpy as np
from numpy.lib.format import open_memmap


def store(make, length, target):
    """Once: what `make(index)` gives for each sample, as a row of one array. All must have one shape."""
    first = np.asarray(make(0))
    rows = open_memmap(target, "w+", first.dtype, (length, *first.shape))
    for index in range(length):
        rows[index] = make(index)
    rows.flush()


'''

_STORE_ANY = '''\
import os

import numpy as np


def store(make, length, target):
    """Once: what `make(index)` gives for each sample, one after another, and where each ends."""
    items = [np.asarray(make(index)) for index in range(length)]
    np.save(f"{target}.ends.npy", np.cumsum([len(item) for item in items]))
    np.save(target, np.concatenate(items))


'''


def _once(name: str, hot: Hot) -> str:
    """What is to be done once, and the beginning of the use of what is stored: until then nothing changes."""
    return (
        f'# once: store(make_{name}, len(dataset), "{name}.npy"), where make_{name}(index) does what is done at\n'
        f"#     {here(hot)}\n"
        f'if os.path.exists("{name}.npy"):\n'
    )


def stored_code(name: str) -> Callable[[Case, Hot], str]:
    """The result of one step, stored as rows; `name` is what the step makes."""

    def code(case: Case, hot: Hot) -> str:
        return (
            f"{_STORE}{_once(name, hot)}"
            f'    dataset.{name} = np.load("{name}.npy", mmap_mode="r")  # or in __init__\n'
            f"# in {dataset_class(case)}, instead: {name} = np.array(self.{name}[index])\n"
        )

    return code


def ragged_code(name: str) -> Callable[[Case, Hot], str]:
    """The same where samples differ in length."""

    def code(case: Case, hot: Hot) -> str:
        return (
            f"{_STORE_ANY}{_once(name, hot)}"
            f'    dataset.{name}, dataset.ends = np.load("{name}.npy", mmap_mode="r"), np.load("{name}.npy.ends.npy")\n'
            f"# in {dataset_class(case)}, instead:\n"
            "#     begin = self.ends[index - 1] if index else 0\n"
            f"#     {name} = np.array(self.{name}[begin : self.ends[index]])\n"
        )

    return code


def _paths(case: Case) -> str:
    found = held(case, "paths")
    return identifier(found[1].name if found is not None else None, "paths")


def small_jpeg_code(case: Case, hot: Hot) -> str:
    return (
        "from PIL import Image\n\n\n"
        "def shrink(paths, size, quality=95):\n"
        '    """Once: each picture no larger than needed, beside the original."""\n'
        "    for path in paths:\n"
        "        with Image.open(path) as picture:\n"
        '            picture.draft("RGB", size)  # JPEG leaves out what a smaller picture does not need\n'
        '            small = picture.convert("RGB")\n'
        "        small.thumbnail(size)\n"
        '        small.save(f"{path}.small.jpg", quality=quality)\n\n\n'
        f"# shrink(dataset.{_paths(case)}, (256, 256)): the size that is used, or what random crops need; then open\n"
        '# f"{path}.small.jpg". Without new files: picture.draft("RGB", size) right after Image.open, at\n'
        f"#     {here(hot)}\n"
    )


def jpeg_code(case: Case, hot: Hot) -> str:
    return (
        "from torchvision.io import ImageReadMode, decode_image\n\n\n"
        "def read_picture(path):\n"
        '    """A uint8 tensor of shape (3, height, width), by libjpeg-turbo without PIL\'s copies."""\n'
        "    return decode_image(path, mode=ImageReadMode.RGB)\n\n\n"
        f"# in {dataset_class(case)}, instead of PIL at\n#     {here(hot)}\n"
    )


def resize_code(case: Case, hot: Hot) -> str:
    return (
        "# where the size does not change from epoch to epoch, keep the small pictures (once, before training):\n"
        "#     small.save(path) or np.save(path, np.asarray(small))\n"
        "# else let PIL shrink by whole numbers first, with next to no visible difference, at\n"
        f"#     {here(hot)}\n"
        "#     picture.resize(size, resample, reducing_gap=2.0)\n"
    )


def v2_code(case: Case, hot: Hot) -> str:
    return (
        "import torch\nfrom torchvision.transforms import v2\n\n"
        "# the same names in v2, on uint8 tensors; to float only at the end, or on the device\n"
        "transform = v2.Compose(\n    [\n        v2.ToImage(),\n        # your transforms, as v2\n"
        "        v2.ToDtype(torch.float32, scale=True),\n    ]\n)\n"
    )


def columns_code(case: Case, hot: Hot) -> str:
    found = held_code(case.dataset, "dataframe")
    if found is None:
        return COLUMNS + f"# in {dataset_class(case)}: self.columns = Columns(frame) once, in place of the DataFrame\n"
    return COLUMNS + f"{found.code} = Columns({found.code})  # or in __init__ of {found.owner}\n"


COLUMNS = '''class Row(dict):
    """A row: row["name"] and row.name give the value of a column."""

    __getattr__ = dict.__getitem__


class Columns:
    """Stands in for a DataFrame where rows are taken by .iloc[index] or .loc[index]: its columns, as arrays."""

    def __init__(self, frame):
        self.columns = {name: frame[name].to_numpy() for name in frame.columns}
        self.names = list(self.columns)
        self.length = len(frame)
        self.iloc = self.loc = self

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if isinstance(index, str):
            return self.columns[index]
        if isinstance(index, tuple):
            row, column = index
            return self.columns[column if isinstance(column, str) else self.names[column]][row]
        return Row((name, values[index]) for name, values in self.columns.items())


'''


def chunks_code(case: Case, hot: Hot) -> str:
    return (
        "import h5py\n\n\n"
        "def rechunk(source, target, name, rows=1):\n"
        '    """Once: the data set `name` in chunks of as many rows as are read at a time."""\n'
        '    with h5py.File(source) as old, h5py.File(target, "w") as new:\n'
        "        data = old[name]\n"
        "        made = new.create_dataset(name, data.shape, data.dtype, chunks=(rows, *data.shape[1:]))\n"
        "        for begin in range(0, len(data), 4096):\n"
        "            made[begin : begin + 4096] = data[begin : begin + 4096]\n\n\n"
        "# where it fits into memory: rows = file[name][:], once. For a whole batch: sort its indices and ask once,\n"
        f"# in __getitems__ of {dataset_class(case)}, instead of row by row at\n#     {here(hot)}\n"
    )


def kept_open_code(case: Case, hot: Hot) -> str:
    return (
        "import h5py\n\n\n"
        "class KeptOpen:\n"
        '    """Opens a file where it is first used, once a process: `self.file = KeptOpen(path)` in __init__."""\n\n'
        "    def __init__(self, path):\n        self.path, self.opened = path, None\n\n"
        "    def __getitem__(self, name):\n"
        "        if self.opened is None:\n            self.opened = h5py.File(self.path)\n"
        "        return self.opened[name]\n\n\n"
        f"# in {dataset_class(case)}: self.file[name][index] instead of opening at\n#     {here(hot)}\n"
    )


def zarr_code(case: Case, hot: Hot) -> str:
    return (
        "import zarr\n\n\n"
        "def rechunk(source, target, rows=1):\n"
        '    """Once: chunks of as many rows as are read at a time."""\n'
        '    old = zarr.open(source, mode="r")\n'
        '    new = zarr.open(target, mode="w", shape=old.shape, chunks=(rows, *old.shape[1:]), dtype=old.dtype)\n'
        "    for begin in range(0, len(old), 4096):\n"
        "        new[begin : begin + 4096] = old[begin : begin + 4096]\n"
    )


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
    return (
        "import numpy as np\nfrom torch.utils.data import get_worker_info\n\n\n"
        "def generator(seed=0):\n"
        '    """A generator for this process: each worker draws numbers of its own."""\n'
        "    info = get_worker_info()\n"
        "    return np.random.default_rng([seed, info.seed % 2**32 if info else 0])\n\n\n"
        f"# in {dataset_class(case)}: make it at the first sample, `self.rng = self.rng or generator()`; draw from\n"
        f"# self.rng at\n#     {here(hot)}\n"
    )


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


def elements_code(case: Case, hot: Hot) -> str:
    found = held_code(case.dataset, "tensor")
    first = "# values = values.numpy(), once: it" if found is None else f"{found.code} = {found.code}.numpy()  #"
    return (
        f"{first} shares its memory; an element of it is read eight times as fast\n"
        "# better still: one operation on the whole tensor, such as .clamp() or an index of all places, not\n"
        f"#     {here(hot)}\n"
    )


def json_code(case: Case, hot: Hot) -> str:
    return (
        "import json\n\nimport numpy as np\n\n\n"
        "def convert(texts, fields):\n"
        '    """Once: these fields of all records, as arrays."""\n'
        "    records = [json.loads(text) for text in texts]\n"
        "    return {field: [np.asarray(record[field]) for record in records] for field in fields}\n\n\n"
        "# where the text itself must stay: orjson.loads(text) reads the same two to four times as fast, at\n"
        f"#     {here(hot)}\n"
    )


def yaml_code(case: Case, hot: Hot) -> str:
    return (
        "import json\n\nimport yaml\n\n\n"
        "def convert(texts):\n"
        '    """Once: the records, parsed by the C loader, as JSON (or better, as arrays)."""\n'
        "    return [json.dumps(yaml.load(text, Loader=yaml.CSafeLoader)) for text in texts]\n\n\n"
        f"# instead of parsing YAML for each sample at\n#     {here(hot)}\n"
    )
