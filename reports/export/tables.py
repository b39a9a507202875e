"""What was recorded as Parquet tables for pandas, polars or DuckDB: a row a batch, an epoch, a
sample of the system."""

import io
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...advisors.schema.report_model import Report
from ...profiler.base import schema
from ...profiler.base.errors import UsageError
from ...profiler.base.schema import Field, Schema
from ...profiler.store.lanes.columns import Columns
from ...profiler.store.run.run import Run

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
Parts = Iterable[tuple[tuple[Any, ...], Columns]]


def render_parquet(report: Report, run: Run) -> dict[str, bytes]:
    """File name → content: `batches`, `epochs`, `machine`, `process`, `gpu`, each with its rows'
    meaning.

    Columns are named and measured as in the schema; what was not measured is null. Empty tables
    have their columns too. The whole report is in each file's metadata, under
    `loaderscope.report`, as JSON. Raises UsageError where pyarrow is not installed.
    """
    about = report.to_json(None)
    keys = [(each.name, each.index, each.pid, each.rank) for each in run.loaders]
    batches = zip(keys, (each.batches for each in run.loaders), strict=True)
    epochs = zip(keys, (each.epochs for each in run.loaders), strict=True)
    tables = {
        "batches": _table(schema.BATCH, _LOADER_KEYS, batches, about),
        "epochs": _table(schema.EPOCH, _LOADER_KEYS, epochs, about),
    }
    for name, each in _SYSTEM_TABLES.items():
        parts = (((system.host,), getattr(system, name)) for system in run.systems)
        tables[name] = _table(each, _HOST_KEYS, parts, about)
    return {f"{name}.parquet": content for name, content in tables.items()}


def _table(schema_: Schema, keys: tuple[Field, ...], parts: Parts, about: str) -> bytes:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise UsageError(
            "the parquet format needs pyarrow: pip install 'loaderscope[parquet]'"
        ) from error
    texts = pa.dictionary(pa.int32(), pa.string())
    types = {"s": texts, "q": pa.int64(), "i": pa.int32(), "h": pa.int16(), "f": pa.float32()}
    fields = [
        pa.field(f.name, types[f.code], metadata={"doc": f.doc}) for f in (*keys, *schema_.fields)
    ]
    metadata = {"loaderscope.report": about, "loaderscope.table": schema_.name}
    described = pa.schema(fields, metadata=metadata)
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, described, compression="zstd") as writer:
        for own, columns in parts:
            arrays = [
                pa.array([value] * columns.rows, types[key.code])
                for key, value in zip(keys, own, strict=True)
            ]
            for f in schema_.fields:
                found = np.ascontiguousarray(columns[f.name])
                missing = np.isnan(found) if f.code == "f" else found < 0
                arrays.append(pa.array(found, types[f.code], mask=missing))
            writer.write_batch(pa.record_batch(arrays, schema=described))
    return sink.getvalue()
