"""Functions known to be slow inside fetching: how each shows in stacks and in source, and what to
do instead.

A frame is compared as "place:function": the file below its library's root (`libraries.Owner.place`)
and the function's own name. What is compiled and called straight from the user's code shows as the
user's line, so it is known by that line's text.

`left` is what remains of the part's time with the alternative, at best and at worst. Sources: the
headings of docs/causes.md named, else measured for this project on two cores, both ways on the same
input (µs): PNG of 256² 3,400 against 4 to 85 as an array; JPEG of 2000² made 224² 69,000 against
8,100 (draft) or 3,000 (small files), its resize 40,000 against 5,300; csv 880 against 1.5 to 70;
zlib 565 against 14; ast.literal_eval 690 against 24 (json); minidom 2,190 against 160
(ElementTree); deepcopy 110 against 15 (pickle); YAML 199 against 28 (C loader); a generator 7.7
against 0.3; HDF5 rows 1,176 against 28;
rows of `datasets` 588 against 69 to 159.
"""

from functools import partial

from .function_code import hf_code, joined_code, stored_code, words
from .kind import KEPT_CAVEAT, Kind

_PIL_DECODE = (
    r"PIL/(?:ImageFile|\w+ImagePlugin)\.py:.*|PIL/Image\.py:(?:open|preinit|init|_open_core)"
)
_PIL_RESIZE = r"PIL/Image\.py:(?:resize|thumbnail|reduce)"
_PIL_REST = rf"PIL/(?!Image\.py:(?:resize|thumbnail|reduce)$).*|{_PIL_DECODE}"
_JPEG = r"PIL/(?:JpegImagePlugin|MpoImagePlugin)\.py:.*"
_NUMPY_FILES = r"numpy/lib/_?npyio(?:_impl)?\.py"
_TORCH_FILES = r"torch/(?:serialization|_weights_only_unpickler)\.py:.*"


_once = partial(Kind, once=True, stored=True)

FUNCTION_KINDS = (
    Kind(
        "jpeg-small",
        "decoding whole JPEG pictures with PIL to make them small",
        (0.03, 0.6),  # "JPEG decoding"
        frames=f"{_PIL_DECODE}|{_PIL_RESIZE}",
        around="PIL/.*",
        needs=(_PIL_RESIZE, _JPEG),
        suffixes=(".jpg", ".jpeg"),
        stored=True,
        instead_of=("jpeg", "picture"),
        title="Shrink the JPEG pictures while decoding (draft), or store them small",
        why="Most of what it decodes is thrown away by the resizing that follows.",
        caveat="Made small once, pictures are compressed twice; pixels differ a little. draft() "
        "divides sizes by 2, 4 or 8.",
        code=words("""\
# picture.draft("RGB", size) right after Image.open decodes no more than twice the size, at
#     {here}
# or once, for each path: picture.thumbnail(size), saved in another folder, in the size that is
# used, or what random crops need; then open that.
"""),
    ),
    _once(
        "png",
        "PIL's PNG decoder",
        (0.001, 0.25),
        frames=_PIL_DECODE,
        around=_PIL_REST,
        needs=(r"PIL/PngImagePlugin\.py:.*",),
        suffixes=(".png",),
        instead_of=("picture",),
        title="Decode the PNG pictures once, and store the arrays",
        why="PNG is decompressed byte by byte; stored arrays are only read.",
        caveat="Arrays take two to five times the space of PNG files. " + KEPT_CAVEAT,
        code=stored_code("pictures"),
    ),
    Kind(
        "jpeg",
        "PIL's JPEG decoder",
        (0.45, 0.85),  # "JPEG decoding"
        frames=_PIL_DECODE,
        needs=(_JPEG,),
        suffixes=(".jpg", ".jpeg"),
        instead_of=("picture",),
        title="Decode JPEG with a faster decoder",
        why="libjpeg-turbo without PIL's copies was measured 1.3 to 1.55 times as fast.",
        caveat="Decoders differ in the last bit of some pixels. Needs torchvision; simplejpeg does "
        "as well.",
        code=words("""\
# in {dataset}, from torchvision.io: decode_image(path, mode=ImageReadMode.RGB), a uint8 tensor of
# (3, height, width), instead of PIL at
#     {here}
"""),
    ),
    _once(
        "picture",
        "decoding pictures (PIL, OpenCV, torchvision)",
        (0.002, 0.6),
        frames=_PIL_DECODE,
        text=r"\b(?:imread|imdecode|decode_(?:jpeg|png|image)|read_image)\(",
        around=_PIL_REST,
        title="Decode the pictures once, and store the arrays",
        code=stored_code("pictures"),
    ),
    Kind(
        "resize",
        "resizing with PIL",
        (0.005, 0.5),
        frames=_PIL_RESIZE,
        around="PIL/.*",
        stored=True,
        wrapper=True,
        title="Resize once, or by whole numbers first",
        why="Its cost grows with the pixels of the source, not of the result.",
        caveat="reducing_gap changes pixels slightly. Random crops must stay where they are.",
        code=words("""\
# where the size does not change from epoch to epoch, once, before training:
#     small.save(path) or np.save(path, np.asarray(small))
# else let PIL shrink by whole numbers first, with next to no visible difference, at
#     {here}
#     picture.resize(size, resample, reducing_gap=2.0)
"""),
    ),
    _once(
        "csv",
        "reading table files (csv, loadtxt, read_csv, Parquet, plyfile)",
        (0.001, 0.2),  # "Parsers written in Python"
        frames=r"python/csv\.py:.*|plyfile(?:/.*)?(?:\.py)?:.*|pandas/io/.*|pyarrow/(?:parquet|feather).*|"
        rf"{_NUMPY_FILES}:(?:loadtxt|genfromtxt|fromregex)",
        around="pandas/.*",
        text=r"\bcsv\.(?:reader|DictReader)\(|\bDictReader\(",
        title="Read table files or row groups once, for all samples (csv, loadtxt, read_csv, PLY)",
        code=stored_code("tables"),
    ),
    Kind(
        "rows",
        "taking rows of a DataFrame (.iloc, .loc)",
        (0.01, 0.3),  # "DataFrame rows"
        frames=r"pandas/core/(?:indexing\.py:.*|frame\.py:(?:_ixs|xs|iterrows|itertuples|_get_value))",
        around="pandas/.*",
        title="Keep the DataFrame's columns as arrays",
        why="Each row by .iloc or .loc is a new Series. An array is read in less than a "
        "microsecond.",
        caveat="The arrays take as much memory again while both are held. Where .loc looks for a "
        "label, keep a dict of the rows by label, or sort the index once: in an index that is not "
        "sorted, where labels occur more than once, .loc compares all of them.",
        code=words("""\
# in __init__ of {dataset}, what is taken of each row, as arrays:
#     self.values = frame[names].to_numpy()     # the columns that are read together
#     self.labels = frame["label"].to_numpy()    # a column that is read alone
# self.values[index] and self.labels[index] instead of rows of the DataFrame, at
#     {here}
"""),
    ),
    _once(
        "text",
        "parsing text (json, YAML, XML, literal_eval)",
        (0.002, 0.4),
        frames=r"python/json/.*|python/ast\.py:literal_eval|(?:yaml|ruamel)(?:/.*|\..*)|python/xml/.*|lxml/.*|xmltodict.*",
        text=r"\bjson\.loads?\(|\bliteral_eval\(|\byaml\.\w*load\w*\(|\b(?:ET|ElementTree|etree|minidom)\.\w+\(",
        title="Parse the text once, not at every access (json, YAML, XML, literal_eval)",
        code=words("""\
# once, before training: the fields that are used of all records, as arrays. Where the text itself
# must stay, faster at
#     {here}
#     orjson.loads(text)                       # two to four times as fast as json
#     yaml.load(text, Loader=yaml.CSafeLoader)  # seven times as fast as SafeLoader
#     json.loads(text)                         # thirty times as fast as ast.literal_eval
"""),
    ),
    _once(
        "npz",
        "reading .npz archives (zip, zlib)",
        (0.005, 0.35),  # "Compressed archives"
        frames=_NUMPY_FILES + r":.*|numpy/lib/_?format(?:_impl)?\.py:.*|python/zipfile.*",
        needs=(_NUMPY_FILES + ":(?:__getitem__|zipfile_factory)",),
        suffixes=(".npz",),
        instead_of=("npy", "compressed"),
        title="Store the arrays uncompressed, and map them into memory",
        why="An .npz archive is read and decompressed as a whole, whatever is used of it.",
        caveat="Uncompressed files are larger: on a slow disk, or beyond the page cache, reading "
        "them may cost more.",
        code=stored_code("arrays"),
    ),
    _once(
        "npy",
        "opening an .npy or .pt file for each sample",
        (0.01, 0.6),
        frames=rf"{_NUMPY_FILES}:load|numpy/lib/_?format(?:_impl)?\.py:.*|{_TORCH_FILES}",
        title="Store all arrays in one memory-mapped file (np.load, torch.load)",
        why="Opening a file and reading its header costs tens of microseconds each, of a .pt file "
        "hundreds.",
        code=stored_code("arrays"),
    ),
    _once(
        "compressed",
        "decompressing (gzip, zlib)",
        (0.005, 0.4),
        frames=r"python/(?:gzip|bz2|lzma|zlib|_compression|compression|zipfile)(?:/.*|\.py:.*)",
        text=r"\b(?:zlib|gzip|bz2|lzma|zstd\w*|zstandard|blosc2?|lz4)\.(?:\w+\.)?decompress\w*\(|\bdecompress\w*\(",
        title="Store the data uncompressed, or compressed for speed",
        why="gzip and zlib decompress some 300 MB/s a core; uncompressed bytes are only copied.",
        caveat="Uncompressed data is larger: on a slow disk, or beyond the page cache, reading it "
        "may cost more; lz4 and zstd lie between.",
        code=stored_code("arrays"),
    ),
    _once(
        "pickle",
        "unpickling Python objects (pickle)",
        (0.002, 0.5),
        frames=r"python/pickle\.py:.*|(?:dill|cloudpickle|joblib)/.*",
        text=r"\b(?:c?[pP]ickle|dill|cloudpickle|joblib)\.loads?\(",
        title="Store arrays instead of pickled objects",
        why="Unpickling creates every Python object again, one at a time.",
        code=joined_code("records"),
    ),
    Kind(
        "listing",
        "listing a folder for each sample",
        (0.001, 0.3),
        frames=r"python/(?:glob|fnmatch)\.py:.*|python/pathlib(?:/.*|\.py):(?:iterdir|r?glob|_?scandir|_select\w*|walk)"
        r"|python/os\.py:_?walk",
        text=r"\b(?:listdir|scandir|i?glob\.i?glob|os\.walk)\(|\.(?:iterdir|r?glob)\(",
        around=r"python/pathlib(?:/.*|\.py):.*",
        title="List the folder once, not for every sample",
        why="Each listing reads the whole folder, and sorting or filtering grows with it; the list "
        "can be kept.",
        caveat="Files that come or go after the data set was made are then not seen.",
        code=words("""\
# once, in __init__ of {dataset}:
#     self.names = sorted(os.listdir(folder))
# in __getitem__: self.names[index] instead of listing at
#     {here}
"""),
    ),
    Kind(
        "h5-open",
        "an HDF5 file that is opened for each sample (h5py)",
        (0.02, 0.6),
        frames="h5py/.*",
        needs=(r"h5py/_hl/files\.py:(?:make_fid|close|__exit__)",),
        instead_of=("h5",),
        title="Keep the HDF5 file open",
        why="Opening reads the file's structure again for each sample, and so does what is read "
        "of it then.",
        caveat="Open it in the worker, at the first sample: a handle that is shared by fork gives "
        "wrong data.",
        code=words("""\
# in __init__ of {dataset}, and in __getstate__: self.file = None
# in __getitem__: if self.file is None: self.file = h5py.File(path); then self.file[name][index],
# instead of opening at
#     {here}
"""),
    ),
    Kind(
        "h5",
        "reading HDF5 by rows, or lists of rows (h5py)",
        (0.005, 0.6),  # "HDF5 and Zarr chunks"
        frames="h5py/.*",
        needs=(r"h5py/_hl/dataset\.py:(?:__getitem__|read_direct|__array__)",),
        unless=r"\[(?:[^][{},:]|\[[^]]*\])+:",  # a slice of rows
        text=r"\bh5py\.|\.read_direct\(",
        stored=True,
        title="Read HDF5 in large contiguous slices, or from memory (h5py)",
        why="HDF5 goes through a list of rows, or a slice with a step, one by one, as "
        "a loop does; a plain slice is one request.",
        caveat="A slice brings what lies between the rows too: where they are far apart, only "
        "memory helps. h5py serves one thread at a time.",
        code=words("""\
# where it fits into memory, once in each worker: rows = file[name][:]
# else all rows from the first to the last that is asked for, where these are near:
#     first = min(indices)
#     rows = file[name][first : max(indices) + 1][np.subtract(indices, first)]
# with a step: file[name][first:last][::step]; compressed parts that several samples
# read stay decompressed in h5py.File(path, rdcc_nbytes=2**28, rdcc_nslots=10007).
# in {dataset}, instead of one row after another, or a list of rows, at
#     {here}
"""),
    ),
    Kind(
        "hf",
        "the formatting of Hugging Face datasets",
        (0.003, 0.5),  # "Hugging Face formatting"
        frames="datasets/.*",
        stored=True,
        wrapper=True,
        title="Ask the Hugging Face data set for whole columns or batches (with_format)",
        why="Each row is converted from Arrow by itself, value by value where it becomes lists.",
        caveat="Columns of arrays must have one shape. Indices after shuffle() or select() cost "
        "extra: flatten_indices().",
        code=hf_code,
    ),
    _once(
        "tokens",
        "tokenising, or regular expressions (re)",
        (0.001, 0.4),
        frames=r"(?:transformers|tokenizers|tiktoken|sentencepiece|nltk|spacy|regex)/.*|python/(?:re|sre_\w+)(?:/.*|\.py:.*)",
        text=r"(?i:tokeni[sz]e\w*\(|tokenizer\w*(?:\.\w+)?\()|\bre\.\w+\(|\.(?:findall|finditer|fullmatch)\(",
        title="Tokenise or match the texts once, and store the token ids or what is found",
        caveat="Stored ids belong to one tokeniser and its settings. " + KEPT_CAVEAT,
        code=joined_code("tokens"),
    ),
    _once(
        "sound",
        "resampling and filtering of signals",
        (0.001, 0.3),  # "Audio"
        frames="(?:librosa|resampy|torchaudio|soxr|audioread|pydub|scipy/signal)[/.].*",
        title="Resample and filter the signals once, before training",
        caveat="Never store what follows a random change. " + KEPT_CAVEAT,
        code=stored_code("waves"),
    ),
    Kind(
        "deepcopy",
        "copy.deepcopy",
        (0.002, 0.35),
        frames=r"python/copy\.py:.*",
        text=r"\bdeepcopy\(",
        title="Copy only what is changed, not everything (copy.deepcopy)",
        why="deepcopy visits every object inside, one at a time, in Python.",
        caveat="What is not copied is shared by the samples: nothing may write to it.",
        code=words("""\
# copy only what is changed, for example
#     sample = {{**template}}                       # values that are replaced
#     sample["boxes"] = template["boxes"].copy()  # an array that is written to
# instead of copying everything at
#     {here}
"""),
    ),
    Kind(
        "lock",
        "waiting for a lock",
        (0.0, 0.5),
        frames=r"python/threading\.py:(?:acquire|__enter__)|python/multiprocessing/synchronize\.py:.*"
        r"|(?:filelock|fasteners|portalocker)/.*",
        text=r"(?i)\bwith\s+(?:[\w.\[\]]*[._])?(?:r?lock|mutex|semaphore)[^:]*:|\.acquire\(",
        title="Do not wait for a lock in every sample",
        why="Another thread holds it while it works or waits.",
        caveat="Whatever the lock protects must be safe without it.",
        code=words("""\
# hold the lock only to replace a finished value, never while working or waiting:
#     new = make_table()          # without the lock
#     self.table = new            # one assignment: readers need no lock
# or give each worker process its own copy. It waits at
#     {here}
"""),
    ),
    Kind(
        "wait",
        "waiting for an answer",
        (0.0, 1.0),  # "Remote storage"
        frames=r"(?:urllib3|requests|httpx|httpcore|aiohttp|botocore|boto3|s3fs|gcsfs|adlfs|minio|redis|pymongo)/.*"
        r"|google/cloud/.*|fsspec/asyn\.py:.*|python/(?:http/|urllib/|socket\.py|ssl\.py|selectors\.py|queue\.py"
        r"|concurrent/|threading\.py:(?:wait|join)).*",
        text=r"\b(?:time\.)?sleep\(|\brequests\.\w+\(|\burlopen\(",
        waits=True,
    ),
)
