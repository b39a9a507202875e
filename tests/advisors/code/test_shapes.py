"""What a line's source says of it."""

import pytest

from loaderscope.advisors.code.loop_fields import unread
from loaderscope.advisors.code.method import Method, linked
from loaderscope.advisors.code.shapes import (
    CHANGES,
    DEQUE,
    Shape,
    changing,
    repeats,
    same_each_time,
    shape_of,
)

GETITEM = "def __getitem__(self, index):"
STREAM = "def __iter__(self):"


def said(text: str, held: dict[str, str] | None = None) -> list[Shape | None]:
    """The shapes of the lines with a comment "  # key", which is asserted; "-" is none. A part of
    what is said of it may follow between backticks. A "def" at the top is the function's."""
    head, text = text.split("\n", 1) if text.startswith("def ") else (GETITEM, text)
    lines = [line.partition("  # ") for line in text.splitlines()]
    method = Method([head, *(f"    {code}" for code, *_ in lines)])
    found = []
    for code, _, expected in lines:
        if expected:
            key, quoted, why = expected.partition(" `")
            found.append(shape := shape_of(method, code.strip(), held=held))
            assert (shape.key if shape is not None else "-") == key, code
            assert shape is None or quoted.strip() + why in shape.why
    return found


SOURCE = """\
files = sorted(glob.glob(self.pattern))  # same
with open("all.txt") as file:  # same
    lines = file.readlines()  # same
name = files[index]  # -
row = self.frame[self.frame["id"] == index]  # searched
noise = np.random.randn(8)  # -
louder = filtered(noise)  # -
for key in self.keys:
    table = parse(self.text)  # same
    value = lookup(table, key, name)  # -
width = 4  # -
frame = self.camera.read()  # -
drawn = self.rng.integers(8)  # -
order = np.random.permutation(10)  # -
picked = np.random.default_rng().integers(0, 9)  # -
stamp = datetime.now()  # -
entry = self.cursor.fetchone()  # -
time.sleep(self.seconds)  # -
kept = [each for each in self.rows]  # one by one
reader = csv.reader(file)
read = [each for each in reader]  # same
resampler = Resample(self.rate, 16000)  # same
volume = self.file["ct"][:]  # whole for a part
image = self.images[index].filter(BLUR)  # whole for a part `small = image.resize((64, 64))`
small = image.resize((64, 64))  # -
label = parse(self.labels[index])  # -
label = label.lower()
first = label[0]
title = json.load(open(self.path))["titles"][index]  # same
groups = self.frame.groupby("user")
mine = groups.get_group(index)  # same
name_of = list(self.names.keys())[index]  # same
score = pd.read_csv(self.path).sort_values("t").iloc[index]  # same
held = self.rng.permutation(9)[index]  # -
mine = self.own(self.path)[index]  # -
row_of = self.places[index]  # -
raw = unpack(self.blobs[index])  # whole for a part
grid = np.frombuffer(raw, np.uint8).reshape(4, 4)
pair = row(self.table, index)  # -
left = pair[0]
plane = self.file["ct"][:][index]  # whole for a part
part = volume[:][index]  # -
return name, lines[index], volume[index], grid[index % 4], pair, louder
"""


def test_each_line_has_the_shape_that_its_source_says() -> None:
    said(SOURCE)
    assert all(shape_of(Method([GETITEM, "    x = f()"]), line) is None for line in ("y = f()", ""))
    for unreadable in ("def broken(:", "x = f()", "def __getitem__():\n    x = f()"):
        assert shape_of(Method(unreadable.split("\n")), "x = f()") is None


def test_what_need_not_be_done_is_waste() -> None:
    text = """\
volume = self.file["ct"][:]  # whole for a part
image = self.images[index].filter(BLUR)  # whole for a part
small = image.resize((64, 64))
for k in range(9):
    rows = torch.cat([rows, self.x[index, k]])  # one by one
return volume[index]"""
    assert [shape.waste for shape in said(text) if shape is not None] == [True, False, False]


KNOWN = {"items#": "6,000", "weights#": "100,000", "rows": "list", "memory": "deque"}
KNOWN |= {"seen": "list", "kept": DEQUE, "seen" + CHANGES: "", "kept" + CHANGES: ""}
KNOWN |= {"table": "hf"}


@pytest.mark.parametrize(
    "text",
    [
        "other = random.choice(list(self.items - self.seen[index]))  # all for one `self.items (6,000)`",
        "other = np.random.choice(10, p=self.weights)  # all for one `self.weights (100,000)`",
        "other = random.choices(range(10), weights=self.weights)  # all for one `self.weights (100,000)`",
        "near = knn(self.weights, self.few[index])  # all for one `self.weights (100,000)`",
        "near = (self.weights < self.few[index]).argmin()  # all for one `self.weights (100,000)`",
        "other = random.choice(self.weights) * index  # -",  # it takes one
        "place = np.searchsorted(self.weights, index)  # -",
        "near = knn(self.few, index)  # -",
        # Work that is done again, or for a part.
        "total = sum(self.rows[index])  # -",
        "places = offsets(index)\nnear = [self.table[key][at] for at in places]  # again in a loop `self.table[key]`",
        "places = offsets(index)\nnear = [self.rows[key][at] for at in places]  # one by one",
        "places = offsets(index)\nnear = [self.table[at][key] for at in places]  # one by one",
        "found = self.query(index)  # -",  # not a DataFrame's
        "found = parse(index)  # -\nend = len(found) // 8 * 8\nreturn found[:end]",
        "found = parse(index)  # -\nfound[:3] -= 1\nreturn found, index",
        "found = parse(index)  # -\nnear = found < 3\nbest = found[near]",
        "x = np.array([(i / 255) ** index for i in range(256)])  # one by one\nuse = x[index]",
        "table = [decode(i, index) for i in range(9)]  # whole for a part\nuse = table[index]",
        # A file's lines are the same for every sample, unless it goes as far as the sample says.
        "names = open(LIST)\nfor _ in range(9):\n    entry = names.readline()  # same\nreturn entry",
        "names = open(LIST)\nfor _ in range(index):\n    entry = names.readline()  # -\nreturn entry",
        "buffer = self.rows_of[KEY][: self.size].copy()  # same",
        "found = next(itertools.islice(self.cuts, index, index + 1))  # searched",
        "found = []\nfor at in drawn(index):\n    if at not in found:  # searched\n        found.append(at)",
        # A part that depends on all, or all is used besides.
        "x = self.frame[self.columns]  # same\nreturn x[index]",
        "x = self.frame[index]  # -\nreturn x",
        "x = np.unique(self.cells[index])  # -\nreturn x",
        "x = np.sort(self.a[index])  # -\ny = x[:4]\nreturn y",
        "x = made(self.a[index])  # -\ny = x[:4].mean()\nreturn x - y",
        "x = made(self.a[index])  # -\nx = np.concatenate([x[:1], x])",
        "x = made(self.a[index])  # whole for a part\ny = x[: x.shape[0] // 2]\nreturn y",
        "x = np.where(self.a[index] == 0, 1, 2)  # -\nreturn x",
        "x = made(self.a[index])  # -\nreturn x[:4], x[4]",
        "x = made(self.a[index])  # -\ny = z[x]\ny = y[:4]\nreturn y",  # a mask
        "x = made(self.a[index])  # -\nx[0::2] = np.sin(x[0::2])\nreturn x",
        "x = made(self.a[index])  # -\nfor i in range(9):\n    d.append(read(x[i]))",
        "x = made(self.a[index])  # whole for a part\nreturn x[:4]",
        "x = made(self.a[index])  # -\ny = x[:-1]\nz = x[1:]\nw = made(self.b[index])  # -\n"
        "u = w[:, :n]\nv = w[:, n:]",  # together all of it
        "for i in range(9):\n    x[i] = index.popleft()  # one by one\ny = x[1:]",
        "x = torch.randint(made(self.a), index)  # -\ny = x[:4]\nreturn y",
        "x = made(index)\ny = x[8:9]  # -\nreturn y",
        "return np.random.choice(self.few, p=self.odds)  # all for one",
        "return np.random.choice(self.few)  # -",
        # Searches in loops.
        "for n, x in enumerate(open(P)):  # searched\n    if n == index:\n        return x",
        "s = 0\nfor n, x in enumerate(self.a):  # searched\n    s += x\n    if s > index:\n        return n",
        # Of one value after another.
        "for k in range(9):\n    rows = torch.cat([rows, self.x[index, k]])  # one by one `for k in range(9):`",
        "for _ in range(9):\n    x = x @ self.t  # -",
        "while len(d) < 9:\n    d.append(random.randrange(5))  # one by one `while len(d) < 9:`",
        "for path in self.views[index]:\n    views.append(decode(path))  # -",
        "x = [self.t.iloc[index, k] for k in range(9)]  # one by one `[self.t.iloc[index, k] for k in range(9)]`",
        "x = [decode(path) for path in self.views[index]]  # -",
        "for y in range(h):\n    out[y, y] = f(y, index)  # -",
        # Again in each round, unless it may give something else, or is to be filled.
        "for y in range(h):\n    for x in decoded:\n        out[y, x] = f(index)  # again in a loop",
        "for box in boxes(index):\n    found += [Image.open(index).crop(box)]  # again in a loop `Image.open(index)`",
        "name = f(index)\nfound = [crop(load(name), at) for at in places]  # again in a loop `load(name)`",
        "for box in boxes(index):\n    name = next(names)\n    found += [load(name)]  # -",
        "for box in boxes(index):\n    found += [load(name(box))]  # -",
        "for box in boxes(index):\n    found += [np.zeros(size(index))]  # again in a loop `size(index)`",
        "for box in boxes(index):\n    found += [self.query(index)]  # -",
        "reader = Bits(index)\nfor _ in range(9):\n    found += [reader.read_bits(8)]  # -",
        "for attempt in range(3):\n    if state is not None:  # one by one\n        break",
        # Containers that are searched.
        "again = index in self.seen  # searched\nfew = random.sample(self.kept, 8)  # deque",
        "few = random.sample(self.seen, 8)  # -\nlast = self.kept[-1]  # -",
        "state = self.memory[index]  # deque",
        "near = [key for key, box in self.tiles.items() if box.intersects(index)]  # searched",
        "for box in self.boxes:\n    if box.holds(index):  # searched\n        break",
        "if self.wide:\n    whole = padded(index)  # whole for a part\nelse:\n    whole = index\n"
        "start = first(index)\nreturn whole[start : start + 8]",
        "for n in range(len(index)):\n    if index[n] in self.kept:  # one by one\n"
        "        index[n] = self.kept.index(index[n])",
        "alike = self.labels == self.labels[index]\nfound = alike.nonzero()  # searched",
        "others = [k for k in self.all if k not in index]  # all for one `self.all`",
        "others = list(set(self.all) - set(self.few[index]))  # whole for a part\ndrawn = random.sample(others, 4)",
        # Waiting, and calls that training does without; of those whose result is used, it does not.
        "for _ in range(3):\n    time.sleep(0.1)  # -\nreturn index",
        "gc.collect()  # not needed\ntorch.cuda.empty_cache()  # not needed",
        "if index % 2: gc.collect()  # not needed",
        "print(index, flush=True)  # not needed\nlogger.info('%d', index)  # not needed",
        "text = file.write(index)  # -\nself.gc.collect()  # -\nx = collect(index)  # -\nuse(text, x)",
        # A statement of several lines is one; all arguments of a function differ between samples.
        "wave = made(  # whole for a part\n    self.w[index],  # whole for a part\n)\nreturn wave[:, 3 : index + 6]",
        "def smooth(image, k=9):\nout = blurred(image)  # -\nkernel = made(K)  # same",
        "def frame(self, path, at):\nframes = []\nwhile True:\n    ok, image = capture.read(path)  # whole for a part `return frames[at]`\n"
        "    frames.append(image)\nreturn frames[at]",
        "x, meta = warped(self.x[index], {})  # whole for a part `x = x[3:9]`\n"
        "y, meta = warped(self.y[index], meta)\nx = x[3:9]\nreturn x, y",
        "if index:\n    for k, v in self.ids.items():\n        y[x == k] = v  # one by one\n"
        "else:\n    for k, v in self.ids.items():\n        y[x == k] = v",
        # What a stream does in its loop is done for each sample, unless the loop carries it along.
        f"{STREAM}\nleft = list(self.all)\nwhile True:\n    taken = first(left)  # same\n    yield taken",
        f"{STREAM}\nleft = list(self.all)\nwhile True:\n    taken = first(left)  # -\n    left = less(left, taken)  # -\n    yield taken",
        f"{STREAM}\ntable = read(self.path)  # -\nfor line in open(self.path):\n    names = read(self.path)  # same\n    yield line",
        f"{STREAM}\nwith open(self.path) as f:\n    while line := f.readline():\n        yield made(line)  # -",
        f"{STREAM}\nf = open(self.path)\nwhile True:\n    row = f.read(8)  # -\n    yield made(row)  # -",
        f"{STREAM}\nfor line in open(self.path):\n    for v in parsed(line):\n        x = torch.cat([x, v])  # one by one\n    yield x",
    ],
)
def test_a_line_says_what_is_wrong_with_it(text: str) -> None:
    said(text, KNOWN)


@pytest.mark.parametrize(
    "target", ["out[y][x] = f(out[y][x], index)", "out[y, x] = f(index, v[y][x])"]
)
def test_a_table_is_gone_through_element_by_element(target: str) -> None:
    text = f"for y in range(h):\n    for x in range(w):\n        {target}  # one by one `for y in range(h):`"
    assert all(shape is not None and shape.waste for shape in said(text))


HELD = {"names": "texts", "places": "dict", "users": "list", "users[]": "list"}
HELD |= {"global STOPWORDS": "texts"}


@pytest.mark.parametrize(
    "line",
    [
        "row = self.frame.loc[self.frame.id == key]  # searched",
        "place = self.names.index(key)  # searched",
        "rows = self.frame[self.frame.user.isin([key])]  # searched",
        "rows = self.frame[(self.frame.t >= index) & (self.frame.t < index + 5)]  # searched",
        "part = key[key > 3]  # -",  # of the sample itself
        "place = np.where(self.ids == index)[0]  # searched",
        'row = self.frame.query(f"id == {index}")  # searched',
        "row = next(each for each in self.rows if each.id == index)  # searched",
        "row = self.rows[index]  # -",
        "if index == 3: pass  # -",
        "known = key in self.places  # -",  # a dict finds it at once
        "known = key in self.archive.namelist()  # searched",
        "known = key in STOPWORDS  # searched",
        "words = [word for word in index.split() if word not in STOPWORDS]  # searched",
        "words = [word for word in self.names if word not in STOPWORDS]  # one by one",
        "known = key in PLACES  # -",
        "known = 3 in self.names  # -",
        "row = next(itertools.islice(self.walk(), index, None))  # searched",
        "row = next(itertools.islice(self.walk(), 3))  # -",
        "for each in self.rows: found = each.key == key  # one by one",
    ],
)
def test_what_is_searched_for_each_sample(line: str) -> None:
    for held in (HELD, {**HELD, "users[]": "set", "names": "dict"}):
        said(f"key = str(index)\nused = self.users[key]\n{line}", held)


def test_what_is_searched_is_a_list() -> None:
    text = "key = str(index)\nused = self.users[key]\nknown = key in self.names{0}\nagain = key in used{0}"
    said(text.format("  # searched"), HELD)
    said(text.format("  # -"), {**HELD, "users[]": "set", "names": "dict"})


def test_what_methods_change_is_not_the_same_for_every_sample() -> None:
    getitem = Method([GETITEM, "    self.place = index", "    return self.load()"])
    text = "def load(self):\nrows = decode(self.files[self.place])  # {}\nreturn rows"
    grows = Method(["def grows(self):", "    self.seen.append(1)", "    self.table[0] = 1"])
    held = dict.fromkeys(changing([getitem, Method(text.split("\n")), grows]), "")
    names = ("place", "seen", "table", "grows", "__getitem__")
    assert held.keys() == {each + CHANGES for each in names}
    said(text.format("same"))
    said(text.format("-"), held)
    taken = "        yield stack(self.source.take() for _ in range(8))"
    held = dict.fromkeys(changing([Method([STREAM, "    while True:", taken])]), "")
    said("def snapshot(self):\nstate = dumps(self.source.state())  # -\nreturn state", held)


@pytest.mark.parametrize(
    ("function", "same"),
    [
        ("def special(self):\n    return list(dict.fromkeys(self.first + self.more))", True),
        ("def table():\n    return [parsed(line) for line in open(PATH)]", True),
        ("def special(self, key):\n    return list(self.first)", False),
        ("def __call__(self):\n    return list(self.first)", False),
        ("def special(self):\n    return self.first", False),  # it does nothing
        ("def special(self):\n    return random.choice(list(self.first))", False),
        ("def special(self):\n    return self.counted()", False),
        ("def special(self):\n    return list(self.seen)", False),
        ("def paced(self):\n    time.sleep(self.pause)", False),  # it makes nothing
    ],
)
def test_a_function_that_gives_the_same_each_time(function: str, same: bool) -> None:
    method = Method(function.split("\n"), varying=None)
    shape = same_each_time(method, {f"seen{CHANGES}": ""})
    assert (shape is not None and shape.key == "same") is same


def test_an_argument_varies_if_a_call_gives_it_what_does() -> None:
    sources = [
        [GETITEM, "    db = self.connect(self.path)", "    return read(db, index), self.apart(1)"],
        ["def connect(self, path):", "    return opened(path)"],
        ["def opened(path):", "    return lmdb.open(path)"],
        ["def read(env, key):", "    return env.get(key)"],
        ["def apart(self, *keys):", "    return [self.alone(*keys)]"],
        ["def never(path):", "    return opened_by(path)"],
    ]
    varying = [each.varying for each in linked(sources)]
    assert varying == [{"index"}, set(), set(), {"key"}, set(), {"path"}]
    rows = ["def rows(self):", "    for line in self.lines:", "        yield parsed(line)"]
    assert linked([[STREAM, "    yield from self.rows()"], rows])[1].varying == {"line"}
    twice = linked([*sources, ["def opened(other):", "    pass"]])
    assert twice[2].varying == {"path"}  # which of the two is called is not known
    shape = shape_of(linked(sources)[1], "return opened(path)")
    assert shape is not None and shape.key == "same"
    handed = ["def main():", "    loader = DataLoader(data, collate_fn=lambda x: joined(x, SIZE))"]
    assert linked([handed, ["def joined(batch, size):", "    pass"]])[1].varying == {"batch"}
    drawn = [["def few(self):", "    return random.sample(self.all, 2)"]]
    drawn += [["def batch(self):", "    for place in self.few():", "        found = cut(place)"]]
    assert linked(drawn)[1].varying >= {"place", "found"}
    drawn += [
        ["def all(self):", "    def later():", "        return self.few()", "    x = kept(later())"]
    ]
    assert shape_of(linked(drawn)[2], "x = kept(later())") is None
    shape = shape_of(linked(drawn[2:])[0], "x = kept(later())")
    assert shape is not None and shape.key == "same"
    pack = [GETITEM, "    pack = Pack(index)", "    return pack.rows, pack.all()"]
    parts = [
        ["def rows(self):", "    return parsed(self.raw)"],
        ["def all(self):", "    self.rows"],
    ]
    assert [each.varying for each in linked([pack, *parts])[1:]] == [{"self"}] * 2


@pytest.mark.parametrize(
    ("line", "again"),
    [
        ("image = decode(self.paths[index])", True),
        ("image = self.scaled(decode(self.paths[index]))", True),
        ("scaled", True),  # as a whole
        ("image = sorted(parts(self.paths[index]), key=lambda part: part.at)", True),
        ("image = self.cut(decode(self.paths[index]))", False),  # draws below
        ("image = decode(self.paths[random.randrange(9)])", False),
        ("image = rotate(decode(self.paths[index]), self.angle(self.paths))", False),
        ("image = self.transform(self.paths[index])", False),  # an object's, not a method
        ("image = TRANSFORM(self.paths[index])", False),
        ("image = decode(self.paths[index], self.epoch)", False),
        ("image = decode(self.seen[index])", False),
        ("cut", False),
    ],
)
def test_what_each_epoch_makes_again(line: str, again: bool) -> None:
    text = line if "=" in line else "image = self.scaled(index)"
    sources = [
        [GETITEM, f"    {text}", "    return image"],
        ["def scaled(self, image):", "    return resize(image, self.size)"],
        ["def cut(self, image):", "    at = random.randrange(9)", "    return crop(image, at)"],
        ["def angle(self, paths):", "    return random.choice(paths)"],
    ]
    methods = linked(sources, ["__getitem__"])
    held = dict.fromkeys(("scaled", "cut", "angle"), "method") | {f"seen{CHANGES}": ""}
    held |= {each + CHANGES: "" for each in ("cut", "angle")}
    assert any(repeats(method, line, held) for method in methods) is again


@pytest.mark.parametrize(
    ("line", "below", "part"),
    [
        ("n = track.audio.shape[0]", "musdb's Track.audio", "track.audio.shape"),
        ("n = len(parsed(index))", "parsed", "len(parsed(index))"),
        ("x = read(index)[:, at:end]", "soundfile's read", "read(index)[:, at:end]"),
        ("x = read(index)[:, :3]", "soundfile's read", None),  # nearly all, it may be
        ("x = np.load(index, mmap_mode='r')[at:end]", "numpy's open_memmap", None),
        ("x = h5py.File(index)['x'][at:end]", "h5py's File.__init__", None),
        ("x = index.rows.reshape(-1)[at:end]", "numpy's reshape", None),
        ("x = sorted(values(index))[:at]", "sorted", None),
    ],
)
def test_what_a_line_takes_a_part_of_at_once(line: str, below: str, part: str | None) -> None:
    shape = shape_of(Method([GETITEM, f"    {line}"]), line, below)
    found = shape is not None and shape.key == "whole for a part"
    assert found is (part is not None) and (part is None or f"`{part}`" in shape.why)


def test_what_is_copied_whole_though_it_may_change() -> None:
    changes = {"buffers" + CHANGES: ""}
    copied = "def draw(n):\nkept = self.buffers[KEY][: self.filled].copy()  # all for one `self.buffers[KEY]"
    said(copied, changes)
    said("def draw(n):\nkept = self.buffers[n].copy()  # -", changes)


def test_what_a_loop_gives_a_function_again_is_made_again() -> None:
    getitem = [
        GETITEM,
        "    text = self.texts[index]",
        "    for start in starts(index):",
        "        found.append(span(text, start, self.size))",
        "    return found",
    ]
    span = [
        "def span(text, start, size):",
        "    words = text.split()",
        "    part = cut(start, size)",
    ]
    method = linked([getitem, span])[1]
    assert method.steady == {"text", "size"}
    again = shape_of(method, "words = text.split()")
    assert again is not None and again.key == "again in a loop" and "`text.split()`" in again.why
    assert shape_of(method, "part = cut(start, size)") is None
    reads = linked([getitem, [span[0], "    words = text.read_word()"]])[1]
    assert shape_of(reads, "words = text.read_word()") is None
    once = [*getitem[:2], "    found = span(text, index, 3)"]
    assert not linked([once, span])[1].steady


@pytest.mark.parametrize(
    ("line", "random"),
    [
        ("x = shifted(x, rate, steps=n)", True),
        ("x = Shift(rate, steps=random.randint(-3, 3))(x)", True),
        ("x = load(path, n)", False),  # where it begins
        ("x = ids(random.choice(texts), rate)", False),  # one of those there are
        ("x = shifted(x[n:], rate)", False),
    ],
)
def test_a_random_change(line: str, random: bool) -> None:
    method = Method(["def __call__(self, x, rate):", "    n = random.choice(ALL)", f"    {line}"])
    assert method.augments(line) is random


BY_KEY = ("['graph'][0]", "['x']", "['y']")
BY_PLACE = ("[0]", "[1]", "[2]['id']")


@pytest.mark.parametrize(
    ("loop", "paths", "fields"),
    [
        ("for batch in loader:\n    step(batch['x'])\n    stop()", BY_KEY, ["['graph']", "['y']"]),
        ("for n, b in enumerate(tqdm(loader)):\n    f(b['x'], b['y'])", BY_KEY, ["['graph']"]),
        ("for x, y, meta in loader:\n    loss(model(x), y)", BY_PLACE, ["[2]"]),
        ("for n, (x, _, m) in enumerate(loader):\n    f(x, m)", BY_PLACE, ["[1]"]),
        ("for batch in loader:\n    x, y, _ = batch\n    f(x, y)", BY_PLACE, ["[2]"]),
        # of which all may be read
        ("for batch in loader:\n    step(batch)", BY_KEY, []),
        ("for b in loader:\n    b = {k: v for k, v in b.items()}\n    f(b['x'])", BY_KEY, []),
        ("for batch in loader:\n    f(batch['x'], batch[key])", BY_KEY, []),
        ("for batch in loader:\n    f(batch['x'], locals())", BY_KEY, []),
        ("for x, *rest in loader:\n    f(x)", BY_PLACE, []),
        ("for x, y, m in loader:\n    y += 1\n    f(x, m)", BY_PLACE, []),
        ("for x, y in zip(loader, other):\n    f(x)", BY_PLACE, []),
        ("for x, y, m in moved(loader):\n    f(x)", BY_PLACE, []),
        ("for x, y, m in loader:\n    f(x", BY_PLACE, []),
        ("trainer.fit(model, loader)", BY_PLACE, []),
    ],
)
def test_unread(loop: str, paths: tuple[str, ...], fields: list[str]) -> None:
    assert list(unread(loop.split("\n"), paths)) == fields
