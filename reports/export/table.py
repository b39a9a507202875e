"""Rows of one kind as a table, in three formats that say the same."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterable
from typing import Any

from .parquet import need_pyarrow


def render_table(format_: str, kind: type[Any], rows: Iterable[Any]) -> str | bytes:
    """Rows of this dataclass as "json" (an array of objects), "csv" or "parquet". Raises UsageError
    where pyarrow is missing."""
    if format_ == "json":
        return (
            json.dumps([dataclasses.asdict(row) for row in rows], indent=2, ensure_ascii=False)
            + "\n"
        )
    if format_ == "csv":
        sink = io.StringIO()
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(each.name for each in dataclasses.fields(kind))
        writer.writerows(dataclasses.astuple(row) for row in rows)
        return sink.getvalue()
    return _parquet(kind, rows)


def _parquet(kind: type[Any], rows: Iterable[Any]) -> bytes:
    need_pyarrow()
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64()}
    described = pa.schema(
        [pa.field(f.name, types[str(f.type).split(" ")[0]]) for f in dataclasses.fields(kind)]
    )
    sink = io.BytesIO()
    pq.write_table(
        pa.Table.from_pylist([dataclasses.asdict(row) for row in rows], described),
        sink,
        compression="zstd",
    )
    return sink.getvalue()
