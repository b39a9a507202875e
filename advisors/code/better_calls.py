"""Library calls for which a faster way is known: what to use in place of them.

A row is found by the source of the line that costs, and by the call below it that takes most. It is
looked for where nothing more exact is known: no row of `hot/function_kinds.py`, no shape of
`shapes.py`. What is left of the line's time depends on sizes, so the ranges are wide.
"""

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
        r"loads\(.*dumps\(|(?:[tT]ensor|array)\(.*\.to_?list\(\)|array\(.*fromarray\(|fromarray\(.*array\(|"
        r"decode\(.*encode\(|\.clone\(\)\.detach\(|\.detach\(\)\.clone\(",
        "Remove a conversion or copy that is not needed",
        "use the original; if it is changed, one copy of it.",
        (0.1, 0.6),
    ),
    Better(
        r"\b(?:wandb|mlflow|add_scalars?|add_image|add_figure|add_histogram|savefig|tqdm)\b|"
        r"\b(?:state_dict|torch\.save|np\.savez?\w*|dumps?|to_csv|to_json)\(",
        "Log or save less often, and in the loop",
        "every hundredth batch, in the training process, and only what has changed since.",
        _LITTLE,
    ),
    Better(
        r"\b(?:njit|jit\.\w+|torch\.compile|jax\.jit|lambdify|from_pretrained|spacy\.load|load_model|load_state_dict|"
        r"hub\.load|create_model|(?:open_)?memmap|mmap\.mmap)\b|\b(?:manual_seed|random\.seed|set_state|setstate|"
        r"[gs]et_rng_state|fork_rng|default_rng|RandomState|SeedSequence|PCG64|Philox|MT19937|Generator)\(",
        "Load, map, compile or seed this once in each worker, not for each sample",
        "self.model at first use; self.rng of get_worker_info().seed, or default_rng((seed, i)).",
        (0.01, 0.4),
    ),
    Better(
        r"\bself\.\w*(?:model|backbone|vae|extractor|processor)\(",
        "Run the model on whole batches, or store its outputs",
        "store what is not augmented; else run it in the training step, under torch.no_grad().",
        _SOME,
    ),
    # Arrays. np.vectorize over 65,536 values: 14,260 µs against 18; np.convolve of 32,000 and 8,000
    # values 118,000 against 1,540; 64 of 300,000 drawn 6,100 against 7.
    Better(
        r"Tensor\.__iter__",
        "Go through a list (tolist()), not through a tensor",
        "call tolist() once, before the loop: each element of a tensor is a tensor.",
        _SOME,
    ),
    Better(
        r"\bb?float16\b|\.half\(",
        "Compute in float32 on the CPU, not in float16",
        "x.astype(np.float32) first, float16 at the end: CPUs convert each value to and fro.",
        _SOME,
    ),
    Better(
        r"\bnp\.(?:convolve|correlate)\(|numpy's (?:convolve|correlate)\(",
        "Convolve long signals by FFT",
        "scipy.signal.oaconvolve(signal, kernel): np.convolve takes the product of both lengths.",
        (0.02, 0.7),
    ),
    Better(
        r"random\.choice\((?!.*\bp\s*=).*\breplace\s*=\s*False|np\.random\.choice\([^,]*$|"
        r"\b(?:permutation|randperm)\(.*\)\s*\[\s*:|\[[\w.]*(?:permutation|randperm)\(len\(",
        "Draw indices, not items of a list, without permuting all",
        "np.random.default_rng().choice(n, k, replace=False), random.sample(range(n), k), "
        "items[rng.integers(len(items))]: np.random.choice makes an array of a whole list.",
        (0.001, 0.2),
    ),
    Better(
        r"sort\w*\(.*\)\s*\[[^\]]*:|\b(?:nlargest|nsmallest)\(",
        "Select the top k instead of sorting everything",
        "np.argpartition(values, k)[:k], torch.topk(values, k), or heapq.nsmallest(k, values).",
        _SOME,
    ),
    Better(
        r"\b(?:unique|histogram)\w*\(|\bCounter\(|\bvalue_counts\(|"
        r"\.(?:add|subtract|multiply|maximum|minimum|logical_or)\.at\(",
        "Count integers with np.bincount or reduceat, instead of ufunc.at, sorting or hashing",
        "counts = np.bincount(values, weights, n); np.flatnonzero(counts) are the unique ones.",
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
        "store them for each file, or take every tenth value, x[::10]: all of them are sorted.",
        (0.02, 0.4),
    ),
    Better(
        r"\blinalg\b|\b(?:svd|eigv?a?l?s?h?|pinv|lstsq|inv|det|slogdet|cholesky|qr)\(",
        "Decompose matrices once, or a batch of them in one call",
        "store what depends on the sample alone; np.linalg and torch.linalg take stacks (n, k, k).",
        _SOME,
    ),
    Better(
        r"\b(?:meshgrid|indices|linspace|arange|affine_grid|tril|triu)\(|\b[mo]grid\[",
        "Make grids and masks once for each size",
        "keep them in a dict by shape; or send lengths, and make masks on the device.",
        _SOME,
    ),
    Better(
        r"\b(?:isnan|isfinite|isinf|array_equal|allclose|nan_to_num)\(|^assert\b|\b_?validate\w*\(|pydantic|"
        r"\b(?:asdict|astuple|model_validate|model_dump|parse_obj|TypeAdapter|typeguard|beartype|jaxtyping|check_type)\b",
        "Check the data once, and do not copy whole records for each sample",
        "check all samples before training (python -O leaves out assert), and use the attributes "
        "themselves: asdict() copies, and a model checks, every field.",
        (0.0, 0.3),
    ),
    Better(
        r"\b(?:cdist|pdist|pairwise_\w+|kneighbors|query_ball_point|knn\w*|[cK]+DTree|BallTree|"
        r"Delaunay|ConvexHull)\b",
        "Find neighbours once, with a tree",
        "scipy.spatial.cKDTree(points).query(...); store the neighbours of what does not change.",
        (0.01, 0.5),
    ),
    Better(
        r"\bsparse\b|\b_?cs[rc]?_|\b(?:coalesce|to_?dense|toarray|tocs[rc]|getrow|getcol)\(|_coo\b",
        "Keep the arrays of a CSR matrix, and slice them",
        "row i is indices[indptr[i] : indptr[i + 1]] and the same slice of data.",
        (0.01, 0.4),
    ),
    # Pictures and volumes.
    Better(
        r"\bfromarray\(|\bto_pil_image\(|\bToPILImage\b|\bpil_to_tensor\(|\bto_tensor\(|"
        r"\bToTensor\b|/=? *(?:255|127\.5)\b",
        "Keep uint8 arrays, and convert to float on the device",
        "torch.from_numpy(array).permute(2, 0, 1); .float().div_(255) after the copy.",
        _HALF,
    ),
    Better(
        r"\b(?:skimage|sk\w*transform)\b",
        "Use cv2 or PIL on uint8 pictures, not skimage",
        "skimage computes in float64, and converts back; cv2.resize and cv2.warpAffine do not.",
        _SOME,
    ),
    Better(
        r"\b(?:rotate|ImageEnhance|ImageFilter|ImageOps|ColorJitter|adjust_\w+|enhance|elastic\w*|"
        r"solarize|equalize|posterize|gaussian_filter|zoom|map_coordinates|affine_transform|distance_\w+|"
        r"[gG]aussian_?[bB]lur|ndimage|warpAffine|remap|medianBlur|median_filter)\b",
        "Crop before filtering or warping, or do it for the batch on the device",
        "use cv2 or PIL, a smaller kernel, order=1 instead of 3; or do it after the copy.",
        _SOME,
    ),
    Better(
        r"\b(?:grid_sample|interpolate|conv[123]d|avg_pool\w*|max_pool\w*)\(|(?:\b(?:np|torch|cv2|F|TF|T|"
        r"A|v2|functional|transforms)\.|'s )(?:flip\w*|roll|rot90|[hv]flip|[nN]ormalize)\(",
        "Do this for the whole batch, on the device, or with a smaller kernel",
        "in the training step, after the copy; a separable kernel takes two passes.",
        _HALF,
    ),
    Better(
        r"\b(?:nib|nibabel|get_fdata|dataobj|pydicom|dcmread|sitk|SimpleITK|tifffile|rasterio|netCDF4|"
        r"openslide|czifile|loadmat|cfgrib|astropy|wfdb|mne|uproot|pretty_midi|music21|mido|pynwb|"
        r"laspy|trimesh(?:\.|'s )load|o(?:pen)?3d\.io)\b",
        "Convert the files once to arrays that can be mapped",
        "np.save each volume before training; then np.load(path, mmap_mode='r')[part].",
        (0.005, 0.4),
    ),
    Better(
        r"\b(?:av's|decord|VideoReader|av\.open|VideoCapture|read_video|imageio)\b",
        "Decode only the frames that are used",
        "keep the reader open, and seek; or store the frames that training uses, small, first.",
        _SOME,
    ),
    Better(
        r"\b(?:stft|[sS]pectrogram|mfcc|melspectrogram|MelSpectrogram)\b",
        "Compute spectrograms for the batch on the device, or once",
        "send waveforms and transform the batch after the copy; or store what is not augmented.",
        _SOME,
    ),
    # Tables and text
    Better(
        r"\.tell\(|\blinecache\b|\bgetline\(",
        "Keep the offsets of all lines, and seek",
        "add up len(line) once, of the file opened in binary; then file.seek(offsets[i]).",
        _LITTLE,
    ),
    Better(
        r"\bgetmembers?\(|\bextractfile\(",
        "Look members of the tar file up in a dict",
        "members = {each.name: each for each in tar.getmembers()}, once in each worker.",
        (0.001, 0.1),
    ),
    Better(
        r"\b(?:vectorize|frompyfunc|apply_along_axis)\b|\.apply\(|\.applymap\(|\.iterrows\(|\.itertuples\(|"
        r"\.map\(lambda|\.transform\(lambda",
        "Compute on whole arrays or whole columns, not value by value",
        "np.where, np.clip, arithmetic on arrays, in __init__ if it is for all rows: here Python "
        "calls a function for one value after another.",
        (0.001, 0.3),
    ),
    Better(
        r"\bpd\.(?:concat|DataFrame|Series)\(|pandas's (?:Series|DataFrame)\.",
        "Use NumPy arrays for each sample, not pandas",
        "columns as arrays once (df[name].to_numpy()): each pandas call takes 10 to 500 µs.",
        _LITTLE,
    ),
    Better(
        r"\b(?:dataset|ds)\.take\(",
        "Do not take random rows of files",
        "hold the columns in memory, or store the rows once in the order in which they are read.",
        _SOME,
    ),
    Better(
        r"\b(?:as_py|to_pylist|to_pydict|to_pandas)\(|pyarrow's (?:\w+\.)*take\(",
        "Combine the chunks of the Arrow columns once, and read them as arrays",
        "table.combine_chunks(), then column.to_numpy(), or table.slice(i, n) for a batch: take() "
        "goes through all chunks.",
        _SOME,
    ),
    Better(
        r"\b(?:xarray|dask|h5py)\b|\.(?:isel|sel|compute)\(|\b(?:zarr|numcodecs)(?:\.|'s)",
        "Load HDF5, xarray, dask or zarr data once, or store chunks of the size that is read",
        "array = ds[name].values or file[name][:] in each worker, at first use, if it fits: each "
        "read takes 50 µs to a millisecond, and decompresses whole chunks.",
        (0.01, 0.6),
    ),
    Better(
        r"(?i:\bSELECT\b.*\bWHERE\b)|\.execute\w*\(|\bread_sql\w*\(",
        "Give the table an index for this query, or ask the database once for a batch",
        "CREATE INDEX for the columns of its WHERE, once, unless they have one (EXPLAIN QUERY PLAN "
        "says SEARCH, not SCAN); SELECT ... WHERE id IN (...) in __getitems__.",
        (0.0, 0.6),
    ),
    Better(
        r"\bstruct\.unpack\w*\(|\bint\.from_bytes\(",
        "Read all records at once with a structured dtype",
        "np.frombuffer(data, dtype=[('x', '<f4'), ...]).",
        _LITTLE,
    ),
    Better(
        r"\b(?:to_datetime|strptime|strftime|fromisoformat|Timestamp|Timedelta|DatetimeIndex|"
        r"date_range|dateutil|tz_\w+|pytz|isocalendar|holidays)\b|"
        r"\b(?:float|int)\(\w+\) for |map\((?:float|int),|\.split\(",
        "Parse the text once, and store numbers",
        "np.save the parsed values before training.",
        _LITTLE,
    ),
    # Plain Python
    Better(
        r"\b(?:set|frozenset)\(|\blist\([\w.]+\.(?:keys|values|items)\(|\b(?:df|frame|table|data)\w*\.values\b(?!\()",
        "Make this set, list or array once, not for each sample",
        "in __init__ (df.to_numpy() of a table); to draw what is not in a small set, draw again "
        "while it is.",
        _LITTLE,
    ),
    Better(
        r"\b(?:random|rng)\.(?:shuffle|sample|choices|choice)\(",
        "Draw with NumPy, many at once",
        "rng.permutation(n), rng.integers(0, n, k), np.searchsorted(sums, rng.random(k)).",
        _SOME,
    ),
    Better(
        r"\b(?:randn?|randn?_like|standard_normal|normal_?|uniform_?|poisson|dropout|bernoulli|rvs)\(",
        "Draw noise for the batch, on the device, or in float32",
        "torch.randn(shape, device=device) in the training step; or dtype=np.float32. A call of "
        "scipy.stats takes 50 to 100 µs.",
        _HALF,
    ),
    Better(
        r"\b(?:exists|isfile|isdir|getsize|getmtime|stat|realpath|resolve|is_file|abspath|expanduser|"
        r"expandvars|relpath)\(",
        "Look at files once, in __init__",
        "keep what is found in a list or dict; each look is a request to the file system.",
        _LITTLE,
    ),
    Better(
        r"\bsubprocess\b|\bos\.(?:system|popen)\(",
        "Do not start a program for each sample",
        "a library that does the same in this process, or one start for all files in advance.",
        (0.05, 0.8),
    ),
    Better(
        r"\.pop\(0\)|\.insert\(0,|^\w+ = \w+\[[^\]:]+:\]\s*#",
        "Move an offset, or use a deque, to take items from the front",
        "keep the position up to which it is used, or collections.deque with popleft(): what "
        "remains is moved or copied each time.",
        (0.0, 0.1),
    ),
    Better(
        r"\bnx\.|networkx|\b(?:k_hop_subgraph|subgraph|to_undirected|remove_self_loops|neighbors?)\(",
        "Turn graphs into arrays once, and take neighbours from a CSR",
        "neighbours of i are col[rowptr[i] : rowptr[i + 1]]; paths by scipy.sparse.csgraph.",
        _LITTLE,
    ),
    Better(
        r"\btorch\.(?:tensor|FloatTensor|LongTensor)\(|\bTensor\(",
        "Hand arrays to torch, not lists",
        "keep arrays: torch.from_numpy, or np.stack of the list; a list is read value by value.",
        (0.03, 0.2),
    ),
    Better(
        r"\.(?:astype|float|double|to)\(|\bas_?contiguous\w*\(|\.contiguous\(",
        "Store the data in the dtype and layout of the batch, or convert on the device",
        "save the data as they are needed; or keep small integers, and convert after the copy.",
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
