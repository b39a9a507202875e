"""Rows of one kind as a table, in three formats that say the same."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ...profiler.base.errors import UsageError


def render_table(format_: str, kind: type[Any], rows: Iterable[Any]) -> str | bytes:
    """Rows of this dataclass as "json" (an array of objects), "csv" or "parquet". Raises UsageError
    where pyarrow is missing."""
    cells = [dataclasses.asdict(row) for row in rows]
    if format_ == "json":
        return json.dumps(cells, indent=2, ensure_ascii=False) + "\n"
    if format_ == "csv":
        sink = io.StringIO()
        names = [each.name for each in dataclasses.fields(kind)]
        writer = csv.DictWriter(sink, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells)
        return sink.getvalue()
    return parquet_of(parquet_fields(kind), cells)


def need_pyarrow() -> Any:
    """pyarrow. Raises UsageError where it is not installed."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise UsageError(
            "the parquet format needs pyarrow: pip install 'loaderscope[parquet]'"
        ) from error
    return pyarrow


def parquet_fields(kind: type[Any], **lists: type[Any]) -> list[Any]:
    """The fields of a dataclass as pyarrow's; `lists`: of fields that hold several of another
    dataclass, which."""
    pa = need_pyarrow()
    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    return [
        pa.field(f.name, pa.list_(pa.struct(parquet_fields(lists[f.name]))))
        if f.name in lists
        else pa.field(f.name, types[str(f.type).split(" ")[0]])
        for f in dataclasses.fields(kind)
    ]


def parquet_of(
    fields: list[Any], rows: list[dict[str, Any]], about: Mapping[str, str] | None = None
) -> bytes:
    """A Parquet file of rows with these fields, `about` in its metadata."""
    pa = need_pyarrow()
    sink = io.BytesIO()
    table = pa.Table.from_pylist(rows, pa.schema(fields, metadata=about))
    pa.parquet.write_table(table, sink, compression="zstd")
    return sink.getvalue()
