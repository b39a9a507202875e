"""What a coding assistant, or whoever writes a change, needs of a report: what costs, with its
source, what batches are, what must stay, and the command that verifies the change."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

from ...advisors.schema.report_model import Finding, LoaderReport, Report
from ...advisors.stacks.source_lines import SourceLines
from ...profiler.base.metadata import clean
from ...profiler.record.inspect.uses import place_of
from ...profiler.store.inspection import Part as Inspected
from ...profiler.store.run.run import LoaderRun, Run
from ..words.advice_words import plan_rows
from ..words.inside import finding_text
from ..words.loaders import recorded, title_of
from ..words.sentences import config_line, headroom_sentence, what_limits
from ..words.units import count
from .advice import clean_code
from .blocks import (
    Block,
    Bullets,
    Code,
    Part,
    Section,
    Sentence,
    bullets,
    section,
    sentences,
    table,
)

MOST_FINDINGS, MOST_ADVICE, MOST_LEAVES, MOST_ATTRIBUTES = 3, 3, 12, 8
MOST_SOURCE, MOST_CODE = 45, 24  # lines
KEPT = (
    "Batches: the same values, in the same order, of the same dtypes and shapes, in the same "
    "containers; as many an epoch.",
    "Random numbers: drawn from the same streams, in the same order, as often.",
    "Exceptions: the same errors for the same samples.",
    "Workers: the data set and the collate function can be pickled; a handle opened in `__init__` "
    "is not shared between processes.",
)


def assistant_sections(report: Report, run: Run | None) -> Iterator[Section]:
    """Of the loader whose loading costs most."""
    pairs = sorted(recorded(report, run), key=lambda pair: -pair[0].lost_s)
    if not pairs:
        yield section([Sentence("Nothing to change: no loader was recorded.")])
        return
    loader, found = pairs[0]
    lead = (what_limits(loader), headroom_sentence(loader), f"Settings: {config_line(loader)}.")
    yield Section(title_of(loader, len(pairs) > 1), (Part(sentences(lead)),), "", loader.verdict)
    yield section(_verify(report), "Verify a change", "verify")
    yield section([Bullets(KEPT)], "What must stay the same", "kept")
    yield Section("What costs", tuple(_costs(loader, found, run)), "costs")
    if found:
        yield Section("The data", tuple(_data(found)), "data")
    yield Section("Known remedies", tuple(_advice(loader)), "advice")


def _verify(report: Report) -> Iterator[Block]:
    script = [clean(each, 200) for each in report.run.argv] or ["SCRIPT"]
    yield Code(f"loaderscope try --patch change.diff --yes --format json {shlex.join(script)}")
    yield Sentence(
        "change.diff is a unified diff that is not applied; for an edited working tree, write "
        "--against HEAD in its place. Exit code 0: same batches and not slower; 1: they differ or "
        "it is slower; 2: it could not be tried, and why. Only exit code 0 with factor.low above "
        "1.03 is a gain."
    )


def _costs(loader: LoaderReport, found: LoaderRun | None, run: Run | None) -> Iterator[Part]:
    findings = loader.findings[:MOST_FINDINGS]
    yield Part(bullets([finding_text(each) for each in findings]))
    shown: dict[tuple[str, int], str] = {}
    for process in run.processes if run else ():
        if found and any(each is found for each in process.loaders):
            sources = SourceLines(process, found)
            for file, line in filter(None, (_place(loader, each) for each in findings)):
                around = sources.function(file, line)
                if around:
                    shown.setdefault((file, around[0]), _excerpt(file, line, *around))
    yield from (Part([Code(each)]) for each in shown.values())


def _place(loader: LoaderReport, finding: Finding) -> tuple[str, int] | None:
    """The file and line of a finding."""
    stage = loader.code.stages.get(finding.stage) if loader.code else None
    for spot in stage.lines if stage else ():
        if spot.file and spot.line and place_of(spot.file, spot.line) == finding.place:
            return spot.file, spot.line
    return None


def _excerpt(file: str, line: int, first: int, lines: tuple[str, ...]) -> str:
    """The function, or what is around the line of a long one, which is marked."""
    begin = max(0, min(line - first - MOST_SOURCE // 2, len(lines) - MOST_SOURCE))
    text = textwrap.dedent("\n".join(lines)).split("\n")[begin : begin + MOST_SOURCE]
    at = line - first - begin
    if 0 <= at < len(text):
        text[at] += "  # <- here"
    return "\n".join([f"# {clean(Path(file), 300)}, line {first + begin}", *map(_shown, text)])


def _shown(line: str) -> str:
    return clean(line.expandtabs(4), 200).rstrip()


def _data(found: LoaderRun) -> Iterator[Part]:
    seen = found.inspection
    yield Part(sentences([_described(part) for part in seen.parts[:MOST_FINDINGS]]))
    rows = [
        (f"batch{clean(leaf.path, 60)}", clean(leaf.dtype or leaf.kind, 40), _shape(leaf.shape))
        for leaf in seen.leaves[:MOST_LEAVES]
    ]
    heads = ("part of a batch", "dtype", "shape")
    yield Part(table(heads, rows))


def _described(part: Inspected) -> str:
    """'Data set `Points`, 60,000 samples; it holds `points` (ndarray float32 60000 × 3)'."""
    said = f"Data set {clean(part.name, 60)}"
    if part.length is not None:
        said += f", {count(part.length)} samples"
    held = [
        " ".join(filter(None, (f"`{clean(a.name, 40)}`", a.kind, a.dtype, _shape(a.shape))))
        for a in part.attributes[:MOST_ATTRIBUTES]
    ]
    return said + (f"; it holds {', '.join(held)}" if held else "") + "."


def _shape(shape: tuple[int, ...] | None) -> str:
    return " × ".join(map(str, shape or ()))


def _advice(loader: LoaderReport) -> Iterator[Part]:
    rows = [row for row in plan_rows(loader) if row.left_out is None][:MOST_ADVICE]
    for row in rows:
        code = clean_code(row.advice.change.code).split("\n")
        if len(code) > MOST_CODE:
            code[MOST_CODE:] = [f"# … all of it: loaderscope report --advice {row.number}"]
        said = f"{row.number}. {row.advice.title}" + (f" — {row.effect}" if row.effect else "")
        yield Part([Sentence(said), *([Code("\n".join(code))] if any(code) else [])])
    if not rows:
        yield Part([Sentence("None that is certain to help.")])
