"""hot-function with stacks: each known function is named with its share, and nothing one step away
from it."""

import inspect
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from inside_samples import STORAGE
from loaderscope.advisors.case.advice import Advice
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.code.hot.function_kinds import FUNCTION_KINDS
from loaderscope.advisors.schema.report_model import Range
from loaderscope.profiler.base.host import host_name
from loaderscope.profiler.store.sampled_fetches import SampledFetches, SampleField
from rule_cases import FakeWhatIf, advice, asked, case_of, outcomes, unmeasured
from rule_rows import fetched
from silence import silent
from stack_cases import OWN, seen
from storage_cases import looked
from stored_sets import Sized
from written_sets import with_getitem

NAME = "hot-function"
GETITEM = f"Pictures.__getitem__ {OWN}:41"
PIL = "ImageFile.load site/PIL/ImageFile.py:425"
PNG = "PngImageFile._open site/PIL/PngImagePlugin.py:700"
JPEG = "JpegImageFile._open site/PIL/JpegImagePlugin.py:360"


class Plain(Sized):
    def __getitem__(self, index: int) -> Any:
        return np.linalg.svd(np.zeros((3, 3)))


class Counted(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.made: list[int] = []

    def __getitem__(self, index: int) -> Any:
        self.made.append(index)
        return torch.rand(3)


class Tensors(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.values = torch.randn(40, 30)


class Listed(Plain):
    def __init__(self, suffix: str) -> None:
        super().__init__()
        self.paths = [f"data/{n}{suffix}" for n in range(40)]


_MADE: dict[tuple[Any, ...], Case] = {}  # recording one takes longer than judging it


def case(
    tmp_path, dataset=None, sample_us=2000.0, idle=0.02, more_ms=0.05, compute_ms=0.1, whatif=None
) -> Case:
    """A loop over four samples a batch that mostly waits for fetching them."""
    paths = getattr(dataset, "paths", [""])[0]
    key = (type(dataset), paths, sample_us, idle, more_ms, compute_ms)
    if key not in _MADE:
        rows, epochs = fetched(sample_us, idle, more_ms=more_ms, compute_ms=compute_ms)
        loader = DataLoader(dataset or Plain(), batch_size=4)
        _MADE[key] = case_of(tmp_path, rows, epochs=epochs, loader=loader)
    return replace(_MADE[key], whatif=whatif or FakeWhatIf())


def here(made: Case) -> Case:
    """The case recorded on this machine, after its files were written."""
    now = time.time_ns() + 10**9
    return replace(made, process=replace(made.process, host=host_name(), unix_ns=now))


def table(text: str) -> dict[str, tuple[str, ...]]:
    """Lines of a name and what is told of it, apart by bars."""
    rows = (line.split(" | ") for line in text.strip().splitlines())
    return {name: tuple(told) for name, *told in rows}


# Kind → (frames below __getitem__, words of the advice, a like call that is not it).
SEEN = table(f"""
picture | {PIL} | PIL | Image.crop site/PIL/Image.py:1200
resize | Image.resize site/PIL/Image.py:2440 | esizing | Image.crop site/PIL/Image.py:2500
csv:ply | PlyData.read site/plyfile.py:300 | PLY | read site/meshio/ply.py:3
csv | DictReader.__next__ std/csv.py:111 | csv | Reader.__next__ {OWN}:90
csv:loadtxt | loadtxt site/numpy/lib/_npyio_impl.py:1384 > _read site/numpy/lib/_npyio_impl.py:1035 | loadtxt | savetxt site/numpy/other.py:1384
csv:pandas | read_csv site/pandas/io/parsers/readers.py:1866 | read_csv | align site/polars/x.py:1
csv:parquet | ParquetFile.read_row_group site/pyarrow/parquet/core.py:500 | row group | read site/pyarrow/fs.py:1
rows | _LocationIndexer.__getitem__ site/pandas/core/indexing.py:1342 | iloc | DataFrame.align site/polars/frame.py:1
text:json | loads std/json/__init__.py:346 > JSONDecoder.raw_decode std/json/decoder.py:353 | json | loads site/ujson_like/x.py:3
text:literal | literal_eval std/ast.py:64 > parse std/ast.py:50 | literal_eval | format std/string.py:50
text:yaml | safe_load site/yaml/__init__.py:125 | YAML | load site/tomli/x.py:3
text:xml | XML std/xml/etree/ElementTree.py:1338 | XML | escape std/html/__init__.py:3
npz | NpzFile.__getitem__ site/numpy/lib/_npyio_impl.py:257 > ZipExtFile.read std/zipfile.py:955 | npz | dot site/numpy/linalg/x.py:3
npy | load site/numpy/lib/_npyio_impl.py:456 > read_array site/numpy/lib/_format_impl.py:8 > literal_eval std/ast.py:64 | .npy | pad site/numpy/lib/_arraypad_impl.py:4
compressed | decompress std/gzip.py:606 | gzip | crc32 std/base64.py:80
pickle | load site/joblib/numpy_pickle.py:600 | pickle | run site/threadpoolctl.py:1
listing | glob std/glob.py:28 > iglob std/glob.py:40 | folder | join std/posixpath.py:71
npy:torch | load site/torch/serialization.py:1601 | torch.load | load site/torch/hub.py:1
h5-open | File.__init__ site/h5py/_hl/files.py:500 > make_fid site/h5py/_hl/files.py:230 | Keep the HDF5 | open site/lmdb/cffi.py:3
h5 | Dataset.__getitem__ site/h5py/_hl/dataset.py:872 | HDF5 | get site/lmdb/cffi.py:3
hf | Dataset.__getitem__ site/datasets/arrow_dataset.py:3161 | Hugging Face | get site/lmdb/cffi.py:3
tokens | PreTrainedTokenizer.encode site/transformers/tokenization_utils_base.py:2 | okenis | get site/lmdb/cffi.py:3
tokens:re | findall std/re/__init__.py:216 | regular expression | wrap std/textwrap.py:1
sound | resample_poly site/scipy/signal/_signaltools.py:3800 | esampl | solve site/scipy/linalg/_basic.py:2
deepcopy | deepcopy std/copy.py:146 | deepcopy | reduce std/functools.py:1
lock | Semaphore.acquire std/threading.py:468 | lock | Thread.start std/threading.py:960
""")


@pytest.mark.parametrize("key", SEEN)
def test_a_known_function_is_named_with_its_share_and_one_like_it_only_named(tmp_path, key):
    frames, word, other = SEEN[key]
    made = case(tmp_path)
    found = advice(NAME, seen(made, (f"{GETITEM} > {frames}", 160), (GETITEM, 40)))
    assert word in f"{found.title} {found.why}"
    assert "80 % of fetch goes into" in found.why and ", called from patches.py:41." in found.why
    assert str(found.evidence["part of fetch"]).startswith("80 %")
    assert "200 stack samples" in str(found.evidence["seen in"])
    best, worst = asked(made)[-1]["fetch"]
    family = next(f for f in FUNCTION_KINDS if f.key == key.partition(":")[0])
    # At best all that may go with it goes; at worst only the lower bound of its own share.
    assert 0 <= best <= 0.2 + 0.8 * family.left[0] + 0.01
    assert worst == pytest.approx(1 - 0.7392 * (1 - family.left[1]), abs=0.01)
    reason = named(seen(made, (f"{GETITEM} > {other}", 160), (GETITEM, 40)))
    # The line that calls it takes all; of own functions, the line in them.
    most = "80" if OWN in other else "100"
    assert f"{most} % of fetch" in reason and "No better alternative is known" in reason
    assert other.partition(" ")[0] in reason


def named(case: Case) -> str:
    """What is said of a function that nothing is known of: it is for a person to change."""
    found = advice(NAME, case)
    assert found.code.startswith("# By hand") and found.predicted.high > 1, found
    return found.why


# Kind → (the line that calls it, words of the advice, a like line that is not it).
TEXTS = table("""
csv | for row in csv.reader(file): | csv | for row in reader_of(file):
text:json | record = json.loads(text) | json | record = parsed(text)
compressed | raw = zlib.decompress(self.blobs[index]) | zlib | raw = zlib.crc32(self.blobs[index])
pickle | points = pickle.loads(blob) | pickle | points = pickle.dumps(blob)
picture | image = cv2.imread(self.paths[index]) | OpenCV | image = cv2.blur(image)
listing | names = sorted(os.listdir(self.folder)) | folder | names = sorted(self.names)
text:xml | root = ET.parse(path) | XML | root = tree(path)
tokens | ids = self.tokenizer(text) | okenis | ids = self.lookup(text)
tokens:re | words = re.findall(PATTERN, text) | regular expression | words = text.split()
deepcopy | sample = copy.deepcopy(self.template) | deepcopy | sample = dict(self.template)
lock | with self.lock: | lock | with self.clock():
""")


@pytest.mark.parametrize("key", TEXTS)
def test_compiled_code_is_known_by_the_line_that_calls_it(tmp_path: Path, key: str) -> None:
    text, word, other = TEXTS[key]
    made = case(tmp_path, Tensors())
    found = advice(NAME, seen(made, (GETITEM, 100), text=text))
    assert word in f"{found.title} {found.why}"
    assert "100 % of fetch goes into" in found.why and "called from patches.py:41." in found.why
    assert text in found.code
    reason = named(seen(made, (GETITEM, 100), text=other))
    assert f"`{other}` (patches.py:41) takes 100 % of fetch" in reason


def test_rows_that_pandas_searches_are_told_to_be_sorted(tmp_path: Path) -> None:
    at = f"{GETITEM} > _LocationIndexer.__getitem__ site/pandas/core/indexing.py:1342"
    stacks = (f"{at} > Index.get_loc site/pandas/core/indexes/base.py:3805", 80), (at, 20)
    found = advice(NAME, seen(case(tmp_path), *stacks, text="rows = self.log.loc[user]"))
    assert found.title.startswith("Keep the DataFrame's columns") and found.caveat is not None
    assert "sort the index once" in found.caveat


BUFFER = """\
class Buffer:
    def __init__(self, size):
        self.kept = MADE

    def add(self, step):
        self.kept.append(step)

    def draw(self):
        return random.sample(self.kept, 8)
"""


@pytest.mark.parametrize(
    ("made", "walked"), [("collections.deque(maxlen=size)", True), ("[None] * size", False)]
)
def test_containers_of_another_object_are_known_by_its_source(tmp_path, made, walked):
    file = tmp_path / "buffer.py"
    file.write_text(BUFFER.replace("MADE", made))
    stack, text = f"{GETITEM} > Buffer.draw {file}:9", "return random.sample(self.kept, 8)"
    found = advice(NAME, seen(here(case(tmp_path / "run")), (stack, 100), text=text))
    assert ("not a deque" in found.title) is walked


@pytest.mark.parametrize(
    ("blur", "title"), [(55, "Crop before filtering"), (30, "Make this cheap")]
)
def test_of_a_chain_of_transforms_the_step_is_named(tmp_path: Path, blur: int, title: str) -> None:
    chain = f"{GETITEM} > Compose.__call__ site/albumentations/core/composition.py:95"
    step = f"{chain} > GaussianBlur.apply site/albumentations/augmentations/blur.py:80"
    text = "return augmented(self.values[i])"
    made = case(tmp_path, with_getitem(Tensors, text, augmented=torch.Tensor.numpy)())
    found = advice(NAME, seen(made, (step, blur), (chain, 100 - blur), text=text))
    assert found.title.startswith(title)
    assert f"takes {blur if blur > 50 else 100} % of fetch" in found.why


def with_texts(made: Case, texts: dict[int, str | None]) -> Case:
    """The case in which these own lines have these texts."""
    assert made.report.code is not None
    stage = made.report.code.stages["fetch"]
    lines = tuple(replace(each, text=texts.get(each.line, each.text)) for each in stage.lines)
    code = replace(made.report.code, stages={"fetch": replace(stage, lines=lines)})
    return replace(made, report=replace(made.report, code=code))


def test_helpers_of_a_call_are_a_part_of_it_but_own_functions_are_not(tmp_path: Path) -> None:
    helper, own = "errstate.inner site/numpy/_core/_ufunc_config.py:511", f"mixed {OWN}:7"
    stacks = (GETITEM, 50), (f"{GETITEM} > {helper}", 20), (f"{GETITEM} > {own}", 30)
    made = seen(case(tmp_path), *stacks, text="default_rng(index)")
    # The text of every own line is the same here, but only one of them is called from line 41.
    assert "70 % of fetch" in advice(NAME, with_texts(made, {7: None})).why


BOUNDS = ["low = np.median(x)", "high = np.quantile(x, 0.9)", "return (x - low) / (high - low)"]
ALONE = [BOUNDS[0], "high = limit(x)", BOUNDS[2]]
SEARCHES = ["a = np.flatnonzero(x == i)", "b = np.flatnonzero(x != i)", "return a[0] + b[0]"]
STORED = f"Estimate quantiles once, or from a part of the values: {BOUNDS[0]}"
SINGLY = ["return np.array([float(v) for v in x])", "return [float(v) * random() for v in x]"]
ONE = "Do this for all values at once, not one by one"
LOOKED_UP = f"Look this up instead of searching for it: {SEARCHES[0]}"


@pytest.mark.parametrize(
    ("lines", "shares", "title", "said"),
    [
        (BOUNDS, (35, 35, 30), STORED, "with 1 more line like it, takes 70 % of fetch"),
        (ALONE, (35, 35, 30), "Do this once in advance", "100 % of fetch, and each epoch"),
        (SINGLY[:1], [100], f"{ONE}, or do it once in advance: ret", "in a loop, one by one"),
        (SINGLY[1:], [100], f"{ONE}: ret", "in a loop, one by one"),
        (SEARCHES, (50, 39, 11), LOOKED_UP, "with 1 more line like it, takes 89 % of fetch"),
    ],
)
def test_lines_of_one_shape_or_better_call_count_together(tmp_path, lines, shares, title, said):
    body = "\n".join(["x = self.values[i].numpy()", *lines])
    made = case(tmp_path, with_getitem(Tensors, body, np=np)())
    stacks = [(GETITEM.replace("41", str(n)), share) for n, share in enumerate(shares, 41)]
    found = advice(NAME, with_texts(seen(made, *stacks), dict(enumerate(lines, 41))))
    assert found.title.startswith(title) and said in found.why


@pytest.mark.parametrize(
    ("same", "title"), [(9, "Do this once in advance"), (8, "Make this cheap")]
)
def test_what_is_seen_to_be_the_same_in_each_epoch_is_done_once(tmp_path, same, title):
    made = looked(case(tmp_path), SampledFetches(again=9, same=same))
    found = advice(NAME, seen(made, (GETITEM, 90), text="x = self.engine(i, self.mode)"))
    assert found.title.startswith(title)


@pytest.mark.parametrize(
    ("frames", "line", "room", "kept"),
    [
        ("", "x = self.engine(i, 1)", 1e5, True),
        ("", "x = self.engine(i, 1)", 1e4, False),
        (f" > {PIL}", "x = Image.open(i)", 1e5, True),
        (f" > {PIL}", "x = Image.open(i)", 1e4, False),
        ("", "x = librosa.stft(self.waves[i])", 1e5, True),
    ],
)
def test_samples_that_are_the_same_in_each_epoch_are_kept_where_they_fit(
    tmp_path, frames, line, room, kept
):
    made = looked(case(tmp_path), SampledFetches(again=9, same=9))
    system = replace(made.system, mem_available_min_bytes=room, cgroup_mem_limit_bytes=None)
    made = replace(made, system=system, report=replace(made.report, bytes_per_batch=4e3))
    found = advice(NAME, seen(made, (f"{GETITEM}{frames}", 90), text=line))
    assert found.title.startswith("Make each sample once, and keep it in memory: ") == kept
    if kept:
        assert "All samples come to about 40.0 kB, and 100 kB of the machine's" in found.why
        dataset = Counted()
        names = {"dataset": dataset}
        exec(found.code, names)
        assert torch.equal(*(torch.cat([*names["loader"]]) for _ in range(2)))
        assert sorted(names["loader"].dataset.made) == list(range(len(dataset)))


def doubled(samples: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack([sample.mul_(2) for sample in samples])


@pytest.mark.parametrize(
    ("kind", "width", "kept"), [("tensor", 3, True), ("tensor", 900, False), ("other", 3, False)]
)
def test_a_collate_function_gets_copies_of_samples_that_are_kept(tmp_path, kind, width, kept):
    fields = (SampleField("", kind, dtype="float32", shape=(width,)),)
    made = looked(case(tmp_path), SampledFetches(again=9, same=9, fields=fields))
    config = {**made.loader.config, "collate_fn": "__main__.doubled"}
    system = replace(made.system, mem_available_min_bytes=1e5, cgroup_mem_limit_bytes=None)
    report = replace(made.report, bytes_per_batch=48.0)
    made = replace(made, loader=replace(made.loader, config=config), system=system, report=report)
    found = advice(NAME, seen(made, (GETITEM, 90), text="x = self.engine(i, 1)"))
    assert found.title.startswith("Make each sample once, and keep it in memory: ") == kept
    if kept:
        names = {"dataset": Counted(), "collate_fn": doubled, "doubled": doubled}
        exec(found.code, names)
        assert torch.equal(*(torch.cat([*names["loader"]]) for _ in range(2)))


@pytest.mark.parametrize(("read", "title"), [(5e5, "Read only the part"), (3e5, "Make this cheap")])
def test_files_of_which_little_reaches_the_batch_are_read_in_part(tmp_path, read, title):
    made = seen(case(tmp_path), (GETITEM, 90), text="x = self.engine(i, self.mode)")
    storage = replace(STORAGE, read_bytes_per_sample=read)
    made = replace(made, report=replace(made.report, bytes_per_batch=4e5, storage=storage))
    assert advice(NAME, made).title.startswith(title)


@pytest.mark.parametrize(("low", "said"), [(0.9, 2), (1.2, 1)])
def test_the_line_is_said_too_where_the_known_function_alone_may_gain_nothing(tmp_path, low, said):
    h5 = f"{GETITEM} > Dataset.__getitem__ site/h5py/_hl/dataset.py:872"
    made = case(tmp_path, whatif=FakeWhatIf(Range(low, 2.0, 4.0)))
    sampled = seen(made, (GETITEM, 75), (h5, 25), text="return torch.tensor(node)")
    titles = [each.title for each in outcomes(NAME, sampled) if isinstance(each, Advice)]
    assert len(titles) == said and "HDF5" in titles[0]
    assert all(each.endswith("return torch.tensor(node)") for each in titles[1:])


def test_every_family_is_tried_here() -> None:
    tried = {
        *(key.partition(":")[0] for key in (*SEEN, *TEXTS)),
        "png",
        "jpeg",
        "jpeg-small",
        "wait",
    }
    assert tried == {family.key for family in FUNCTION_KINDS}


class Columned(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.labels = list(range(40))

    def __getitem__(self, index: int) -> Any:
        targets = torch.tensor(self.labels)
        return targets[index]


def test_jpeg_that_is_made_small_afterwards_is_decoded_small(tmp_path: Path) -> None:
    stacks = ((f"{GETITEM} > {PIL}", 60), (f"{GETITEM} > {JPEG}", 5), (RESIZE, 35))
    small, whole = (advice(NAME, seen(case(tmp_path), *stacks[:count])) for count in (3, 2))
    assert "while decoding" in small.title and "draft" in small.code
    assert "faster decoder" in whole.title


RESIZE = f"{GETITEM} > Image.resize site/PIL/Image.py:2440"
TABLE = f"{GETITEM} > Dataset.__getitem__ site/datasets/arrow_dataset.py:3161"
HEADER = f"{GETITEM} > load site/numpy/lib/_npyio_impl.py:456 > literal_eval std/ast.py:64"
DECODED, LOADED = f"{GETITEM} > {PIL}", f"{GETITEM} > loads std/json/__init__.py:346"
SOLVED = f"{GETITEM} > solve site/scipy/linalg/a.py:2 > x site/scipy/x.py:3"
H5_OPENED = (
    f"{GETITEM} > File.__init__ site/h5py/_hl/files.py:500 > make_fid site/h5py/_hl/files.py:230"
)
H5_READ = f"{GETITEM} > Dataset.__getitem__ site/h5py/_hl/dataset.py:872"
OF_PNG = "% of fetch goes into PIL's PNG decoder"
SMOOTHED, COPIED = f"{GETITEM} > smoothed {OWN}:13", f"{GETITEM} > deepcopy std/copy.py:146"


@pytest.mark.parametrize(
    ("dataset", "stacks", "text", "said"),
    [
        # The kind of picture is known by its plugin or its suffix.
        (Listed(".bin"), {DECODED: 90, f"{GETITEM} > {PNG}": 10}, None, "PNG"),
        (Listed(".bin"), {DECODED: 90, f"{GETITEM} > {JPEG}": 10}, None, "JPEG"),
        (Listed(".png"), {DECODED: 100}, None, "PNG"),
        (Listed(".JPG"), {DECODED: 100}, None, "JPEG"),
        (Listed(".webp"), {DECODED: 100}, None, "decoding pictures (PIL"),
        # What a resize decodes lazily is decoding, and a wrapper counts only what nothing else explains.
        (Listed(".png"), {f"{RESIZE} > {PIL}": 90, RESIZE: 10}, None, f"90 {OF_PNG}"),
        (Listed(".png"), {f"{TABLE} > {PIL}": 70, TABLE: 30}, None, f"70 {OF_PNG}"),
        (Listed(""), {HEADER: 100}, None, ".npy"),  # what a known function calls is its own
        (Listed(""), {SMOOTHED: 70, COPIED: 30}, None, "deepcopy"),
        # A file that is opened each time is read slowly too; each worker opens it once.
        (None, {H5_OPENED: 19, H5_READ: 71, GETITEM: 10}, "node = file[name][()]", "file open"),
        (None, {H5_OPENED: 5, H5_READ: 85, GETITEM: 10}, "node = file[name][()]", "slices"),
        (None, {COPIED: 9, GETITEM: 1}, None, "90 % of fetch"),  # few samples, nearly all show it
        (Columned(), {LOADED: 95}, "targets = torch.tensor(self.labels)", "Do once"),
    ],
)
def test_what_explains_most_is_advised_on(tmp_path, dataset, stacks, text, said):
    found = advice(NAME, seen(case(tmp_path, dataset), *stacks.items(), text=text))
    assert said in f"{found.title}\n{found.why}\n{found.code}"


@pytest.mark.parametrize(
    ("stacks", "text", "said"),
    [
        ({SMOOTHED: 85, COPIED: 15}, None, "smoothed"),
        # A little waiting does not hide what computes.
        ({f"{GETITEM} > get std/queue.py:1": 10, SMOOTHED: 90}, None, "(patches.py:13) takes 90 %"),
        ({SOLVED: 90, GETITEM: 10}, None, "takes 100 % of fetch, in scipy's solve"),
        ({GETITEM: 100}, "total += values[n].item()", "values[n].item()"),  # of what is no tensor
        ({f"{GETITEM} > evil\x1b[2J {OWN}\r\n:13": 90}, None, "evil"),
    ],
)
def test_what_is_not_known_is_named(tmp_path, stacks, text, said):
    reason = named(seen(case(tmp_path), *stacks.items(), text=text))
    assert said in reason and reason.isprintable()


def test_an_object_of_a_manager_is_asked_for_by_another_process(tmp_path: Path) -> None:
    below = "BaseProxy._callmethod std/multiprocessing/managers.py:800 > recv std/multiprocessing/connection.py:250"
    made = case(tmp_path, Columned(), idle=0.9)
    found = advice(NAME, seen(made, (f"{GETITEM} > {below}", 95), text="return targets[index]"))
    assert found.title.startswith("Use a plain dict, list or array")


def test_an_own_function_is_named_with_its_hottest_line_and_a_bound(tmp_path: Path) -> None:
    inner = f"{GETITEM} > smoothed {OWN}"
    made = seen(case(tmp_path), (f"{inner}:12", 30), (f"{inner}:13", 65), (GETITEM, 5))
    reason = named(made)
    assert "`smoothed` (patches.py:13) takes 95 % of fetch." in reason
    assert asked(made)[-1]["fetch"] == pytest.approx((1 - 0.978, 1 - 0.9 * 0.888), abs=1e-3)


class Special(Plain):
    def __getitem__(self, index: int) -> Any:
        return self.load(), index

    def load(self) -> Any:
        found = {}
        for name in list(self.names):
            found[name] = 1
        return found


@pytest.mark.parametrize(
    ("below", "title"),
    [
        (f"Special.load {OWN}:12", "Do once what is the same for every sample: Special.load"),
        ("Store.load site/store/a.py:2", "Do this once in advance"),  # not that of the data set
    ],
)
def test_an_own_function_that_gives_the_same_each_time(tmp_path, below, title):
    stacks = ((f"{GETITEM} > {below}", 35), (f"{GETITEM} > {below.replace('12', '13')}", 39))
    made = seen(case(tmp_path, Special()), *stacks, (GETITEM, 26), text="return self.load(), index")
    texts = {12: "found[name] = 1", 13: "return found"}  # neither line says so by itself
    assert advice(NAME, with_texts(made, texts)).title.startswith(title)


def test_where_nothing_stands_out_that_is_said(tmp_path: Path) -> None:
    stacks = [(f"{GETITEM} > step{n} {OWN}:{60 + n}", 10) for n in range(10)]
    reason = unmeasured(NAME, seen(case(tmp_path), *stacks))
    assert "no line stands out" in reason and "10 %" in reason
    inner = f"{GETITEM} > applied {OWN}:60"  # what calls others in turn
    stacks = [(f"{inner} > {each} {OWN}:{each[-2:]}", 35) for each in ("step70", "step80")]
    reason = unmeasured(NAME, seen(case(tmp_path / "turns"), *stacks, (GETITEM, 30)))
    assert "the hottest function, applied, takes 70 %" in reason


def test_an_object_that_a_call_of_a_library_makes_is_to_be_kept(tmp_path: Path) -> None:
    made = f"{GETITEM} > spoken site/voice/a.py:3 > Backend.__init__ site/voice/b.py:7"
    line = "sounds = spoken(self.texts[index])"
    found = advice(NAME, seen(case(tmp_path), (made, 80), (GETITEM, 20), text=line))
    assert found.title == f"Make the library's object once, and keep it: {line}"


@pytest.mark.parametrize(
    ("frames", "text"),
    [
        (" > request site/urllib3/x.py:3", None),
        (" > SSLSocket.read std/ssl.py:1", None),
        (" > get std/queue.py:1", None),
        ("", "time.sleep(0.001)"),
    ],
)
def test_waiting_is_no_work(tmp_path: Path, frames: str, text: str | None) -> None:
    stacks = ((f"{GETITEM}{frames}", 90), ("", 10))
    reason = unmeasured(NAME, seen(case(tmp_path, idle=0.9), *stacks, text=text))
    assert "more workers" in reason and "90 % of fetch" in reason


def test_storing_is_not_free_where_the_part_is_short(tmp_path: Path) -> None:
    made = case(tmp_path, sample_us=12.0)
    advice(NAME, seen(made, (f"{GETITEM} > loads std/json/__init__.py:3", 999)))
    assert asked(made)[-1]["fetch"] == pytest.approx((1 / 12, 10 / 12), abs=0.005)


def test_freeing_what_was_made_may_go_with_it(tmp_path: Path) -> None:
    made = case(tmp_path)
    found = advice(NAME, seen(made, (GETITEM, 550), ("", 450), text="pickle.loads(blob)"))
    best, worst = asked(made)[-1]["fetch"]
    assert "55 % of fetch" in found.why and best < 0.02 and worst > 0.7


def copying(tmp_path: Path, **options: Any) -> Case:
    return seen(case(tmp_path, **options), (COPIED, 100))


test_it_is_silent_one_step_away = silent(
    NAME,
    copying,
    {"compute_ms": 500.0},  # loading is not what limits training
    {"sample_us": 2.0, "more_ms": 0.0},  # only looked up
    {"more_ms": 80.0, "whatif": FakeWhatIf(Range(1.0, 1.1, 1.2))},
)


def test_what_is_hardly_waited_for_is_advised_on_if_that_gains(tmp_path: Path) -> None:
    assert "deepcopy" in advice(NAME, copying(tmp_path, more_ms=80.0)).why


def test_without_stacks_it_is_said_how_to_record_them(tmp_path: Path) -> None:
    assert "stacks were not recorded" in unmeasured(NAME, case(tmp_path))


test_without_stacks_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"sample_us": 150.0},
    {"compute_ms": 500.0},  # loading is not what limits training
    {"idle": 0.6},  # waiting for files
)


@pytest.mark.parametrize("stacks", [{COPIED: 9}, {COPIED: 10, GETITEM: 10}])
def test_few_samples_prove_nothing(tmp_path: Path, stacks: dict[str, int]) -> None:
    reason = unmeasured(NAME, seen(case(tmp_path), *stacks.items()))
    assert f"{sum(stacks.values())} stack samples of fetch are too few to tell" in reason


def test_names_of_a_run_stay_in_their_comment(tmp_path: Path) -> None:
    text = 'pickle.loads(x)\nimport os; os.remove("x")'
    evil = seen(case(tmp_path), (f"f\nimport os {OWN}:41", 100), text=text)
    for line in advice(NAME, evil).code.splitlines():
        assert "os.remove" not in line or line.startswith("#")


def test_what_is_the_same_for_every_sample_is_made_once(tmp_path: Path) -> None:
    made = case(tmp_path, Columned())
    line = "targets = torch.tensor(self.labels)"
    found = advice(NAME, seen(made, (f"Columned.__getitem__ {OWN}:41", 95), text=line))
    assert found.title == f"Do once what is the same for every sample: {line}"
    assert "takes 100 % of fetch, and depends only on `self`" in found.why
    assert found.code.startswith("# By hand") and "make it once, in __init__" in found.code


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("kernel = Resample(self.rate, 16000)", "Do once what is the same for every sample"),
        ("kernel = Resample(self.rate, len(signal))", "Resample and filter the signals once"),
        ("kernel = Resample(self.moved, 16000)", "Resample and filter the signals once"),
    ],
)
def test_what_a_transform_makes_for_each_sample(tmp_path: Path, line: str, title: str) -> None:
    file = tmp_path / "transforms.py"
    file.write_text(f"""\
class Resampled:
    def __init__(self, rate):
        self.rate = self.moved = rate
    def move(self):
        self.moved += 1
    def __call__(self, signal):
        {line}
        return kernel(signal)
""")
    stack = f"{GETITEM} > __call__ {file}:7 > Resample.__init__ site/torchaudio/transforms.py:960"
    found = advice(NAME, seen(here(case(tmp_path)), (stack, 90), text=line))
    assert found.title.startswith(title)


class Looped(Plain):
    """A loop over what a function of its own gives, which takes the time or not."""

    def __getitem__(self, index: int) -> Any:
        found = torch.tensor([part[0] for part in self.parts(index)])
        return found


@pytest.mark.parametrize(("inside", "loop"), [(90, False), (10, True)])
def test_a_loop_over_what_takes_long_by_itself_is_not_one_by_one(tmp_path, inside, loop):
    lines, first = inspect.getsourcelines(Looped)
    at, text = next((n, line.strip()) for n, line in enumerate(lines, first) if "found =" in line)
    outer = f"Looped.__getitem__ {__file__}:{at}"
    below = f"{outer} > Looped.parts {__file__}:3 > sort site/x/y.py:1"
    made = case(tmp_path, Looped(), 40.0)
    found = advice(NAME, seen(made, (below, inside), (outer, 100 - inside), text=text))
    assert found.title.startswith("Do this for all values at once") == loop
