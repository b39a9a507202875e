"""Tables for pandas, polars or DuckDB: rows of one kind in three formats that say the same; and as
Parquet what was recorded, a row a batch, a sample, a hot function."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ...advisors.schema.report_model import Doing, HotSpot, Report
from ...advisors.stacks.code_summary import code_of
from ...profiler.base import schema
from ...profiler.base.errors import UsageError
from ...profiler.base.schema import Field, Schema
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import LoaderRun, Run
from ..words.inside import code_stages

ROWS_AT_A_TIME = 1 << 17
# What tells the rows of several loaders, or hosts, apart; put before the recorded columns.
_LOADER_KEYS = (
    Field("loader_name", "s", "name of the loader"),
    Field("loader", "i", "number of the loader in its process, from 0"),
    Field("pid", "q", "process id of the training process"),
    Field("rank", "q", "rank of the training process"),
)
_HOST_KEYS = (Field("host", "s", "host of the sample"),)
# `core` samples are one array a row: their width is the machine's.
_SYSTEM_TABLES = {"machine": schema.MACHINE, "process": schema.PROCESS, "gpu": schema.GPU}
Parts = Iterable[tuple[dict[str, Any], Columns]]


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


def render_parquet(report: Report, run: Run) -> dict[str, bytes]:
    """File name → content: `batches`, `epochs`, `machine`, `process`, `gpu`, each with its rows'
    meaning; `functions`.

    Columns are named and measured as in the schema; what was not measured is null. Empty tables
    have their columns too. The whole report is in each file's metadata, under
    `loaderscope.report`, as JSON. Raises UsageError where pyarrow is not installed.
    """
    about = report.to_json(None)
    batches = ((_keys(each), each.batches) for each in run.loaders)
    epochs = ((_keys(each), each.epochs) for each in run.loaders)
    tables = {
        "batches": _table(schema.BATCH, _LOADER_KEYS, batches, about),
        "epochs": _table(schema.EPOCH, _LOADER_KEYS, epochs, about),
    }
    for name, each in _SYSTEM_TABLES.items():
        parts = (({"host": system.host}, getattr(system, name)) for system in run.systems)
        tables[name] = _table(each, _HOST_KEYS, parts, about)
    tables["functions"] = _functions(report, run, about)
    return {f"{name}.parquet": content for name, content in tables.items()}


def _keys(loader: LoaderRun) -> dict[str, Any]:
    values = (loader.name, loader.index, loader.pid, loader.rank)
    return dict(zip((key.name for key in _LOADER_KEYS), values, strict=True))


def _metadata(name: str, about: str) -> dict[str, str]:
    return {"loaderscope.report": about, "loaderscope.table": name}


def _functions(report: Report, run: Run, about: str) -> bytes:
    """A row a hot function, and one a line of the user's own: `HotSpot` with its loader and
    stage."""
    pa = need_pyarrow()
    codes = {
        **{key.name: key.code for key in _LOADER_KEYS},
        "stage": "s",
        "samples": "q",
        "kind": "s",
    }
    keys = [pa.field(n, pa.string() if c == "s" else _type(c)) for n, c in codes.items()]
    fields = [*keys, *parquet_fields(HotSpot, doing=Doing)]
    advised = {(each.pid, each.index, each.rank): each.code for each in report.loaders}
    rows = []
    for process in run.processes:
        for loader in process.loaders:
            # A report shows one rank of a loader: the stacks of the others are read here.
            key = (loader.pid, loader.index, loader.rank)
            code = advised[key] if key in advised else code_of(run, process, loader)
            for name, stage in code_stages(code):
                of = {**_keys(loader), "stage": name, "samples": stage.samples}
                for kind, found in (("function", stage.hot), ("line", stage.lines)):
                    rows += [{**of, "kind": kind, **dataclasses.asdict(spot)} for spot in found]
    return parquet_of(fields, rows, _metadata("functions", about))


def _type(code: str) -> Any:
    pa = need_pyarrow()
    texts = pa.dictionary(pa.int32(), pa.string())
    return {"s": texts, "q": pa.int64(), "i": pa.int32(), "h": pa.int16(), "f": pa.float32()}[code]


def _table(schema_: Schema, keys: tuple[Field, ...], parts: Parts, about: str) -> bytes:
    pa = need_pyarrow()
    fields = [
        pa.field(f.name, _type(f.code), metadata={"doc": f.doc}) for f in (*keys, *schema_.fields)
    ]
    described = pa.schema(fields, metadata=_metadata(schema_.name, about))
    sink = io.BytesIO()
    with pa.parquet.ParquetWriter(sink, described, compression="zstd") as writer:
        for own, columns in parts:
            for start in range(0, columns.rows, ROWS_AT_A_TIME):
                rows = slice(start, min(start + ROWS_AT_A_TIME, columns.rows))
                arrays = [
                    pa.array([own[f.name]] * (rows.stop - start), described.field(f.name).type)
                    for f in keys
                ]
                for f in schema_.fields:
                    found = np.ascontiguousarray(columns[f.name][rows])
                    missing = np.isnan(found) if f.code == "f" else found < 0
                    arrays.append(pa.array(found, described.field(f.name).type, mask=missing))
                writer.write_batch(pa.record_batch(arrays, schema=described))
    return sink.getvalue()
