"""What a line's source says of it."""

from __future__ import annotations

from typing import Any

import pytest

from loaderscope.advisors.code.method import Method, linked
from loaderscope.advisors.code.shapes import (
    CHANGES,
    back_and_forth,
    changing,
    in_nested_loops,
    made_smaller,
    not_needed,
    one_by_one,
    same_for_every_sample,
    searched,
    shape_of,
)


def at(source: Any, line: str) -> tuple[Method, Any]:
    """A method and a statement of it."""
    method = source if isinstance(source, Method) else Method(source)
    return method, method.at(line)


SOURCE = """\
def __getitem__(self, index):
    files = sorted(glob.glob(self.pattern))
    with open("all.txt") as file:
        lines = file.readlines()
    name = files[index]
    row = self.frame[self.frame["id"] == index]
    noise = np.random.randn(8)
    for key in self.keys:
        table = parse(self.text)
        value = lookup(table, key, name)
    width = 4
    frame = self.camera.read()
    drawn = self.rng.integers(8)
    return name, lines[index].split(), width
""".splitlines()


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("files = sorted(glob.glob(self.pattern))", True),
        ("lines = file.readlines()", True),
        ('with open("all.txt") as file:', True),
        ("table = parse(self.text)", True),
        ("name = files[index]", False),
        ('row = self.frame[self.frame["id"] == index]', False),
        ("noise = np.random.randn(8)", False),
        ("value = lookup(table, key, name)", False),
        ("width = 4", False),  # costs nothing
        ("frame = self.camera.read()", False),
        ("drawn = self.rng.integers(8)", False),
        ("return name, lines[index].split(), width", False),
        ("nowhere(self)", False),
        ("", False),
    ],
)
def test_what_depends_on_no_sample_is_the_same_for_each(line: str, same: bool) -> None:
    assert same_for_every_sample(*at(SOURCE, line), {}) is same


def test_source_that_cannot_be_read_says_nothing() -> None:
    assert not same_for_every_sample(*at(["def broken(:"], "x = f()"), {})
    assert not same_for_every_sample(*at(["x = f()"], "x = f()"), {})
    assert not same_for_every_sample(*at(["def __getitem__():", "    x = f()"], "x = f()"), {})


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("gc.collect()", "gc.collect"),
        ("if index % 2: gc.collect()", "gc.collect"),
        ("torch.cuda.empty_cache()", "torch.cuda.empty_cache"),
        ("self.gc.collect()", None),
        ("print(index, flush=True)", "print"),
        ("logger.info('sample %d', index)", "logger.info"),
        ("text = file.write(data)", None),  # its result is used
        ("x = collect()", None),
        ("def (", None),
    ],
)
def test_calls_that_training_does_without(line: str, call: str | None) -> None:
    assert not_needed(line) == call


WHOLE = """\
def __getitem__(self, index):
    volume = self.file["ct"][:]
    image = self.images[index].filter(BLUR)
    small = image.resize((64, 64))
    label = parse(self.labels[index])
    label = label.lower()
    first = label[0]
    raw = unpack(self.blobs[index])
    grid = np.frombuffer(raw, np.uint8).reshape(4, 4)
    pair = row(self.table, index)
    name = pair[0]
    return volume[index], small, label, grid[index % 4], pair
""".splitlines()


@pytest.mark.parametrize(
    ("line", "later"),
    [
        (
            'volume = self.file["ct"][:]',
            "return volume[index], small, label, grid[index % 4], pair",
        ),
        ("image = self.images[index].filter(BLUR)", "small = image.resize((64, 64))"),
        ("small = image.resize((64, 64))", None),
        ("label = parse(self.labels[index])", None),
        ("nowhere()", None),
        (
            "raw = unpack(self.blobs[index])",
            "return volume[index], small, label, grid[index % 4], pair",
        ),
        ("pair = row(self.table, index)", None),  # an item of a pair is no part of much
    ],
)
def test_what_is_made_smaller_later(line: str, later: str | None) -> None:
    assert made_smaller(*at(WHOLE, line)) == later


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('row = self.frame[self.frame["id"] == index]', True),
        ("row = self.frame.loc[self.frame.id == key]", True),
        ("place = self.names.index(key)", True),
        ("place = np.where(self.ids == index)[0]", True),
        ('row = self.frame.query(f"id == {index}")', True),
        ("row = next(each for each in self.rows if each.id == index)", True),
        ("rows = self.frame[self.frame.kind == self.kind]", False),
        ("row = self.rows[index]", False),
        ("if index == 3:", False),
        ("known = key in self.names", True),
        ("known = key in self.places", False),  # a dict finds it at once
        ("row = next(itertools.islice(self.walk(), index, None))", True),
        ("row = next(itertools.islice(self.walk(), 3))", False),
        ("for each in self.rows: found = each.key == key", False),
    ],
)
def test_what_is_searched_for_each_sample(line: str, found: bool) -> None:
    source = ["def __getitem__(self, index):", "    key = str(index)", f"    {line}"]
    source += ["        pass"] * (line == "if index == 3:")
    assert searched(*at(source, line), {"names": "texts", "places": "dict"}) is found


@pytest.mark.parametrize(
    "line",
    [
        "order = np.random.permutation(10)",
        "picked = np.random.default_rng().integers(0, 9)",
        "stamp = datetime.now()",
        "row = self.cursor.fetchone()",
        "time.sleep(self.seconds)",
    ],
)
def test_what_is_another_each_time_or_makes_nothing_is_not_made_once(line: str) -> None:
    source = ["def __getitem__(self, index):", f"    {line}", "    return index"]
    assert not same_for_every_sample(*at(source, line), {})


def test_a_line_of_no_shape_has_none() -> None:
    assert shape_of(SOURCE, "name = files[index]") is None
    shape = shape_of(SOURCE, "lines = file.readlines()")
    assert shape is not None and shape.title.startswith("Do once")


def test_a_managers_object_is_asked_in_another_process() -> None:
    shape = shape_of(SOURCE, "name = files[index]", "multiprocessing's BaseProxy._callmethod")
    assert shape is not None and "another process" in shape.why


def test_a_statement_of_several_lines_is_one() -> None:
    source = ["def __getitem__(self, i):", "    wave = spectrum(", "        self.waves[i],",
              "    ).abs()", "    return wave[:, i : i + 16]"]  # fmt: skip
    for line in source[1:4]:
        shape = shape_of(source, line)
        assert shape is not None and shape.key == "whole for a part", line


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("return torch.tensor(self.rows[index].tolist())", True),
        ("copy = pickle.loads(pickle.dumps(self.template))", True),
        ("image = Image.fromarray(np.asarray(image))", True),
        ("return torch.tensor(self.rows[index])", False),
        ("text = json.dumps(self.rows[index])", False),
    ],
)
def test_what_is_converted_there_and_back(line: str, found: bool) -> None:
    assert (back_and_forth(line) is not None) is found


@pytest.mark.parametrize(
    ("lines", "hot", "found"),
    [
        (["for k in range(9):", "    rows = torch.cat([rows, self.x[k]])"], 1, "for k in range(9):"),
        (["while len(drawn) < 9:", "    item = random.randrange(5)", "    drawn.append(item)"], 1,
         "while len(drawn) < 9:"),
        (["for path in self.views[index]:", "    views.append(decode(path))"], 1, None),
        (["x = [self.table.iloc[index, k] for k in range(9)]"], 0,
         "[self.table.iloc[index, k] for k in range(9)]"),
        (["x = [decode(path) for path in self.views[index]]"], 0, None),
        (["x = decode(index)"], 0, None),
    ],
)  # fmt: skip
def test_what_is_done_for_one_value_after_another(lines: list[str], hot: int, found: Any) -> None:
    source = ["def __getitem__(self, index):", *(f"    {line}" for line in lines)]
    assert one_by_one(*at(source, lines[hot])) == found


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('plane = self.file["ct"][:][index]', "whole for a part"),
        ("plane = part[:][index]", None),  # of what is at hand already
    ],
)
def test_an_index_after_everything_reads_a_part(line: str, key: str | None) -> None:
    shape = shape_of(["def __getitem__(self, index):", f"    {line}", "    return f(plane)"], line)
    assert (shape.key if shape is not None else None) == key


def test_what_methods_change_is_not_the_same_for_every_sample() -> None:
    getitem = ["def __getitem__(self, index):", "    self.place = index", "    return self.load()"]
    load = ["def load(self):", "    rows = decode(self.files[self.place])", "    return rows"]
    grows = ["def grows(self):", "    self.seen.append(1)", "    self.table[0] = 1"]
    assert same_for_every_sample(*at(load, "rows = decode(self.files[self.place])"), {})
    held = dict.fromkeys(changing([getitem, load, grows]), CHANGES)
    assert set(held) == {"place", "seen", "table", "grows", "__getitem__"}
    assert not same_for_every_sample(*at(load, "rows = decode(self.files[self.place])"), held)


def test_all_arguments_of_a_function_differ_from_sample_to_sample() -> None:
    source = ["def smooth(image, k=9):", "    out = blurred(image)", "    kernel = made(K)"]
    assert not same_for_every_sample(*at(source, "out = blurred(image)"), {})
    assert same_for_every_sample(*at(source, "kernel = made(K)"), {})


def test_all_of_a_data_set_read_for_an_index_is_read_whole() -> None:
    source = [
        "def slice_of(self, path, z):",
        "    volume = self.file[path][...]",
        "    return volume[z]",
    ]
    shape = shape_of(source, source[1])
    assert shape is not None and shape.waste and shape.key == "whole for a part"


def test_what_a_stream_does_is_done_for_each_sample() -> None:
    source = ["def __iter__(self):", "    table = read(self.path)", "    for line in open(self.path):",
              "        names = read(self.path)", "        for v in parsed(line):",
              "            x = torch.cat([x, v])", "        yield x"]  # fmt: skip
    assert shape_of(source, source[1]) is None
    same, single = shape_of(source, source[3]), shape_of(source, source[5])
    assert same is not None and same.key == "same"
    assert single is not None and "for v in parsed(line):" in single.why


READS_ALL = """\
def __getitem__(self, index):
    with open(self.path) as f:
        reader = csv.reader(f)
        rows = [row for row in reader]
        kept = [row for row in self.rows]
    noise = random.random()
    louder = filtered(noise)
    resampler = Resample(self.rate, 16000)
    return rows[index], louder
""".splitlines()


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("rows = [row for row in reader]", True),
        ("kept = [row for row in self.rows]", False),  # it may move on as it is read
        ("louder = filtered(noise)", False),
        ("resampler = Resample(self.rate, 16000)", True),
    ],
)
def test_what_is_made_in_this_call_of_what_is_the_same_is_the_same(line: str, same: bool) -> None:
    assert same_for_every_sample(*at(READS_ALL, line), {}) is same


def test_an_argument_varies_if_a_call_gives_it_what_does() -> None:
    sources = [
        ["def __getitem__(self, index):", "    env = self.connect(self.path)",
         "    return read(env, index), self.apart(1)"],
        ["def connect(self, path):", "    return opened(path)"],
        ["def opened(path):", "    return lmdb.open(path)"],
        ["def read(env, key):", "    return env.get(key)"],
        ["def apart(self, *keys):", "    return [self.alone(*keys)]"],
        ["def never(path):", "    return opened_by(path)"],
    ]  # fmt: skip
    found = {each.function.name: each.varying for each in linked(sources) if each.function}
    assert found["connect"] == found["opened"] == set()
    assert found["read"] == {"key"} and found["never"] == {"path"}
    assert found["__getitem__"] == {"index"}
    twice = linked([*sources, ["def opened(other):", "    pass"]])
    assert twice[2].varying == {"path"}  # which of the two is called is not known
    assert same_for_every_sample(*at(linked(sources)[1], "return opened(path)"), {})


@pytest.mark.parametrize(
    ("line", "held", "found"),
    [
        ("ok = name in self.archive.namelist()", {}, True),
        ("ok = name in self.names", {"names": "texts"}, True),
        ("ok = name in self.names", {"names": "dict"}, False),
        ("ok = value in used", {"users": "list", "users[]": "list"}, True),
        ("ok = value in used", {"users": "list", "users[]": "set"}, False),
        ("ok = 3 in self.names", {"names": "texts"}, False),
    ],
)
def test_a_value_that_differs_is_searched_in_a_list(
    line: str, held: dict[str, str], found: bool
) -> None:
    source = ["def __getitem__(self, name):", "    used = self.users[name]",
              "    value = random.randrange(9)", f"    {line}"]  # fmt: skip
    assert searched(*at(source, line), held) is found


@pytest.mark.parametrize(
    ("loops", "line", "found"),
    [
        (("y in range(h)", "x in range(w)"), "out[y][x] = f(out[y][x])", True),
        (("y in range(h)", "x in range(w)"), "out[y, x] = names.index(part[y][x])", True),
        (("y in range(h)", "x in range(w)"), "out[y] = f(x)", False),
        (("y in range(h)", "x in decoded"), "out[y, x] = 1", False),
        (("y in range(h)",), "out[y, y] = 1", False),
    ],
)
def test_loops_through_a_table_go_one_by_one(
    loops: tuple[str, ...], line: str, found: bool
) -> None:
    source = ["def drawn(out, h, w):"]
    source += [f"{'    ' * n}for {each}:" for n, each in enumerate(loops, 1)]
    source.append("    " * (len(loops) + 1) + line)
    assert (in_nested_loops(*at(source, line)) is not None) is found
    shape = shape_of(Method(source), line)
    assert not found or (shape is not None and shape.waste and shape.key == "one by one")


def test_of_a_list_filled_in_a_loop_one_element_is_used() -> None:
    source = ["def frame(self, path, at):", "    frames = []", "    while True:",
              "        ok, image = capture.read()", "        frames.append(image)",
              "    return frames[at]"]  # fmt: skip
    assert made_smaller(*at(source, "ok, image = capture.read()")) == "return frames[at]"
