"""The demonstration, small: the pictures, the training, the comparison."""

import pickle
import re
from pathlib import Path

from loaderscope.demo import BATCH, EPOCHS, PICTURES, Pictures, make_pictures
from started import LOADERSCOPE, here, ran


def test_pictures_are_real_and_reach_workers(tmp_path: Path) -> None:
    make_pictures(tmp_path, 5, 32)
    files = sorted(tmp_path.glob("*.png"))
    assert len({file.read_bytes() for file in files}) == 5
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)
    dataset = pickle.loads(pickle.dumps(Pictures(tmp_path)))
    image, label = dataset[3]
    assert (tuple(image.shape), image.is_contiguous(), label) == ((3, 32, 32), True, 3)
    assert len(dataset) == 5


def test_the_demo_compares_what_it_measured() -> None:
    done = ran([*LOADERSCOPE, "demo"], env=here())
    assert done.returncode == 0, done.stderr
    batches = PICTURES // BATCH * EPOCHS
    lines = done.stdout.splitlines()
    assert f"{batches} batches" in done.stdout and len(lines) + done.stderr.count("\n") <= 45
    last = [line.split()[:2] for line in lines[-3:]]
    assert last == [["loaderscope", verb] for verb in ("run", "report", "top")]
    words = " ".join(done.stdout.split())  # lines are wrapped
    assert re.search(r"[\d,.]+ samples/s before, [\d,.]+ after: ×[\d.]+, measured\.", words)
