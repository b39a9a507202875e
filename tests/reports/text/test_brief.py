"""The report in ten seconds: how many lines it may take, and what is left to `--full`."""

import re
from dataclasses import replace

import pytest
from rich.cells import cell_len

from loaderscope.advisors.schema.report_model import Change, LeftOut, Plan, PlanStep, Range, Report
from loaderscope.profiler.base.errors import UsageError
from loaderscope.reports.document.report import MANY
from loaderscope.reports.text.text import (
    AFTER_RUN,
    MORE_LINES,
    MOST_LINES,
    render_advice,
    render_brief,
)
from report_samples import advice, full_report, full_run, hostile_report
from screen_text import check_golden

TABLE_LINES = 4  # of loaders that are alike


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A loader with a plan: two steps about speed, one left out, and one about safety."""
    found = full_report(full_run(tmp_path_factory.mktemp("brief")))
    safe = next(each for each in found.loaders[0].recommendations if each.kind == "safety")
    steps = (
        safe,
        replace(advice(), effort="one argument"),
        advice("Fetch the whole batch at once", rule="batched-getitems", effort="a few lines"),
        advice("Store the arrays in one file that is mapped into memory", effort="a conversion"),
    )
    due = PlanStep(0, Range(1.0, 1.0, 1.0), None)
    speed = PlanStep(1, Range(1.2, 1.35, 1.41), 0.6), PlanStep(2, Range(1.3, 1.42, 1.44), 0.85)
    left_out = LeftOut(3, 2, False, "the loop then computes 85 % of the time")
    plan = Plan((due, *speed), (left_out,), "the loop computes 85 % of the time: stop there.")
    return replace(found, loaders=(replace(found.loaders[0], recommendations=steps, plan=plan),))


def with_code(report: Report, lines: int) -> Report:
    (loader,) = report.loaders
    code = "\n".join(f"line_{n} = {n}" for n in range(lines))
    first, *others = loader.recommendations[1:]
    steps = tuple(replace(s, advice=max(0, s.advice - 1)) for s in loader.plan.steps[1:])
    told = (replace(first, change=Change({}, code)), *others)
    loader = replace(loader, recommendations=told, plan=Plan(steps, (), None))
    return replace(report, loaders=(loader,))


@pytest.mark.parametrize("most", [MOST_LINES, AFTER_RUN])
@pytest.mark.parametrize("loaders", [1, 2, 5, 40])
@pytest.mark.parametrize("code", [1, 8, 16, 80])
def test_it_fits(report: Report, most: int, loaders: int, code: int) -> None:
    notes = ("the run is still going on: these are the figures so far",) * 5
    several = replace(with_code(report, code), notes=notes)
    several = replace(several, loaders=several.loaders * loaders)
    lines = render_brief(several, 80, most=most).splitlines()
    # Of many that are alike, one is told below the table.
    assert len(lines) <= most + (MORE_LINES * (loaders - 1) if loaders < MANY else TABLE_LINES)
    assert max(map(cell_len, lines)) <= 80


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("hostile", [False, True])
def test_nothing_is_wider_or_obeyed_and_colours_add_nothing_but_colours(report, width, hostile):
    shown = hostile_report(report) if hostile else report
    lines = render_brief(shown, width).splitlines()
    code = "print('|')", "script", "    "
    for line in lines:
        assert cell_len(line) <= width or any(each in line for each in code)
        assert line.isprintable()
    colored = render_brief(shown, width, color=True)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", colored).splitlines()
    assert "\x1b[" in colored and [line.rstrip() for line in plain] == lines


def test_code_is_shown_in_full_or_named(report: Report) -> None:
    short, longer, long = (render_brief(with_code(report, lines)) for lines in (8, 19, 60))
    assert all(f"line_{n} = {n}" in short for n in range(8))
    # The table of stages goes before the code does, and the code before the reason; empty lines in
    # it are made one.
    assert all(f"line_{n} = {n}" in longer for n in range(19))
    assert "Fetching takes 160 ms a batch" in longer and "Fetching takes 160 ms a batch" in long
    assert "Where each batch" in short and "Where each batch" not in longer
    (loader,) = with_code(report, 1).loaders
    spaced = replace(loader.recommendations[0], change=Change({}, "one = 1\n\n\n\ntwo = 2"))
    loader = replace(loader, recommendations=(spaced,), plan=None)
    assert "one = 1\n\n     two = 2" in render_brief(replace(report, loaders=(loader,)))
    assert "line_" not in long and "Its code, 60 lines: loaderscope report --advice 1" in long


def test_one_piece_of_advice_in_full(report: Report) -> None:
    text = render_advice(with_code(report, 60), 1)
    assert text.startswith("ImageNet\n") and all(f"   line_{n} = {n}" in text for n in range(60))
    assert "effective CPUs 16 cores" in text and "But: Each worker holds 120 MB." in text
    with pytest.raises(UsageError, match="there is no advice 9: it has 4"):
        render_advice(report, 9)


def test_the_loader_that_costs_most_comes_first(report: Report) -> None:
    (loader,) = report.loaders
    kinds = (("validation", 1.01), ("training", 3.0))
    cheap, dear = (replace(loader, name=name, headroom=most) for name, most in kinds)
    both = replace(report, loaders=(cheap, dear))
    text = render_brief(both)
    assert text.index("training") < text.index("validation") and both.plan == loader.plan


def test_with_a_plan_and_of_before_there_were_plans(report: Report) -> None:
    check_golden("plan.brief", render_brief(report), "reports")
    # Advice is told in its order, nothing of what it comes to together.
    old = replace(report.loaders[0], plan=None)
    text = render_brief(replace(report, loaders=(old,)))
    assert "together" not in text and "1. safety" in text and "4. Store the arrays" in text
