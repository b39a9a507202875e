"""Layouts: the code they write is pasted and run on real files, and gives the same samples."""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from loaderscope.advisors.code.layouts.kept import kept_code, opener_of
from loaderscope.advisors.code.layouts.layout_choice import packed_code
from loaderscope.advisors.code.layouts.stored import stored_form
from rule_cases import FakeWhatIf, advice
from stack_cases import seen
from storage_cases import equal, pasted, same_batches, stored_case
from stored_sets import InDatabase, InTar, InZip, Listed, OneFile, Sized
from written_sets import with_getitem

COUNT = 10


class Pictures(Listed):
    def __getitem__(self, index: int) -> torch.Tensor:
        with Image.open(self.files[index]) as picture:
            return torch.from_numpy(np.array(picture))


class Labelled(Listed):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.files[index % len(self.files)]
        return self.read(path), label

    def read(self, path: str) -> torch.Tensor:
        with open(path, "rb") as file:
            return torch.from_numpy(np.array(Image.open(io.BytesIO(file.read()))))


class Texts(Listed):
    def __getitem__(self, index: int) -> int:
        with open(self.files[index], encoding="utf-8") as file:
            return int(file.read()[8:])


class Archives(Listed):
    def __getitem__(self, index: int) -> dict[str, Any]:
        with np.load(self.files[index]) as archive:
            return {"x": torch.from_numpy(archive["x"]), "y": int(archive["y"])}


class Named(Listed):
    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path = self.files[index]
        number = int(os.path.basename(path).split(".")[0])
        return torch.from_numpy(np.array(Image.open(path))), number


class Stream(IterableDataset[Any]):
    def __init__(self, files: list[str]) -> None:
        self.files = files

    def __iter__(self) -> Any:
        for path in self.files[::2]:
            with Image.open(path) as picture:
                yield torch.from_numpy(np.array(picture))


def drawn(path: Path, seed: int) -> None:
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def pictures(tmp_path: Path) -> list[str]:
    (tmp_path / "pictures").mkdir()
    paths = [tmp_path / "pictures" / f"{n}.png" for n in range(COUNT)]
    for n, path in enumerate(paths):
        drawn(path, n)
    return [*map(str, paths)]


def beside(folder: Path) -> Path:
    """Where code writes what it makes of the files in this folder."""
    return folder.with_name(f"{folder.name}-packed")


def plain(dataset: Any, **options: Any) -> DataLoader[Any]:
    return DataLoader(dataset, batch_size=4, **options)


def made(code: str | None, dataset: Any) -> Any:
    assert code is not None
    return pasted(code, dataset)


def packed(tmp_path: Path, dataset: Any, **options: Any) -> Any:
    return made(packed_code(stored_case(tmp_path, plain(dataset, **options))), dataset)


@pytest.fixture
def own_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code replaces `open` in this module: it is put back at the end."""
    monkeypatch.setitem(globals(), "open", open)


def labelled(files: list[str]) -> Labelled:
    return Labelled([(path, n) for n, path in enumerate(files)])


def texts(files: list[str]) -> Texts:
    for n, path in enumerate(files):
        Path(path).write_text(f"ünïcode {n}", encoding="utf-8")
    return Texts(files)


@pytest.mark.usefixtures("own_open")
@pytest.mark.parametrize(
    ("make", "workers"),
    [
        (Pictures, 0),
        (Pictures, 2),
        (labelled, 0),
        (texts, 0),
        (lambda files: Subset(Pictures(files), [5, 1, 7, 2]), 0),
        (Stream, 0),
    ],
)
def test_what_is_packed_is_what_is_read(tmp_path, pictures, make, workers):
    dataset = make(pictures)
    held = list(getattr(dataset, "dataset", dataset).files)

    found = packed(tmp_path, dataset, num_workers=workers)

    expected = list(plain(dataset))  # the data set at hand still reads its files
    assert found.num_workers == workers and found.dataset is not dataset
    assert getattr(dataset, "dataset", dataset).files == held
    folder = Path(pictures[0]).parent
    assert sorted(map(str, folder.iterdir())) == pictures  # nothing new among the data
    assert {path.name.partition(".")[0] for path in beside(folder).iterdir()} == {"packed"}
    for path in pictures:
        Path(path).unlink()
    assert all(equal(one, two) for one, two in zip(expected, found, strict=True))


class Folders(Dataset[Any]):
    """As torchvision's ImageFolder is made: a loader opens each file, a transform follows."""

    def __init__(self, root: Path, loader: Any, transform: Any = None) -> None:
        self.root, self.loader, self.transform = str(root), loader, transform
        self.extensions = (".jpg", ".jpeg", ".png")
        self.classes = sorted(each.name for each in root.iterdir())
        self.samples = [
            (str(path), label)
            for label, name in enumerate(self.classes)
            for path in sorted((root / name).iterdir())
        ]
        self.imgs, self.targets = self.samples, [label for _, label in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> Any:
        path, target = self.samples[index]
        sample = self.loader(path)
        return (self.transform(sample) if self.transform is not None else sample), target


def default_loader(path: str) -> Any:
    with open(path, "rb") as file:
        return np.array(Image.open(file).convert("RGB"))


def own_loader(path: str) -> Any:
    return np.array(Image.open(os.path.join("/", path)).convert("RGB"))


Folders.__module__ = default_loader.__module__ = "torchvision.datasets.folder"
Folders.__qualname__ = "ImageFolder"


@pytest.mark.usefixtures("own_open")
@pytest.mark.parametrize(("loader", "by_hand"), [(default_loader, False), (own_loader, True)])
def test_folders_of_classes_are_packed_beside_their_root(tmp_path, loader, by_hand):
    root = tmp_path / "data" / "train"
    for label, name in enumerate(("cat", "dog")):
        (root / name).mkdir(parents=True)
        for n in range(3):
            drawn(root / name / f"{n}.png", 9 * label + n)
    before = sorted(root.rglob("*"))
    dataset = Folders(root, loader)
    code = packed_code(stored_case(tmp_path, plain(dataset)))

    assert same_batches(plain(dataset), made(code, dataset))
    assert ("read the open file" in (code or "")) is by_hand
    assert sorted(root.rglob("*")) == before and beside(root).exists()


def test_packed_files_reach_spawned_workers(tmp_path: Path, pictures: list[str]) -> None:
    files = packed(tmp_path, Pictures(pictures)).dataset.files
    files[0]

    state = files.__getstate__()

    assert state["store"] is None and state["pid"] is None
    assert [file.name for file in files[1:3]] == pictures[1:3] and files[-1].name == pictures[-1]
    with pytest.raises(IndexError):
        files[COUNT]


def test_where_a_path_is_more_than_a_file_the_code_says_what_to_write(tmp_path, pictures):
    dataset = Named(pictures)
    code = packed_code(stored_case(tmp_path, plain(dataset)))
    assert code is not None and "# in Named, where self.files[index] is opened" in code

    found = pasted(code, dataset)

    assert same_batches(plain(dataset), found)
    read = [file.read() for file in found.dataset.packed_files]
    assert read == [Path(path).read_bytes() for path in pictures]


@pytest.mark.parametrize("workers", [0, 2])
def test_stored_samples_are_the_samples(tmp_path: Path, workers: int) -> None:
    paths = [str(tmp_path / f"{n}.npz") for n in range(COUNT)]
    for n, path in enumerate(paths):
        np.savez_compressed(path, x=np.full((3, 2), n, np.float32), y=n)
    dataset = Archives(paths)
    form = stored_form(stored_case(tmp_path, plain(dataset, num_workers=workers)))
    assert form is not None

    assert form.nbytes == COUNT * (3 * 2 * 4 + 8)
    assert same_batches(plain(dataset), pasted(form.code, dataset))
    for path in paths:
        Path(path).unlink()
    code = form.code.replace("len(source)", str(COUNT)).replace("list(source[0])", "['x', 'y']")
    assert torch.equal(next(iter(pasted(code, dataset)))["y"], torch.arange(4))


PICTURE = "super(type(self), self).__getitem__(i)"


@pytest.mark.parametrize(
    ("body", "stored"),
    [
        # Colours first, as networks want them: `permute` has nothing to do with chance.
        (f"return {PICTURE}.permute(2, 0, 1).float().div(255)", True),
        (f"return self.transform({PICTURE})", False),
        # What held steps do is not known.
        (
            "made = torch.tensor([i])\nfor step in self.steps:\n    made = step(made)\nreturn made",
            False,
        ),
    ],
)
def test_samples_that_may_change_are_not_stored(tmp_path, pictures, body, stored):
    dataset = with_getitem(Pictures, body, torch=torch)(pictures)
    vars(dataset).update({} if stored else {"transform": torch.clone, "steps": (torch.clone,)})
    form = stored_form(stored_case(tmp_path, plain(dataset)))

    assert (form is not None) is stored
    assert form is None or same_batches(plain(dataset), pasted(form.code, dataset))


InFile = with_getitem(
    OneFile,
    "with open(self.path, 'rb') as file:\n"
    "    file.seek(8 * i, 1)\n    return torch.tensor(list(file.read(8)))",
    torch=torch,
)


class Elsewhere(OneFile):
    archive: Any = None

    def __getitem__(self, index: int) -> torch.Tensor:
        archive = self.opened(self.path)
        return torch.tensor(list(archive.read(f"{index}.bin")))

    def opened(self, path: str) -> zipfile.ZipFile:
        return zipfile.ZipFile(path)


READ = 'return torch.tensor(list(self.archive.read(f"{i}.bin")))'
# What is opened once, and a file of the sample's own: nothing to be done.
LAZY, OR_LAZY, LAZY_ELSEWHERE, OWN = (
    with_getitem(Elsewhere, body, zipfile=zipfile, torch=torch)
    for body in (
        f"if self.archive is None:\n    self.archive = zipfile.ZipFile(self.path)\n{READ}",
        f"self.archive = self.archive or zipfile.ZipFile(self.path)\n{READ}",
        f"if self.archive is None:\n    self.archive = self.opened(self.path)\n{READ}",
        'with open(f"{self.path}/{i}", "rb") as file:\n    return torch.tensor(list(file.read()))',
    )
)


@pytest.mark.parametrize(
    ("cls", "opener"),
    [
        (InTar, "tarfile.open"),
        (InZip, "zipfile.ZipFile"),
        (InDatabase, "sqlite3.connect"),
        (InFile, "open"),
    ],
)
def test_what_opens_a_container_is_found_and_told_to_be_kept(tmp_path, cls, opener):
    case = stored_case(tmp_path, plain(cls("x", COUNT)), batch=torch.zeros(4, 8))
    found = opener_of(case.dataset)

    assert found is not None and found.text == opener
    assert f"self.handle = {opener}(…)" in kept_code(case, found)


def test_what_a_function_of_its_own_opens_is_opened_for_each_sample(tmp_path: Path) -> None:
    case = stored_case(tmp_path, plain(Elsewhere("x", COUNT)), batch=torch.zeros(4, 8))
    found = opener_of(case.dataset)
    assert found is not None and found.text == "zipfile.ZipFile"
    assert found.names == {"archive"} and found.used_by("x = archive.read(name)")
    assert found.used_by("return zipfile.ZipFile(path)") and not found.used_by("x = read(name)")


@pytest.mark.parametrize("cls", [LAZY, OR_LAZY, LAZY_ELSEWHERE, OWN])
def test_what_is_opened_once_or_is_the_samples_own_is_left_alone(tmp_path: Path, cls: Any) -> None:
    case = stored_case(tmp_path, plain(cls("x", COUNT)), batch=torch.zeros(4, 8))

    assert opener_of(case.dataset) is None


def test_names_of_a_run_never_become_code(tmp_path: Path, pictures: list[str]) -> None:
    dataset = Pictures(pictures)
    vars(dataset)["files); import os  #"] = vars(dataset).pop("files")
    vars(dataset)["class"] = pictures
    loader = DataLoader(dataset, batch_size=4, sampler=range(8))
    for case in (
        stored_case(tmp_path, plain(range(8))),  # lists no files at all
        evil := stored_case(tmp_path / "b", loader, batch=torch.zeros(4)),
    ):
        assert packed_code(case) is None
    compile(kept_code(evil, None), "code", "exec")


def test_samples_that_do_change_are_not_stored(tmp_path: Path) -> None:
    class Counting(Sized):
        asked: ClassVar = [0]

        def __getitem__(self, index: int) -> torch.Tensor:
            self.asked[0] += 1
            return torch.tensor([index, self.asked[0]])

    form = stored_form(stored_case(tmp_path, plain(Counting(COUNT))))
    assert form is not None

    with pytest.raises(ValueError, match="sample 0 is another at each access"):
        pasted(form.code, Counting(COUNT))


@pytest.mark.parametrize("free", [10**9, 10**3])
def test_a_slow_decoder_is_run_once_where_memory_holds_what_it_makes(tmp_path, pictures, free):
    whatif = FakeWhatIf()
    case = stored_case(tmp_path, plain(Pictures(pictures)), whatif=whatif)
    case = replace(case, system=replace(case.system, mem_available_min_bytes=free))
    getitem = "Pictures.__getitem__ /home/u/patches.py:41"
    stacks = ((f"{getitem} > load site/PIL/ImageFile.py:425", 160), (getitem, 40))

    found = advice("hot-function", seen(case, *stacks))

    assert ("loader = DataLoader(" in found.code) == (free == 10**9)
    if free == 10**9:
        assert str(found.evidence["stored samples take"]) == "1.92 kB"
        best, worst = whatif.asked[-1]["fetch"]  # of 5,000 µs a sample
        assert (best, worst) == pytest.approx((2.016 / 5000, 20.096 / 5000), rel=1e-3)
        assert same_batches(plain(Pictures(pictures)), pasted(found.code, Pictures(pictures)))
    else:
        assert "store(make_pictures, len(dataset)" in found.code
        assert "stored samples take" not in found.evidence
