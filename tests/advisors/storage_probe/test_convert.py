"""Converting: what is left out is counted, and a full disk or a broken layout is told, not
hidden."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loaderscope.advisors.storage_probe.bounds import Bounds
from loaderscope.advisors.storage_probe.convert import convert
from loaderscope.advisors.storage_probe.decoders import Decoder
from loaderscope.advisors.storage_probe.formats import FORMATS
from loaderscope.advisors.storage_probe.layout import Format, Layout
from loaderscope.advisors.storage_probe.source import File
from loaderscope.profiler.base.errors import UsageError

BYTES = Bounds(1 << 20, 1000, 1.0)
FILES, LMDB, TAR, ARRAY, DECODED_LMDB = (
    next(each for each in FORMATS if each.name == name)
    for name in ("files", "lmdb", "tar", "array", "lmdb-decoded")
)


def soon() -> float:
    return time.monotonic() + 20


def sources(folder: Path, *contents: bytes) -> list[File]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{n}" for n in range(len(contents))]
    for path, data in zip(paths, contents, strict=True):
        path.write_bytes(data)
    return [(str(path), path.stat().st_size) for path in paths]


def made(folder: Path, *kinds: Format) -> list[Layout]:
    folder.mkdir()
    return [Layout(kind, folder / kind.name) for kind in kinds]


ROW = Decoder("json", "rows", lambda data: np.array(json.loads(data), np.uint8))


def read(layout: Layout) -> list[Any]:
    with layout.format.open(layout) as reading:
        return [reading(number) for number in range(layout.count)]


def test_broken_files_are_left_out_of_every_layout_and_counted(tmp_path: Path) -> None:
    paths = sources(tmp_path / "data", b"[1,2]", b"broken", b"[3,4]")
    layouts = made(tmp_path / "out", FILES, TAR, ARRAY)
    done = convert([*paths, (str(tmp_path / "gone"), 1)], layouts, ROW, BYTES, soon())
    assert (len(done.encoded), len(done.decoded)) == (2, 2)
    assert done.skipped == {
        "does not decode (JSONDecodeError)": 1,
        "cannot be read (No such file or directory)": 1,
    }
    assert read(layouts[0]) == read(layouts[1]) == [b"[1,2]", b"[3,4]"]
    np.testing.assert_array_equal(read(layouts[2]), [[1, 2], [3, 4]])
    assert all(layout.convert_s > 0 and layout.source_bytes == 10 for layout in layouts)


def test_layouts_that_cannot_hold_the_samples_say_why_and_the_others_go_on(tmp_path: Path) -> None:
    paths = sources(tmp_path / "data", b"[1,2]", b"[1,2,3]", b"[1,2]")
    layouts = made(tmp_path / "out", FILES, ARRAY, DECODED_LMDB)
    done = convert(paths, layouts, ROW, BYTES, soon())
    assert len(done.encoded) == 3
    assert layouts[1].reason is not None
    assert "(2,) uint8 and (3,) uint8" in layouts[1].reason
    assert not layouts[1].folder.exists()
    assert [array.tolist() for array in read(layouts[2])] == [[1, 2], [1, 2, 3], [1, 2]]


def test_samples_that_are_no_arrays_have_no_decoded_layout(tmp_path: Path) -> None:
    layouts = made(tmp_path / "out", FILES, ARRAY)
    paths = sources(tmp_path / "data", b'{"a": 1}', b"{}")
    convert(paths, layouts, Decoder("json", "texts", json.loads), BYTES, soon())
    assert layouts[1].reason == "samples do not decode to one array each"


def test_decoded_layouts_stop_at_the_bound_and_the_others_go_on(tmp_path: Path) -> None:
    blow_up = Decoder("x", "x", lambda data: np.full(400, data[0], np.uint8))
    layouts = made(tmp_path / "out", FILES, ARRAY)
    paths = sources(tmp_path / "data", b"a", b"b", b"c", b"d")
    convert(paths, layouts, blow_up, BYTES._replace(max_bytes=1000), soon())
    assert (layouts[0].count, layouts[1].count) == (4, 2)
    assert layouts[1].source_bytes == 2
    assert [row[0] for row in read(layouts[1])] == [ord("a"), ord("b")]
    too_big = made(tmp_path / "more", FILES, ARRAY)
    convert(
        sources(tmp_path / "data", b"a"), too_big, blow_up, BYTES._replace(max_bytes=100), soon()
    )
    assert too_big[1].reason is not None
    assert "raise --bytes" in too_big[1].reason


def test_the_time_for_copying_is_kept(tmp_path: Path) -> None:
    layouts = made(tmp_path / "out", FILES, replace(TAR, write=slowly))
    paths = sources(tmp_path / "data", *[b"x"] * 40)
    with pytest.raises(UsageError, match="raise --seconds"):
        convert(paths, layouts, None, BYTES, time.monotonic() - 1)
    convert(paths, layouts, None, BYTES, time.monotonic() + 1)
    assert 0 < layouts[1].count < layouts[0].count == 40
    assert layouts[1].source_bytes == layouts[1].count


def slowly(layout: Layout, samples: Iterable[bytes], most: int) -> None:
    TAR.write(layout, ((time.sleep(0.05), sample)[1] for sample in samples), most)


def test_free_space_is_asked_for_again(tmp_path: Path) -> None:
    left = iter([1 << 40, 0])
    layouts = made(tmp_path / "out", FILES, TAR)
    paths = sources(tmp_path / "data", b"x")
    convert(paths, layouts, None, BYTES, soon(), free=lambda path: next(left))
    assert [each.reason for each in layouts] == [None, "free space ran low"]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("write", "storing samples failed (RuntimeError: it fell"),
        ("open", "storing samples failed (RuntimeError: it fell"),
        ("wrong", "it gave other samples than were stored"),
    ],
)
def test_a_library_that_fails_is_that_layouts_reason(
    broken: str, reason: str, tmp_path: Path
) -> None:
    def fall_over(*_: object) -> Any:
        raise RuntimeError("it fell\x1b over")

    def wrong(layout: Layout, samples: Iterable[bytes], most: int) -> None:
        TAR.write(layout, (b"?" + sample for sample in samples), most)

    kind = replace(TAR, **({"write": wrong} if broken == "wrong" else {broken: fall_over}))
    layouts = made(tmp_path / "out", FILES, kind)
    convert(sources(tmp_path / "data", b"a"), layouts, None, BYTES, soon())
    assert layouts[0].reason is None
    assert layouts[1].reason is not None
    assert layouts[1].reason.startswith(reason)
    assert layouts[1].reason.isprintable()
    assert not layouts[1].folder.exists()


@pytest.mark.parametrize("kind", [FILES, LMDB], ids=lambda kind: kind.name)
def test_a_disk_that_becomes_full_ends_the_probe_with_one_sentence(
    kind: Format, small: Path, tmp_path: Path
) -> None:
    paths = sources(tmp_path / "data", *(os.urandom(300_000) for _ in range(100)))
    layouts = made(small / "out", kind)
    layouts[0].load()
    if layouts[0].reason is not None:
        pytest.skip("no lmdb here")
    with pytest.raises(UsageError, match="disk became full"):
        convert(
            paths,
            layouts,
            None,
            BYTES._replace(max_bytes=1 << 25),
            soon(),
            free=lambda path: 1 << 40,
        )
