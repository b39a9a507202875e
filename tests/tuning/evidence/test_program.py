"""What the source of a program says it writes to, under whatever name."""

import pytest

from loaderscope.tuning.evidence import program

SOURCE = """
import numpy as np

class Data:
    def __init__(self):
        self.built = np.zeros(9)
        self.built[0] = 1

    def update(self, where, value):
        self.labels[where] = value

data = Data()
view = data.tensor.numpy()
noisy = data.targets

def after(step):
    view[:256] += 0.5

def relabel(array, where):
    array[where] = 1

def main():
    relabel(data.marks, 3)
    relabel(array=data.named, where=4)
    for each in noisy:
        pass
    counts = {}
    counts["a"] = 1
    Data.stay(data.read)
    small = data.pictures[0].resize(64)
    data.grown.resize(64)

def stay(it):
    return it[0]
"""


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("labels", 10),
        ("tensor", 17),  # through a view that the function finds in its module
        ("marks", 20),  # as a function's argument
        ("named", 20),
        ("targets", None),
        ("built", None),  # a constructor's own
        ("read", None),
        ("pictures", None),  # a new one is made
        ("grown", 31),
    ],
)
def test_what_is_written_in_place(tmp_path, monkeypatch, name, line):
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    monkeypatch.setattr(program, "files", lambda: [path])
    assert program.written_in_place(name) == (f"train.py:{line}" if line is not None else None)
