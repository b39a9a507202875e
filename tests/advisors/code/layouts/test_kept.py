"""Containers that are opened for each sample: how they are found in the source."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from loaderscope.advisors.code.layouts.kept import kept_code, opener_of
from storage_cases import stored_case
from stored_sets import InDatabase, InTar, InZip, OneFile
from written_sets import with_getitem

COUNT = 10


def plain(dataset: Any) -> DataLoader[Any]:
    return DataLoader(dataset, batch_size=4)


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
