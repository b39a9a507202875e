"""Functions, transforms and storage, as blocks and in words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import loop
from inside_samples import CODE, COLLATE, FETCH, NO_CODE, STORAGE
from loaderscope.advisors.schema.report_model import HotSpot, LoaderReport, StorageSummary
from loaderscope.profiler.record.inspect.uses import place_of
from loaderscope.reports.document.blocks import Table
from loaderscope.reports.document.inside import hottest, inside_parts
from loaderscope.reports.words.inside import basis_text, code_stages, function_name, inside_notes
from loaderscope.reports.words.storage_words import storage_rows
from report_samples import recorded, reported


@pytest.fixture
def bare(tmp_path: Path) -> LoaderReport:
    """A loader without anything of what is tested here."""
    run = recorded(tmp_path, loop(60, wait_ms=5, fetch_ns=4_000_000, collate_ns=400_000))
    return replace(reported(run).loaders[0], code=None, storage=None)


def test_functions_then_the_lines_of_the_user() -> None:
    rows = hottest(FETCH)
    named = "PIL ImageFile.load, libz inflate, Patches.__getitem__, normalise, PIL Image.open"
    assert ", ".join(function_name(spot) for spot, line in rows if not line) == named
    # 52 is among the functions already.
    assert [spot.line for spot, line in rows if line] == [41, 40]
    assert not any(line for _, line in hottest(replace(FETCH, lines=())))
    assert hottest(replace(FETCH, samples=1)) == []  # too few to name a function
    qualified = replace(FETCH.hot[0], function="PIL.ImageFile.load")
    assert function_name(qualified) == "PIL.ImageFile.load"


PLACES = {("/a/b/c.py", 3): "c.py:3", ("/a/libz.so", 0): "libz.so", (None, 3): "?:3"}
PLACES |= {("", None): "?", ("/", 1): "?:1", ("<frozen x>", None): "<frozen x>"}


def test_place_and_basis() -> None:
    assert {place: place_of(*place) for place in PLACES} == PLACES
    one = replace(CODE, bursts=1, samples=1, rate_hz=None)
    assert basis_text(one) == "1 sample in 1 burst of 16.0 s"


def test_stages_come_in_the_order_of_the_pipeline_and_empty_ones_not_at_all() -> None:
    empty = replace(COLLATE, samples=0)
    stages = {"wait": COLLATE, "later": COLLATE, "fetch": FETCH, "pack": empty}
    found = [name for name, _ in code_stages(replace(CODE, stages=stages))]
    assert (found, code_stages(None)) == (["fetch", "wait", "later"], [])


CACHED = {"disk_bytes_per_sample": 99_999.0}  # read ahead
NONE_OPENED: dict[str, Any] = {"opens_per_sample": 0.0, "kinds": (), "mounts": (), "directories": 0}


@pytest.mark.parametrize(
    ("label", "changed", "expected"),
    [
        ("data set", {}, ": it fits"),
        ("data set", {"dataset_bytes": 13e9}, "it does not fit"),
        ("data set", {"dataset_bytes": 11.5e9}, "it barely fits"),
        ("data set", {"memory_bytes": None}, "about 15.6 MB"),
        ("read", NONE_OPENED, "B a sample, "),
        ("read", {"reopened_share": 0.5}, "50 % of them opened before"),
        ("read", {"read_bytes_per_sample": None}, "131 B a sample from disk"),
        ("read", {"read_bytes_per_sample": 0.3}, "nfs4 (network)"),
        ("read", CACHED, "0 % of it from the page cache"),
        ("fetch is", {"decoding_share": None, "other_share": None}, "reading 3.0 %"),
    ],
)
def test_storage_case_by_case(label: str, changed: dict[str, Any], expected: str) -> None:
    assert expected in dict(storage_rows(replace(STORAGE, **changed)))[label]


def test_nothing_known_of_storage_is_nothing_said() -> None:
    unknown: dict[str, Any] = dict.fromkeys(StorageSummary.__dataclass_fields__)
    unknown |= dict.fromkeys(("kinds", "mounts", "containers", "epochs"), ())
    assert storage_rows(StorageSummary(**unknown | {"samples": 0, "reasons": {"x": "why"}})) == []
    assert storage_rows(None) == []
    # Nor of a data set in memory: no line of 'no file opened … reading 0 %, decoding 100 %'.
    held = {"reading_share": 0.0, "decoding_share": 1.0, "samples": 640, "reasons": {}}
    held |= dict.fromkeys((f"{n}_per_sample" for n in ("opens", "read_bytes", "disk_bytes")), 0.0)
    assert storage_rows(StorageSummary(**unknown | held)) == []


def test_what_lacks_for_one_reason_is_said_together(bare: LoaderReport) -> None:
    reasons = {"wait_us_per_open": "why", "memory_bytes": "why", "new_one": "else"}
    (said,) = inside_notes(replace(bare, storage=replace(STORAGE, reasons=reasons)))
    assert said == "storage: not measured: wait_us_per_open, memory_bytes (why); new_one (else)"
    reason = inside_notes(replace(bare, code=NO_CODE))
    assert reason == ["functions: py-spy is not installed: pip install py-spy"]


def test_senseless_figures_are_shown_not_raised(bare: LoaderReport) -> None:
    spot = HotSpot("", "", -5, None, False, 7.0, -1.0, 2.0, -3.0)
    stage = replace(FETCH, hot=(spot, replace(spot, total_share=9.0)), lines=(spot,))
    loader = replace(bare, code=replace(CODE, stages={"fetch": stage}))
    (part,) = (each for each in inside_parts(loader, "key") if each.title == "Inside fetch")
    (table,) = (each for each in part.blocks if isinstance(each, Table))
    assert any(str(row[0]).startswith("900 %") for row in table.rows)
