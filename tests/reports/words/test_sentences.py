"""What is said of a loader and its advice, in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.figures import times
from loaderscope.advisors.schema.report_model import Capacity, LoaderReport, Range
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.words.advice_words import effect_text, predicted_text
from loaderscope.reports.words.sentences import limit_sentence, nothing_to_change
from report_samples import advice


def base(
    tmp_path: Path, wait_ms: float = 12, compute_ms: float = 4, batches: int = 200
) -> LoaderReport:
    """A loader that nothing was advised on."""
    run = RunBuilder(tmp_path)
    rows = loop(batches, wait_ms=wait_ms, compute_ms=compute_ms, fetch_ns=9_000_000)
    run.process().loader(rows, epochs=[epoch_row(rows)], name="Points")
    loader = build_report(open_run(run.path), advice=False).loaders[0]
    return replace(loader, capacities={}, limit=None)


def test_nothing_to_change(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"unmeasured": {"hot-function": "no stacks"}}
    computing = base(tmp_path / "a", wait_ms=0.1, compute_ms=20)
    assert "Nothing to gain from the loader" in (nothing_to_change(computing) or "")
    waiting = base(tmp_path / "b")
    assert nothing_to_change(waiting) is None
    assert "No change is certain" in (nothing_to_change(replace(waiting, **asked)) or "")
    short = base(tmp_path / "c", batches=3)
    assert nothing_to_change(replace(short, **asked)) is None


@pytest.mark.parametrize(
    ("low", "mid", "high", "shown"),
    [
        (1.5, 1.8, 2.1, "×1.8 (1.5–2.1)"),
        (1.04, 1.1, 1.17, "×1.10 (1.04–1.17)"),
        (0.15, 0.2, 0.3, "×0.20 (0.15–0.30)"),
        (0.2, 0.4, 0.9, "×0.40 (0.20–0.90)"),
        (6.1, 9.4, 14.2, "×9.4 (6.1–14)"),
        (18.0, 24.4, 31.0, "×24 (18–31)"),
        (0.7, 1.4, 1.9, "×1.4 (0.70–1.9)"),
        (2.0, 2.0, 2.0, "×2.00"),
    ],
)
def test_predicted_ranges(low: float, mid: float, high: float, shown: str) -> None:
    assert predicted_text(Range(low, mid, high)) == shown


@pytest.mark.parametrize(
    ("factor", "shown"), [(0.214, "×0.21"), (1.74, "×1.74"), (3.14, "×3.1"), (24.4, "×24")]
)
def test_factors(factor: float, shown: str) -> None:
    assert times(factor) == shown


def test_what_was_measured_goes_before_what_was_predicted() -> None:
    assert effect_text(advice(measured=1.74)) == "measured ×1.74"
    assert effect_text(advice(predicted=Range(1.0, 1.0, 1.0))) == ""


def _loader(tmp_path: Path, limit: str | None, **capacities: float | None) -> LoaderReport:
    known = {name: Capacity(value, "") for name, value in capacities.items()}
    loader = base(tmp_path)
    config = {**loader.config, "num_workers": 2}
    return replace(loader, capacities=known, limit=limit, config=config)


def test_limit_of_loading_is_set_beside_computing(tmp_path: Path) -> None:
    said = limit_sentence(_loader(tmp_path, "workers", workers=31.0, compute=120.0))
    assert said == "The limit: fetch + collate can make 31.0 batches/s; computing could take 120."


def test_without_workers_the_stages_take_turns(tmp_path: Path) -> None:
    known = {"fetch+collate": Capacity(101.0, ""), "compute": Capacity(250.0, "")}
    loader = replace(base(tmp_path), capacities=known, limit="fetch+collate")
    assert (limit_sentence(loader) or "").endswith(", if they did not take turns.")


def test_limit_of_computing_is_set_beside_the_slowest_of_loading(tmp_path: Path) -> None:
    said = limit_sentence(
        _loader(tmp_path, "compute", workers=310.0, index=9000.0, compute=120.0, pin=None)
    )
    assert said == "The limit: computing could take 120 batches/s; fetch + collate can make 310."


@pytest.mark.parametrize(
    ("limit", "capacities"),
    [
        (None, {"workers": 3.0}),
        ("workers", {"workers": None}),
        ("workers", {}),
        ("compute", {"compute": 3.0}),
    ],
)
def test_no_limit_is_claimed_that_is_not_known(
    tmp_path: Path, limit: str | None, capacities: dict[str, Any]
) -> None:
    assert limit_sentence(_loader(tmp_path, limit, **capacities)) is None
