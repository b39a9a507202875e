"""What to use instead of a known slow function, in words, and which code does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...case.case import Case
from ...schema.report_model import Effort
from .element_code import CAVEAT as ELEMENTS_CAVEAT
from .element_code import elements_code
from .frame_rows import CAVEAT as ROWS_CAVEAT
from .frame_rows import rows_code
from .function_code import (
    chunks_code,
    copies_code,
    hf_code,
    jpeg_code,
    json_code,
    kept_open_code,
    listed_code,
    lock_code,
    numbers_code,
    ragged_code,
    resize_code,
    small_jpeg_code,
    stored_code,
    v2_code,
    yaml_code,
    zarr_code,
)
from .functions import Hot


@dataclass(frozen=True)
class Remedy:
    """What to do about a family. `code` is made for the case. `once`: storing whole samples, where they stay the same,
    does as well."""

    title: str
    why: str
    caveat: str
    code: Callable[[Case, Hot], str]
    once: bool = False

    @property
    def effort(self) -> Effort:
        return "a conversion" if self.once or self.title.startswith("Store ") else "a few lines"


def remedy_of(hot: Hot) -> Remedy:
    """The remedy of a family; every family that is no waiting has one."""
    return _REMEDIES[hot.family.key]


_KEPT_CAVEAT = (
    "Random parts of making a sample must stay outside of what is stored. Beyond the page cache, reading the stored "
    "arrays may cost more than making them."
)

_ONCE = "It gives the same for each sample at every access: made once and stored as arrays, it is only read."
_REMEDIES = {
    "jpeg-small": Remedy("Store the JPEG pictures at the size that is used",
        "Most of what it decodes is thrown away by the resizing that follows.",
        "Made small once, pictures are compressed twice; pixels differ a little. draft() halves sizes, no more.",
        small_jpeg_code),
    "png": Remedy("Decode the PNG pictures once, and store the arrays",
        "PNG is decompressed byte by byte in one thread, whoever does it; stored arrays are only read.",
        "Arrays take two to five times the space of PNG files. " + _KEPT_CAVEAT,
        stored_code("pictures"), once=True),
    "jpeg": Remedy("Decode JPEG with a faster decoder",
        "libjpeg-turbo without PIL's copies was measured 1.3 to 1.55 times as fast.",
        "Decoders differ in the last bit of some pixels. Needs torchvision; simplejpeg does as well.", jpeg_code),
    "picture": Remedy("Decode the pictures once, and store the arrays", _ONCE, _KEPT_CAVEAT,
        stored_code("pictures"), once=True),
    "resize": Remedy("Resize once, or by whole numbers first",
        "Its cost grows with the pixels of the source, not of the result.",
        "reducing_gap changes pixels slightly. Random crops must stay where they are.", resize_code),
    "cv2": Remedy("Decode the pictures once, or smaller (OpenCV)",
        _ONCE + " cv2.IMREAD_REDUCED_COLOR_2 decodes half the size.",
        _KEPT_CAVEAT, stored_code("pictures"), once=True),
    "transforms": Remedy("Transform tensors, not PIL pictures (torchvision v2)",
        "PIL transforms copy the picture at each step; v2 works on uint8 tensors.",
        "Interpolation differs slightly between PIL and tensors: compare a few pictures.", v2_code),
    "ply": Remedy("Convert the PLY files once", _ONCE, _KEPT_CAVEAT, ragged_code("points"), once=True),
    "csv": Remedy("Parse the CSV text once, not at every access", _ONCE, _KEPT_CAVEAT,
        stored_code("tables"), once=True),
    "loadtxt": Remedy("Parse the text files once (numpy.loadtxt)", _ONCE, _KEPT_CAVEAT,
        stored_code("tables"), once=True),
    "read_csv": Remedy("Read the CSV files once (pandas.read_csv)", _ONCE, _KEPT_CAVEAT,
        stored_code("tables"), once=True),
    "rows": Remedy("Keep the DataFrame's columns as arrays",
        "Each row by .iloc or .loc is a new Series. An array is read in less than a microsecond.",
        ROWS_CAVEAT, rows_code),
    "json": Remedy("Parse the JSON text once, not at every access", _ONCE, _KEPT_CAVEAT, json_code, once=True),
    "literal": Remedy("Do not parse Python literals at every access (ast.literal_eval)",
        "It compiles each text as a program. " + _ONCE, _KEPT_CAVEAT + " json.loads reads the same text, where it is "
        "JSON, some thirty times as fast.", stored_code("records"), once=True),
    "yaml": Remedy("Parse the YAML once", "It is parsed in Python, letter by letter. " + _ONCE, _KEPT_CAVEAT,
        yaml_code, once=True),
    "xml": Remedy("Parse the XML once", _ONCE, _KEPT_CAVEAT, ragged_code("annotations"), once=True),
    "npz": Remedy("Store the arrays uncompressed, and map them into memory",
        "An .npz archive is read and decompressed as a whole, whatever is used of it.",
        "Uncompressed files are larger: on a slow disk, or beyond the page cache, reading them may cost more.",
        stored_code("arrays"), once=True),
    "npy": Remedy("Store all arrays in one memory-mapped file",
        "Opening a file and reading its header costs tens of microseconds each.", _KEPT_CAVEAT,
        stored_code("arrays"), once=True),
    "compressed": Remedy("Store the data uncompressed, or compressed for speed",
        "gzip and zlib decompress some 300 MB/s a core; uncompressed bytes are only copied.",
        "Uncompressed data is larger: on a slow disk, or beyond the page cache, reading it may cost more; lz4 and zstd "
        "lie between.", stored_code("arrays"), once=True),
    "pickle": Remedy("Store arrays instead of pickled objects",
        "Unpickling makes every Python object anew, one at a time.", _KEPT_CAVEAT, ragged_code("records"), once=True),
    "listing": Remedy("List the folder once, not for every sample",
        "Each listing reads the whole folder, and sorting or filtering grows with it; the list can be kept.",
        "Files that come or go after the data set was made are then not seen.", listed_code),
    "torch-load": Remedy("Store the tensors in one memory-mapped file", "torch.load opens a zip archive and unpickles "
        "each time.", _KEPT_CAVEAT, stored_code("tensors"), once=True),
    "h5-open": Remedy("Keep the HDF5 file open", "Opening reads the file's structure anew for each sample.",
        "Open it in the worker, at the first sample: a handle that is shared by fork gives wrong data.",
        kept_open_code),
    "h5": Remedy("Store the HDF5 data in chunks of the size that is read (h5py)",
        "A chunk is read and decompressed as a whole even for one row, and each row is a request of its own.",
        "Small chunks compress less. h5py serves one thread at a time.", chunks_code),
    "zarr": Remedy("Store the zarr data in chunks of the size that is read",
        "A chunk is decompressed as a whole even for one row.",
        "Small chunks make many files: use shards or a zip store.", zarr_code),
    "hf": Remedy("Ask the Hugging Face data set for whole columns or batches (with_format)",
        "Each row is converted from Arrow by itself, value by value where it becomes lists.",
        "Columns of arrays must have one shape. Indices after shuffle() or select() cost extra: flatten_indices().",
        hf_code),
    "tokens": Remedy("Tokenise the texts once, and store the token ids", _ONCE,
        "Stored ids belong to one tokeniser and its settings. " + _KEPT_CAVEAT, ragged_code("tokens"), once=True),
    "re": Remedy("Tokenise or match the texts once (regular expressions)", _ONCE, _KEPT_CAVEAT,
        ragged_code("tokens"), once=True),
    "sound": Remedy("Resample and filter the signals once, before training", _ONCE,
        "Never store what follows a random change. " + _KEPT_CAVEAT, stored_code("waves"), once=True),
    "deepcopy": Remedy("Copy only what is changed, not everything (copy.deepcopy)",
        "deepcopy visits every object inside, one at a time, in Python.",
        "What is not copied is shared by the samples: nothing may write to it.", copies_code),
    "generator": Remedy("Make the random generator once a worker",
        "Seeding a generator takes several microseconds, a number drawn from it a fraction of one.",
        "Samples then depend on the order in which they are asked for: where each must always be the same, keep it so.",
        numbers_code),
    "elements": Remedy("Do not read a tensor or an array element by element",
        "Each read makes a tensor or a NumPy number, which is many times as slow as an element of a list.",
        ELEMENTS_CAVEAT, elements_code),
    "lock": Remedy("Do not wait for a lock in every sample", "Another thread holds it while it works or waits.",
        "Whatever the lock protects must be safe without it.", lock_code),
}  # fmt: skip
