"""What a line's source says of it."""

from __future__ import annotations

import pytest

from loaderscope.advisors.code.shapes import not_needed, same_for_every_sample

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
