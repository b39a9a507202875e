"""What goes on inside fetching: the hottest functions, the transforms, and what is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...advisors.schema.report_model import (
    Code,
    CodeStage,
    LoaderReport,
    Report,
    StorageSummary,
)
from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ..words.inside import (
    HotRow,
    basis_text,
    code_stages,
    hot_rows,
    hottest,
    own_lines,
    transform_rows,
    why_no_stacks,
)
from ..words.ranks import title_of
from ..words.storage_words import storage_rows, storage_tables
from ..words.units import percent
from .blocks import (
    Bar,
    Block,
    Bullets,
    Column,
    Folded,
    Pairs,
    Part,
    Plots,
    Section,
    Sentence,
    Styled,
    Table,
    first_rows,
    sentences,
)

MAX_LOADERS = 32

# In a terminal a report names what matters; `loaderscope stacks` has more.
LINES, OWN_LINES, TRANSFORMS = 5, 2, 8
# Functions and own lines a stage elsewhere, and the least share of each.
ALL_FUNCTIONS, ALL_LINES, LIBRARIES = 10, 6, 5
LEAST_SHARE, LEAST_LINE_SHARE = 0.005, 0.01
# The report looks into collating where it is at least so large a part of making a batch.
COLLATE_FROM = 0.25
WIDE_FROM = 100
_TEXTS = ("suffix", "mounted at", "type", "kind", "file")
HOT_COLUMNS = (
    Column("share", "number"),
    Column("itself", "number", WIDE_FROM),
    Column("", "bar", WIDE_FROM),
    Column("function, or your line"),
    Column("where"),
    Column("called from", "dim"),
)


def inside_parts(loader: LoaderReport, key: str, rich: bool) -> Iterator[Part]:
    """Each stage that was looked into, then transforms and storage. `rich`: all that is known."""
    code = loader.code
    if code is not None:
        stages = code_stages(code)
        for name, stage in stages if rich else _worth_showing(loader, stages):
            plots = [Plots(f"{key}-flame")] if name == stages[0][0] else []
            blocks = stage_blocks(name, code, stage) if rich else _few(name, code, stage)
            yield Part(f"Inside {clean(name, 40)}", [*plots, *blocks])
    if loader.transforms:
        rows = transform_rows(loader.transforms)
        heads = (
            Column("transform"),
            Column("a call", "number"),
            Column("of fetch", "number"),
            *((Column("calls", "number"), Column("in")) if rich else ()),
        )
        few = [row[: len(heads)] for row in rows]
        yield Part("The transforms", [Table(heads, few if rich else first_rows(few, TRANSFORMS))])
    pairs = storage_rows(loader.storage)
    if loader.storage is not None and pairs:
        more = _storage_tables(loader.storage) if rich else ()
        yield Part("What is read", [Pairs(pairs), *more])


def _worth_showing(
    loader: LoaderReport, stages: Sequence[tuple[str, CodeStage]]
) -> Iterator[tuple[str, CodeStage]]:
    """Fetch, and collate where it matters; another stage only if neither was seen."""
    seen = {name: stage for name, stage in stages if any(hottest(stage, LINES, OWN_LINES))}
    fetch, collate = (
        each.total_s or 0.0 if (each := loader.stages.get(name)) is not None else 0.0
        for name in ("fetch", "collate")
    )
    wanted = ("fetch", "collate") if collate >= COLLATE_FROM * (fetch + collate) else ("fetch",)
    found = [(name, seen[name]) for name in wanted if name in seen]
    yield from found or list(seen.items())[:1]


def _few(name: str, code: Code, stage: CodeStage) -> list[Block]:
    functions, own = hottest(stage, LINES, OWN_LINES)
    return [Sentence(basis_text(code, stage), "dim"), hot_table(name, [*functions, *own])]


def stage_blocks(name: str, code: Code, stage: CodeStage) -> list[Block]:
    """All functions of a stage that took more than a little."""
    functions = hot_rows(stage, LEAST_SHARE)[:ALL_FUNCTIONS]
    lines = [row for row in own_lines(stage, functions) if row.fraction >= LEAST_LINE_SHARE]
    rows = [*functions, *lines[:ALL_LINES]]
    libraries = sorted(stage.libraries.items(), key=lambda item: -item[1])[:LIBRARIES]
    shares = ", ".join(
        f"{clean(library, 40) or 'your own code'} {percent(share)}"
        for library, share in libraries
        if share > 0
    )
    return [
        Sentence(basis_text(code, stage), "dim"),
        hot_table(name, rows) if rows else Sentence("no frame was seen"),
        *([Sentence(f"innermost: {shares}", "dim")] if shares else []),
    ]


def hot_table(name: str, rows: Sequence[HotRow]) -> Table:
    """Share with its range, function, place, and the user's line that led there."""
    cells = [
        (
            row.share,
            row.itself,
            Bar(row.fraction),
            Styled(row.code, "code") if row.code else Styled(row.name, "strong"),
            row.where,
            Styled(", ".join(filter(None, ("yours", row.caller))), "own")
            if row.kind == "yours"
            else row.caller,
        )
        for row in rows
    ]
    return Table(HOT_COLUMNS, cells, f"The hottest functions and lines of {name}")


def _storage_tables(storage: StorageSummary) -> Iterator[Block]:
    for title, heads, rows in storage_tables(storage):
        if rows:
            columns = [Column(head, "text" if head in _TEXTS else "number") for head in heads]
            yield Folded(title, [Table(columns, rows, title)])


def stack_sections(report: Report, run: Run) -> list[Section]:
    """What `loaderscope stacks` prints: the stages of every loader of which there are samples.
    Raises UsageError, with the reason, if there are none."""
    several = len(report.loaders) > 1
    sections = [
        Section(title_of(loader, several), list(_stack_parts(loader.code)))
        for loader in report.loaders
        if loader.code is not None and code_stages(loader.code)
    ]
    if not sections:
        raise UsageError(f"this run holds no stacks: {why_no_stacks(report, run)}")
    return sections[:MAX_LOADERS]


def _stack_parts(code: Code) -> Iterator[Part]:
    shares = "shares of a stage, with the range that holds them 19 times in 20"
    yield Part("", sentences([f"{basis_text(code)}; {shares}"], "dim"))
    for name, stage in code_stages(code):
        yield Part(clean(name, 40), stage_blocks(name, code, stage))
    yield Part("", [Bullets([code.reason])] if code.reason else [])
