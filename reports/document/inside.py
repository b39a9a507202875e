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
    hottest,
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
    sentences,
)

MAX_LOADERS, LIBRARIES = 32, 5
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


def inside_parts(loader: LoaderReport, key: str) -> Iterator[Part]:
    """Each stage that was looked into, then transforms and storage."""
    code = loader.code
    for number, (name, stage) in enumerate(code_stages(code)):
        plots = [Plots(f"{key}-flame")] if not number else []
        if code is not None:
            yield Part(f"Inside {clean(name, 40)}", [*plots, *stage_blocks(name, code, stage)])
    if loader.transforms:
        heads = ("a call", "of fetch", "calls")
        numbers = (Column(head, "number") for head in heads)
        columns = (Column("transform"), *numbers, Column("in", "dim"))
        yield Part("The transforms", [Table(columns, transform_rows(loader.transforms))])
    pairs = storage_rows(loader.storage)
    if loader.storage is not None and pairs:
        yield Part("What is read", [Pairs(pairs), *_storage_tables(loader.storage)])


def stage_blocks(name: str, code: Code, stage: CodeStage) -> list[Block]:
    """All functions of a stage that took more than a little."""
    rows = hottest(stage)
    libraries = sorted(stage.libraries.items(), key=lambda item: -item[1])[:LIBRARIES]
    shares = ", ".join(
        f"{clean(library, 40) or 'your own code'} {percent(share)}"
        for library, share in libraries
        if share > 0
    )
    return [
        Sentence(basis_text(code, stage), "dim"),
        hot_table(name, rows) if rows else Sentence("too few samples to name a function"),
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
