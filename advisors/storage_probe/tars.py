"""Layouts that are read from beginning to end: one tar, and a few of them."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from itertools import islice

from .layout import Layout, Read

SHARDS = 4  # of a tar: enough to split among workers, few enough to read in long runs


class Tar(Layout):
    """One tar, read from its beginning with the standard library."""

    name, label, order = "tar", "tar", "in sequence"
    tar: tarfile.TarFile | None = None

    def begin(self) -> None:
        super().begin()
        self.open_shard()

    def open_shard(self) -> None:
        self.close()
        self.tar = tarfile.open(self.folder / f"{self.count:08d}.tar", "w")  # noqa: SIM115 - closed by `close`

    def store(self, sample: bytes) -> None:
        member = tarfile.TarInfo(f"{self.count:08d}.bin")
        member.size = len(sample)
        assert self.tar is not None
        self.tar.addfile(member, io.BytesIO(sample))

    def close(self) -> None:
        tar, self.tar = self.tar, None
        if tar is not None:
            tar.close()

    @contextmanager
    def reading(self) -> Iterator[Read]:
        yield self._read

    def _read(self, order: Sequence[int]) -> Iterator[bytes]:
        with tarfile.open(self.paths()[0], "r:") as tar:
            for member in islice(tar, len(order)):
                held = tar.extractfile(member)
                assert held is not None
                yield held.read()


class Shards(Tar):
    """A few tars, read by webdataset."""

    name, label, module = "tar-shards", "tar (webdataset)", "webdataset.tariterators"
    package = "webdataset"
    slow_import = True  # it may bring torch

    def begin(self) -> None:
        self.shards = 0
        super().begin()

    def open_shard(self) -> None:
        super().open_shard()
        self.shards += 1

    def store(self, sample: bytes) -> None:
        if self.stored_bytes * SHARDS > self.max_bytes * self.shards:
            self.open_shard()
        super().store(sample)

    def _read(self, order: Sequence[int]) -> Iterator[bytes]:
        # The stages of webdataset's own pipeline that read; those around them divide shards among
        # ranks and workers, and leave files open that were not read to their end.
        stages = import_module("webdataset.tariterators")
        with ExitStack() as opened:
            streams = (
                {"url": str(path), "stream": opened.enter_context(path.open("rb"))}
                for path in self.paths()
            )
            rows = stages.group_by_keys(stages.tar_file_expander(streams))
            for row in islice(rows, len(order)):
                yield row["bin"]
