"""Library calls for which a faster way is known: what to use in place of them.

A row is found by the source of the line that costs, and by the call below it that takes most. It is
looked for where nothing more exact is known: no row of `hot/function_kinds.py`, no shape of
`shapes.py`. What is left of the line's time depends on sizes, so the ranges are wide.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..schema.report_model import Range


class Better(NamedTuple):
    """What its line or the call below it matches, the advice's title, what to do, and the part of
    the line's time that is left, at best and at worst."""

    pattern: str
    title: str
    do: str
    left: tuple[float, float]

    def remains(self, share: Range) -> tuple[float, float]:
        """What is left of a stage of which the line takes this share, at best and at worst."""
        best, worst = self.left
        return 1 - share.high * (1 - best), 1 - share.low * (1 - worst)


_LITTLE, _SOME, _HALF = (0.005, 0.3), (0.03, 0.5), (0.1, 0.75)

_LIBRARIES = {"np": "numpy", "torch": "torch", "pd": "pandas"}

BETTER_CALLS = (
    Better(
        r"loads\(.*dumps\(|[tT]ensor\(.*\.tolist\(\)|array\(.*fromarray\(|fromarray\(.*array\(|"
        r"decode\(.*encode\(",
        "Remove a conversion that is undone right away",
        "use the original, or a copy of it.",
        (0.1, 0.6),
    ),
    Better(
        r"\binspect\.stack\(|\b(?:extract|format|print)_(?:stack|exc|tb)\(|\bfindCaller\b",
        "Do not look at the call stack for each sample",
        "leave it out, or follow sys._getframe(1).f_back: inspect.stack() reads source files for "
        "each frame.",
        (0.005, 0.2),
    ),
    Better(
        r"\b(?:wandb|mlflow|add_scalars?|add_image|add_figure|add_histogram|savefig|tqdm)\b",
        "Log less often, and in the loop",
        "every hundredth batch, in the training process.",
        _LITTLE,
    ),
    Better(
        r"\b(?:njit|jit\.\w+|torch\.compile|jax\.jit|lambdify|from_pretrained|spacy\.load|"
        r"load_model|load_state_dict|hub\.load|create_model)\b",
        "Load or compile this once in each worker",
        "self.model at first use; what is made in __getitem__ is made for each sample.",
        _LITTLE,
    ),
    Better(
        r"\bself\.\w*(?:model|backbone|vae|extractor|processor)\(",
        "Run the model on whole batches, or store its outputs",
        "store what is not augmented before training; else run it in the training step, on the "
        "device, under torch.no_grad().",
        _SOME,
    ),
    Better(
        r"\bgc\.\w+\(|\bempty_cache\(|\bcuda\.synchronize\(|^print\(|\b(?:flush|fsync|getsizeof|"
        r"memory_info|virtual_memory|memory_allocated|memory_summary|nvidia_smi|tracemalloc)\b",
        "Leave this out",
        "training does without it; or do it once an epoch.",
        (0.0, 0.1),
    ),
    # Arrays. np.vectorize over 65,536 values: 14,260 µs against 18; np.convolve of 32,000 and 8,000
    # values 118,000 against 1,540; 64 of 300,000 drawn 6,100 against 7.
    Better(
        r"\bnp\.random\.shuffle\(|\brng\.shuffle\(",
        "Shuffle with a permutation of indices, not row by row",
        "x = x[rng.permutation(len(x))]: shuffle() swaps the rows of an array one after another, "
        "in Python.",
        (0.01, 0.4),
    ),
    Better(
        r"\b(?:manual_seed|random\.seed|set_state|setstate|get_rng_state|set_rng_state|"
        r"fork_rng)\(",
        "Seed once in each worker, not for each sample",
        "rng = np.random.default_rng((seed, index)) costs a tenth of a new Mersenne Twister, where "
        "a sample needs a seed of its own.",
        _SOME,
    ),
    Better(
        r"(?:\b(?:np|torch)\.|'s )(?:tile|repeat\w*|kron|broadcast_to)\(",
        "Broadcast on the device instead of repeating values",
        "send the values once; x.expand(n, -1), or plain broadcasting after the copy.",
        _SOME,
    ),
    Better(
        r"Tensor\.__iter__",
        "Go through a list (tolist()), not through a tensor",
        "call tolist() once, before the loop: each element of a tensor is a tensor.",
        _SOME,
    ),
    Better(
        r"\bb?float16\b|\.half\(",
        "Compute in float32 on the CPU, not in float16",
        "x.astype(np.float32) first, and float16 at the end: CPUs convert each value there and "
        "back.",
        _SOME,
    ),
    Better(
        r"\b(?:vectorize|frompyfunc|apply_along_axis)\b",
        "Compute on the whole array, not value by value",
        "np.where(x <= low, 0.0, np.where(x >= high, 1.0, (x - low) / (high - low))), for example: "
        "NumPy calls a Python function for one value after another.",
        (0.001, 0.2),
    ),
    Better(
        r"\bnp\.(?:convolve|correlate)\(|numpy's (?:convolve|correlate)\(",
        "Convolve long signals by FFT",
        "scipy.signal.fftconvolve(signal, kernel), or oaconvolve for a long signal: np.convolve "
        "takes the product of both lengths.",
        (0.02, 0.7),
    ),
    Better(
        r"random\.choice\((?!.*\bp\s*=).*\breplace\s*=\s*False|"
        r"\b(?:permutation|randperm)\(.*\)\s*\[\s*:",
        "Draw a few of many without permuting all",
        "rng = np.random.default_rng(), once in each worker; then rng.choice(n, k, replace=False), "
        "or random.sample(range(n), k).",
        (0.0005, 0.15),
    ),
    Better(
        r"\.(?:add|subtract|multiply|maximum|minimum|logical_or)\.at\(",
        "Use np.bincount or reduceat, not ufunc.at",
        "np.bincount(index, weights, minlength=n) sums by index; for maxima sort by index, then "
        "np.maximum.reduceat; torch has index_add_ and scatter_reduce_.",
        _SOME,
    ),
    Better(
        r"\b(?:eye|one_hot)\(",
        "Send class indices, and one-hot encode them on the device",
        "keep integers in the batch; F.one_hot(labels, n) after the copy. np.eye(n)[labels] "
        "makes n² numbers each time.",
        _SOME,
    ),
    Better(
        r"sort\w*\(.*\)\s*\[[^\]]*:|\b(?:nlargest|nsmallest)\(",
        "Select the top k instead of sorting everything",
        "np.argpartition(values, k)[:k], torch.topk(values, k), or heapq.nsmallest(k, values).",
        _SOME,
    ),
    Better(
        r"\bunique\(.*\b(?:axis|dim)=",
        "Make one integer of each row, and use np.unique on these",
        "give each row one integer key first: ((rows - rows.min(0)) * strides).sum(1). Sorting "
        "whole rows takes several times as long.",
        _SOME,
    ),
    Better(
        r"\bunique\w*\(|\bCounter\(|\bvalue_counts\(",
        "Count integers with np.bincount, instead of sorting or hashing them",
        "counts = np.bincount(values, minlength=n), and np.flatnonzero(counts) are the unique "
        "ones; what stays the same for a sample is counted once.",
        _SOME,
    ),
    Better(
        r"\bhistogram\w*\(",
        "Count with np.bincount instead of np.histogram",
        "for bins of equal width: np.bincount(((x - low) * (bins / (high - low))).astype(np.intp), "
        "minlength=bins).",
        _SOME,
    ),
    Better(
        r"\b(?:isin|in1d|setdiff1d|intersect1d|union1d|setxor1d)\(",
        "Look integers up in a mask instead of comparing sorted arrays",
        "mask = np.zeros(n, bool), mask[ids] = True once; then mask[values].",
        _SOME,
    ),
    Better(
        r"\b(?:nan)?(?:percentile|quantile|median)\(",
        "Estimate quantiles once, or from a part of the values",
        "store them for each file, or take every tenth value (x[::10]): np.percentile copies and "
        "partitions all of them.",
        (0.02, 0.4),
    ),
    Better(
        r"\bnp\.pad\(|\bnumpy\.pad\(",
        "Fill one array of zeros instead of calling np.pad",
        "out = np.zeros(shape, x.dtype); out[: len(x)] = x. np.pad takes 20 µs before it copies.",
        _HALF,
    ),
    Better(
        r"\bmultivariate_normal\b",
        "Factor the covariance once",
        "L = np.linalg.cholesky(cov), once; then mean + rng.standard_normal((k, n)) @ L.T.",
        _SOME,
    ),
    Better(
        r"\blinalg\b|\b(?:svd|eigv?a?l?s?h?|pinv|lstsq|inv|det|slogdet|cholesky|qr)\(",
        "Decompose matrices once, or a batch of them in one call",
        "store what depends on the sample alone; np.linalg and torch.linalg take stacks (n, k, k); "
        "solve() is faster than inv().",
        _SOME,
    ),
    Better(
        r"\b(?:meshgrid|indices|linspace|arange|affine_grid|tril|triu)\(|\b[mo]grid\[",
        "Make grids and masks once for each size",
        "keep them in a dict by shape, or in a function with functools.lru_cache; or send lengths, "
        "and make masks on the device.",
        _SOME,
    ),
    Better(
        r"\b(?:isnan|isfinite|isinf|array_equal|allclose|nan_to_num)\(|^assert\b|\b_?validate\w*\(",
        "Check the data once, not each time it is read",
        "run the check over all samples before training, and leave it out here (or python -O for "
        "assert).",
        (0.0, 0.3),
    ),
    Better(
        r"\bnp\.memmap\(|\bopen_memmap\(|\bmmap\.mmap\(",
        "Map the file once in each worker",
        "self.data = np.memmap(...) at first use, then self.data[index].",
        _HALF,
    ),
    Better(
        r"allow_pickle|\bdtype=(?:object|[\"']O[\"'])",
        "Store plain arrays instead of arrays of objects",
        "one array of all values and one of offsets; rows are values[offsets[i] : offsets[i + 1]].",
        _SOME,
    ),
    Better(
        r"\b(?:cdist|pdist|pairwise_\w+|kneighbors|query_ball_point|knn\w*|[cK]+DTree|BallTree|"
        r"Delaunay|ConvexHull)\b",
        "Find neighbours once, with a tree",
        "scipy.spatial.cKDTree(points).query(...) needs n log n where all distances are n²; store "
        "the neighbours of what does not change.",
        (0.01, 0.5),
    ),
    Better(
        r"\bsparse\b|\b(?:coalesce|to_?dense|toarray|tocs[rc]|getrow|getcol)\(|_coo\b",
        "Keep the arrays of a CSR matrix, and slice them",
        "row i is indices[indptr[i] : indptr[i + 1]] and the same slice of data: indexing a sparse "
        "matrix makes a new one, and a COO tensor is searched as a whole.",
        (0.01, 0.4),
    ),
    Better(
        r"\bscipy\.stats\b|\b(?:pdf|cdf|ppf|rvs|logpdf)\(",
        "Use NumPy's generator or scipy.special, not scipy.stats",
        "rng.normal(size=...), scipy.special.ndtr: each call of a scipy.stats distribution takes "
        "50 to 100 µs to check its arguments.",
        (0.02, 0.4),
    ),
    # Pictures and volumes. getdata of 128²: 2,300 µs against 10.
    Better(
        r"\.seek\(",
        "Store the frames as an array, instead of seeking in the file",
        "np.save all frames before training, and map them: a picture file is read from its first "
        "frame to the one that is asked for, and decoded, for each sample.",
        (0.005, 0.4),
    ),
    Better(
        r"\bfromarray\(|\bto_pil_image\(|\bToPILImage\b|\bpil_to_tensor\(|\bto_tensor\(|"
        r"\bToTensor\b|/=? *(?:255|127\.5)\b",
        "Keep uint8 arrays, and convert to float on the device",
        "torch.from_numpy(array).permute(2, 0, 1) in the worker, .float().div_(255) after the "
        "copy.",
        _HALF,
    ),
    Better(
        r"(?:\b(?:F|TF|T|A|v2|functional|transforms)\.|'s )[nN]ormalize\(",
        "Normalise the batch on the device",
        "in the training step, after the copy; or store normalised data.",
        _HALF,
    ),
    Better(
        r"(?:\b(?:np|torch|cv2|F|TF)\.|'s )(?:flip\w*|roll|rot90|[hv]flip)\(",
        "Flip and roll the batch on the device",
        "with a mask of the samples to flip, after the copy.",
        _HALF,
    ),
    Better(
        r"\bgetdata\(",
        "Make an array of the picture itself, not of a list of its pixels",
        "np.asarray(picture): getdata() makes a tuple of Python numbers of each pixel.",
        (0.002, 0.1),
    ),
    Better(
        r"\b(?:gaussian_filter|zoom|map_coordinates|affine_transform|distance_\w+|"
        r"GaussianBlur|ndimage|skimage|warpAffine|remap|medianBlur|median_filter)\b",
        "Crop before filtering or warping, or do it for the batch on the device",
        "order=1 instead of 3; cv2's GaussianBlur, warpAffine and remap are several "
        "times as fast as scipy's.",
        _SOME,
    ),
    Better(
        r"\b(?:grid_sample|interpolate|conv[123]d|avg_pool\w*|max_pool\w*)\(",
        "Do this for the whole batch, on the device, or with a smaller kernel",
        "move it to the training step, after the copy to the device; a kernel that is separable "
        "(Gaussian, box) takes two passes of one dimension.",
        _HALF,
    ),
    Better(
        r"\b(?:rotate|ImageEnhance|ImageFilter|ImageOps|ColorJitter|adjust_\w+|enhance|"
        r"elastic\w*|solarize|equalize|posterize)\b",
        "Augment after the picture is made small, or for the batch on the device",
        "crop or resize first; torchvision.transforms.v2 and kornia take whole batches on the "
        "device.",
        _HALF,
    ),
    Better(
        r"\b(?:nib|nibabel|get_fdata|dataobj)\b",
        "Read the slice that is used from the volume",
        "np.asarray(image.dataobj[..., z]) reads a part of an uncompressed .nii, where get_fdata() "
        "converts all of it to float64; or store volumes as .npy and map them.",
        (0.01, 0.5),
    ),
    Better(
        r"\b(?:pydicom|dcmread|sitk|SimpleITK|tifffile|rasterio|openslide|czifile|loadmat|netCDF4|"
        r"cfgrib|astropy|wfdb|mne|uproot|pretty_midi|music21|mido|pynwb|trimesh|open3d|o3d|laspy)\b",
        "Convert the files once to arrays that can be mapped",
        "np.save each volume before training; then np.load(path, mmap_mode='r')[part].",
        (0.005, 0.4),
    ),
    Better(
        r"\b(?:decord|VideoReader|av\.open|VideoCapture|read_video|imageio)\b",
        "Decode only the frames that are used",
        "keep the reader open, seek to the key frame before them; or store the frames that "
        "training uses, small, before it begins.",
        _SOME,
    ),
    Better(
        r"\b(?:sf|soundfile|wavfile|torchaudio)\.\w*(?:read|load)\w*\(",
        "Read only the window of the recording that is used",
        "soundfile.read(path, start=first, frames=n); torchaudio.load(path, frame_offset=first, "
        "num_frames=n).",
        _SOME,
    ),
    Better(
        r"\b(?:stft|[sS]pectrogram|mfcc|melspectrogram|MelSpectrogram)\b",
        "Compute spectrograms for the batch on the device, or once",
        "send waveforms and transform the batch after the copy; or store what is not augmented.",
        _SOME,
    ),
    Better(
        r"\b(?:tempfile|NamedTemporaryFile|mkstemp|copyfile|shutil)\b",
        "Decode from memory, without a temporary file",
        "io.BytesIO(data) in place of the file.",
        _SOME,
    ),
    # Tables and text
    Better(
        r"\.tell\(",
        "Count positions instead of calling tell() on a text file",
        "open it in binary and add up len(line): tell() of a text file decodes its buffer again.",
        _LITTLE,
    ),
    Better(
        r"\blinecache\b|\bgetline\(",
        "Keep the offsets of all lines, and seek",
        "offsets once, in an array; then file.seek(offsets[i]), file.readline().",
        _LITTLE,
    ),
    Better(
        r"\b(?:read_row_group\w*|read_table|iter_batches|read_parquet|read_feather|read_excel|"
        r"read_hdf|to_table|to_batches)\(",
        "Read a table file or row group once, for all its samples",
        "keep the last row group in each worker, and draw samples of one group together; or store "
        "columns as .npy and map them.",
        (0.005, 0.4),
    ),
    Better(
        r"\b(?:env|db|conn?)\.(?:begin|cursor)\(|\btxn\b",
        "Keep one read transaction open in each worker",
        "self.txn = env.begin(buffers=True) at first use; then self.txn.get(key).",
        _HALF,
    ),
    Better(
        r"\b(?:df|frame|table|data)\w*\.values\b(?!\()",
        "Make the table's array once, not for each sample",
        "self.array = df.to_numpy() in __init__: .values copies a table of several dtypes.",
        _LITTLE,
    ),
    Better(
        r"\bgetmembers?\(|\bextractfile\(",
        "Look members of the tar file up in a dict",
        "members = {each.name: each for each in tar.getmembers()}, once in each worker; then "
        "tar.extractfile(members[name]).",
        (0.001, 0.1),
    ),
    Better(
        r"\.apply\(|\.applymap\(|\.iterrows\(|\.itertuples\(|\.map\(lambda|\.transform\(lambda",
        "Compute on whole columns, once for all rows",
        "columns as NumPy arrays, and one operation for all rows, in __init__.",
        _LITTLE,
    ),
    Better(
        r"\b(?:to_datetime|strptime|strftime|fromisoformat|Timestamp|Timedelta|DatetimeIndex|"
        r"date_range|dateutil|tz_\w+|pytz|isocalendar|holidays)\b",
        "Parse dates once, and keep integers",
        "pd.to_datetime(column, format=...).astype('int64') for all rows in __init__; calendar "
        "fields by integer arithmetic.",
        _LITTLE,
    ),
    Better(
        r"\bpd\.(?:concat|DataFrame|Series)\(|pandas's (?:Series|DataFrame)\.",
        "Use NumPy arrays for each sample, not pandas",
        "columns as arrays once (df[name].to_numpy()); each pandas call takes 10 to 500 µs, "
        "whatever the size.",
        _LITTLE,
    ),
    Better(
        r"\.take\(.*\.to_py|pyarrow's (?:\w+\.)*take\(",
        "Combine the chunks of the table once, and slice rows",
        "table = table.combine_chunks() where it is opened, then table.slice(i, 1): take() goes "
        "through all chunks of each column.",
        _LITTLE,
    ),
    Better(
        r"\b(?:as_py|to_pylist|to_pydict|to_pandas)\(",
        "Read Arrow columns as arrays, not as Python objects",
        "column.to_numpy(), or table.slice(i, n) for a whole batch; rows by value_lengths and "
        "flatten() for lists.",
        _SOME,
    ),
    Better(
        r"\b(?:xarray|dask)\b|\.(?:isel|sel|compute)\(",
        "Load xarray or dask data into NumPy arrays once",
        "array = ds[name].values (or .load()) in each worker, then array[index]: isel() takes up "
        "to a millisecond; chunks should fit what a sample reads.",
        (0.01, 0.5),
    ),
    Better(
        r"\.execute\w*\(|\bread_sql\w*\(",
        "Ask the database once for a batch",
        "SELECT ... WHERE id IN (...) in __getitems__, on a connection that stays open; or read "
        "the table into arrays once.",
        _SOME,
    ),
    Better(
        r"\b(?:b64decode|b64encode|fromstring|unhexlify|fromhex)\(|\beval\(",
        "Store bytes instead of text",
        "decode once before training, and store arrays.",
        _SOME,
    ),
    Better(
        r"\bstruct\.unpack\w*\(|\bint\.from_bytes\(",
        "Read all records at once with a structured dtype",
        "np.frombuffer(data, dtype=[('x', '<f4'), ...]).",
        _LITTLE,
    ),
    Better(
        r"\bfloat\(\w+\) for |\bint\(\w+\) for |map\((?:float|int),|\.split\(",
        "Parse the text once, and store numbers",
        "np.save the parsed values before training.",
        _LITTLE,
    ),
    # Plain Python
    Better(
        r"\b(?:set|frozenset)\(|\blist\([\w.]+\.(?:keys|values|items)\(",
        "Make this set or list once, or redraw until it fits",
        "in __init__; to draw what is not in a small set, draw again while it is.",
        _LITTLE,
    ),
    Better(
        r"\blist\(range\(|\bsorted\(range\(",
        "Draw numbers without a list of all of them",
        "rng.integers(n), or random.sample(range(n), k).",
        _LITTLE,
    ),
    Better(
        r"\b(?:combinations|product|permutations)\(",
        "Make pairs with index arrays, not with itertools",
        "np.triu_indices(n, 1) for pairs, np.meshgrid or repeat and tile for products.",
        _SOME,
    ),
    Better(
        r"np\.random\.choice\([^,]*$",
        "Draw an index, not an item of a list",
        "items[rng.integers(len(items))]: np.random.choice makes an array of the whole list.",
        _LITTLE,
    ),
    Better(
        r"\brandom\.(?:shuffle|sample|choices|choice)\(",
        "Draw with NumPy, many at once",
        "rng.permutation(n), rng.integers(0, n, k), or for weights np.searchsorted(cumulative, "
        "rng.random(k)) with the cumulative sums made once.",
        _SOME,
    ),
    Better(
        r"\b(?:randn|randn_like|rand_like|standard_normal|normal_?|uniform_?|rand|poisson|dropout|"
        r"bernoulli)\(",
        "Draw noise for the batch, on the device, or in float32",
        "torch.randn(shape, device=device) in the training step; on the CPU "
        "rng.standard_normal(shape, dtype=np.float32).",
        _HALF,
    ),
    Better(
        r"\bmultinomial\(",
        "Draw with cumulative sums that are computed once",
        "cumulative = np.cumsum(weights), once; np.searchsorted(cumulative, rng.random(k) * "
        "cumulative[-1]).",
        _LITTLE,
    ),
    Better(
        r"\b(?:asdict|astuple|model_validate|model_dump|parse_obj|TypeAdapter|typeguard|beartype|"
        r"jaxtyping|check_type)\b|pydantic",
        "Do not copy or check whole records for each sample",
        "use the attributes themselves: asdict() copies everything inside, and a model checks "
        "every field.",
        _LITTLE,
    ),
    Better(
        r"\b(?:OmegaConf|omegaconf|DictConfig|ml_collections|ConfigDict|yacs)\b",
        "Read the settings once into plain attributes",
        "self.size = int(cfg.size) in __init__, or OmegaConf.to_container(cfg, resolve=True): each "
        "access of a config object walks and checks the tree.",
        _LITTLE,
    ),
    Better(
        r"\b(?:signature|get_type_hints|getsource|getmodule|import_module|__import__|isclass)\(|"
        r"^(?:import|from)\b",
        "Inspect and import once, not for each sample",
        "at the top of the module or in __init__.",
        _LITTLE,
    ),
    Better(
        r"\b(?:warn|simplefilter|catch_warnings)\(|\bwarnings\b",
        "Fix what warns, instead of warning for each sample",
        "change what the warning names; a filter alone still pays for each warning.",
        _LITTLE,
    ),
    Better(
        r"\b(?:exists|isfile|isdir|getsize|getmtime|stat|realpath|resolve|is_file|abspath|expanduser|"
        r"expandvars|relpath)\(",
        "Look at files once, in __init__",
        "keep what is found in a list or dict; each look is a request to the file system.",
        _LITTLE,
    ),
    Better(
        r"\b(?:ThreadPool\w*|ProcessPool\w*|Pool|Thread|Process)\(",
        "Make the pool once in each worker",
        "self.pool at first use, then self.pool.map for a whole batch in __getitems__; worker "
        "processes may already do what the pool does.",
        _HALF,
    ),
    Better(
        r"\basyncio\.run\(|\bnew_event_loop\(|run_until_complete\(",
        "Fetch a whole batch concurrently",
        "one event loop in each worker, and asyncio.gather for all samples of a batch in "
        "__getitems__.",
        _HALF,
    ),
    Better(
        r"\.pop\(0\)|\.insert\(0,",
        "Use a deque to take items from the front",
        "collections.deque, with popleft() or appendleft(): a list moves all remaining items.",
        (0.0, 0.1),
    ),
    Better(
        r"\bsum\(.*, *\[\]\)",
        "Join lists with itertools.chain, not with sum()",
        "list(itertools.chain.from_iterable(lists)): sum() copies all that is joined so far.",
        (0.0, 0.1),
    ),
    Better(
        r"\.remove\(|\bdel \w+(?:\.\w+)*\[",
        "Remove from a set or dict, not from the middle of a list",
        "a dict keeps the order; or mark items as used, and drop them all at once.",
        _LITTLE,
    ),
    Better(
        r"\b(?:state_dict|torch\.save|np\.savez?\w*|dumps?|to_csv|to_json)\(",
        "Save this less often",
        "every thousandth batch, or only what has changed since; hand the rest to a thread.",
        (0.0, 0.3),
    ),
    Better(
        r"\bnx\.|networkx|\bto_networkx\(",
        "Turn graphs into arrays once",
        "edge_index arrays and a CSR of neighbours; scipy.sparse.csgraph and igraph compute paths "
        "and components many times as fast as networkx.",
        _LITTLE,
    ),
    Better(
        r"\b(?:k_hop_subgraph|subgraph|to_undirected|remove_self_loops|neighbors?)\(",
        "Take neighbours from a CSR made once, not from all edges",
        "neighbours of i are col[rowptr[i] : rowptr[i + 1]].",
        _LITTLE,
    ),
    Better(
        r"\btorch\.(?:tensor|Tensor|FloatTensor|LongTensor)\(|\bnp\.array\(|\bTensor\(",
        "Hand arrays to torch, not lists",
        "keep np.ndarray and use torch.from_numpy, or np.stack of the list first: a list is read "
        "one value after another.",
        (0.03, 0.2),
    ),
    Better(
        r"==.*\.(?:any|all|max|sum)\(",
        "Look rows up in a set or a sorted array instead of comparing with all",
        "give each row one integer; np.searchsorted, a set or a mask finds it.",
        _LITTLE,
    ),
    Better(
        r"\.(?:astype|float|double|to)\(|\bas_?contiguous\w*\(|\.contiguous\(",
        "Store the data in the dtype and layout of the batch, or convert on the device",
        "save the data as they are needed; or keep small integers in the batch, and convert after "
        "the copy.",
        _HALF,
    ),
)


def better_call(text: str | None, call: str | None) -> Better | None:
    """The row for this line, below which that call takes most; None where there is none."""
    line = f"{text or ''} # {call or ''}("
    if (text or "").isidentifier():  # a function's name may stand for its line
        line = f"{text}({line}"
    for row in BETTER_CALLS:
        if found := re.search(row.pattern, line):
            library = _LIBRARIES.get(found[0].partition(".")[0])
            # The time of what is given to a call of one library may be another's.
            if library is None or "'s " not in line or f"# {library}'s" in line:
                return row
    return None
