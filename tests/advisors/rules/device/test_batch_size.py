"""batch-size: tiny batches whose fixed costs outweigh their samples."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.case import Case
from loaderscope.advisors.schema.report_model import Range
from rule_cases import FakeWhatIf, advice, asked, case_of, outcomes, unmeasured
from rule_rows import US, rows_of
from silence import silent

NAME = "batch-size"


def case(
    tmp_path, fetch_us=20.0, collate_us=30.0, compute_ms=0.05, process=None, config=None, **columns
) -> Case:
    made = {"fetch_ns": round(fetch_us * US), "collate_ns": round(collate_us * US), **columns}
    wait_ms = (fetch_us + collate_us + 10) / 1e3
    rows, epochs = rows_of(wait_ms=wait_ms, compute_ms=compute_ms, index_ns=8 * US, **made)
    facts: Any = {"config": {"batch_size": 2, **(config or {})}, "process": process}
    whatif = FakeWhatIf(Range(0.15, 0.25, 0.4))
    return case_of(tmp_path, rows, epochs=epochs, whatif=whatif, **facts)


def test_the_factor_is_in_samples_a_second(tmp_path: Path) -> None:
    seen = case(tmp_path)
    found = advice(NAME, seen)
    assert found.predicted == Range(1.2, 2.0, 3.2) and "samples per second" in found.why
    assert found.params == {"batch_size": 16} and "batch_size=16" in found.code
    question = asked(seen)[0]
    assert question["fetch"] == pytest.approx((1 + 7 * 0.75, 1 + 7 * 0.95))
    assert question["compute"] == pytest.approx((3.1, 8.0)) and "transfer" not in question
    assert question["collate"] == pytest.approx((1.21, 4.5))


# Workers that are started anew hand over slowly at first.
ANEW = {"config": {"num_workers": 2}, "pack_ns": lambda n, t, w: (400 if n % 6 < 2 else 4) * US}


test_it_is_silent_one_step_away = silent(
    NAME,
    case,
    {"config": {"batch_size": 8}},
    {"fetch_us": 60.0},  # the samples are the work
    {"fetch_us": 60.0, **ANEW},
    {"compute_ms": 20.0},  # loading is not what limits training
)


@pytest.mark.parametrize(("nbytes", "silent"), [(30e6, True), (3e3, False)])
def test_what_large_samples_take_to_copy_grows_with_them(tmp_path, nbytes, silent):
    seen = case(tmp_path, collate_us=9_000.0)
    seen = replace(seen, report=replace(seen.report, bytes_per_batch=nbytes))
    assert (outcomes(NAME, seen) == []) is silent


@pytest.mark.parametrize(("sampler", "silent"), [("train.Balanced", True), (None, False)])
def test_drawing_by_a_sampler_of_ones_own_grows_with_the_samples(tmp_path, sampler, silent):
    seen = case(tmp_path, collate_us=15.0, config={"sampler": sampler})
    assert (outcomes(NAME, seen) == []) is silent


def test_a_device_without_events_cannot_be_judged(tmp_path: Path) -> None:
    assert "device events" in unmeasured(NAME, case(tmp_path, process={"device": "cuda:0"}))
