"""A real run with everything in it, and every kind of damage to its files."""

import copy
import json
import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from builders import T0, ProcessBuilder, epoch_row, loop, write_lane
from loaderscope.profiler.base import schema
from loaderscope.profiler.store.lanes.segment_file import COMMITTED_OFFSET, HEADER_BYTES, MAGIC
from loaderscope.profiler.store.lanes.segment_file import SCHEMA_OFFSET as FIELDS_OFFSET
from loaderscope.profiler.store.run.run_reader import open_run
from started import here, python

TRAINING = Path(__file__).parents[1] / "integration" / "small_training.py"

Files = dict[str, bytes]
LENGTH_OFFSET = 40  # in a header: how long the description of the records is

STACKS: dict[str, Any] = {"format": 1, "number": 9, "why": "steady", "rate_hz": 100.0}
STACKS |= {"t_begin_ns": T0, "t_end_ns": T0 + 10**9, "package": None, "reason": None}
STACKS["frames"] = [["main", "train.py", 3, False], ["read", "x.py", 9, False]]
STACKS["processes"] = [{"pid": 4000, "owner": 4000, "samples": 90, "gil": 0.5}]
STACKS["stacks"] = [[0, "MainThread", [1, 0], 90]]


def record(runs: Path) -> Path:
    """A training with workers and files, really recorded, and beside it what not every machine can
    record: a second rank whose older batches made room, a GPU, stacks."""
    env = here(LOADERSCOPE_DIR=str(runs), LOADERSCOPE_STACKS="eager")
    python(TRAINING, runs.parent / "pictures", env=env, check=True)
    (path,) = runs.glob("2*")
    recorded = open_run(path)
    assert recorded.loaders[0].batches.measured("worker"), "workers were not measured"
    facts = {"rank": 1, "world_size": 2, "device": "NVIDIA H200"}
    process = ProcessBuilder(path / "p4000-0", 4000, True, facts)
    times = {"fetch_ns": 2_000_000, "collate_ns": 50_000, "own_ns": 900.0, "stall_ns": 2_000_000}
    times |= {"h2d_ns": 9000, "compute_device_ns": 8_000_000, "bytes": 4096}
    rows = loop(8_700, wait_ms=3.0, **times)
    epochs = [epoch_row(rows, startup_ms=3)]
    process.loader(rows, loop(30), epochs=epochs, max_bytes=1 << 20, name="Validation")
    assert not list(process.path.glob("batches0x0-000000.seg")), "nothing made room"
    worker = {"t_ns": T0, "pid": 4005, "worker": 0, "loader": 0}
    write_lane(process.path, "workers", schema.WORKER, [worker])
    (system,) = path.glob("system-*")
    begun = int(recorded.loaders[0].batches["t_ns"][0])
    constant = {"gpu": 0, "util_pct": 60, "mem_used_bytes": 9, "power_mw": 300}
    samples = [{"t_ns": begun + n * 10**8, **constant} for n in range(30)]
    write_lane(system, "gpu", schema.GPU, samples)
    (system / "stacks-9.json").write_text(json.dumps(STACKS))
    return path


def files_of(path: Path) -> Files:
    """Relative path → content, without the zeros at the end of a segment: they are no records."""
    found = {}
    for each in sorted(path.rglob("*")):
        if each.is_file():
            data = each.read_bytes()
            found[str(each.relative_to(path))] = _used(data) if data[:8] == MAGIC else data
    return found


def _used(data: bytes) -> bytes:
    (record,) = struct.unpack_from("<I", data, 16)
    (committed,) = struct.unpack_from("<Q", data, COMMITTED_OFFSET)
    return data[: HEADER_BYTES + committed * record]


def write_files(files: Files, folder: Path) -> None:
    """The run directory of these files."""
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def damaged(files: Files, seed: int) -> Files:
    """A copy with one to four of its files damaged, `run.json` less often than others."""
    rng = random.Random(seed)
    changed = dict(files)
    names = sorted(name for name in files if name != "run.json" or rng.random() < 0.2)
    for _ in range(rng.choice([1, 1, 2, 4])):
        name = rng.choice(names)
        if name not in changed:
            continue
        if name.endswith(".json"):
            ways: list[Callable[[bytes, random.Random], bytes | None]] = [json_values] * 8
        else:
            ways = [_records] * 6 + [flip] * 2
        ways += [flip, _cut, lambda data, rng: None, lambda data, rng: b""]
        ways += [lambda data, rng: files[rng.choice(names)], lambda data, rng: data + data]
        result = rng.choice(ways)(changed[name], rng)
        if result is None:
            del changed[name]
        else:
            changed[name] = result
    if rng.random() < 0.05:  # a copy of a segment under the next number, a lane nobody knows
        name = rng.choice(names)
        changed[name.replace("000000", "000001")] = files[name]
    return changed


_ODD: tuple[Any, ...] = (
    *(float("nan"), float("inf"), float("-inf"), 1e308, -1e308, 5e-324, 0.5, -1, 0, 1),
    *(10**30, -(10**30), 2**62 - 1, 2**63, -(2**63), 2**31, 10**400, None, True, False),
    *("", "x", "\ud800\x1b[31m", "<b>", [], [1, 2], [[[]]], {}, {"a": 1}, {"": None}),
)


def json_values(data: bytes, rng: random.Random) -> bytes:
    """One value, or some, anywhere inside, replaced by others of any type, left out, or doubled."""
    try:
        value = json.loads(data)
    except ValueError:
        return data
    for _ in range(rng.choice([1, 1, 2, 6])):
        places: list[tuple[Any, Any]] = []
        _places(value, places)
        if not places:
            break
        holder, key = rng.choice(places)
        what = rng.random()
        if what < 0.1:
            del holder[key]
        elif what < 0.15 and isinstance(holder, list):
            holder += holder
        elif what < 0.25 and isinstance(holder[key], int | float):
            factor = rng.choice([-1, 10**6, 10**200, 10**9])
            holder[key] = holder[key] * factor
        else:
            # A copy: what later damage puts into one of these lists would otherwise be in all of
            # them, itself included.
            holder[key] = copy.deepcopy(rng.choice(_ODD))
    return json.dumps(value).encode()


def _places(value: Any, found: list[tuple[Any, Any]]) -> None:
    inside = list(value.items()) if isinstance(value, dict) else list(enumerate(value[:50]))
    for key, item in inside:
        found.append((value, key))
        if isinstance(item, dict | list):
            _places(item, found)


_NUMBERS = {
    "q": ("<q", [-(2**63), 2**63 - 1, -2, 0, 1, 10**18, 2**61, 2**55]),
    "i": ("<i", [-(2**31), 2**31 - 1, -2, 0, 1]),
    "h": ("<h", [-(2**15), 2**15 - 1, -2, 0]),
    "f": ("<f", [float("inf"), float("-inf"), 3e38, -3e38, -2.0, 0.0, 1e-45]),
}


def _records(data: bytes, rng: random.Random) -> bytes:
    """Columns of some or all records with absurd values; the records' own numbers stay right."""
    changed = bytearray(data)
    try:
        (record,) = struct.unpack_from("<I", data, 16)
        (committed,) = struct.unpack_from("<Q", data, COMMITTED_OFFSET)
        length = struct.unpack_from("<I", data, LENGTH_OFFSET)[0]
        fields = json.loads(data[FIELDS_OFFSET : FIELDS_OFFSET + length])[2]
    except (struct.error, ValueError, IndexError):
        return flip(data, rng)
    whole = rng.random() < 0.5
    for name, code, count, offset in rng.sample(
        fields, min(len(fields), rng.choice([1, 1, 3, 12]))
    ):
        if name == "seq" and rng.random() < 0.9:
            continue
        pack, odd = _NUMBERS[code]
        one = rng.choice(odd)
        for number in range(committed) if whole else rng.choices(range(max(1, committed)), k=5):
            at = HEADER_BYTES + number * record + offset
            if at + struct.calcsize(pack) * count <= len(changed):
                value = one if rng.random() < 0.8 else rng.choice(odd)
                struct.pack_into(f"<{count}{code}", changed, at, *[value] * count)
    return bytes(changed)


def flip(data: bytes, rng: random.Random) -> bytes:
    """Some bytes are others."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 20)):
        # Half of the changes go where the meaning is: the header and the first records.
        end = min(len(changed), rng.choice([80, 2500, HEADER_BYTES + 1000, len(changed)])) or 1
        if changed:
            changed[rng.randrange(end)] = rng.randrange(256)
    return bytes(changed)


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]
