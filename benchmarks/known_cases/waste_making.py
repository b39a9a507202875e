"""Work in `__getitem__` that is done again and again, or on more than is used: each data set gives
the same samples by `__getitem__`, as people write it, and by `better`, as an engineer would leave it."""

from __future__ import annotations

import io
import json
import sqlite3
import tempfile
import xml.etree.ElementTree as ET
import zipfile
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from .case import Case, Training
from .materials import takes

LENGTH, SIZE = 512, 16


class Made(Dataset):
    """Rows in memory; what each data set does besides is planted."""

    def __init__(self) -> None:
        self.values = np.random.default_rng(0).normal(size=(LENGTH, 64)).astype(np.float32)

    def __len__(self) -> int:
        return LENGTH


def planted(
    name: str, kind: type[Made], line: str, *causes: str, held_out: bool = False, **more: Any
) -> Case:
    """`line` is what the report must name; `causes` are rules whose advice does away with it, the
    hot line's always among them."""

    def build(fast: bool = False) -> Training:
        made = type(kind.__name__, (kind,), {"__getitem__": kind.better}) if fast else kind  # type: ignore[attr-defined]
        return Training(DataLoader(made(), SIZE, shuffle=True), takes(0.3), size=SIZE)

    about = (kind.__doc__ or "").partition(".")[0]
    return Case(
        name,
        about,
        build,
        ("hot-function", *causes),
        {"fast": True},
        record_s=6.0,
        line=line,
        held_out=held_out,
        **more,
    )


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="known-answers-"))


class Connected(Made):
    """A database connected to for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.path = folder() / "notes.db"
        with sqlite3.connect(self.path) as base:
            base.execute("create table if not exists notes (id integer primary key, word text)")
            rows = [(k, f"word {k}") for k in range(LENGTH)]
            base.executemany("insert or replace into notes values (?, ?)", rows)
        self.base: Any = None

    def __getitem__(self, index: int) -> Any:
        base = sqlite3.connect(self.path)
        note = base.execute("select word from notes where id = ?", (index,)).fetchone()
        base.close()
        return self.values[index], len(note[0])

    def better(self, index: int) -> Any:
        self.base = self.base or sqlite3.connect(self.path)
        note = self.base.execute("select word from notes where id = ?", (index,)).fetchone()
        return self.values[index], len(note[0])


class Zipped(Made):
    """A zip archive whose directory is read for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.archive = folder() / "texts.zip"
        if not self.archive.exists():
            with zipfile.ZipFile(self.archive, "w") as made:
                for k in range(LENGTH * 4):
                    made.writestr(f"{k}.txt", f"text {k}")
        self.opened: Any = None

    def __getitem__(self, index: int) -> Any:
        with zipfile.ZipFile(self.archive) as bundle:
            text = bundle.read(f"{index}.txt")
        return self.values[index], len(text)

    def better(self, index: int) -> Any:
        self.opened = self.opened or zipfile.ZipFile(self.archive)
        return self.values[index], len(self.opened.read(f"{index}.txt"))


class Columned(Made):
    """A whole column made into a tensor for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.labels = np.random.default_rng(1).integers(0, 10, 50_000).tolist()
        self.all = torch.tensor(self.labels)

    def __getitem__(self, index: int) -> Any:
        targets = torch.tensor(self.labels)
        return self.values[index], targets[index]

    def better(self, index: int) -> Any:
        return self.values[index], self.all[index]


class Listed(Made):
    """A list of all that is not the sample, made to draw one of them."""

    def __getitem__(self, index: int) -> Any:
        others = [k for k in range(LENGTH * 40) if k != index]
        return self.values[index], self.values[others[index] % LENGTH]

    def better(self, index: int) -> Any:
        other = index + (index >= index)
        return self.values[index], self.values[other % LENGTH]


class Configured(Made):
    """Settings parsed for each sample."""

    def __init__(self) -> None:
        super().__init__()
        self.text = json.dumps({f"key{k}": [k, str(k)] for k in range(3_000)})
        self.settings = json.loads(self.text)

    def __getitem__(self, index: int) -> Any:
        options = json.loads(self.text)
        return self.values[index], options["key7"][0]

    def better(self, index: int) -> Any:
        return self.values[index], self.settings["key7"][0]


class Centred(Made):
    """The mean of all samples computed for each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.table = np.random.default_rng(3).normal(size=(LENGTH * 40, 64)).astype(np.float32)
        self.middle = self.table.mean(axis=0)

    def __getitem__(self, index: int) -> Any:
        centre = self.table.mean(axis=0)
        return torch.from_numpy(self.values[index] - centre)

    def better(self, index: int) -> Any:
        return torch.from_numpy(self.values[index] - self.middle)


class Marked(Made):
    """XML parsed for each sample, in each epoch."""

    def __init__(self) -> None:
        super().__init__()
        box = "".join(f"<box x='{k}' y='{k * 2}'/>" for k in range(150))
        self.notes = [f"<note id='{k}'>{box}</note>" for k in range(LENGTH)]
        self.parsed = [self.boxes(k) for k in range(LENGTH)]

    def boxes(self, index: int) -> torch.Tensor:
        tree = ET.fromstring(self.notes[index])
        return torch.tensor(len(tree))

    def __getitem__(self, index: int) -> Any:
        return self.values[index], self.boxes(index)

    def better(self, index: int) -> Any:
        return self.values[index], self.parsed[index]


class Featured(Made):
    """The same features computed in each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.waves = np.random.default_rng(4).normal(size=(LENGTH, 16_384)).astype(np.float32)
        self.known = [self.features(k) for k in range(LENGTH)]

    def features(self, index: int) -> torch.Tensor:
        power = np.abs(np.fft.rfft(self.waves[index]))
        return torch.from_numpy(np.log1p(power[:256]).astype(np.float32))

    def __getitem__(self, index: int) -> Any:
        return self.features(index), index

    def better(self, index: int) -> Any:
        return self.known[index], index


@cache
def table() -> Path:
    path = folder() / "table.npy"
    np.save(path, np.random.default_rng(5).normal(size=(LENGTH, 4_000)).astype(np.float32))
    return path


class RowOfFile(Made):
    """An array read from its file as a whole, for one row."""

    def __init__(self) -> None:
        super().__init__()
        self.file = table()
        self.mapped = np.load(self.file, mmap_mode="r")

    def __getitem__(self, index: int) -> Any:
        everything = np.load(self.file)
        return torch.from_numpy(everything[index].copy())

    def better(self, index: int) -> Any:
        return torch.from_numpy(np.array(self.mapped[index]))


class SliceOfVolume(Made):
    """A volume decompressed for one of its slices."""

    def __init__(self) -> None:
        super().__init__()
        volume = np.random.default_rng(6).integers(0, 40, (32, 96, 96), dtype=np.uint8)
        self.volumes = [zlib.compress(volume.tobytes(), 1)] * 8
        self.slices = [[zlib.compress(each.tobytes(), 1) for each in volume]] * 8

    def __getitem__(self, index: int) -> Any:
        raw = zlib.decompress(self.volumes[index % 8])
        scan = np.frombuffer(raw, np.uint8).reshape(32, 96, 96)
        return torch.from_numpy(scan[index % 32].copy())

    def better(self, index: int) -> Any:
        raw = zlib.decompress(self.slices[index % 8][index % 32])
        return torch.from_numpy(np.frombuffer(raw, np.uint8).reshape(96, 96).copy())


class FramesOfWave(Made):
    """A spectrogram of a whole recording, for some of its frames."""

    def __init__(self) -> None:
        super().__init__()
        self.waves = torch.randn(8, 160_000)
        self.window = torch.hann_window(512)

    def __getitem__(self, index: int) -> Any:
        spectrum = torch.stft(
            self.waves[index % 8], 512, 256, window=self.window, center=False, return_complex=True
        ).abs()
        start = index % 100
        return spectrum[:, start : start + 16]

    def better(self, index: int) -> Any:
        begin = index % 100 * 256
        part = self.waves[index % 8, begin : begin + 15 * 256 + 512]
        return torch.stft(
            part, 512, 256, window=self.window, center=False, return_complex=True
        ).abs()


class StackOfPictures(Made):
    """All pictures of an animation decoded, for one of them."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(7)
        self.reels = []
        for _ in range(8):
            held = io.BytesIO()
            np.savez_compressed(held, *rng.integers(0, 30, (24, 64, 64), dtype=np.uint8))
            self.reels.append(held.getvalue())

    def __getitem__(self, index: int) -> Any:
        reel = np.load(io.BytesIO(self.reels[index % 8]))
        pictures = [reel[name] for name in reel.files]
        return torch.from_numpy(pictures[index % 24])

    def better(self, index: int) -> Any:
        reel = np.load(io.BytesIO(self.reels[index % 8]))
        return torch.from_numpy(reel[reel.files[index % 24]])


class WordsOfText(Made):
    """A long text split into all its words, for the first few."""

    def __init__(self) -> None:
        super().__init__()
        self.texts = [" ".join(f"word{k}" for k in range(n, n + 6_000)) for n in range(32)]

    def __getitem__(self, index: int) -> Any:
        words = self.texts[index % 32].split()
        return torch.tensor([len(word) for word in words[:16]])

    def better(self, index: int) -> Any:
        words = self.texts[index % 32].split(maxsplit=16)
        return torch.tensor([len(word) for word in words[:16]])


CASES = (
    planted(
        "connected-each",
        Connected,
        "sqlite3.connect(self.path)",
        "storage-format",
        "batched-getitems",
    ),
    planted("zip-directory", Zipped, "zipfile.ZipFile(self.archive)", "storage-format"),
    planted("whole-column", Columned, "torch.tensor(self.labels)"),
    planted("all-others", Listed, "k != index", held_out=True),
    planted("settings-parsed", Configured, "json.loads(self.text)"),
    planted("mean-each", Centred, "self.table.mean(axis=0)", held_out=True),
    planted("xml-each-epoch", Marked, "self.notes[index]", "batched-getitems"),
    planted("features-each-epoch", Featured, "np.fft.rfft", "batched-getitems", held_out=True),
    planted("row-of-file", RowOfFile, "np.load(self.file)", "storage-format"),
    planted("slice-of-volume", SliceOfVolume, "zlib.decompress"),
    planted("frames-of-wave", FramesOfWave, "torch.stft"),
    planted("stack-of-pictures", StackOfPictures, "reel[name]", held_out=True),
    planted("words-of-text", WordsOfText, ".split()", held_out=True),
)
