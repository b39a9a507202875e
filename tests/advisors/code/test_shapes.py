"""What a line's source says of it."""

from __future__ import annotations

import pytest

from loaderscope.advisors.code.shapes import (
    made_smaller,
    not_needed,
    same_for_every_sample,
    searched,
    shape_of,
)

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
    assert same_for_every_sample(SOURCE, line) is same


def test_source_that_cannot_be_read_says_nothing() -> None:
    assert not same_for_every_sample(["def broken(:"], "x = f()")
    assert not same_for_every_sample(["x = f()"], "x = f()")
    assert not same_for_every_sample(["def __getitem__():", "    x = f()"], "x = f()")


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("gc.collect()", "gc.collect"),
        ("if index % 2: gc.collect()", "gc.collect"),
        ("torch.cuda.empty_cache()", "torch.cuda.empty_cache"),
        ("self.gc.collect()", None),
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
    return volume[index], small, label
""".splitlines()


@pytest.mark.parametrize(
    ("line", "later"),
    [
        ('volume = self.file["ct"][:]', "return volume[index], small, label"),
        ("image = self.images[index].filter(BLUR)", "small = image.resize((64, 64))"),
        ("small = image.resize((64, 64))", None),
        ("label = parse(self.labels[index])", None),
        ("nowhere()", None),
    ],
)
def test_what_is_made_smaller_later(line: str, later: str | None) -> None:
    assert made_smaller(WHOLE, line) == later


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
    ],
)
def test_what_is_searched_for_each_sample(line: str, found: bool) -> None:
    source = ["def __getitem__(self, index):", "    key = str(index)", f"    {line}"]
    source += ["        pass"] * line.startswith("if")
    assert searched(source, line, {}) is found


def test_a_line_of_no_shape_has_none() -> None:
    assert shape_of(SOURCE, "name = files[index]") is None
    shape = shape_of(SOURCE, "lines = file.readlines()")
    assert shape is not None and shape.title.startswith("Do once")


def test_a_managers_object_is_asked_in_another_process() -> None:
    shape = shape_of(SOURCE, "name = files[index]", "multiprocessing's BaseProxy._callmethod")
    assert shape is not None and "another process" in shape.why
