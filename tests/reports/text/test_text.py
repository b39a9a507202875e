"""The text report, against golden files. To accept a change: LOADERSCOPE_UPDATE_GOLDEN=1 pytest
tests/reports"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from builders import MS, T0, RunBuilder, epoch_row, loop
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import Report
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.text.text import render_text

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("LOADERSCOPE_UPDATE_GOLDEN") == "1"
SECOND = 10**9


def workers_starved(run: RunBuilder) -> None:
    """Four workers, each batch waits for a worker; a machine and a GPU are sampled."""
    rows = loop(
        400, wait_ms=12, compute_ms=18, first_wait_ms=900,
        index_ns=15_000, fetch_ns=lambda n, t, w: 90 * MS + (n % 10) * 4 * MS, collate_ns=4 * MS,
        fetch_cpu_ns=lambda n, t, w: 27 * MS if n % 16 == 0 else None,
        collate_cpu_ns=lambda n, t, w: 4 * MS if n % 16 == 0 else None,
        t_fetch_ns=lambda n, t, w: t - 88 * MS - (n % 10) * 4 * MS,
        pack_ns=900_000, queued_ns=1_200_000, unpack_ns=700_000, pin_ns=1_100_000,
        bytes=lambda n, t, w: 19_267_584 if n % 16 == 0 else None,
        own_ns=lambda n, t, w: 6000.0 if n % 16 == 0 else None,
        h2d_ns=2 * MS, h2d_host_ns=60_000, compute_device_ns=15 * MS, stall_ns=9 * MS,
    )  # fmt: skip
    run.process(device="NVIDIA H200", affinity=16).loader(
        rows,
        epochs=[epoch_row(rows, startup_ms=1400)],
        config={"num_workers": 4, "prefetch_factor": 2, "pin_memory": True, "batch_size": 32},
        name="ImageNet",
    )
    run.system(
        machine=[
            {"t_ns": T0 + n * SECOND, "cpu_idle_pct": 35.0 - n, "cpu_iowait_pct": 12.0, "mem_total_bytes": 64 * 10**9,
             "mem_available_bytes": 41 * 10**9, "disk_read_bytes": n * 180_000_000, "shm_total_bytes": 32 * 10**9,
             "shm_used_bytes": 310_000_000, "sampler_cpu_ns": n * 9 * MS, "sampler_rss_bytes": 24_100_000}
            for n in range(12)
        ],
        process=[
            {"t_ns": T0 + n * SECOND, "pid": 4000 + w, "role": min(w, 1), "worker": w - 1, "cpu_user_ns": n * 600 * MS,
             "cpu_system_ns": n * 50 * MS, "read_all_bytes": n * 50_000_000, "read_disk_bytes": n * 43_000_000}
            for n in range(12)
            for w in range(5)
        ],
        gpu=[{"t_ns": T0 + n * SECOND, "gpu": 0, "util_pct": 58, "mem_used_bytes": 31 * 10**9,
              "mem_total_bytes": 141 * 10**9, "power_mw": 310_000} for n in range(12)],
        gpus=[{"index": 0, "name": "NVIDIA H200"}],
        cores_logical=16, affinity=16,
    )  # fmt: skip


def computing(run: RunBuilder) -> None:
    """No workers, nearly no waiting, no system sampler, several ranks."""
    for rank in range(2):
        rows = loop(
            150, wait_ms=0.4, compute_ms=40, index_ns=9_000, fetch_ns=300_000, collate_ns=40_000
        )
        process = run.process(pid=4000 + rank, rank=rank, world_size=2, local_world_size=2)
        process.loader(rows, epochs=[epoch_row(rows)], name="Tabular")


def too_short(run: RunBuilder) -> None:
    rows = loop(3, wait_ms=5, compute_ms=1)
    run.process().loader(
        rows, epochs=[epoch_row(rows)], kind="iterable", config={}, name="batches of generator"
    )


def empty(run: RunBuilder) -> None:
    run.process()


def hostile(run: RunBuilder) -> None:
    """Texts that would be obeyed by a terminal or by rich."""
    rows = loop(30, wait_ms=5)
    run.process().loader(rows, name="[bold red]\x1b[2J[/]" + "x" * 300, notes=["\x1b]0;title\x07 "
    "[link=x]note[/link]"],
                         config={"batch_size": "[blink]", "sampler": "a.\u202eb"})  # fmt: skip


CASES: dict[str, Callable[[RunBuilder], None]] = {
    each.__name__: each for each in (workers_starved, computing, too_short, empty, hostile)
}


def report_of(case: str, tmp_path: Path) -> Report:
    run = RunBuilder(tmp_path)
    CASES[case](run)
    report = build_report(open_run(run.path), advice=False)
    # Advice and capacities: see test_advice_text.py; functions, transforms and storage: see
    # test_inside_text.py.
    bare: dict[str, Any] = {
        "capacities": {},
        "limit": None,
        "code": None,
        "transforms": (),
        "storage": None,
    }
    return replace(report, loaders=tuple(replace(each, **bare) for each in report.loaders))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("case", CASES)
def test_golden(tmp_path: Path, case: str, width: int) -> None:
    text = render_text(report_of(case, tmp_path), width)
    path = GOLDEN / f"{case}_{width}.txt"
    if UPDATE:
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
@pytest.mark.parametrize("case", CASES)
def test_no_line_is_wider_than_asked_and_nothing_is_obeyed(
    tmp_path: Path, case: str, width: int
) -> None:
    text = render_text(report_of(case, tmp_path), width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert all(line.isprintable() for line in text.splitlines())


def test_colours_add_nothing_but_colours(tmp_path: Path) -> None:
    report = report_of("workers_starved", tmp_path)
    colored = render_text(report, 80, color=True)
    assert "\x1b[" in colored
    plain = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    strip = [line.rstrip() for line in plain.splitlines()]
    assert strip == render_text(report, 80).splitlines()


def test_hostile_texts_bring_no_escape_of_their_own(tmp_path: Path) -> None:
    colored = render_text(report_of("hostile", tmp_path), 80, color=True)
    assert not re.search(r"\x1b(?!\[[0-9;]*m)", colored)
    assert "\x07" not in colored
    assert "[bold red]" in re.sub(r"\x1b\[[0-9;]*m", "", colored)


def test_ascii_terminals(tmp_path: Path) -> None:
    report = report_of("workers_starved", tmp_path)
    text = render_text(report, 80, unicode=False)
    assert text.isascii()
    assert "us" in text
    widths = [len(line) for line in text.splitlines()]
    assert widths == [len(line) for line in render_text(report, 80).splitlines()]


def test_the_verdict_comes_first(tmp_path: Path) -> None:
    lines = render_text(report_of("workers_starved", tmp_path), 80).splitlines()
    assert lines[1].startswith("● input-bound")


def test_many_loaders_are_cut(tmp_path: Path) -> None:
    report = report_of("too_short", tmp_path)
    many = replace(report, loaders=report.loaders * 50)
    text = render_text(many, 80)
    assert "and 18 more loaders" in text


def test_missing_stages_do_not_matter(tmp_path: Path) -> None:
    """A report read from JSON may lack stages that this version knows."""
    report = report_of("computing", tmp_path)
    stages: dict[str, Any] = {"wait": report.loaders[0].stages["wait"]}
    text = render_text(replace(report, loaders=(replace(report.loaders[0], stages=stages),)), 80)
    assert "inside next()" in text
