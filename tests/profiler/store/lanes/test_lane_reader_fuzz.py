"""Whatever bytes a run directory holds, reading it raises a LoaderscopeError or nothing."""

from __future__ import annotations

import json
import random
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import T0, RunBuilder, epoch_row, loop, write_lane
from damaged_runs import flip
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.profiler.base import schema
from loaderscope.profiler.base.errors import LoaderscopeError
from loaderscope.profiler.store.lanes.columns import read_lane
from loaderscope.profiler.store.lanes.lane_reader import read_header, read_segment
from loaderscope.profiler.store.lanes.segment_file import (
    COMMITTED_OFFSET,
    FORMAT_VERSION,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    SCHEMA_OFFSET,
)
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.text.text import render_text

FUZZ = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)
WORDS = st.sampled_from(["seq", "t_ns", "wait_ns", "q", "f", "i", "", "é"])
FIELD = st.lists(WORDS | st.integers(-4, 70_000) | st.none(), min_size=4, max_size=4)


def read_everything(path: Path) -> None:
    """As `loaderscope report` does it."""
    report = build_report(open_run(path))
    report.to_json()
    render_text(report, 60)


@contextmanager
def quiet() -> Iterator[None]:
    with suppress(LoaderscopeError):
        yield


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A small run that has everything, as {relative path: bytes}."""
    run = RunBuilder(tmp_path_factory.mktemp("pristine"))
    process = run.process()
    more = {"own_ns": 1.0, "fetch_ns": 500_000, "unpack_ns": 1000, "stall_ns": 5}
    rows = loop(40, t_fetch_ns=lambda n, t, w: t - 100, **more)
    process.loader(rows, loop(10), epochs=[epoch_row(rows, startup_ms=3)])
    write_lane(process.path, "workers", schema.WORKER, [{"t_ns": T0, "pid": 5}])
    run.system(
        machine=[{"t_ns": T0 + n, "cpu_idle_pct": 50.0, "mem_total_bytes": 9} for n in range(3)],
        process=[{"t_ns": T0 + n, "pid": 4000, "role": 0, "cpu_user_ns": n} for n in range(3)],
        core=[{"t_ns": T0, "busy_pct": [1.0, 2.0]}],
        gpu=[{"t_ns": T0, "gpu": 0, "util_pct": 3}],
        gpus=[{"index": 0, "name": "GPU"}],
    )
    files = [path for path in run.path.rglob("*") if path.is_file()]
    return {str(path.relative_to(run.path)): path.read_bytes()[: 40 << 10] for path in files}


@contextmanager
def unfolded(files: dict[str, bytes]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for name, data in files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(data)
        yield Path(folder)


def read_each_way(path: Path, lane: str, fields: schema.Schema) -> None:
    for read in (read_header, read_segment):
        with quiet():
            read(path)
    read_lane(path.parent, lane, fields)


@FUZZ
@given(data=st.binary(max_size=9000), keep=st.sampled_from([0, 8, 12, 40, 64, HEADER_BYTES]))
def test_random_bytes_as_a_segment(tmp_path: Path, data: bytes, keep: int) -> None:
    """After a header, whole or cut: LoaderscopeError or nothing, and the lane is read."""
    path = tmp_path / "machine-000000.seg"
    write_lane_once(tmp_path)
    whole = (tmp_path / "good.bytes").read_bytes()
    path.write_bytes(whole[:keep] + data)
    read_each_way(path, "machine", schema.MACHINE)


def write_lane_once(folder: Path) -> None:
    if not (folder / "good.bytes").exists():
        (folder / "made").mkdir()
        write_lane(folder / "made", "machine", schema.MACHINE, [{"t_ns": n} for n in range(20)])
        (folder / "good.bytes").write_bytes((folder / "made" / "machine-000000.seg").read_bytes())


@FUZZ
@given(
    version=st.sampled_from([FORMAT_VERSION, 0, 2, 2**32 - 1]),
    header_bytes=st.sampled_from([HEADER_BYTES, 0]) | U32,
    record=st.sampled_from([8, 24, 224, 1 << 16]) | U32,
    capacity=U32,
    first=U64,
    committed=U64,
    length=st.none() | U32,
    described=st.tuples(
        st.sampled_from(["batch", "machine", ""]), st.integers(-1, 3), st.lists(FIELD, max_size=5)
    )
    | JSON,
)
def test_headers_that_lie(
    tmp_path: Path, version: int, header_bytes: int, record: int, capacity: int, first: int, committed: int,
    length: int | None, described: object,
) -> None:  # fmt: skip
    """No other error, no reading beyond the file."""
    text = json.dumps(described).encode()
    length = len(text) if length is None else length
    header = HEADER.pack(MAGIC, version, header_bytes, record, capacity, first, committed, length)
    path = tmp_path / "batch-000000.seg"
    whole = (header.ljust(SCHEMA_OFFSET, b"\0") + text)[:HEADER_BYTES]
    path.write_bytes(whole.ljust(HEADER_BYTES, b"\0") + bytes(2000))
    read_each_way(path, "batch", schema.BATCH)


@pytest.mark.parametrize("schema_fields", [
    [["seq", "q", 1, 0]],
    [["seq", "q", 2, 0]],
    [["seq", "f", 1, 0]],
    [["seq", "h", 1, 0]],
    [["seq", "q", 1, 0], ["wait_ns", "f", 1, 8]],
    [["seq", "q", 1, 0], ["wait_ns", "q", 2, 8]],
])  # fmt: skip
@pytest.mark.parametrize("first_seq", [1, 2**63 - 1, 2**64 - 1])
@pytest.mark.parametrize("capacity", [3, 2**32 - 1])
def test_plausible_headers_with_absurd_numbers(tmp_path, schema_fields, first_seq, capacity):
    """Terabytes promised, numbers beyond an int64, a `seq` that is an array or a float."""
    text = json.dumps(["batch", 1, schema_fields]).encode()
    header = HEADER.pack(
        MAGIC, FORMAT_VERSION, HEADER_BYTES, 1 << 15, capacity, first_seq, 2**64 - 1, len(text)
    )
    body = struct.pack("<q", 1).ljust(1 << 15, b"\0") * 3
    path = tmp_path / "batch-000000.seg"
    path.write_bytes((header.ljust(SCHEMA_OFFSET, b"\0") + text).ljust(HEADER_BYTES, b"\0") + body)
    with quiet():
        read_segment(path)
    assert read_lane(tmp_path, "batch", schema.BATCH).columns.rows <= 3


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
@pytest.mark.filterwarnings("error")
@FUZZ
@given(seed=st.integers(0, 2**32), mutate=st.sampled_from(["flip", "cut", "fill", "drop", "swap"]))
def test_mutated_runs_open_or_say_why(pristine: dict[str, bytes], seed: int, mutate: str) -> None:
    """Reported without a warning, or refused with LoaderscopeError."""
    rng = random.Random(seed)
    files = dict(pristine)
    for name in rng.sample(sorted(files), rng.randint(1, 3)):
        files[name] = MUTATIONS[mutate](files[name], rng)
        if mutate == "drop":
            del files[name]
        if mutate == "swap":
            files[name] = pristine[rng.choice(sorted(pristine))]
    with unfolded(files) as folder, quiet():
        read_everything(folder)


@FUZZ
@given(
    value=JSON,
    key=st.sampled_from(
        ["pid", "argv", "reasons", "config", "overhead", "cgroup", "gpus", "world_size"]
    ),
)
def test_mutated_json_values(pristine: dict[str, bytes], value: object, key: str) -> None:
    """Any JSON in the place of one known value, in every file that has it."""
    files = dict(pristine)
    for name, data in pristine.items():
        if name.endswith(".json"):
            files[name] = json.dumps({**json.loads(data), key: value}).encode()
    with unfolded(files) as folder, quiet():
        read_everything(folder)


def _fill(data: bytes, rng: random.Random) -> bytes:
    """Random numbers in the place of records whose own numbers stay right."""
    changed = bytearray(data)
    if data[:8] == MAGIC:
        record = struct.unpack_from("<I", data, 16)[0]
        committed = struct.unpack_from("<Q", data, COMMITTED_OFFSET)[0]
        for number in range(committed):
            at = HEADER_BYTES + number * record + 8
            if at + record - 8 <= len(changed):
                changed[at : at + record - 8] = rng.randbytes(record - 8)
    return bytes(changed)


MUTATIONS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flip": flip,
    "cut": lambda data, rng: data[: rng.randrange(len(data) + 1)],
    "fill": _fill,
    "drop": lambda data, rng: data,
    "swap": lambda data, rng: data,
}
