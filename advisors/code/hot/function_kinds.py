"""Functions known to be slow inside fetching, how they show in stacks, and what is left of them with the alternative.

A frame is compared as "place:function": the file below its library's root (`libraries.Owner.place`) and the function's
own name. What is compiled and called straight from the user's code shows as the user's line, so it is known by that
line's text.

`left` is what remains of the part's time with the alternative, at best and at worst. Sources: the headings of
docs/causes.md named, else measured for this project on two cores, both ways on the same input (µs): PNG of 256² 3,400
against 4 to 85 as an array; JPEG of 2000² made 224² 69,000 against 8,100 (draft) or 3,000 (small files), its
resize 40,000 against 5,300; csv 880 against 1.5 to 70; zlib 565 against 14; ast.literal_eval 690 against 24 (json);
minidom 2,190 against 160 (ElementTree); deepcopy 110 against 15 (pickle); YAML 199 against 28 (C loader); a generator
7.7 against 0.3; tensor elements 223 against 14 (NumPy) or 4 (one call); HDF5 rows 1,176 against 28; rows of `datasets`
588 against 69 to 159.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

Pattern = re.Pattern[str]


@dataclass(frozen=True)
class Kind:
    """`name` is how advice calls it. `frames` and `text` say where it is seen: frames anywhere in a stack, text in an
    own line from which compiled code runs.

    `around` are frames that go with it, at best: with `whole` or `stored`, so does the rest of the own function that
    calls it, and with `stored` reading what was stored costs something. `needs`: each must be seen too, one of them
    may be known by the files' suffix instead. Frames below those of another family are that one's, but for a `wrapper`,
    which only counts what no other family explains. `names`: what a source without line numbers must use. With
    `tensor`, the data set must hold one. With `waits`, it is no work but waiting. `instead_of`: less exact families
    that are not named where it is seen. `left_us`: what is left, µs a sample, where that is known.
    """

    key: str
    name: str
    left: tuple[float, float]
    left_us: tuple[float, float] | None = field(default=None, kw_only=True)
    frames: Pattern | None = None
    text: Pattern | None = None
    around: Pattern | None = None
    needs: tuple[Pattern, ...] = ()
    suffixes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    stored: bool = False
    whole: bool = False
    wrapper: bool = False
    tensor: bool = False
    waits: bool = False
    instead_of: tuple[str, ...] = ()


_PIL_DECODE = r"PIL/(?:ImageFile|\w+ImagePlugin)\.py:.*|PIL/Image\.py:(?:open|preinit|init|_open_core)"
_PIL_RESIZE = r"PIL/Image\.py:(?:resize|thumbnail|reduce)"
_PIL_REST = re.compile(rf"PIL/(?!Image\.py:(?:resize|thumbnail|reduce)$).*|{_PIL_DECODE}", re.DOTALL)
_JPEG = r"PIL/(?:JpegImagePlugin|MpoImagePlugin)\.py:.*"
_NUMPY_FILES = r"numpy/lib/_?npyio(?:_impl)?\.py"


def _re(pattern: str, flags: int = 0) -> Pattern:
    return re.compile(pattern, re.DOTALL | flags)


FUNCTION_KINDS = (
    Kind("jpeg-small", "decoding whole JPEG pictures with PIL to make them small", (0.03, 0.6),  # "JPEG decoding"
           _re(f"{_PIL_DECODE}|{_PIL_RESIZE}"), around=_re("PIL/.*"), needs=(_re(_PIL_RESIZE), _re(_JPEG)),
           suffixes=(".jpg", ".jpeg"), stored=True, instead_of=("jpeg", "picture")),
    Kind("png", "PIL's PNG decoder", (0.001, 0.25), _re(_PIL_DECODE), around=_PIL_REST,
           needs=(_re(r"PIL/PngImagePlugin\.py:.*"),), suffixes=(".png",), stored=True,
           instead_of=("picture",)),
    Kind("jpeg", "PIL's JPEG decoder", (0.45, 0.85), _re(_PIL_DECODE), needs=(_re(_JPEG),),  # "JPEG decoding"
           suffixes=(".jpg", ".jpeg"), instead_of=("picture",)),
    Kind("picture", "PIL's decoder", (0.002, 0.5), _re(_PIL_DECODE), around=_PIL_REST, stored=True),
    Kind("resize", "resizing with PIL", (0.005, 0.5), _re(_PIL_RESIZE), around=_re("PIL/.*"), stored=True,
           wrapper=True),
    Kind("cv2", "OpenCV's picture decoder", (0.005, 0.6), text=_re(r"\bcv2\.(?:imread|imdecode)\("),
           names=("cv2", "imread"), stored=True),
    Kind("transforms", "torchvision's transforms on PIL pictures", (0.3, 0.95), _re("torchvision/transforms/.*"),
           wrapper=True),
    Kind("ply", "parsing PLY files (plyfile)", (0.001, 0.1), _re(r"plyfile(?:/.*)?(?:\.py)?:.*"),
           stored=True),  # "Parsers written in Python"
    Kind("csv", "Python's csv module", (0.001, 0.2), _re(r"python/csv\.py:.*"),
           _re(r"\bcsv\.(?:reader|DictReader)\(|\bDictReader\("), names=("csv",), stored=True),
    Kind("loadtxt", "numpy.loadtxt or genfromtxt", (0.001, 0.15),
           _re(_NUMPY_FILES + ":(?:loadtxt|genfromtxt|fromregex)"), stored=True),
    Kind("read_csv", "pandas.read_csv", (0.001, 0.15), _re("pandas/io/.*"), around=_re("pandas/.*"), stored=True),
    Kind("rows", "taking rows of a DataFrame (.iloc, .loc)", (0.01, 0.3),  # "DataFrame rows"
           _re(r"pandas/core/(?:indexing\.py:.*|frame\.py:(?:_ixs|xs|iterrows|itertuples|_get_value))"),
           around=_re("pandas/.*"), names=("iloc",)),
    Kind("json", "Python's json module", (0.002, 0.5), _re(r"python/json/.*"), _re(r"\bjson\.loads?\("),
           stored=True),
    Kind("literal", "ast.literal_eval", (0.002, 0.2), _re(r"python/ast\.py:.*"), _re(r"\bliteral_eval\("),
           stored=True),
    Kind("yaml", "the YAML parser", (0.001, 0.25), _re(r"(?:yaml|ruamel)(?:/.*|\..*)"), _re(r"\byaml\.\w*load\w*\("),
           stored=True),
    Kind("xml", "the XML parser", (0.002, 0.35), _re(r"python/xml/.*|lxml/.*|xmltodict.*"),
           _re(r"\b(?:ET|ElementTree|etree|minidom)\.\w+\("), stored=True),
    Kind("npz", "reading .npz archives (zip, zlib)", (0.005, 0.35), _re(r"numpy/lib/.*|python/zipfile.*"),
           needs=(_re(_NUMPY_FILES + ":(?:__getitem__|zipfile_factory)"),), suffixes=(".npz",), stored=True,
           instead_of=("npy", "compressed")),  # "Compressed archives"
    Kind("npy", "opening an .npy file for each sample", (0.02, 0.7),
           _re(_NUMPY_FILES + r":load|numpy/lib/_?format(?:_impl)?\.py:.*"), stored=True),
    Kind("compressed", "decompressing (gzip, zlib)", (0.005, 0.4),
           _re(r"python/(?:gzip|bz2|lzma|zlib|_compression|compression|zipfile)(?:/.*|\.py:.*)"),
           _re(r"\b(?:zlib|gzip|bz2|lzma|zstd\w*|zstandard|blosc2?|lz4)\.(?:\w+\.)?decompress\w*\(|\bdecompress\w*\("),
           names=("decompress",), stored=True),
    Kind("pickle", "unpickling Python objects (pickle)", (0.002, 0.5),
           _re(r"python/pickle\.py:.*|(?:dill|cloudpickle|joblib)/.*"),
           _re(r"\b(?:c?[pP]ickle|dill|cloudpickle|joblib)\.loads?\("), names=("pickle",), stored=True),
    Kind("listing", "listing a folder for each sample", (0.001, 0.3),  # one look-up in a list is left
           _re(r"python/(?:glob|fnmatch)\.py:.*|python/pathlib(?:/.*|\.py):(?:iterdir|r?glob|_?scandir|_select\w*|walk)"
               r"|python/os\.py:_?walk"),
           _re(r"\b(?:listdir|scandir|i?glob\.i?glob|os\.walk)\(|\.(?:iterdir|r?glob)\("),
           around=_re(r"python/pathlib(?:/.*|\.py):.*")),
    Kind("torch-load", "torch.load", (0.01, 0.4), _re(r"torch/(?:serialization|_weights_only_unpickler)\.py:.*"),
           stored=True),
    Kind("h5-open", "opening an HDF5 file for each sample (h5py)", (0.0, 0.3),
           _re(r"h5py/_hl/files\.py:(?:__init__|make_fid|close|__exit__)")),
    Kind("h5", "reading HDF5 row by row (h5py)", (0.005, 0.6), _re("h5py/.*"), _re(r"\bh5py\.|\.read_direct\("),
           stored=True),  # "HDF5 and Zarr chunks"
    Kind("zarr", "reading zarr chunks", (0.01, 0.7), _re("(?:zarr|numcodecs)/.*")),
    Kind("hf", "the formatting of Hugging Face datasets", (0.003, 0.5), _re("datasets/.*"), stored=True,
           wrapper=True),  # "Hugging Face formatting"
    Kind("tokens", "tokenising", (0.001, 0.2),
           _re("(?:transformers|tokenizers|tiktoken|sentencepiece|nltk|spacy)/.*"),
           _re(r"tokeni[sz]e\w*\(|tokenizer\w*(?:\.\w+)?\(", re.IGNORECASE), names=("tokenizer",), stored=True),
    Kind("re", "regular expressions (re)", (0.001, 0.45), _re(r"python/(?:re|sre_\w+)(?:/.*|\.py:.*)|regex/.*"),
           _re(r"\bre\.\w+\(|\.(?:findall|finditer|fullmatch)\("), stored=True),
    Kind("sound", "resampling and filtering of signals", (0.001, 0.3),
           _re("(?:librosa|resampy|torchaudio|soxr|audioread|pydub|scipy/signal)/.*"), stored=True),  # "Audio"
    Kind("deepcopy", "copy.deepcopy", (0.002, 0.35), _re(r"python/copy\.py:.*"), _re(r"\bdeepcopy\(")),
    Kind("generator", "making a random generator for each sample", (0.002, 0.35), _re("numpy/random/.*"),
           _re(r"\b(?:default_rng|RandomState|SeedSequence|PCG64|Philox|MT19937|Generator)\("),
           names=("default_rng",)),
    Kind("elements", "reading a tensor element by element", (0.003, 0.35),  # "Tensor elements one by one"
           text=_re(r"\[[^\]]*\]\.(?:item|tolist)\(\)|\b(?:float|int|bool)\([\w.]+\[[^\]]+\]\)"), tensor=True,
           whole=True),
    Kind("lock", "waiting for a lock", (0.0, 0.5),
           _re(r"python/threading\.py:(?:acquire|__enter__)|python/multiprocessing/synchronize\.py:.*"
               r"|(?:filelock|fasteners|portalocker)/.*"),
           _re(r"\bwith\s+(?:[\w.\[\]]*[._])?(?:r?lock|mutex|semaphore)[^:]*:|\.acquire\(", re.IGNORECASE)),
    Kind("wait", "waiting for an answer", (0.0, 1.0),  # "Remote storage"
           _re(r"(?:urllib3|requests|httpx|httpcore|aiohttp|botocore|boto3|s3fs|gcsfs|adlfs|minio|redis|pymongo)/.*"
               r"|google/cloud/.*|fsspec/asyn\.py:.*|python/(?:http/|urllib/|socket\.py|ssl\.py|selectors\.py|queue\.py"
               r"|concurrent/|subprocess\.py|threading\.py:(?:wait|join)).*"),
           _re(r"\b(?:time\.)?sleep\(|\brequests\.\w+\(|\burlopen\("), waits=True),
)  # fmt: skip
