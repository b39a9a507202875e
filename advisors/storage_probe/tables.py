"""Layouts of Apache Arrow: the files' bytes as rows of a table, kept together in groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from itertools import islice
from typing import Any

import numpy as np

from .layout import Layout, Read

# Rows are kept together in groups of about this size, so that one read brings many: the unit of
# sequential reading.
GROUP_BYTES = 4_000_000


class Arrow(Layout):
    """One Arrow file, memory-mapped, as Hugging Face datasets keeps its data."""

    name, label, module, package = "arrow", "Arrow", "pyarrow", "pyarrow"
    sink: Any = None

    def load(self) -> str | None:
        reason = super().load()
        if reason is None:  # the first array makes pyarrow look for pandas: no part of converting
            import_module("pyarrow").array([b""])
        return reason

    def begin(self) -> None:
        super().begin()
        pyarrow = import_module("pyarrow")
        self.path = self.folder / "data.arrow"
        self.schema = pyarrow.schema([("data", pyarrow.binary())])
        self.waiting: list[bytes] = []
        self.waiting_bytes = 0
        self.starts: list[int] = []  # the number of each group's first row
        self.sink = self.open_sink()

    def open_sink(self) -> Any:
        return import_module("pyarrow.ipc").new_file(str(self.path), self.schema)

    def store(self, sample: bytes) -> None:
        self.waiting.append(sample)
        self.waiting_bytes += len(sample)
        if self.waiting_bytes >= GROUP_BYTES:
            self.write_group(self.count + 1)

    def write_group(self, end: int) -> None:
        """Write the rows that wait; the last of them is number `end` - 1."""
        pyarrow = import_module("pyarrow")
        self.starts.append(end - len(self.waiting))
        self.sink.write(
            pyarrow.record_batch(
                [pyarrow.array(self.waiting, pyarrow.binary())], schema=self.schema
            )
        )
        self.waiting, self.waiting_bytes = [], 0

    def finish(self) -> None:
        if self.waiting:
            self.write_group(self.count)
        self.close()

    def close(self) -> None:
        sink, self.sink = self.sink, None
        if sink is not None:
            sink.close()

    @contextmanager
    def reading(self) -> Iterator[Read]:
        with import_module("pyarrow").memory_map(str(self.path)) as source:
            opened = import_module("pyarrow.ipc").open_file(source)
            columns = [
                opened.get_batch(group).column(0) for group in range(opened.num_record_batches)
            ]
            yield lambda order: self._read(columns, order)

    def _read(self, columns: Sequence[Any], order: Sequence[int]) -> Iterator[bytes]:
        groups = np.searchsorted(self.starts, order, side="right") - 1
        for index, group in zip(order, groups.tolist(), strict=True):
            yield columns[group][index - self.starts[group]].as_py()


class Parquet(Arrow):
    """One Parquet file. A row cannot be had without its group, so it is read group by group."""

    name, label, order = "parquet", "Parquet", "in sequence"
    module = "pyarrow.parquet"

    def open_sink(self) -> Any:
        return import_module("pyarrow.parquet").ParquetWriter(str(self.path), self.schema)

    def pass_samples(self, wished: int) -> int:
        ends = [*self.starts[1:], self.count]
        return next(end for end in ends if end >= min(wished, self.count))

    @contextmanager
    def reading(self) -> Iterator[Read]:
        # One thread: the other layouts have no more.
        with import_module("pyarrow.parquet").ParquetFile(str(self.path), pre_buffer=False) as file:
            yield lambda order: islice(self._rows(file), len(order))

    def _rows(self, file: Any) -> Iterator[bytes]:
        for group in range(file.num_row_groups):
            for row in file.read_row_group(group, use_threads=False).column(0):
                yield row.as_py()
