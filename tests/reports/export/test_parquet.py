"""Parquet: read back with pyarrow, the tables hold what was recorded."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builders import RunBuilder, loop, opened
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.base import schema
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.export.tables import render_parquet
from report_samples import reported

pq = pytest.importorskip("pyarrow.parquet")


def tables(run: Run, report: Report | None = None) -> dict[str, Any]:
    files = render_parquet(report or reported(run), run).items()
    return {name.removesuffix(".parquet"): pq.read_table(io.BytesIO(data)) for name, data in files}


def test_each_table_holds_what_was_recorded(run: Run, report: Report) -> None:
    found = tables(run, report)
    sampled = {"machine": 20, "process": 100, "gpu": 20}
    rows = {name: table.num_rows for name, table in found.items()}
    assert rows == {"batches": 260, "epochs": 1, **sampled}
    batches, loader = found["batches"], run.loaders[0]
    for name in ("t_ns", "wait_ns", "fetch_ns", "worker", "samples"):
        assert batches[name].to_pylist() == loader.batches[name].tolist()
    told = [set(batches[name].to_pylist()) for name in ("loader_name", "pid")]
    assert told == [{"ImageNet"}, {4000}]
    available = found["machine"]["mem_available_bytes"].to_pylist()
    assert available[:2] == [41_000_000_000, 40_900_000_000]
    assert set(found["machine"]["host"].to_pylist()) == {"elsewhere"}
    measured = [value is not None for value in batches["fetch_cpu_ns"].to_pylist()]
    assert measured == [n % 16 == 0 for n in range(260)]
    for name in ("digest", "sample_max_ns", "rank"):
        assert batches[name].null_count == 260
    described = {field.name: field.metadata[b"doc"].decode() for field in batches.schema}
    assert described["wait_ns"] == "inside next()"
    assert {f.name for f in schema.BATCH.fields} < set(described)
    assert Report.from_json(batches.schema.metadata[b"loaderscope.report"].decode()) == report


def test_several_loaders_are_one_table(tmp_path: Path) -> None:
    builder = RunBuilder(tmp_path)
    for rank in range(2):
        builder.process(pid=4000 + rank, rank=rank).loader(loop(20), name=f"Set {rank}")
    batches = tables(open_run(builder.path))["batches"]
    assert batches["rank"].to_pylist() == [0] * 20 + [1] * 20
    assert batches["loader_name"].to_pylist() == ["Set 0"] * 20 + ["Set 1"] * 20
    assert np.all(np.diff(batches["t_ns"].to_numpy()[:20]) == 10_000_000)


def test_nothing_recorded_leaves_empty_tables(tmp_path: Path) -> None:
    found = tables(opened(tmp_path))
    assert {table.num_rows for table in found.values()} == {0}
    assert "wait_ns" in found["batches"].column_names
