"""The HTML report as text: whole, escaped, self-contained, its plots valid."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from builders import loop, opened
from html_page import Page
from inside_samples import CODE, NO_CODE
from loaderscope.advisors.schema.report_model import FlameNode, Report
from loaderscope.profiler.store.run.run import Run
from loaderscope.reports.html.html_code import flame_figure, kept
from loaderscope.reports.html.html_loader import loader_figures
from loaderscope.reports.html.html_plot import plain, system_figures
from loaderscope.reports.html.html_report import render_html
from report_samples import EVIL_CODE, absurd, hostile_report, reported

MAX_BYTES = 2_000_000


@pytest.fixture(scope="module")
def text(run: Run, report: Report) -> str:
    return render_html(report, run)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_every_plot_has_its_data(page: Page) -> None:
    plots = [found["id"] for found in page.having("div", **{"class": "plot"})]
    of_loader = ("timeline", "history", "flame")
    of_system = ("cpu", "memory", "io", "gpu", "gpu-memory")
    assert plots == [*(f"loader0-{n}" for n in of_loader), *(f"system-{n}" for n in of_system)]
    assert set(json.loads(page.scripts[0])) == set(plots)


def test_it_is_one_file_which_a_small_run_keeps_small(text: str, page: Page) -> None:
    assert len(text.encode()) < 300_000
    for tag, attributes in page.tags:
        assert tag not in ("iframe", "object", "embed", "base", "form")
        for name in ("src", "href", "action", "srcset"):
            assert str(attributes.get(name) or "#").startswith(("#", "data:"))
        assert not [name for name in attributes if name.startswith("on")]
    style = text.split("<style>")[1].split("</style>")[0]
    assert "url(" not in style and "@import" not in style


def test_only_its_own_scripts_may_run(page: Page) -> None:
    (policy,) = (str(found["content"]) for found in page.having("meta") if "http-equiv" in found)
    allowed = set(re.findall(r"'(sha256-[^']+)'", policy.split("script-src")[1].split(";")[0]))
    hashes = [hashlib.sha256(script.encode()).digest() for script in page.scripts[1:]]
    assert allowed == {"sha256-" + base64.b64encode(each).decode() for each in hashes}
    assert policy.startswith("default-src 'none';")
    assert "connect-src" not in policy and "http" not in policy


WIDE_NODE = FlameNode("some_function_name" * 4, "/a/long/path.py" * 4, 0, True, 0, 0)
WIDE = [replace(WIDE_NODE, line=n, parent=n - 1, samples=2_000 - n) for n in range(600)]


@pytest.mark.parametrize("loaders", [16, 40])
def test_many_loaders_stay_within_the_size(run: Run, report: Report, loaders: int) -> None:
    """Forty that differ, or sixteen with large flame graphs."""
    code = report.loaders[0].code
    if loaders == 16:
        stage = replace(CODE.stages["fetch"], flame=tuple(WIDE))
        stages = dict.fromkeys(("fetch", "collate", "pack", "pin", "wait", "compute"), stage)
        code = replace(CODE, stages=stages)
    each = replace(report.loaders[0], code=code)
    names = [f"Rows of {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(loaders)]
    wide = tuple(replace(each, index=n, name=name) for n, name in enumerate(names))
    columns = tuple(replace(run.loaders[0], index=n) for n in range(loaders))
    recorded = replace(run, processes=(replace(run.processes[0], loaders=columns),))
    text = render_html(replace(report, loaders=wide), recorded)
    assert len(text.encode()) <= MAX_BYTES
    assert text.count('id="loader0-flame"') == 1
    assert 'id="loader15-flame"' not in text if loaders == 16 else "24 more loaders" in text


def test_hostile_texts_are_text(run: Run, report: Report) -> None:
    text = render_html(hostile_report(report), run)
    page = Page(text)
    assert len(page.scripts) == 3
    assert page.text.count("<script>alert('owned')</script>") > 20
    assert EVIL_CODE in page.codes
    assert "<td>&lt;script&gt;</td>" in text  # the data set's class


def test_a_hostile_device_name_is_no_markup_in_a_plot(tmp_path: Path) -> None:
    times = [{"t_ns": n * 10**9} for n in range(3)]
    named = {"gpus": [{"index": 0, "name": "</script><a href='x'>GPU"}], "machine": times}
    gpu = [{**each, "gpu": 0, "util_pct": 3} for each in times]
    run = opened(tmp_path, loop(30), system={**named, "gpu": gpu})
    text = render_html(reported(run), run)
    data = json.loads(Page(text).scripts[0])
    assert data["system-gpu"]["data"][0]["name"] == "GPU 0 </script><a href='x'>GPU"
    assert plain("<b>a&b</b>\x1b") == "<b>a&b</b>\N{REPLACEMENT CHARACTER}"
    assert "</script><a" not in text


def test_every_figure_is_said_in_a_sentence(run: Run) -> None:
    figures = [*loader_figures("x", run.loaders[0]), *system_figures(run)]
    assert len(figures) == 7
    assert all(each.summary.endswith(".") and each.title and each.data for each in figures)


def test_the_time_line_shows_what_was_recorded(run: Run) -> None:
    (line,) = (each for each in loader_figures("x", run.loaders[0]) if each.id == "x-timeline")
    (fetch,) = (trace for trace in line.data if trace["name"] == "fetch")
    assert line.title == "Time line of the newest 200 batches"
    batches = run.loaders[0].batches
    for (row, length_ms), worker in zip(fetch["facts"], fetch["y"], strict=True):
        assert worker == f"worker {batches['worker'][row]}"
        assert length_ms == pytest.approx(batches["fetch_ns"][row] / 1e6, rel=1e-3)
    rows = [row for row, _ in fetch["facts"]]
    assert sorted(rows) == list(range(260 - 200, 260))
    begins = [base - fetch["base"][0] for base in fetch["base"]]
    expected = (batches["t_fetch_ns"][rows] - batches["t_fetch_ns"][rows[0]]) / 1e6
    assert begins == pytest.approx(expected.tolist(), abs=0.1)


def test_a_page_without_functions_has_none_of_it(run: Run, report: Report) -> None:
    bare = replace(report.loaders[0], code=None, storage=None)
    page = Page(render_html(replace(report, loaders=(bare,)), run))
    assert not page.having("fieldset") and not page.having("ul", **{"class": "legend"})
    assert "Inside fetch" not in page.text and "What is read" not in page.text
    reason = Page(render_html(replace(report, loaders=(replace(bare, code=NO_CODE),)), run))
    assert "functions: py-spy is not installed: pip install py-spy" in reason.text
    assert "Inside fetch" not in reason.text


def test_the_flame_graph_is_one_tree_a_stage() -> None:
    (figure,) = flame_figure("x", CODE)
    assert figure.switch == ("fetch", "collate")
    fetch = figure.data[0]
    kinds = [row[3] for row in fetch["facts"]]
    assert [*zip(fetch["labels"], fetch["parents"], fetch["values"], kinds, strict=True)] == [
        ("fetch", -1, 1204, "stage"),
        ("Patches.__getitem__", 0, 1180, "yours"),
        ("ImageFile.load", 1, 855, "library"),
        ("inflate", 2, 140, "library"),
        ("Image.open", 1, 72, "library"),
        ("normalise", 1, 110, "yours"),
    ]
    assert fetch["facts"][2][:3] == ("ImageFile.py:425", "71 %", "855")


def node(parent: int, samples: int) -> FlameNode:
    return FlameNode(f"f{samples}", None, None, False, parent, samples)


@pytest.mark.parametrize(
    ("nodes", "limit", "expected"),
    [
        ([(-1, 10), (0, 6), (0, 4), (1, 5)], 9, [(-1, 10), (0, 6), (0, 4), (1, 5)]),
        ([(-1, 10), (0, 6), (0, 4), (1, 5)], 2, [(-1, 10), (0, 6)]),  # the least seen goes first
        ([(-1, 10), (0, 1), (0, 4), (2, 3)], 3, [(-1, 10), (0, 4), (1, 3)]),  # renumbered
        ([(5, 10), (1, 3), (-2, 3), (-1, 0), (3, 9), (-1, 7)], 9, [(-1, 7)]),  # senseless parents
        ([(-1, 5)], 0, []),
    ],
)
def test_what_is_kept_of_a_flame_graph(nodes, limit, expected):
    assert [(n.parent, n.samples) for n in kept([node(*each) for each in nodes], limit)] == expected


@pytest.mark.parametrize("kind", ["one batch", "damaged"])
def test_little_or_senseless_data(tmp_path: Path, kind: str) -> None:
    machine = [{"t_ns": n, "disk_read_bytes": 2**62 - n} for n in (5, 5, 2**62)]
    rows = loop(1, wait_ms=5) if kind == "one batch" else absurd(loop(60, wait_ms=5))
    run = opened(tmp_path, rows, system={"machine": machine, "process": [{"t_ns": 1}]})
    page = Page(render_html(reported(run), run))
    assert "What recording cost" in page.text
    for figure in json.loads(page.scripts[0]).values():
        assert all(len(trace.get("x", ())) == len(trace.get("y", ())) for trace in figure["data"])


def test_a_report_without_its_columns(run: Run, report: Report) -> None:
    """Read from JSON, with another run at hand: tables."""
    other = replace(report.loaders[0], pid=1, code=None)
    page = Page(render_html(replace(report, loaders=(other,)), replace(run, systems=())))
    assert not page.having("div", **{"class": "plot"}) and "What recording cost" in page.text
