"""Loops that tuning was made with: what their loaders gain is known to who made it."""

from __future__ import annotations

import random
import time
import wave
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler, TensorDataset
from torch.utils.data.dataloader import default_collate

from known_cases.materials import matmuls, takes

from .loop import LENGTH, Loop
from .materials import FILES, ROWS, Made, made, patches, photographs, recordings, waited, worked


class Landmarks(Dataset):
    """After the data tutorial of PyTorch: a CSV file of pictures and points, rescaled and
    cropped."""

    def __init__(self) -> None:
        import pandas as pd

        self.root = photographs()
        self.frame = pd.read_csv(self.root / "landmarks.csv")

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        from PIL import Image

        row = self.frame.iloc[index % FILES]
        with Image.open(self.root / row.iloc[0]) as opened:
            picture = opened.convert("RGB").resize((128, 128))
        points = torch.tensor(row.iloc[1:].to_numpy(dtype=np.float32))
        values = np.asarray(picture)[index % 16 :][:112, :112]
        return torch.from_numpy(values.transpose(2, 0, 1) / np.float32(255)), points, index


class Characters(Dataset):
    """After minGPT: a block of text, a number for each character."""

    def __init__(self) -> None:
        draw = random.Random(0)
        self.text = "".join(draw.choice("etaoin shrdlu,.\n") for _ in range(LENGTH + 256))
        self.number = {each: k for k, each in enumerate(sorted(set(self.text)))}

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        block = [self.number[each] for each in self.text[index : index + 129]]
        return torch.tensor(block[:-1]), torch.tensor(block[1:]), index


def spoken(index: int) -> tuple[torch.Tensor]:
    """A second of speech: read, cut, and its spectrogram."""
    with wave.open(str(recordings() / f"{index % FILES}.wav")) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(samples, 400)[::160]
    return (
        torch.from_numpy(
            np.log1p(np.abs(np.fft.rfft(frames * np.hanning(400)))).astype(np.float32)
        ),
    )


class Frame(Dataset):
    """Rows of a data frame, one at a time."""

    def __init__(self) -> None:
        import pandas as pd

        self.frame = pd.DataFrame(ROWS.numpy()[:, :24])

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.tensor(self.frame.iloc[index % len(self.frame)].to_numpy()), index


class Patches(Dataset):
    """Pairs for super-resolution in an HDF5 file that each process opens for itself."""

    file: Any = None

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        import h5py

        if self.file is None:
            self.file = h5py.File(patches() / "patches.h5", "r")
        at = index % 2000
        pair = (torch.from_numpy(self.file[name][at]).float() / 255 for name in ("input", "label"))
        return *pair, index


def sometimes(index: int) -> tuple[torch.Tensor]:
    """One sample in 60 takes 40 ms."""
    time.sleep(0.040 if index * 2654435761 % 60 == 0 else 0.0006)
    return (ROWS[index % len(ROWS)],)


def sentence(index: int) -> tuple[torch.Tensor]:
    """Words of a sentence, looked up one by one."""
    words = [(index * 31 + k * 17) % 9973 for k in range(40 + index % 160)]
    return (torch.tensor([hash(str(word)) % 30_000 for word in words]),)


class Buckets(Sampler[list[int]]):
    """Sentences of about the same length together."""

    def __iter__(self) -> Iterator[list[int]]:
        draw = random.Random(0)
        while True:
            first = draw.randrange(LENGTH // 160) * 160 + draw.randrange(160)
            yield [(first + 160 * k) % LENGTH for k in range(24)]

    def __len__(self) -> int:
        return LENGTH // 24


def padded(samples: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    longest = torch.nn.utils.rnn.pad_sequence([each[0] for each in samples], batch_first=True)
    return longest, torch.tensor([each[1] for each in samples])


def arrays() -> TensorDataset:
    """Tensors in memory, the commonest data set of all."""
    values = torch.rand(
        MANY, 16, generator=torch.Generator().manual_seed(0)
    )  # nothing of the training's own stream
    return TensorDataset(values, torch.arange(MANY))


class Tabular(Dataset):
    """A table of numbers and its labels, held as arrays."""

    def __init__(self) -> None:
        self.values = np.random.default_rng(0).random((MANY, 39), dtype=np.float32)
        self.labels = torch.arange(MANY) % 2

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        values = torch.from_numpy(self.values[index])
        return values, self.labels[index].float(), index


def mixed(samples: list[Any]) -> list[Any]:
    """Mixes each picture with another of the batch, as mixup in collate_fn does, one by one."""
    values, numbers = default_collate(samples)
    for at in range(len(values)):
        values[at] = 0.6 * values[at] + 0.4 * values[-1 - at].sin()
    return [values, numbers]


KEPT = {"persistent_workers": True}
MANY = 500_000
LOOPS = (
    Loop("arrays", "tensors in memory, by two workers", arrays, takes(0.5), 64, {"num_workers": 2}),
    Loop("tabular", "a table in memory beside matmuls", Tabular, matmuls(1), 128),
    Loop(
        "landmarks",
        "pictures and points by a CSV file",
        Landmarks,
        takes(4),
        4,
        needs=("PIL", "pandas"),
        quick=True,
    ),
    Loop("characters", "text, a number a character, beside matmuls", Characters, matmuls(2), 64),
    Loop(
        "speech",
        "spectrograms of recordings, one worker",
        made(spoken),
        takes(2),
        4,
        {"num_workers": 1},
    ),
    Loop("frame", "rows of a data frame", Frame, takes(1), 128, needs=("pandas",)),
    Loop(
        "tiny",
        "rows in memory, by four workers",
        made(lambda i: (ROWS[i % 4096],)),
        takes(0.2),
        8,
        {"num_workers": 4},
    ),
    Loop(
        "store",
        "waits for a store, two workers",
        made(waited(2.5)),
        takes(4),
        8,
        {"num_workers": 2},
        quick=True,
    ),
    Loop(
        "too-many",
        "NumPy by eight workers",
        made(lambda i: (worked(i, 12),)),
        takes(1),
        8,
        {"num_workers": 8, "prefetch_factor": 4},
    ),
    Loop(
        "uneven",
        "one sample in 60 is slow, little ahead",
        made(sometimes),
        takes(4),
        8,
        {"num_workers": 3, "prefetch_factor": 1},
    ),
    Loop(
        "large",
        "batches of 6 MB, handed over by four workers",
        made(lambda i: (torch.full((3, 256, 256), float(i % 7)),)),
        takes(4),
        8,
        {"num_workers": 4},
    ),
    Loop("patches", "pairs in an HDF5 file", Patches, takes(3), 16, needs=("h5py",)),
    Loop(
        "buckets",
        "sentences in buckets, padded, one worker",
        made(sentence),
        takes(1),
        own={"num_workers": 1},
        order=lambda data: {"batch_sampler": Buckets()},
        collate=padded,
    ),
    Loop(
        "epochs-of-40",
        "epochs of 40 batches, workers started anew each",
        lambda: Made(waited(1.0), 40 * 8),
        takes(3),
        8,
        {"num_workers": 2},
    ),
    Loop(
        "mixup",
        "mixing in collate_fn beside matmuls",
        made(lambda i: (torch.from_numpy(worked(i, 1)),)),
        matmuls(2),
        32,
        {"num_workers": 1},
        collate=mixed,
    ),
)
