"""Text that is parsed at every access."""

from __future__ import annotations

import ast
import csv
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset

from .case import Training
from .hot_case import Hot, Spot
from .hot_materials import DISTINCT, MANY_SAMPLES, SAMPLES, Paths, Stored, files, looped

COLUMNS = ("x", "y", "z", "red", "green", "blue")
ROWS = 400


def points(number: int) -> np.ndarray[Any, Any]:
    """Rows of six numbers with four decimals."""
    return np.random.default_rng(number).normal(size=(ROWS, len(COLUMNS))).round(4)


def write_ply(path: Path, number: int) -> None:
    header = [
        "ply",
        "format ascii 1.0",
        f"element vertex {ROWS}",
        *(f"property float {c}" for c in COLUMNS),
    ]
    with path.open("w") as file:
        file.write("\n".join([*header, "end_header", ""]))
        np.savetxt(file, points(number), fmt="%.4f")


def write_table(path: Path, number: int) -> None:
    np.savetxt(
        path, points(number), fmt="%.4f", delimiter=",", header=",".join(COLUMNS), comments=""
    )


class Clouds(Paths):
    def __getitem__(self, index: int) -> torch.Tensor:
        from plyfile import PlyData

        vertices = PlyData.read(self.paths[index])["vertex"]
        return torch.from_numpy(np.stack([vertices[name] for name in ("x", "y", "z")], axis=1))


class DictTables(Paths):
    def __getitem__(self, index: int) -> torch.Tensor:
        with open(self.paths[index], newline="") as file:  # noqa: PTH123 as users write it
            rows = list(csv.DictReader(file))
        return torch.tensor([[float(row["x"]), float(row["y"])] for row in rows])


class ReaderTables(Paths):
    def __getitem__(self, index: int) -> torch.Tensor:
        with open(self.paths[index], newline="") as file:  # noqa: PTH123 as users write it
            rows = [[float(row[0]), float(row[1])] for row in csv.reader(file) if row[0] != "x"]
        return torch.tensor(rows)


class LoadedTables(Paths):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.from_numpy(
            np.loadtxt(self.paths[index], delimiter=",", skiprows=1, dtype=np.float32)
        )


class FrameTables(Paths):
    def __getitem__(self, index: int) -> torch.Tensor:
        import pandas as pd

        return torch.from_numpy(pd.read_csv(self.paths[index]).to_numpy(dtype=np.float32))


class Records(Dataset):
    """Texts in memory, parsed at every access."""

    def __init__(self, texts: list[str], parse: str, samples: int) -> None:
        self.texts, self.parse, self.samples = texts, parse, samples

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> torch.Tensor:
        text = self.texts[index % len(self.texts)]
        if self.parse == "json":
            record = json.loads(text)
        elif self.parse == "literal":
            record = ast.literal_eval(text)
        else:
            import yaml

            record = yaml.safe_load(text)
        return torch.tensor(record["boxes"][:8])


def record(number: int, boxes: int) -> dict[str, Any]:
    rng = np.random.default_rng(number)
    note = [f"object {n} of {number}" for n in range(boxes)]
    return {
        "name": f"picture{number:05}.jpg",
        "boxes": rng.normal(size=(boxes, 4)).round(3).tolist(),
        "notes": note,
    }


class Texts(Dataset):
    """Texts in memory, split into words and looked up at every access."""

    PATTERN = r"[a-z]+|[0-9]|[^\sa-z0-9]"

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.words = [
            "".join(map(chr, rng.integers(97, 123, length))) for length in rng.integers(2, 9, 3000)
        ]
        self.texts = [
            " ".join(self.words[n] for n in rng.integers(0, 3000, 4000)) + "."
            for _ in range(DISTINCT)
        ]
        self.ids = {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        found = re.findall(self.PATTERN, self.texts[index % DISTINCT])
        return torch.tensor([self.ids.get(word, 0) for word in found[:512]])


def write_annotation(path: Path, number: int) -> None:
    root = ElementTree.Element("annotation")
    for box in np.random.default_rng(number).integers(0, 500, (400, 4)).tolist():
        bounds = ElementTree.SubElement(ElementTree.SubElement(root, "object"), "bndbox")
        for name, value in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True):
            ElementTree.SubElement(bounds, name).text = str(value)
    ElementTree.ElementTree(root).write(path)


class Annotations(Paths):
    def __getitem__(self, index: int) -> torch.Tensor:
        root = ElementTree.parse(self.paths[index]).getroot()
        first = root.find("object/bndbox")
        assert first is not None
        return torch.tensor([int(value.text or 0) for value in first])


def parsed(
    dataset: Any, suffix: str, write: Any, step_ms: float, size: int = 8, workers: int = 0
) -> Any:
    """The case's loop: files that are parsed, or what parsing gives, stored once."""

    def build(folder: str, better: bool = False) -> Training:
        found = dataset(files(folder, "texts", suffix, write), MANY_SAMPLES if workers else SAMPLES)
        return looped(Stored(folder, found) if better else found, step_ms, size, workers)

    return build


def records(kind: str, boxes: int, step_ms: float, size: int = 8, workers: int = 0) -> Any:
    def build(folder: str, better: bool = False) -> Training:
        if kind == "yaml":
            import yaml

            texts = [yaml.safe_dump(record(number, boxes)) for number in range(DISTINCT)]
        else:
            texts = [
                (json.dumps if kind == "json" else repr)(record(number, boxes))
                for number in range(DISTINCT)
            ]
        found = Records(texts, kind, MANY_SAMPLES if workers else SAMPLES)
        return looped(Stored(folder, found) if better else found, step_ms, size, workers)

    return build


def tokens(folder: str, better: bool = False) -> Training:
    found = Texts()
    return looped(Stored(folder, found) if better else found, 2)


CSV = ("csv",)
CASES = (
    Hot(
        "plyfile",
        "text PLY files read by plyfile",
        parsed(Clouds, ".ply", write_ply, 6),
        spot=Spot(("plyfile",)),
        words=("ply",),
        needs=("plyfile",),
    ),
    Hot(
        "csv-dict",
        "csv.DictReader for every sample",
        parsed(DictTables, ".csv", write_table, 3),
        spot=Spot(("csv", "python"), ("__next__", "fieldnames", "DictReader")),
        words=CSV,
        quick=True,
    ),
    Hot(
        "csv-reader",
        "csv.reader for every sample",
        parsed(ReaderTables, ".csv", write_table, 2),
        spot=Spot(line="csv.reader"),
        words=CSV,
    ),
    Hot(
        "loadtxt",
        "numpy.loadtxt for every sample, two workers",
        parsed(LoadedTables, ".csv", write_table, 2, 32, 2),
        spot=Spot(("numpy",), ("loadtxt", "_read")),
        words=("loadtxt",),
    ),
    Hot(
        "read-csv",
        "pandas.read_csv for every sample",
        parsed(FrameTables, ".csv", write_table, 3),
        spot=Spot(("pandas",)),
        words=("read_csv", "csv"),
        needs=("pandas",),
    ),
    Hot(
        "json",
        "json.loads for every sample, in two workers",
        records("json", 500, 2, 32, 2),
        spot=Spot(("json", "python"), ("raw_decode", "decode", "loads")),
        words=("json",),
    ),
    Hot(
        "literal-eval",
        "ast.literal_eval for every sample",
        records("literal", 60, 3),
        spot=Spot(
            ("ast", "python"),
            (
                "literal_eval",
                "parse",
                "_convert",
                "_convert_num",
                "_convert_signed_num",
                "<listcomp>",
            ),
        ),
        words=("literal_eval",),
    ),
    Hot(
        "yaml",
        "yaml.safe_load for every sample, in two workers",
        records("yaml", 8, 4, 16, 2),
        spot=Spot(("yaml",)),
        words=("yaml",),
        needs=("yaml",),
    ),
    Hot(
        "tokens",
        "texts split by a regular expression at every access",
        tokens,
        spot=Spot(("re", "python"), ("findall",)),
        words=("tokeni", "regular expression", "findall"),
    ),
    Hot(
        "xml",
        "ElementTree.parse a sample, two workers",
        parsed(Annotations, ".xml", write_annotation, 3, 32, 2),
        spot=Spot(("xml", "python"), ("parse",)),
        words=("xml", "ElementTree"),
    ),
)
