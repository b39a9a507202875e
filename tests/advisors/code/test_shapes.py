"""What a line's source says of it."""

from __future__ import annotations

from typing import Any

import pytest

from loaderscope.advisors.code.method import Method, linked
from loaderscope.advisors.code.shapes import ALL, CHANGES, FLOAT32, changing, shape_of

GETITEM = "def __getitem__(self, index):\n"
SOURCE = (
    GETITEM
    + """\
    files = sorted(glob.glob(self.pattern))
    with open("all.txt") as file:
        lines = file.readlines()
    name = files[index]
    row = self.frame[self.frame["id"] == index]
    noise = np.random.randn(8)
    louder = filtered(noise)
    for key in self.keys:
        table = parse(self.text)
        value = lookup(table, key, name)
    width = 4
    frame = self.camera.read()
    drawn = self.rng.integers(8)
    order = np.random.permutation(10)
    picked = np.random.default_rng().integers(0, 9)
    stamp = datetime.now()
    entry = self.cursor.fetchone()
    time.sleep(self.seconds)
    kept = [each for each in self.rows]
    reader = csv.reader(file)
    read = [each for each in reader]
    resampler = Resample(self.rate, 16000)
    volume = self.file["ct"][:]
    image = self.images[index].filter(BLUR)
    small = image.resize((64, 64))
    label = parse(self.labels[index])
    label = label.lower()
    first = label[0]
    title = json.load(open(self.path))["titles"][index]
    name_of = list(self.names.keys())[index]
    score = pd.read_csv(self.path).sort_values("t").iloc[index]
    held = self.rng.permutation(9)[index]
    mine = self.own(self.path)[index]
    row_of = self.places[index]
    raw = unpack(self.blobs[index])
    grid = np.frombuffer(raw, np.uint8).reshape(4, 4)
    pair = row(self.table, index)
    left = pair[0]
    plane = self.file["ct"][:][index]
    part = volume[:][index]
    return name, lines[index], volume[index], grid[index % 4], pair, louder
"""
)
LINES = {
    "files = sorted(glob.glob(self.pattern))": "same",
    "lines = file.readlines()": "same",
    'with open("all.txt") as file:': "same",
    "table = parse(self.text)": "same",
    "read = [each for each in reader]": "same",
    "resampler = Resample(self.rate, 16000)": "same",
    'title = json.load(open(self.path))["titles"][index]': "same",
    "name_of = list(self.names.keys())[index]": "same",
    'score = pd.read_csv(self.path).sort_values("t").iloc[index]': "same",
    'row = self.frame[self.frame["id"] == index]': "searched",
    'volume = self.file["ct"][:]': "whole for a part",
    "image = self.images[index].filter(BLUR)": "whole for a part",
    "raw = unpack(self.blobs[index])": "whole for a part",
    'plane = self.file["ct"][:][index]': "whole for a part",
    "part = volume[:][index]": None,  # of what is at hand already
    "small = image.resize((64, 64))": None,
    "label = parse(self.labels[index])": None,
    "pair = row(self.table, index)": None,  # an item of a pair is no part of much
    "kept = [each for each in self.rows]": "one by one",  # it may move on as it is read
    "width = 4": None,  # costs nothing
    **dict.fromkeys(
        (
            "name = files[index]",
            "noise = np.random.randn(8)",
            "louder = filtered(noise)",
            "value = lookup(table, key, name)",
            "frame = self.camera.read()",
            "drawn = self.rng.integers(8)",
            "order = np.random.permutation(10)",
            "picked = np.random.default_rng().integers(0, 9)",
            "stamp = datetime.now()",
            "entry = self.cursor.fetchone()",
            "time.sleep(self.seconds)",
            "held = self.rng.permutation(9)[index]",
            "mine = self.own(self.path)[index]",
            "row_of = self.places[index]",
            "nowhere(self)",
            "",
        )
    ),
}


def made(source: Any) -> Method:
    return source if isinstance(source, Method) else Method(source.split("\n"))


def key_of(source: Any, line: str, held: dict[str, str] | None = None) -> str | None:
    shape = shape_of(made(source), line, held=held)
    return shape.key if shape is not None else None


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("other = random.choice(list(self.items - self.seen[index]))", "self.items (6,000)"),
        ("other = np.random.choice(10, p=self.weights)", "self.weights (100,000)"),
        ("other = random.choices(range(10), weights=self.weights)", "self.weights (100,000)"),
        ("near = knn(self.weights, self.few[index])", "self.weights (100,000)"),
        ("near = (self.weights < self.few[index]).argmin()", "self.weights (100,000)"),
        ("other = random.choice(self.weights) * index", None),  # it takes one
        ("place = np.searchsorted(self.weights, index)", None),
        ("value = parse(self.weights[index])", None),
        ("known = index in self.items", None),
        ("near = knn(self.few, index)", None),
    ],
)
def test_all_of_a_large_collection_for_one_sample(line: str, found: str | None) -> None:
    held = {"items#": "6,000", "weights#": "100,000"}
    shape = shape_of(made(body(line)), line, held=held)
    key = shape.key if shape is not None else None
    assert (key == ALL) is (found is not None), key
    assert shape is None or found is None or f"`{found}`" in shape.why


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        (["joined = sum(self.rows[index], [])"], "summed lists"),
        (["total = sum(self.rows[index])"], None),
        (["near = [self.table[key][at] for at in places]"], "whole for a part"),
        (["near = [self.rows[key][at] for at in places]"], "one by one"),  # a list at hand
        (["near = [self.table[at][key] for at in places]"], "one by one"),
        (["found = self.query(index)"], None),  # not a DataFrame's
        (["found = parse(index)", "end = len(found) // 8 * 8", "return found[:end]"], None),
        (["found = parse(index)", "end = 8", "return found[:end]"], "whole for a part"),
        (["found = parse(index)", "found[:3] -= 1", "return found, index"], None),
        (["found = parse(index)", "near = found < 3", "best = found[near]"], None),
        (["found = self.frame.groupby('user').get_group(index)"], "same"),
        (
            ["table = np.array([(i / 255) ** index for i in range(256)])", "use = table[index]"],
            "one by one",
        ),
        (
            ["table = [decode(i, index) for i in range(9)]", "use = table[index]"],
            "whole for a part",
        ),
    ],
)
def test_work_that_is_done_again_or_for_a_part(lines: list[str], key: str | None) -> None:
    source = body("places = offsets(index)", *lines)
    assert key_of(source, lines[0], {"rows": "list"}) == key


@pytest.mark.parametrize(("often", "key"), [("9", "same"), ("index", None)])
def test_lines_of_a_file_in_a_loop(often: str, key: str | None) -> None:
    """The same for every sample, unless it goes as far as the sample says."""
    line = "entry = names.readline()"
    source = body("names = open(LIST)", f"for _ in range({often}):", f"    {line}", "return entry")
    assert key_of(source, line) == key


def body(*lines: str, head: str = GETITEM) -> str:
    return head + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(("line", "key"), LINES.items())
def test_each_line_has_the_shape_that_its_source_says(line: str, key: str | None) -> None:
    assert key_of(SOURCE, line) == key


def test_what_is_used_of_it_is_said() -> None:
    shape = shape_of(made(SOURCE), "image = self.images[index].filter(BLUR)")
    assert shape is not None and not shape.waste and "`small = image.resize((64, 64))`" in shape.why
    read = shape_of(made(SOURCE), 'volume = self.file["ct"][:]')
    assert read is not None and read.waste


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("return torch.tensor(self.rows[index].tolist())", True),
        ("copy = pickle.loads(pickle.dumps(self.rows[index]))", True),
        ("image = Image.fromarray(np.asarray(self.images[index]))", True),
        ("return torch.tensor(self.rows[index])", False),
        ("text = json.dumps(self.rows[index])", False),
    ],
)
def test_what_is_converted_there_and_back(line: str, found: bool) -> None:
    assert (key_of(body(line), line) == "back and forth") is found


@pytest.mark.parametrize("source", ["def broken(:", "x = f()", "def __getitem__():\n    x = f()"])
def test_source_that_cannot_be_read_says_nothing(source: str) -> None:
    assert key_of(source, "x = f()") is None


@pytest.mark.parametrize(
    ("line", "needed", "costly"),
    [
        ("gc.collect()", False, True),
        ("if index % 2: gc.collect()", False, True),
        ("torch.cuda.empty_cache()", False, True),
        ("self.gc.collect()", True, False),
        ("print(index, flush=True)", False, False),
        ("logger.info('sample %d', index)", False, False),
        ("text = file.write(data)", True, False),  # its result is used
        ("x = collect()", True, False),
        ("def (", True, False),
    ],
)
def test_calls_that_training_does_without(line: str, needed: bool, costly: bool) -> None:
    shape = shape_of(Method([]), line)
    assert (shape is None) is needed
    assert shape is None or (shape.key, shape.costly) == ("not needed", costly)


HELD = {
    "names": "texts",
    "places": "dict",
    "users": "list",
    "users[]": "list",
    "global STOPWORDS": "texts",
}


@pytest.mark.parametrize(
    ("line", "searched"),
    [
        ("row = self.frame.loc[self.frame.id == key]", True),
        ("place = self.names.index(key)", True),
        ("rows = self.frame[self.frame.user.isin([key])]", True),
        ("rows = self.frame[(self.frame.t >= index) & (self.frame.t < index + 5)]", True),
        ("part = key[key > 3]", False),  # of the sample itself
        ("place = np.where(self.ids == index)[0]", True),
        ('row = self.frame.query(f"id == {index}")', True),
        ("row = next(each for each in self.rows if each.id == index)", True),
        ("row = self.rows[index]", False),
        ("if index == 3: pass", False),
        ("known = key in self.names", True),
        ("known = key in self.places", False),  # a dict finds it at once
        ("known = key in self.archive.namelist()", True),
        ("known = key in used", True),
        ("known = key in STOPWORDS", True),
        ("words = [word for word in index.split() if word not in STOPWORDS]", True),
        ("words = [word for word in self.names if word not in STOPWORDS]", False),
        ("known = key in PLACES", False),
        ("known = 3 in self.names", False),
        ("row = next(itertools.islice(self.walk(), index, None))", True),
        ("row = next(itertools.islice(self.walk(), 3))", False),
        ("for each in self.rows: found = each.key == key", False),
    ],
)
def test_what_is_searched_for_each_sample(line: str, searched: bool) -> None:
    source = body("key = str(index)", "used = self.users[key]", line)
    assert (key_of(source, line, HELD) == "searched") is searched
    other = {**HELD, "users[]": "set", "names": "dict"}
    by_kind = line.endswith(("in self.names", "in used"))
    assert (key_of(source, line, other) == "searched") is (searched and not by_kind)


def test_a_managers_object_is_asked_in_another_process() -> None:
    shape = shape_of(made(SOURCE), "name = files[index]", "multiprocessing's BaseProxy._callmethod")
    assert shape is not None and "another process" in shape.why


def test_a_statement_of_several_lines_is_one() -> None:
    lines = ("wave = spectrum(", "    self.waves[index],", ").abs()")
    source = body(*lines, "return wave[:, index : index + 16]")
    assert {key_of(source, line.strip()) for line in lines} == {"whole for a part"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            ["for k in range(9):", "    rows = torch.cat([rows, self.x[index, k]])"],
            "for k in range(9):",
        ),
        (
            ["while len(drawn) < 9:", "    drawn.append(random.randrange(5))"],
            "while len(drawn) < 9:",
        ),
        (["for path in self.views[index]:", "    views.append(decode(path))"], None),
        (
            ["x = [self.table.iloc[index, k] for k in range(9)]"],
            "[self.table.iloc[index, k] for k in range(9)]",
        ),
        (["x = [decode(path) for path in self.views[index]]"], None),
        (
            [
                "for y in range(h):",
                "    for x in range(w):",
                "        out[y][x] = f(out[y][x], index)",
            ],
            "for y in range(h):",
        ),
        (
            [
                "for y in range(h):",
                "    for x in range(w):",
                "        out[y, x] = f(index, v[y][x])",
            ],
            "for y in range(h):",
        ),
        (["for y in range(h):", "    for x in range(w):", "        out[y] = f(x, index)"], None),
        (["for y in range(h):", "    for x in decoded:", "        out[y, x] = f(index)"], None),
        (["for y in range(h):", "    out[y, y] = f(index)"], None),
    ],
)
def test_what_is_done_for_one_value_after_another(lines: list[str], said: str | None) -> None:
    shape = shape_of(made(body(*lines)), lines[-1].strip())
    assert (shape is not None and shape.key == "one by one") is (said is not None)
    if shape is not None and said is not None:
        assert f"`{said}`" in shape.why and shape.waste is (len(lines) == 3)


def test_what_methods_change_is_not_the_same_for_every_sample() -> None:
    getitem = body("self.place = index", "return self.load()")
    load = body("rows = decode(self.files[self.place])", "return rows", head="def load(self):\n")
    grows = body("self.seen.append(1)", "self.table[0] = 1", head="def grows(self):\n")
    assert key_of(load, "rows = decode(self.files[self.place])") == "same"
    held = dict.fromkeys(changing(map(made, (getitem, load, grows))), CHANGES)
    assert set(held) == {"place", "seen", "table", "grows", "__getitem__"}
    assert key_of(load, "rows = decode(self.files[self.place])", held) is None


def test_all_arguments_of_a_function_differ_from_sample_to_sample() -> None:
    source = body("out = blurred(image)", "kernel = made(K)", head="def smooth(image, k=9):\n")
    assert key_of(source, "out = blurred(image)") is None
    assert key_of(source, "kernel = made(K)") == "same"


@pytest.mark.parametrize(
    ("used", "key"),
    [
        ("if rate == self.rate: return wave", "per value"),
        ("old = rate // 100", "per value"),
        ("name = NAMES[rate]", "per value"),
        ("rate = rate / 255", None),  # it may be an array
        ("if rate[0] == 1: return wave", None),
        ("if rate == 1: wave = wave * random.random()", "per value"),
    ],
)
def test_what_depends_on_one_of_several_arguments(used: str, key: str | None) -> None:
    head = "def __call__(self, wave, rate):\n"
    bank, out = "bank = made(rate, self.rate)", "out = filtered(wave, bank)"
    source = body(used, bank, out, "return out", head=head)
    assert key_of(source, bank) == key and key_of(source, out) is None
    random_ = body(used, "bank = made(rate, random.random())", "return bank", head=head)
    assert key_of(random_, "bank = made(rate, random.random())") is None
    alone = body(used.replace("wave", "1"), bank, head="def __call__(self, rate):\n")
    assert key_of(alone, bank) is None


@pytest.mark.parametrize(
    ("lines", "line", "key"),
    [
        (["x = self.frame[self.columns]", "return x[index]"], 0, "same"),
        (["x = self.frame[index]", "return x"], 0, None),
        (["x = np.unique(self.cells[index], axis=0)", "return x"], 0, "unique rows"),
        (["x = np.unique(self.cells[index])", "return x"], 0, None),
        # the part depends on all, or all is used besides
        (["x = made(self.a[index])", "y = x[:4]", "return y"], 0, "whole for a part"),
        (["x = np.sort(self.a[index])", "y = x[:4]", "return y"], 0, None),
        (["x = made(self.a[index])", "y = x[:4].mean()", "return x - y"], 0, None),
        (
            ["x = made(self.a[index])", "y = x[: x.shape[0] // 2]", "return y"],
            0,
            "whole for a part",
        ),
        (["x = made(self.a[index])", "m = x.mean()", "return m"], 0, None),
        (
            ["for n, x in enumerate(open(P)):", "    if n == index:", "        return x"],
            0,
            "searched",
        ),
        (
            [
                "s = 0",
                "for n, x in enumerate(self.a):",
                "    s += x",
                "    if s > index:",
                "        return n",
            ],
            1,
            "searched",
        ),
        (["x = np.where(self.a[index] == 0, 1, 2)", "return x"], 0, None),
        (["x = made(self.a[index])", "return x[:4], x[4]"], 0, None),
        (["x = made(self.a[index])", "return x[:4]"], 0, "whole for a part"),
        (["x = torch.randint(made(self.a), index)", "y = x[:4]", "return y"], 0, None),
        (["x = made(index)", "y = x[8:]", "return y"], 1, "rest of a list"),
        (["x = made(index)", "y = x[8:9]", "return y"], 1, None),
        (["return np.random.choice(self.items, p=self.weights)"], 0, "all for one"),
        (["return np.random.choice(self.items)"], 0, None),
    ],
)
def test_other_lines(lines: list[str], line: int, key: str | None) -> None:
    assert key_of(body(*lines), lines[line]) == key


def test_what_a_loop_carries_along_is_not_the_same_for_each_sample() -> None:
    head = "def __iter__(self):\n"
    lines = ["left = list(self.all)", "while True:", "    taken = first(left)"]
    source = body(*lines, "    names = read(self.path)", "    yield taken", head=head)
    assert key_of(source, "taken = first(left)") == "same"
    again = body(*lines, "    left = without(left, taken)", "    yield taken", head=head)
    assert key_of(again, "taken = first(left)") is None
    assert key_of(again, "left = without(left, taken)") is None


def test_what_a_stream_does_is_done_for_each_sample() -> None:
    source = body(
        "table = read(self.path)",
        "for line in open(self.path):",
        "    names = read(self.path)",
        "    for v in parsed(line):",
        "        x = torch.cat([x, v])",
        "    yield x",
        head="def __iter__(self):\n",
    )
    assert key_of(source, "table = read(self.path)") is None
    assert key_of(source, "names = read(self.path)") == "same"
    assert key_of(source, "x = torch.cat([x, v])") == "one by one"


def test_an_argument_varies_if_a_call_gives_it_what_does() -> None:
    sources = [
        [
            "def __getitem__(self, index):",
            "    env = self.connect(self.path)",
            "    return read(env, index), self.apart(1)",
        ],
        ["def connect(self, path):", "    return opened(path)"],
        ["def opened(path):", "    return lmdb.open(path)"],
        ["def read(env, key):", "    return env.get(key)"],
        ["def apart(self, *keys):", "    return [self.alone(*keys)]"],
        ["def never(path):", "    return opened_by(path)"],
    ]
    found = {each.name: each.varying for each in linked(sources)}
    assert found["connect"] == found["opened"] == set()
    assert found["read"] == {"key"} and found["never"] == {"path"}
    assert found["__getitem__"] == {"index"}
    twice = linked([*sources, ["def opened(other):", "    pass"]])
    assert twice[2].varying == {"path"}  # which of the two is called is not known
    assert key_of(linked(sources)[1], "return opened(path)") == "same"


def test_of_a_list_filled_in_a_loop_one_element_is_used() -> None:
    source = [
        "def frame(self, path, at):",
        "    frames = []",
        "    while True:",
        "        ok, image = capture.read(path)",
        "        frames.append(image)",
        "    return frames[at]",
    ]
    shape = shape_of(Method(source), "ok, image = capture.read(path)")
    assert shape is not None and "`return frames[at]`" in shape.why


CONTAINERS = """\
def __getitem__(self, index):
    oldest = self.items.pop(0)
    rows = self.db.execute("SELECT x FROM events WHERE session = ?", (index,)).fetchall()
    state = self.memory[index]
    near = [key for key, box in self.tiles.items() if box.intersects(index)]
    made = [parse(field) for field in self.fields if field in index]
    for box in self.boxes:
        if box.holds(index):
            break
    for attempt in range(3):
        if state is not None:
            break
    others = list(set(self.all) - set(self.seen[index]))
    drawn = random.sample(others, 4)
    energy = measured(index)
    if energy < self.least:
        return self[drawn[0]]
    return state, near, made
"""


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("oldest = self.items.pop(0)", "front of a list"),
        (
            'rows = self.db.execute("SELECT x FROM events WHERE session = ?", (index,)).fetchall()',
            "searched by SQL",
        ),
        ("state = self.memory[index]", "deque"),
        ("near = [key for key, box in self.tiles.items() if box.intersects(index)]", "searched"),
        ("made = [parse(field) for field in self.fields if field in index]", "thrown away"),
        ("if box.holds(index):", "searched"),
        ("if state is not None:", "one by one"),
        ("others = list(set(self.all) - set(self.seen[index]))", "whole for a part"),
        ("energy = measured(index)", "thrown away"),
    ],
)
def test_containers_searches_and_samples_that_are_thrown_away(line: str, key: str) -> None:
    shape = shape_of(made(CONTAINERS), line, held={"memory": "deque"})
    assert shape is not None and shape.key == key


def loop(*lines: str, head: str = "while True:") -> str:
    inside = (f"    {line}" for line in lines)
    return body(head, *inside, "return crop", head="def cut(image):\n")


CROP = "crop = image[random.randint(0, 9) :].copy()"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (loop(CROP, "if bright(crop):", "    break"), True),
        (
            loop(
                "y = random.randint(0, 9)",
                "crop = image[y:].copy()",
                "if bright(crop):",
                "    return crop",
            ),
            True,
        ),
        (loop(CROP, "if dark(crop):", "    continue", "break"), True),
        (
            loop(
                CROP,
                "if dark(crop):",
                "    continue",
                "kept.append(crop)",
                head="for attempt in range(9):",
            ),
            False,
        ),
        (
            loop("n = random.randint(0, 9)", "crop = enlarged(image, n)", "if n > 4:", "    break"),
            False,
        ),
        (
            loop("n += random.randint(0, 9)", "crop = image[n:].copy()", "if n > 99:", "    break"),
            False,
        ),
        (loop(CROP, "if bright(crop):", "    break", head="for attempt in range(9):"), True),
        (
            body(
                "crop = image",
                "while dark(crop):",
                "    " + CROP,
                "return crop",
                head="def cut(image):\n",
            ),
            True,
        ),
        (loop("crop = image.resample(3)", "if small(crop):", "    break"), False),
        (loop("crop = self.file.read(9)", "if not crop:", "    break"), False),
        (loop(CROP, "kept.append(crop)", head="for attempt in range(9):"), False),
        (loop(CROP, "if bright(crop):", "    break", head="for image in images:"), False),
    ],
)
def test_a_loop_that_draws_until_one_passes(source: str, found: bool) -> None:
    line = next(
        each.strip()
        for each in source.split("\n")
        if each.strip().startswith("crop = ") and each.startswith("        ")
    )
    assert (key_of(source, line) == "thrown away") is found


NORMAL = ("img = img / 255.0", "img = (img - MEAN) / STD", "return torch.from_numpy(img).float()")


@pytest.mark.parametrize(
    ("lines", "hot", "found"),
    [
        (("img = np.asarray(self.open(index))", *NORMAL), 1, True),
        (("img = np.asarray(self.open(index))", *NORMAL), 2, True),
        (("img = cv2.imread(self.names[index]) / 127.5 - 1", NORMAL[2]), 0, True),
        (("img = np.asarray(self.open(index), np.float32)", *NORMAL), 2, False),
        (
            ("img = np.asarray(self.open(index)).astype('float32')", "img = img[::-1]", *NORMAL),
            2,
            False,
        ),
        (("img = torch.from_numpy(self.images[index]) / 255.0", "return img - 0.5"), 1, False),
        (("img = self.tensors[index] / 255.0", "return img - 0.5, np.mean(index)"), 1, False),
        (
            ("img = decoded(self.names[index])", NORMAL[0], NORMAL[1], "return img"),
            2,
            False,
        ),  # a tensor
        (("img = np.asarray(self.open(index))", "img = img * 2", NORMAL[2]), 1, False),
    ],
)
def test_what_numpy_computes_in_float64_of_bytes(
    lines: tuple[str, ...], hot: int, found: bool
) -> None:
    source = body(*lines)
    held = {"": FLOAT32, "tensors": "tensor"}
    assert (key_of(source, lines[hot], held) == "float64") is found
    assert key_of(source, lines[hot]) != "float64"  # nothing says that float32 is enough
