"""The HTML report in Chromium: plots are drawn, nothing is fetched, axe-core finds no fault."""

import importlib.util
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from loaderscope.reports.compare.compare import compare
from loaderscope.reports.formats import render_comparison
from loaderscope.reports.html.html_report import render_html
from report_samples import EVIL_CODE, advice, full_report, full_run, hostile_report

playwright = pytest.importorskip("playwright.sync_api")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
AXE = importlib.util.find_spec("axe_playwright_python")

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine (apt-get install chromium)"
)

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 360, "height": 740}, "device_scale_factor": 2}
PHONE |= {"is_mobile": True, "has_touch": True}
DARK = {"color_scheme": "dark"}
CONTEXTS = {"desktop": DESKTOP, "phone": PHONE, "dark": DESKTOP | DARK, "dark-phone": PHONE | DARK}
OPENED = [*(f"report {how}" for how in CONTEXTS), "hostile phone"]
OPENED += ["compare desktop", "compare dark-phone"]


@dataclass
class Seen:
    """An open page, and what went wrong or out while it was."""

    page: Any
    told: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def until(page: Any, condition: str, seconds: float = 60) -> None:
    """Waits for a condition. (Playwright's own waiting evaluates text, which the page forbids.)"""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, condition
        page.wait_for_timeout(50)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # Inside containers Chromium's own sandbox needs rights that root in there has not.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=options)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report, one full of hostile texts, and a comparison, as files."""
    folder = tmp_path_factory.mktemp("pages")
    run = full_run(folder, batches=260)
    other = full_run(folder, "other", batches=100, fetch_ms=90)
    report = full_report(run)
    texts = {
        "report": render_html(report, run),
        "hostile": render_html(hostile_report(report), run),
        "compare": render_comparison("html", compare(report, run, full_report(other), other)),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.fixture(scope="module")
def visit(browser: Any, pages: dict[str, Path]) -> Iterator[Any]:
    """Opens a page in a context of CONTEXTS, and waits until its plots are drawn."""
    contexts = []

    def open_(name: str, how: str = "desktop", **options: Any) -> Seen:
        context = browser.new_context(**CONTEXTS[how], offline=True, **options)
        contexts.append(context)
        seen = Seen(context.new_page())
        seen.page.on("console", lambda message: seen.told.append(f"{message.type}: {message.text}"))
        seen.page.on("pageerror", lambda error: seen.told.append(str(error)))
        seen.page.on("dialog", lambda each: (seen.told.append(each.message), each.dismiss()))
        seen.page.on("request", lambda request: seen.requests.append(request.url))
        seen.page.goto(pages[name].as_uri(), timeout=60_000)
        seen.page.wait_for_selector("html[data-ready=yes]", timeout=60_000)
        return seen

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture(scope="module", params=OPENED)
def opened(request: pytest.FixtureRequest, visit: Any, pages: dict[str, Path]) -> tuple[Seen, str]:
    """Each page in each context, opened once and only looked at."""
    name, how = request.param.split()
    return visit(name, how), pages[name].as_uri()


def test_it_opens_offline_without_a_word(opened: tuple[Seen, str]) -> None:
    seen, uri = opened
    assert (seen.told, seen.requests) == ([], [uri])
    width, room = seen.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= room, "the page scrolls sideways"
    for table in seen.page.locator("table:has-text('of step')").all():
        box = table.bounding_box()
        assert box["x"] + box["width"] <= room, "the stages do not fit"


def test_every_plot_is_drawn(opened: tuple[Seen, str]) -> None:
    seen, uri = opened
    drawn = seen.page.evaluate(
        "[...document.querySelectorAll('.plot')].map(place => [place.id,"
        " place.querySelectorAll('.trace path, .slice rect').length, "
        "place.getBoundingClientRect().width])"
    )
    assert len(drawn) == (0 if "compare" in uri else 8)
    for name, paths, width in drawn:
        assert paths > (100 if "timeline" in name else 0), name
        assert width <= seen.page.viewport_size["width"]


@pytest.mark.skipif(AXE is None, reason="axe-core is not installed (axe-playwright-python)")
def test_axe_finds_no_fault(opened: tuple[Seen, str]) -> None:
    assert AXE is not None and AXE.origin is not None
    page = opened[0].page
    page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    page.evaluate((Path(AXE.origin).parent / "axe.min.js").read_text(encoding="utf-8"))
    # What is drawn inside an SVG is a picture to axe; its thousands of shapes would take it minutes.
    found = page.evaluate("axe.run({ exclude: [['.main-svg']] })")
    assert len(found["passes"]) > 20
    assert [(each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []


RANGE = "document.getElementById('loader0-timeline').layout.xaxis.range"


def span(page: Any) -> Any:
    """From when to when the time line shows."""
    return page.evaluate(RANGE)


def test_the_time_line_zooms_and_moves_by_buttons(visit: Any) -> None:
    page = visit("report").page
    before = span(page)
    page.locator("#loader0-timeline").scroll_into_view_if_needed()
    box = page.locator("#loader0-timeline .nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 20, steps=5)
    page.mouse.up()
    until(page, f"{RANGE}[1] - {RANGE}[0] < {before[1] - before[0]} * 0.5")
    after = span(page)
    assert after[1] - after[0] == pytest.approx((before[1] - before[0]) * 0.2, rel=0.2)
    tools = page.locator("#loader0-timeline .tools button")
    assert tools.all_text_contents() == ["Earlier", "Later", "Zoom in", "Zoom out", "All"]
    tools.nth(0).click()
    earlier = span(page)
    assert earlier[0] < after[0] and earlier[1] < after[1]
    tools.nth(4).click()
    assert span(page)[0] < 1e-3


BOXES = "[...document.querySelectorAll('#loader0-flame g.slice')].map(each => each.textContent)"


def test_the_flame_graph_zooms_by_a_click_and_back(visit: Any) -> None:
    page = visit("report").page
    page.locator("#loader0-flame").scroll_into_view_if_needed()
    whole = page.evaluate(BOXES)
    assert whole[:3] == ["fetch", "Patches.__getitem__", "ImageFile.load"] and len(whole) == 6
    ground = "getComputedStyle(document.querySelector('.slice.yours .ground')).fill"
    assert page.evaluate(ground) == "rgb(232, 171, 74)"
    page.locator("#loader0-flame g.slice", has_text="ImageFile.load").click()
    until(page, f"({BOXES})[0] === 'ImageFile.load'")
    assert page.evaluate(BOXES) == ["ImageFile.load", "inflate"]
    page.locator("#loader0-flame g.pathbar", has_text="fetch").click()
    until(page, f"({BOXES})[0] === 'fetch'")


def test_the_stage_of_the_flame_graph_is_chosen_by_keyboard(visit: Any) -> None:
    page = visit("report").page
    page.locator(".switch input").first.focus()
    page.keyboard.press("ArrowRight")
    until(page, f"({BOXES})[0] === 'collate'")
    said = page.locator("#said").text_content()
    assert said == "Flame graph: what called what, ImageNet: collate"


@pytest.mark.parametrize("name", ["report", "hostile"])
def test_a_box_says_what_it_is(visit: Any, name: str) -> None:
    page = visit(name).page
    page.locator("#loader0-flame").scroll_into_view_if_needed()
    page.locator("#loader0-flame g.slice").nth(1).hover()
    said = "document.querySelector('#loader0-flame .hoverlayer text')?.textContent"
    until(page, f"Boolean({said})")
    words = page.evaluate(said)
    assert words.endswith("98 % of the stage, 1,180 samplesyours")
    report = "Patches.__getitem__patches.py:41"
    assert words.startswith(report if name == "report" else "<script>alert('owned')</script>")


def test_a_function_is_found_in_the_flame_graph(visit: Any) -> None:
    page = visit("report").page
    page.locator("#loader0-flame .find").fill("INFLATE")
    like = "#loader0-flame g.slice:not(.unlike)"
    assert page.locator(like).all_text_contents() == ["inflate"]
    page.locator("#loader0-flame .find").fill("")
    assert page.locator(like).count() == 6


@pytest.mark.parametrize("name", ["report", "hostile"])
def test_the_copy_button_copies_the_code(visit: Any, name: str) -> None:
    page = visit(name, permissions=["clipboard-read", "clipboard-write"]).page
    page.locator("button.copy").first.click()
    until(page, "document.querySelector('.copy').textContent === 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == (EVIL_CODE if name == "hostile" else advice().change.code)
    assert page.locator("#said").text_content() == "The code was copied."


def test_hostile_texts_make_no_elements(visit: Any) -> None:
    page = visit("hostile").page
    assert page.evaluate("document.scripts.length") == 3
    bold = page.evaluate("[...document.querySelectorAll('b')].map(b => b.textContent)")
    assert not any("&amp;" in text for text in bold)
    assert "<script>alert('owned')</script>" in page.locator("h2").first.text_content()


def test_a_script_that_slips_in_is_not_run(visit: Any) -> None:
    seen = visit("report")
    seen.page.evaluate(
        "() => { const made = document.createElement('script');"
        " made.textContent = 'window.owned = 1'; document.body.append(made) }"
    )
    assert seen.page.evaluate("window.owned") is None
    assert any("Content Security Policy" in line for line in seen.told)


def test_light_and_dark_follow_the_system(visit: Any) -> None:
    page = visit("report").page
    colors = (
        "[getComputedStyle(document.body).backgroundColor,"
        " getComputedStyle(document.querySelector('#loader0-timeline .grid text')).fill]"
    )
    light = page.evaluate(colors)
    page.emulate_media(color_scheme="dark")
    until(page, f"{colors}[1] !== '{light[1]}'")
    dark = page.evaluate(colors)
    assert light == ["rgb(255, 255, 255)", "rgb(87, 96, 106)"]
    assert dark == ["rgb(20, 23, 27)", "rgb(163, 173, 184)"]


def test_on_paper_everything_is_open_and_light(visit: Any) -> None:
    page = visit("report", "dark").page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("[...document.querySelectorAll('details')].every(d => d.open)")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.copy')).display") == "none"
    assert page.locator("#loader0-timeline .main-svg").get_attribute("width") == "680"
    assert len(page.pdf()) > 50_000
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not page.evaluate("[...document.querySelectorAll('details')].some(d => d.open)")
