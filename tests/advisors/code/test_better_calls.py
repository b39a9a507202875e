"""A faster call is named for a line that costs, and none for a line that only looks like it."""

import re

import pytest

from loaderscope.advisors.code.better_calls import BETTER_CALLS, better_call

# A line (or a function's name, which may stand for it), the call below it that takes most ("" where
# it is compiled; it tells where the line does not), words of the title.
LINES = """
y = np.vectorize(scale)(hu) | | whole array
wet = np.convolve(dry, room) | numpy's convolve | FFT
rows = np.random.choice(n, k, replace=False) | | without permuting all
rows = np.random.choice(n, k, replace=False, p=weights) | | Draw with NumPy
item = np.random.choice(self.boxes) | | Draw indices, not items
return indices[torch.randperm(len(indices))] | | without permuting all
pixels = torch.randperm(x[0].numel(), device=x[0].device)[: self.n] | | without permuting all
yield from (self.kept[i] for i in drawn) | torch's Tensor.__iter__ | a list (tolist())
text = text[match.end():] | | Move an offset
row = db.execute("select x from y where z = ?", (z,)) | sqlite3's execute | an index for this query
member = tar.getmember(name) | tarfile's _getmember | tar file
row = torch.tensor(self.rows[i].tolist()) | | not needed
record = pickle.loads(pickle.dumps(self.records[i])) | pickle's dumps | not needed
image = np.array(Image.fromarray(array)) | PIL's fromarray | not needed
x = np.asarray(image) / 255.0 | | convert to float on the device
x = torch.tensor(f[key][a:b]) | h5py's Dataset.__getitem__ | Load HDF5
x = self.store[i] | zarr's Array.__getitem__ | chunks of the size
row = table.take([i]).to_pylist()[0] | pyarrow's Table.take | Combine the chunks
np.add.at(histogram, bins, 1) | | bincount or reduceat
best = np.argsort(-scores)[:20] | | top k
ids = torch.unique(batch["ids"]) | torch's _unique2 | Count integers
keep = np.setdiff1d(all_items, seen) | numpy's in1d | mask
low, high = np.percentile(volume, (1, 99)) | numpy's percentile | quantiles
u, s, v = np.linalg.svd(patch) | numpy's svd | Decompose
grid = torch.meshgrid(ys, xs, indexing="ij") | torch's meshgrid | grids
assert np.isfinite(x).all() | | Check the data once
data = np.memmap(path, "float32") | numpy's __new__ | Load, map
near = cKDTree(points).query(center, 64) | | neighbours
row = self.matrix.getrow(index).toarray() | scipy's __getitem__ | CSR
z = scipy.stats.norm.rvs(size=8) | scipy's rvs | noise
blurred = gaussian_filter(volume, 2) | scipy's gaussian_filter1d | Crop before filtering
x = self.warp(x) | scipy's map_coordinates | Crop before filtering
img = transform.resize(image, size) | skimage's resize | not skimage
x = F.interpolate(x[None], size=64) | torch's interpolate | whole batch, on the device
image = image.rotate(angle) | PIL's rotate | Crop before
pixels = pydicom.dcmread(path).pixel_array | pydicom's pixel_array | mapped
frames = VideoReader(path)[:] | decord's __getitem__ | frames that are used
s = torch.stft(wave, 400) | torch's stft | spectrograms
rows = df.apply(make, axis=1) | pandas's apply | whole columns
day = datetime.strptime(text, "%Y-%m-%d") | _strptime's _strptime | Parse the text
frame = pd.DataFrame(records) | pandas's __init__ | not pandas
value = column[i].as_py() | | Arrow
rows = self.dataset.take(indices).to_pandas() | | random rows
x = ds.isel(time=i).values | xarray's isel | xarray
rows = con.execute(QUERY, (index,)).fetchall() | | database
a, b = struct.unpack("<ff", raw) | | structured dtype
values = [float(v) for v in line] | | Parse the text
random.shuffle(order) | random's shuffle | Draw with NumPy
x = x + 0.1 * torch.randn_like(x) | | noise
record = dataclasses.asdict(item) | dataclasses's _asdict_inner | whole records
if os.path.exists(path): | genericpath's exists | Look at files once
item = self.queue.pop(0) | | deque
out = subprocess.run(command) | subprocess's run | a program
torch.save(self.state_dict(), path) | torch's save | Log or save less often
paths = nx.shortest_path_length(graph) | networkx's shortest_path_length | graphs into arrays
k_hop_subgraph | | CSR
nodes, edges = k_hop_subgraph(i, 2, edge_index) | torch_geometric's k_hop_subgraph | take neighbours from a CSR
x = torch.tensor(rows) | | arrays to torch
x = image.astype(np.float32) | | dtype and layout
wandb.log({"index": index}) | wandb's log | Log or save less
model = AutoModel.from_pretrained(name) | transformers's from_pretrained | Load, map, compile
x = self.feature_extractor(wave) | transformers's __call__ | model on whole batches
np.random.shuffle(points) | | Draw with NumPy
torch.manual_seed(index) | torch's manual_seed | seed this once
x = x.astype(np.float16) * scale | | float32 on the CPU
x = F.to_tensor(image) | | uint8 arrays
x = F.normalize(x, mean, std) | torchvision's normalize | whole batch
x = np.flip(x, 1).copy() | numpy's flip | whole batch
at = self.file.tell() | | offsets
line = linecache.getline(path, index) | linecache's getline | offsets
row = self.df.values[index] | pandas's interleave | array once
negative = rng.choice(list(self.all - set(seen))) | | set, list or array once
"""
ROWS = [[part.strip() for part in line.split("|")] for line in LINES.strip().splitlines()]


@pytest.mark.parametrize(("text", "call", "words"), ROWS)
def test_a_line_gets_the_row_that_is_meant(text: str, call: str, words: str) -> None:
    found = better_call(text, call or None)
    assert found is not None and words in found.title, found


def test_every_row_is_tried_here_and_leaves_less_than_all() -> None:
    assert {better_call(text, call or None) for text, call, _ in ROWS} == {*BETTER_CALLS}
    for row in BETTER_CALLS:
        best, worst = row.left
        assert 0 <= best < worst < 0.9 and re.compile(row.pattern)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("sample = self.rows[indices]", None),
        ("offset = self.offsets[i]", None),
        ("part = names[start:].copy()", None),  # more than the rest of a list
        ("inside = mesh.contains(points)", "trimesh's Trimesh.contains"),
        ("return self.sort_of(x)", "Data.sort_of"),
        ("x = shift(x, self.stats)", None),
        ("state = step(state)", "jax's step"),
        ("x = self.normalize(x)", "Data.normalize"),
        ("cfg.read(x)", None),
        ("x = (x - self.mean) / self.std", None),
        ("", None),
    ],
)
def test_a_name_that_only_looks_like_it_gets_none(text: str, call: str | None) -> None:
    assert better_call(text, call) is None
