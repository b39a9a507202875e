"""The HTML report as text: whole, escaped, self-contained, its plots valid. test_html_browser.py
opens it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from builders import RunBuilder, epoch_row, loop
from inside_samples import CODE, NO_CODE
from loaderscope.advisors.assemble.build_report import build_report
from loaderscope.advisors.schema.report_model import FlameNode, Report
from loaderscope.profiler.base.errors import UsageError
from loaderscope.profiler.store.run.run import Run
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.reports.html.html_code import Room, flame_figure, kept
from loaderscope.reports.html.html_loader import loader_figures
from loaderscope.reports.html.html_plot import plain
from loaderscope.reports.html.html_report import render_html
from loaderscope.reports.html.html_system import system_figures
from report_samples import EVIL_CODE, full_report, full_run, hostile_report

MAX_BYTES = 2_000_000


class Page(HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.codes: list[str] = []
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append("")
        if tag == "code":
            self.codes.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.text += data
            if self._inside == "code":
                self.codes[-1] += data

    def having(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [
            found
            for name, found in self.tags
            if name == tag and attributes.items() <= found.items()
        ]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return full_run(tmp_path_factory.mktemp("runs"), batches=260)


@pytest.fixture(scope="module")
def report(run: Run) -> Report:
    return full_report(run)


@pytest.fixture(scope="module")
def text(run: Run, report: Report) -> str:
    return render_html(report, run)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_everything_is_there(page: Page) -> None:
    shown = " ".join(page.text.split())
    for part in (
        "input-bound", "Use 8 workers", "predicted ×1.35 (1.22–1.41)", "measured ×1.02", "correctness", "safety",
        "Raise prefetch_factor", "whether reads came from disk", "(the limit)", "Headroom: about", "num_workers",
        "made, not yet taken", "collate_fn joins",
        "sampler 0.9 % of a core", "NVIDIA H200", "Configuration", "Definitions", "The batches with the longest waits",
    ):  # fmt: skip
        assert part in shown, part
    plots = [found["id"] for found in page.having("div", **{"class": "plot"})]
    assert plots == [
        "loader0-stages", "loader0-timeline", "loader0-distributions", "loader0-history", "loader0-flame", "system-cpu",
        "system-processes", "system-memory", "system-io", "system-gpu", "system-gpu-memory",
    ]  # fmt: skip
    assert set(json.loads(page.scripts[0])) == set(plots)


def test_code_is_whole_and_has_its_button(report: Report, page: Page) -> None:
    codes = [code for code in page.codes if "DataLoader" in code]
    assert codes == [each.change.code for each in report.loaders[0].recommendations]
    assert len(page.having("button", **{"class": "copy"})) == len(codes)


def test_it_is_one_file_of_bounded_size(text: str, page: Page) -> None:
    assert len(text.encode()) <= MAX_BYTES
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
    assert (
        policy.startswith("default-src 'none';")
        and "connect-src" not in policy
        and "http" not in policy
    )


def test_many_loaders_stay_within_the_size(run: Run, report: Report) -> None:
    words = [chr(97 + n // 26) + chr(97 + n % 26) for n in range(40)]
    loaders = tuple(
        replace(report.loaders[0], index=n, name=f"Rows of {word}") for n, word in enumerate(words)
    )
    processes = run.processes[0]
    columns = tuple(replace(run.loaders[0], index=n) for n in range(40))
    wide = replace(run, processes=(replace(processes, loaders=columns),))
    text = render_html(replace(report, loaders=loaders), wide)
    assert len(text.encode()) <= MAX_BYTES
    assert "24 more loaders" in text


def test_hostile_texts_are_text(run: Run, report: Report) -> None:
    text = render_html(hostile_report(report), run)
    page = Page(text)
    assert len(page.scripts) == 3
    assert page.text.count("<script>alert('owned')</script>") > 20
    assert EVIL_CODE in page.codes
    assert "<td>&lt;script&gt;</td>" in text  # the data set's class


def test_a_hostile_device_name_is_no_markup_in_a_plot(tmp_path: Path) -> None:
    builder = RunBuilder(tmp_path)
    rows = loop(30)
    builder.process().loader(rows, epochs=[epoch_row(rows)])
    builder.system(
        machine=[{"t_ns": n * 10**9, "cpu_idle_pct": 10.0} for n in range(3)],
        gpu=[{"t_ns": n * 10**9, "gpu": 0, "util_pct": 3} for n in range(3)],
        gpus=[{"index": 0, "name": "</script><a href='x'>GPU"}],
    )
    run = open_run(builder.path)
    text = render_html(build_report(run, advice=False), run)
    data = json.loads(Page(text).scripts[0])
    assert data["system-gpu"]["data"][0]["name"] == "GPU 0 </script><a href='x'>GPU"
    assert "</script><a" not in text


def test_every_figure_is_said_in_a_sentence(run: Run, report: Report) -> None:
    figures = [*loader_figures("x", report.loaders[0], run.loaders[0]), *system_figures(run)]
    assert len(figures) == 10
    for figure in figures:
        assert figure.summary.endswith(".") and figure.title
        assert {trace["type"] for trace in figure.data} <= {"bar", "scatter"}


def test_a_small_run_s_page_is_small(run: Run, report: Report) -> None:
    assert len(render_html(report, run).encode()) < 300_000


def test_the_time_line_shows_what_was_recorded(run: Run, report: Report) -> None:
    figures = {each.id: each for each in loader_figures("x", report.loaders[0], run.loaders[0])}
    line = figures["x-timeline"]
    traces = {trace["name"]: trace for trace in line.data}
    assert line.title == "Time line of the newest 200 batches"
    batches = run.loaders[0].batches
    first = 260 - 200
    fetch = {
        tuple(pair): row
        for pair, row in zip(traces["fetch"]["customdata"], traces["fetch"]["y"], strict=True)
    }
    for (row, length_ms), worker in fetch.items():
        assert worker == f"worker {batches['worker'][row]}"
        assert length_ms == pytest.approx(batches["fetch_ns"][row] / 1e6, rel=1e-3)
    assert sorted(row for row, _ in fetch) == list(range(first, 260))
    begins = [base - traces["fetch"]["base"][0] for base in traces["fetch"]["base"]]
    rows = [pair[0] for pair in traces["fetch"]["customdata"]]
    expected = (batches["t_fetch_ns"][rows] - batches["t_fetch_ns"][rows[0]]) / 1e9
    assert begins == pytest.approx(expected.tolist(), abs=1e-4)


def test_functions_transforms_and_storage_are_in_tables(page: Page) -> None:
    shown = " ".join(page.text.split())
    for part in (
        "71 % (66–75 %)70 %PIL ImageFile.loadImageFile.py:425patches.py:41",
        "Inside fetch", "1,204 samples in 2 bursts, 16.0 s in all; the GIL was held in 31 % of them", "yours",
        "ColorJitter1.31 ms64 %640dataset.transform", ".png64013.0 kB15.1 kB", "/datanfs4 "
        "(network)40",
        "lmdb/data/masks.lmdb2.10 GB", "032013.1 kB12.9 kB0.5", "the page cache may use 12.0 GB: "
        "it fits",
    ):  # fmt: skip
        assert part in shown, part
    assert len(page.having("input", type="radio")) == 2
    assert "image.load()" in page.codes


def test_a_page_without_functions_has_none_of_it(run: Run, report: Report) -> None:
    bare = replace(report.loaders[0], code=None, transforms=(), storage=None)
    page = Page(render_html(replace(report, loaders=(bare,)), run))
    assert not page.having("fieldset") and not page.having("ul", **{"class": "legend"})
    assert "Inside fetch" not in page.text and "What is read" not in page.text
    reason = Page(render_html(replace(report, loaders=(replace(bare, code=NO_CODE),)), run))
    assert "functions: py-spy is not installed: pip install py-spy" in reason.text
    assert "Inside fetch" not in reason.text


def test_the_flame_graph_is_one_tree_a_stage() -> None:
    figure = flame_figure("x", CODE, Room())
    assert figure is not None and figure.switch == ("fetch", "collate")
    fetch = figure.data[0]
    assert [trace["visible"] for trace in figure.data] == [True, False]
    assert fetch["labels"] == [
        "fetch",
        "Patches.__getitem__",
        "ImageFile.load",
        "inflate",
        "Image.open",
        "normalise",
    ]
    assert fetch["parents"] == ["", "r", "0", "1", "0", "0"]
    assert fetch["values"] == [1204, 1180, 855, 140, 72, 110]
    assert [row[3] for row in fetch["customdata"]] == [
        "stage",
        "yours",
        "library",
        "compiled",
        "library",
        "yours",
    ]
    assert fetch["marker"]["pattern"]["shape"] == ("", "/", "", ".", "", "/")
    assert fetch["customdata"][2][:3] == ["ImageFile.py:425", "71 %", "855"]


def node(parent: int, samples: int) -> FlameNode:
    return FlameNode(f"f{samples}", None, None, False, False, parent, samples)


@pytest.mark.parametrize(
    ("nodes", "limit", "expected"),
    [
        ([(-1, 10), (0, 6), (0, 4), (1, 5)], 9, [(-1, 10), (0, 6), (0, 4), (1, 5)]),
        ([(-1, 10), (0, 6), (0, 4), (1, 5)], 2, [(-1, 10), (0, 6)]),  # the least seen goes first
        ([(-1, 10), (0, 1), (0, 4), (2, 3)], 3, [(-1, 10), (0, 4), (1, 3)]),  # renumbered
        ([(-1, 2), (0, 6), (0, 4)], 9, [(-1, 10), (0, 6), (0, 4)]),  # never less than what is below
        ([(5, 10), (1, 3), (-2, 3), (-1, 0), (3, 9), (-1, 7)], 9, [(-1, 7)]),  # senseless parents
        ([(-1, 5)], 0, []),
    ],
)
def test_what_is_kept_of_a_flame_graph(
    nodes: list[tuple[int, int]], limit: int, expected: list[tuple[int, int]]
) -> None:
    assert [(n.parent, n.samples) for n in kept([node(*each) for each in nodes], limit)] == expected


def test_flame_graphs_of_many_loaders_stay_within_the_size(run: Run, report: Report) -> None:
    stage = replace(CODE.stages["fetch"], flame=tuple(
        FlameNode("some_function_name" * 4, f"/a/long/path/{n}.py" * 3, n, n % 2 == 0, False, n - 1, 2_000 - n)
        for n in range(600)
    ))  # fmt: skip
    code = replace(
        CODE, stages=dict.fromkeys(("fetch", "collate", "pack", "pin", "wait", "compute"), stage)
    )
    loaders = tuple(replace(report.loaders[0], index=n, code=code) for n in range(16))
    columns = tuple(replace(run.loaders[0], index=n) for n in range(16))
    text = render_html(replace(report, loaders=loaders), replace(run, processes=(
        replace(run.processes[0], loaders=columns),)))  # fmt: skip
    assert len(text.encode()) <= MAX_BYTES
    assert text.count('id="loader0-flame"') == 1 and 'id="loader15-flame"' not in text


def test_distributions_add_up(run: Run, report: Report) -> None:
    (figure,) = (
        f
        for f in loader_figures("x", report.loaders[0], run.loaders[0])
        if f.id == "x-distributions"
    )
    for trace in figure.data:
        assert sum(trace["y"]) == pytest.approx(100, abs=0.1)
    assert [trace["name"] for trace in figure.data] == ["wait", "fetch", "collate", "compute"]


def test_markup_in_plot_texts_is_literal() -> None:
    assert plain("<b>a&b</b>\x1b") == "<b>a&b</b>\N{REPLACEMENT CHARACTER}"


def empty(builder: RunBuilder) -> None:
    builder.process()


def one_batch(builder: RunBuilder) -> None:
    rows = loop(1)
    builder.process().loader(rows, epochs=[epoch_row(rows)], kind="iterable", config={})


def damaged(builder: RunBuilder) -> None:
    rows = loop(60, wait_ms=5, fetch_ns=4_000_000)
    rows[3].update(t_ns=2**62, wait_ns=2**62)
    rows[4].update(fetch_ns=2**62, t_fetch_ns=5, worker=3, queued_ns=2**61)
    builder.process().loader(rows, epochs=[epoch_row(rows)])
    builder.system(
        machine=[{"t_ns": n, "disk_read_bytes": 2**62 - n} for n in (5, 5, 2**62)],
        process=[{"t_ns": 1}],
    )


@pytest.mark.parametrize("make", [empty, one_batch, damaged], ids=lambda make: make.__name__)
def test_little_or_senseless_data(tmp_path: Path, make: Any) -> None:
    builder = RunBuilder(tmp_path)
    make(builder)
    run = open_run(builder.path)
    page = Page(render_html(build_report(run, advice=False), run))
    assert "What recording cost" in page.text
    for figure in json.loads(page.scripts[0]).values():
        assert all(len(trace.get("x", ())) == len(trace.get("y", ())) for trace in figure["data"])


def test_a_report_without_its_columns(run: Run, report: Report) -> None:
    """Read from JSON, with another run at hand: tables, and the plot that needs no columns."""
    other = replace(report.loaders[0], pid=1, code=None)
    page = Page(render_html(replace(report, loaders=(other,)), replace(run, systems=())))
    assert [found["id"] for found in page.having("div", **{"class": "plot"})] == ["loader0-stages"]


@pytest.fixture
def without() -> Iterator[Any]:
    """Makes a package impossible to import."""
    hidden: dict[str, Any] = {}

    def hide(*names: str) -> None:
        for name in [each for each in sys.modules if each.split(".")[0] in names]:
            hidden[name] = sys.modules.pop(name)
        for name in names:
            hidden.setdefault(name, None)
            sys.modules[name] = None  # type: ignore[assignment]

    yield hide
    for name, module in hidden.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


@pytest.mark.parametrize("package", ["jinja2"])
def test_a_missing_package_is_named_with_its_mend(
    run: Run, report: Report, without: Any, package: str
) -> None:
    without(package)
    with pytest.raises(UsageError, match=rf"needs {package}.*pip install 'loaderscope\[html\]'"):
        render_html(report, run)
