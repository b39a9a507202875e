"""What goes on inside fetching: the hottest functions and what is read."""

from collections.abc import Iterator

from ...advisors.schema.report_model import (
    Code,
    CodeStage,
    HotSpot,
    LoaderReport,
    Report,
)
from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.record.inspect.uses import place_of
from ...profiler.store.run.run import Run
from ..words.inside import basis_text, code_stages, function_name, why_no_stacks
from ..words.loaders import title_of
from ..words.storage_words import storage_rows
from ..words.units import percent, span
from .blocks import (
    Bar,
    Block,
    Cell,
    Column,
    Pairs,
    Part,
    Plots,
    Section,
    Sentence,
    Styled,
    Table,
    bullets,
    sentences,
)

MAX_LOADERS, LIBRARIES, FUNCTIONS, LINES, MAX_ROWS = 32, 5, 10, 6, 100
# Shares of fewer samples say nothing: of 10, a half may be a fifth or four fifths.
LEAST_SAMPLES = 10
# Functions and lines below these shares are not listed.
LEAST_SHARE, LEAST_LINE_SHARE = 0.005, 0.01
WIDE_FROM = 100
HOT_COLUMNS = (
    Column("share", "number"),
    Column("itself", "number", WIDE_FROM),
    Column("", "bar", WIDE_FROM),
    Column("function, or your line"),
    Column("where"),
    Column("called from", "dim"),
)


def inside_parts(loader: LoaderReport, key: str) -> Iterator[Part]:
    """Each stage that was looked into, then storage."""
    code = loader.code
    for number, (name, stage) in enumerate(code_stages(code)):
        plots = [Plots(f"{key}-flame")] if not number else []
        if code:
            yield Part([*plots, *stage_blocks(name, code, stage)], f"Inside {name}")
    pairs = storage_rows(loader.storage)
    if pairs:
        yield Part([Pairs(pairs)], "What is read")


def stage_blocks(name: str, code: Code, stage: CodeStage) -> list[Block]:
    """All functions of a stage that took more than a little."""
    rows = [_hot_row(*each) for each in hottest(stage)]
    found = Table(HOT_COLUMNS, rows, f"The hottest functions and lines of {name}")
    libraries = sorted(stage.libraries.items(), key=lambda item: -item[1])[:LIBRARIES]
    shares = ", ".join(
        f"{library or 'your own code'} {percent(share)}"
        for library, share in libraries
        if share > 0
    )
    return [
        Sentence(basis_text(code, stage), "dim"),
        found if rows else Sentence("too few samples to name a function"),
        *sentences([shares and f"innermost: {shares}"], "dim"),
    ]


def hottest(stage: CodeStage) -> list[tuple[HotSpot, bool]]:
    """The functions in which most time was spent itself, then the user's own lines (True) of which
    no function says the same; none of too few samples."""
    if stage.samples < LEAST_SAMPLES:
        return []
    functions = [each for each in stage.hot if each.share >= LEAST_SHARE][:FUNCTIONS]
    said = {_place_and_share(each) for each in functions if each.own}
    lines = [
        each
        for each in stage.lines
        if each.total_share >= LEAST_LINE_SHARE and _place_and_share(each) not in said
    ]
    return [*((each, False) for each in functions), *((each, True) for each in lines[:LINES])]


def _place_and_share(spot: HotSpot) -> tuple[str, str]:
    """The share counts what was called, and has the range that holds it 19 times in 20."""
    place = place_of(spot.file, spot.line) if spot.file else ""
    return place, f"{percent(spot.total_share)} ({span(spot.low, spot.high)})"


def _hot_row(spot: HotSpot, line: bool) -> tuple[Cell, ...]:
    (place, share), text = _place_and_share(spot), clean((spot.text or "").strip(), 80)
    caller = clean(spot.called_from or "", 60)
    return (
        share,
        percent(spot.share),
        Bar(spot.total_share),
        Styled(text, "code") if line and text else Styled(function_name(spot), "strong"),
        place,
        Styled(", ".join(filter(None, ("yours", caller))), "own") if spot.own else caller,
    )


def stack_sections(report: Report, run: Run) -> list[Section]:
    """What `loaderscope stacks` prints: the stages of every loader of which there are samples.
    Raises UsageError, with the reason, if there are none."""
    several = len(report.loaders) > 1
    sections = [
        Section(title_of(loader, several), list(_stack_parts(loader.code)))
        for loader in report.loaders
        if loader.code and code_stages(loader.code)
    ]
    if not sections:
        raise UsageError(f"this run holds no stacks: {why_no_stacks(report, run)}")
    return sections[:MAX_LOADERS]


def _stack_parts(code: Code) -> Iterator[Part]:
    shares = "shares of a stage, with the range that holds them 19 times in 20"
    yield Part(sentences([f"{basis_text(code)}; {shares}"], "dim"))
    for name, stage in code_stages(code):
        yield Part(stage_blocks(name, code, stage), name)
    yield Part(bullets([code.reason] if code.reason else []))
