"""The advice in the text report, against golden files: LOADERSCOPE_UPDATE_GOLDEN=1 pytest
tests/reports"""

from __future__ import annotations

import ast
import os
import re
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from builders import RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.evidence import measured, percent, us
from loaderscope.advisors.schema.figures import times
from loaderscope.advisors.schema.report_model import (
    Capacity,
    Change,
    LoaderReport,
    Range,
    Recommendation,
    Report,
)
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.text.text import render_text
from loaderscope.reports.words.advice_words import effect_text, predicted_text
from loaderscope.reports.words.sentences import limit_sentence

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("LOADERSCOPE_UPDATE_GOLDEN") == "1"

LONG_CODE = '''class Fast(Points):
    """The same samples, a whole batch at a time."""

    def __getitems__(self, indices):
        return {"points": self.points[indices], "labels": self.labels[indices], "weights": self.weights[indices]}  # as they are


dataset.__class__ = Fast
loader = DataLoader(dataset, batch_size=100, shuffle=True, collate_fn=lambda batch: batch)
'''  # The point is a line wider than any terminal asked for here.


def advice(**changed: Any) -> Recommendation:
    base = Recommendation(
        rule="batched-getitems",
        title="Fetch a whole batch with one indexing operation",
        why="The data set is asked for one sample at a time, 100 times a batch, and each answer is "
        "a row of a tensor.",
        evidence=measured(
            {
                "fetch": us(1240, "a batch"),
                "a sample": us(12.4),
                "fetch, share of waiting": percent(0.83),
            }
        ),
        predicted=Range(6.1, 9.4, 14.2),
        measured=None,
        change=Change({"num_workers": 0}, LONG_CODE),
        caveat="transforms of single samples must work on batches",
        doc="loaderscope rules batched-getitems",
    )
    return replace(base, **changed)


def base_report(
    tmp_path: Path, wait_ms: float = 12, compute_ms: float = 4, batches: int = 200
) -> Report:
    run = RunBuilder(tmp_path)
    rows = loop(
        batches,
        wait_ms=wait_ms,
        compute_ms=compute_ms,
        index_ns=9_000,
        fetch_ns=9_000_000,
        collate_ns=900_000,
    )
    run.process().loader(rows, epochs=[epoch_row(rows)], name="Points")
    return build_report(open_run(run.path), advice=False)


def with_loader(report: Report, **changed: Any) -> Report:
    fresh: dict[str, Any] = {"capacities": {}, "limit": None, **changed}
    return replace(report, loaders=(replace(report.loaders[0], **fresh), *report.loaders[1:]))


def full(tmp_path: Path) -> Report:
    """Advice of every kind, rejected advice, rules that could not judge, capacities."""
    return with_loader(
        base_report(tmp_path),
        recommendations=(
            advice(),
            advice(
                rule="num-workers",
                title="num_workers=4",
                why="Making a batch takes 9.90 ms, all of it computing.",
                evidence=measured({"effective CPUs": "4"}),
                predicted=Range(1.5, 1.8, 2.1),
                measured=1.74,
                change=Change(
                    {"num_workers": 4}, "loader = DataLoader(dataset, batch_size=4, num_workers=4)"
                ),
                caveat=None,
            ),
            advice(
                rule="iterable-sharding",
                kind="correctness",
                title="Every worker yields the whole stream",
                why="The first batches of 4 workers are equal.",
                evidence={},
                predicted=Range(1.0, 1.0, 1.0),
                change=Change({}, ""),
                caveat=None,
            ),
        ),
        rejected=(
            advice(
                rule="prefetch-factor",
                title="prefetch_factor=8",
                why="workers are always busy: the rate stays, memory rises",
                predicted=Range(0.98, 1.0, 1.01),
            ),
        ),
        unmeasured={
            "storage-format": "storage was not recorded",
            "page-cache": "storage was not recorded",
            "hot-function": "stacks were not recorded",
        },
        capacities={
            "fetch+collate": Capacity(101.0, "one process"),
            "index": Capacity(9000.0, "one process"),
            "compute": Capacity(250.0, "the loop alone"),
            "h2d": Capacity(None, "no device"),
        },
        limit="fetch+collate",
    )


def computing(tmp_path: Path) -> Report:
    report = base_report(tmp_path, wait_ms=0.1, compute_ms=20)
    capacities = {
        "fetch+collate": Capacity(10_000.0, ""),
        "index": Capacity(90_000.0, ""),
        "compute": Capacity(50.0, ""),
    }
    return with_loader(report, capacities=capacities, limit="compute")


def hostile(tmp_path: Path) -> Report:
    evil = "[bold red]\x1b[2J\x1b]0;title\x07[/]"
    each = advice(
        rule=evil,
        title=evil,
        why=evil * 30,
        evidence=measured({evil: evil}),
        caveat=evil,
        change=Change({}, f"{evil}\n\t{evil}"),
    )
    return with_loader(
        base_report(tmp_path), recommendations=(each,), rejected=(each,), unmeasured={evil: evil}, limit=evil,
        capacities={evil: Capacity(3.0, evil)},
    )  # fmt: skip


CASES = {each.__name__: each for each in (full, computing, hostile)}


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("case", CASES)
def test_golden(tmp_path: Path, case: str, width: int) -> None:
    text = render_text(CASES[case](tmp_path), width)
    path = GOLDEN / f"advice_{case}_{width}.txt"
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_code_is_shown_whole_and_everything_else_fits(tmp_path: Path, width: int) -> None:
    lines = render_text(full(tmp_path), width).splitlines()
    start = next(n for n, line in enumerate(lines) if "class Fast" in line)
    length = len(LONG_CODE.strip("\n").splitlines())
    block = textwrap.dedent("\n".join(lines[start : start + length]))
    assert block == LONG_CODE.strip("\n")
    ast.parse(block)
    others = [
        line
        for n, line in enumerate(lines)
        if not start <= n < start + length and "DataLoader(" not in line
    ]
    assert max(cell_len(line) for line in others) <= width


@pytest.mark.parametrize("color", [False, True])
def test_texts_of_the_run_are_shown_not_obeyed(tmp_path: Path, color: bool) -> None:
    text = render_text(hostile(tmp_path), 80, color=color)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text) if color else text
    assert all(line.isprintable() for line in plain.splitlines())
    assert plain.count("[bold red]") > 4


def test_without_unicode(tmp_path: Path) -> None:
    text = render_text(full(tmp_path), 80, unicode=False)
    assert text.isascii()
    assert "predicted x9.4 (6.1-14)" in " ".join(text.split())


def test_correctness_is_marked_and_promises_no_speed(tmp_path: Path) -> None:
    text = " ".join(render_text(full(tmp_path), 80).split())
    assert "3. correctness: Every worker yields the whole stream [iterable-sharding]" in text


def test_a_loop_bound_by_computing_is_told_so(tmp_path: Path) -> None:
    text = " ".join(render_text(computing(tmp_path), 80).split())
    assert "Nothing to gain from the loader" in text
    assert "What to change" not in text


def test_correctness_advice_replaces_nothing_to_gain(tmp_path: Path) -> None:
    report = with_loader(computing(tmp_path), recommendations=(advice(kind="correctness"),))
    text = render_text(report, 80)
    assert "Nothing to gain" not in text
    assert "What to change" in text


def test_nothing_certain_to_help(tmp_path: Path) -> None:
    asked = with_loader(base_report(tmp_path), unmeasured={"hot-function": "no stacks"})
    assert "No change was found" in render_text(asked, 80)
    assert "No change was found" not in render_text(with_loader(asked, unmeasured={}), 80)


def test_too_short_runs_promise_nothing(tmp_path: Path) -> None:
    report = with_loader(base_report(tmp_path, batches=3), unmeasured={"hot-function": "no stacks"})
    text = render_text(report, 80)
    assert "No change was found" not in text
    assert "Nothing to gain" not in text


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
    report = base_report(tmp_path)
    config = {**report.loaders[0].config, "num_workers": 2}
    return with_loader(report, capacities=known, limit=limit, config=config).loaders[0]


def test_limit_of_loading_is_set_beside_computing(tmp_path: Path) -> None:
    said = limit_sentence(_loader(tmp_path, "workers", workers=31.0, compute=120.0))
    assert said == "The limit: fetch + collate can make 31.0 batches/s; computing could take 120."


def test_without_workers_the_stages_take_turns(tmp_path: Path) -> None:
    loader = full(tmp_path).loaders[0]
    assert limit_sentence(loader) == (
        "The limit: fetch + collate can make 101 batches/s; computing could take 250, if they did "
        "not take turns."
    )


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
