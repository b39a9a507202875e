"""What a notebook shows of a report: whole, escaped, without scripts, its styles for itself
alone."""

from __future__ import annotations

import builtins
import re
from dataclasses import replace
from typing import Any

import pytest

from html_page import Page
from loaderscope.advisors.schema.figures import times
from loaderscope.advisors.schema.report_model import Report
from loaderscope.reports.html.html_report import CLASS, render_first_screen
from report_samples import EVIL, hostile_report


def test_verdict_figures_and_advice(report: Report) -> None:
    text = Page(render_first_screen(report)).text
    loader = report.loaders[0]
    for said in (loader.verdict, loader.basis.sentence, times(loader.headroom)):
        assert said in text
    assert all(each.title in text and each.why in text for each in loader.recommendations)
    assert loader.recommendations[0].change.code.strip() in text
    assert "no loader was recorded" in render_first_screen(replace(report, loaders=()))


def test_nothing_is_fetched_or_run(report: Report) -> None:
    page = Page(render_first_screen(hostile_report(report)))
    allowed = "div style section h2 h3 h4 span p dl dt dd b ol li strong details summary pre code"
    assert {tag for tag, _ in page.tags} <= set(allowed.split())
    names = {name for _, attributes in page.tags for name in attributes}
    assert not [name for name in names if name.startswith("on") or name == "src"]
    assert EVIL not in render_first_screen(hostile_report(report))


def test_styles_reach_nothing_else(report: Report) -> None:
    html = render_first_screen(report)
    assert html.count("<style>") == 1
    style = html.partition("<style>")[2].partition("</style>")[0]
    assert style.startswith(f".{CLASS} {{\n") and style.count("{") == style.count("}")
    depth = 0
    for number, line in enumerate(style.strip().splitlines()):
        assert depth > 0 or number == 0, f"outside of the class: {line}"
        depth += line.count("{") - line.count("}")
    assert not re.search(r"(?m)^\s*(:root|body|@page)", style)


def test_a_report_shows_itself(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    assert report._repr_html_() == render_first_screen(report)
    assert str(report).startswith("─") and "What recording cost" in str(report)
    told: list[str] = []
    report._repr_pretty_(type("Printer", (), {"text": staticmethod(told.append)}), False)
    assert told == [str(report)]

    imported = builtins.__import__

    def without_jinja(name: str, *rest: Any, **more: Any) -> Any:
        if name == "jinja2":
            raise ImportError(name)
        return imported(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without_jinja)
    assert report._repr_html_() is None, "thus the text"
