"""What the source of a program says it writes to, under whatever name."""

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


# A view that the function finds in its module; a function's argument, twice.
WRITTEN = {"labels": 10, "tensor": 17, "marks": 20, "named": 20, "grown": 31}
# A constructor's own, and what is made anew, are not written in place.
LEFT = ("targets", "built", "read", "pictures")


def test_what_is_written_in_place(tmp_path, monkeypatch):
    path = tmp_path / "train.py"
    path.write_text(SOURCE)
    monkeypatch.setattr(program, "files", lambda: [path])
    found = {name: program.written_in_place(name) for name in (*WRITTEN, *LEFT)}
    lines = {name: f"train.py:{line}" for name, line in WRITTEN.items()}
    assert found == {**dict.fromkeys(LEFT), **lines}
