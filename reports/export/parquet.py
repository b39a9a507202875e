"""What was recorded as Parquet tables, for pandas, polars or DuckDB: a row a batch, a sample, a hot
function."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...advisors.schema.report_model import HotSpot, Report
from ...advisors.stacks.code_summary import code_of
from ...profiler.base import schema
from ...profiler.base.errors import UsageError
from ...profiler.base.schema import Field, Schema
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import Run
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


def need_pyarrow() -> None:
    """Raises UsageError where it is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "the parquet format needs pyarrow: pip install 'loaderscope[parquet]'"
        ) from error


def render_parquet(report: Report, run: Run) -> dict[str, bytes]:
    """File name → content: `batches`, `epochs`, `machine`, `process`, `gpu`, each with its rows'
    meaning; `functions`.

    Columns are named and measured as in its schema; what was not measured is null. Tables without a
    row have their columns all the same. The whole report is in each file's metadata, under
    `loaderscope.report`, as JSON. Raises UsageError where pyarrow is not installed.
    """
    need_pyarrow()
    about = report.to_json(None)
    keys = [
        {"loader_name": each.name, "loader": each.index, "pid": each.pid, "rank": each.rank}
        for each in run.loaders
    ]
    tables = {
        "batches": _table(
            schema.BATCH, _LOADER_KEYS, keys, [each.batches for each in run.loaders], about
        ),
        "epochs": _table(
            schema.EPOCH, _LOADER_KEYS, keys, [each.epochs for each in run.loaders], about
        ),
    }
    hosts: list[dict[str, Any]] = [{"host": system.host} for system in run.systems]
    for name, schema_ in _SYSTEM_TABLES.items():
        parts: list[Columns] = [getattr(system, name) for system in run.systems]
        tables[name] = _table(schema_, _HOST_KEYS, hosts, parts, about)
    tables["functions"] = _functions(report, run, about)
    return {f"{name}.parquet": content for name, content in tables.items()}


def _functions(report: Report, run: Run, about: str) -> bytes:
    """A row a hot function, and one a line of the user's own: `HotSpot` with its loader and
    stage."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    spots = [
        pa.field(f.name, types[str(f.type).split(" ")[0]]) for f in dataclasses.fields(HotSpot)
    ]
    keys = [
        pa.field("loader_name", pa.string()),
        pa.field("loader", pa.int32()),
        pa.field("pid", pa.int64()),
        pa.field("rank", pa.int64()),
        pa.field("stage", pa.string()),
        pa.field("samples", pa.int64()),
        pa.field("kind", pa.string()),
    ]
    told = {(each.pid, each.index, each.rank): each.code for each in report.loaders}
    # A report shows one rank's section of a loader: what the others do is seen in their stacks all
    # the same.
    codes = [
        (
            loader,
            told[key]
            if (key := (loader.pid, loader.index, loader.rank)) in told
            else code_of(run, process, loader),
        )
        for process in run.processes
        for loader in process.loaders
    ]
    rows = [
        {
            "loader_name": loader.name,
            "loader": loader.index,
            "pid": loader.pid,
            "rank": loader.rank,
            "stage": name,
            "samples": stage.samples,
            "kind": kind,
            **dataclasses.asdict(spot),
        }
        for loader, code in codes
        for name, stage in code_stages(code)
        for kind, found in (("function", stage.hot), ("line", stage.lines))
        for spot in found
    ]
    described = pa.schema(
        [*keys, *spots], metadata={"loaderscope.report": about, "loaderscope.table": "functions"}
    )
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, described), sink, compression="zstd")
    return sink.getvalue()


def _table(
    schema_: Schema,
    keys: tuple[Field, ...],
    values: list[dict[str, Any]],
    parts: list[Columns],
    about: str,
) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {
        "s": pa.dictionary(pa.int32(), pa.string()),
        "q": pa.int64(),
        "i": pa.int32(),
        "h": pa.int16(),
        "f": pa.float32(),
    }
    fields = [
        pa.field(f.name, types[f.code], metadata={"doc": f.doc}) for f in (*keys, *schema_.fields)
    ]
    described = pa.schema(
        fields, metadata={"loaderscope.report": about, "loaderscope.table": schema_.name}
    )
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, described, compression="zstd") as writer:
        for own, columns in zip(values, parts, strict=True):
            for rows in _chunks(columns.rows):
                writer.write_batch(_record_batch(described, keys, own, schema_, columns, rows))
    return sink.getvalue()


def _chunks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, ROWS_AT_A_TIME):
        yield slice(start, min(start + ROWS_AT_A_TIME, rows))


def _record_batch(
    described: Any,
    keys: tuple[Field, ...],
    own: Mapping[str, Any],
    schema_: Schema,
    columns: Columns,
    rows: slice,
) -> Any:
    import pyarrow as pa

    count = rows.stop - rows.start
    arrays = []
    for f in keys:
        type_ = described.field(f.name).type
        if f.code == "s":
            index = pa.array([0 if own[f.name] is not None else None] * count, pa.int32())
            arrays.append(
                pa.DictionaryArray.from_arrays(index, pa.array([own[f.name] or ""], pa.string()))
            )
        else:
            arrays.append(pa.array([own[f.name]] * count, type_))
    for f in schema_.fields:
        found = np.ascontiguousarray(columns[f.name][rows])
        missing = np.isnan(found) if f.code == "f" else found < 0
        arrays.append(pa.array(found, described.field(f.name).type, mask=missing))
    return pa.record_batch(arrays, schema=described)
