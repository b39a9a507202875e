"""Packed files: the code is pasted and run on real files, and gives the same samples. Containers that
are opened for each sample: how they are found in the source."""

import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

from loaderscope.advisors.code.layouts.kept import kept_code, opener_of
from loaderscope.advisors.code.layouts.packed import packed_code
from storage_cases import equal, pasted, same_batches, stored_case
from stored_sets import InDatabase, InTar, InZip, Listed, OneFile
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


def packed(tmp_path: Path, dataset: Any, **options: Any) -> Any:
    return pasted(packed_code(stored_case(tmp_path, plain(dataset, **options))), dataset)


@pytest.fixture
def own_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code replaces `open` in this module: it is put back at the end."""
    monkeypatch.setitem(globals(), "open", open)


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
        (lambda files: Labelled([(path, n) for n, path in enumerate(files)]), 0),
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

    assert same_batches(plain(dataset), pasted(code, dataset))
    assert ("read the open file" in code) is by_hand
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
    assert "# in Named, where self.files[index] is opened" in code
    found = pasted(code, dataset)
    assert same_batches(plain(dataset), found)
    read = [file.read() for file in found.dataset.packed_files]
    assert read == [Path(path).read_bytes() for path in pictures]


def test_names_of_a_run_never_become_code(tmp_path: Path, pictures: list[str]) -> None:
    dataset = Pictures(pictures)
    vars(dataset)["files); import os  #"] = vars(dataset).pop("files")
    vars(dataset)["class"] = pictures
    loader = DataLoader(dataset, batch_size=4, sampler=range(8))
    for case in (
        stored_case(tmp_path, plain(range(8))),  # lists no files at all
        stored_case(tmp_path / "b", loader, batch=torch.zeros(4)),
    ):
        assert packed_code(case) is None


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


OPENERS = {InTar: "tarfile.open", InZip: "zipfile.ZipFile", InDatabase: "sqlite3.connect"}
OPENERS |= {InFile: "open", Elsewhere: "zipfile.ZipFile"}


@pytest.mark.parametrize("cls", [*OPENERS, LAZY, OR_LAZY, LAZY_ELSEWHERE, OWN])
def test_what_opens_a_container_for_each_sample_is_found_and_told_to_be_kept(tmp_path, cls):
    loader = DataLoader(cls("x", 10), batch_size=4)
    case = stored_case(tmp_path, loader, batch=torch.zeros(4, 8))
    found = opener_of(case.dataset)
    assert (found and found.text) == OPENERS.get(cls)
    assert found is None or f"self.handle = {found.text}(…)" in kept_code(case, found)
    if cls is Elsewhere:  # a function of its own opens it
        assert found.names == {"archive"} and found.used_by("x = archive.read(name)")
        assert found.used_by("return zipfile.ZipFile(path)") and not found.used_by("x = read(name)")
