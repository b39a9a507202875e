"""The report as Markdown that fits a GitHub issue or a CI comment: tables, fenced code, and no text
that is obeyed."""

from __future__ import annotations

from collections.abc import Iterator

from ...advisors.schema.report_model import LoaderReport, Report
from ...profiler.base.metadata import clean
from ..words.inside import basis_text, code_stages, hottest, inside_notes, transform_rows
from ..words.plan_words import PlanRow, plan_cells, plan_rows, plan_summary
from ..words.ranks import HEAD, rank_rows, rank_sentences
from ..words.rows import (
    AdviceRow,
    advice_row,
    capacity_rows,
    cause_rows,
    config_rows,
    run_rows,
    stage_groups,
    title_of,
)
from ..words.sentences import (
    headroom_sentence,
    nothing_to_change,
    overhead_sentence,
    throughput_line,
)
from ..words.storage_words import storage_rows
from ..words.system_words import system_rows
from ..words.tuned_words import tried_heading, tried_rows, tuned_lead
from .markup import ENTITIES, bullets, escaped, fenced, table

# GitHub refuses a comment of more than 65,536 characters; what is around this report needs room
# too.
MAX_BYTES = 60_000
SMALL = 1000
MAX_LOADERS = 32
MAX_STEPS = 12
MAX_HOT = 8  # functions and lines a stage
MAX_OWN = 3
TRIED = ("settings", "outcome", "measured and predicted", "why")


def render_markdown(report: Report, max_bytes: int = MAX_BYTES) -> str:
    """GitHub-flavoured Markdown of at most `max_bytes` UTF-8 bytes: what does not fit is left out,
    and it says so."""
    left_out = "\n> Some parts did not fit here: `loaderscope report --format html` has them all.\n"
    room = max_bytes - len(left_out.encode())
    parts = list(_parts(report))
    sizes = [len(part.encode("utf-8", "replace")) + 1 for part in parts]
    kept = set()
    for at in sorted(
        range(len(parts)), key=lambda at: (sizes[at] > SMALL, at)
    ):  # a long one never costs a short one
        if sizes[at] <= room:
            kept.add(at)
            room -= sizes[at]
    shown = "\n".join(part for at, part in enumerate(parts) if at in kept)
    return shown + ("" if len(kept) == len(parts) else left_out)


def _parts(report: Report) -> Iterator[str]:
    several = len(report.loaders) > 1
    shown = report.costliest[:MAX_LOADERS]
    for sentence in report.missing:
        yield f"> **{escaped(sentence)}**\n"
    for loader in shown:
        yield from _verdict(loader, several)
    if not shown:
        yield "**Nothing to report: no loader was recorded.**\n"
    for loader in shown:
        yield from _advice(loader, several)
    for loader in shown:
        yield from _figures(loader, several)
    if len(report.loaders) > MAX_LOADERS:
        yield (
            f"… and {len(report.loaders) - MAX_LOADERS} more loaders: `--format json` has them "
            "all.\n"
        )
    yield "### The machine\n\n" + table(("", ""), system_rows(report.system))
    yield "### What recording cost\n\n" + escaped(overhead_sentence(report.overhead)) + "\n"
    if report.notes:
        yield "### Notes\n\n" + bullets(report.notes)
    yield _folded("This run", table(("", ""), run_rows(report)))


def _verdict(loader: LoaderReport, several: bool) -> Iterator[str]:
    lines = [f"## {escaped(title_of(loader, several))}: {loader.verdict}\n"]
    if loader.tuning is not None:
        said, *more = map(escaped, tuned_lead(loader.tuning))
        lines += [f"**{said}**", *(f"\n{line}" for line in more), ""]
    lines.append(f"**{escaped(loader.basis.sentence)}**")
    if loader.verdict != "too-short":
        lines.append(escaped(headroom_sentence(loader)))
    lines += [f"\n{escaped(sentence)}" for sentence in rank_sentences(loader)]
    spread = rank_rows(loader)
    if spread:
        lines += ["", table(HEAD, spread, right=(1, 2, 3))]
    lines += ["", escaped(throughput_line(loader)), ""]
    yield "\n".join(lines)


def _advice(loader: LoaderReport, several: bool) -> Iterator[str]:
    title = title_of(loader, several)
    of, plain = (f" ({escaped(title)})", f" ({title})") if several else ("", "")
    if loader.recommendations:
        yield f"### What to change{of}\n"
    if len(loader.recommendations) > 1:
        yield table(
            ("step", "what to do", "gain", "effort", "left out"), plan_cells(loader)[:MAX_STEPS]
        )
    summary = plan_summary(loader)
    if summary:
        yield f"**{escaped(summary)}**\n"
    for row in plan_rows(loader):
        yield _recommendation(row, advice_row(row.advice))
    nothing = None if loader.recommendations else nothing_to_change(loader)
    if nothing:
        yield f"**{escaped(nothing)}**\n"
    if loader.rejected:
        rows = [advice_row(each) for each in loader.rejected]
        cells = [(row.title, row.effect, row.why, row.rule) for row in rows]
        yield f"### What would not help{of}\n\n" + table(
            ("change", "predicted", "why", "rule"), cells
        )
    tried = list(tried_rows(loader.tuning)) if loader.tuning is not None else []
    if loader.tuning is not None and tried:
        yield f"### {tried_heading(loader.tuning)}{of}\n\n" + table(TRIED, tried)
    if loader.unmeasured:
        cells2 = [
            (clean(rule, 60), clean(reason, 300)) for rule, reason in loader.unmeasured.items()
        ]
        yield _folded(f"Not judged{plain}", table(("rule", "what it would need to know"), cells2))


def _recommendation(step: PlanRow, row: AdviceRow) -> str:
    kind = f"{row.kind}: " if row.kind != "speed" else ""
    told = ", ".join(filter(None, (step.effect, step.left_out or step.effort)))
    effect = f" — {escaped(told)}" if told else ""
    lines = [
        f"**{step.number}. {kind}{escaped(row.title)}**{effect} (rule {escaped(row.rule)})\n",
        escaped(row.why),
        "",
    ]
    if row.evidence:
        lines += [table(("evidence", ""), row.evidence)]
    if row.code:
        lines += [fenced(row.code)]
    if row.caveat:
        lines += [f"But: {escaped(row.caveat)}\n"]
    return "\n".join(lines)


def _figures(loader: LoaderReport, several: bool) -> Iterator[str]:
    title = title_of(loader, several)
    of, plain = (f" ({escaped(title)})", f" ({title})") if several else ("", "")
    rows = [
        (row.label, *row.figures, row.share, row.gloss)
        for _, group in stage_groups(loader)
        for row in group
        if loader.stages[row.name].count
    ]
    if rows:
        head = ("stage", "mean", "p50", "p95", "p99", "of step", "")
        yield f"### Where each batch’s time goes{of}\n\n" + table(head, rows, right=range(1, 6))
    yield from _inside(loader, of)
    causes = [(row.cause, row.time, row.share, row.meaning) for row in cause_rows(loader)]
    if causes:
        body = table(("waiting for", "time", "of waiting", ""), causes, right=(1, 2))
        yield f"### Where waiting came from{of}\n\n{body}"
    capacities = [
        (words, what, how + (" (the limit)" if limit else ""))
        for words, what, how, limit in capacity_rows(loader)
    ]
    if capacities:
        yield _folded(
            f"What each stage could sustain{plain}",
            table(("stage", "capacity", "if"), capacities, right=(1,)),
        )
    notes = (*loader.notes, *inside_notes(loader))
    if notes:
        yield bullets(notes)
    if loader.config:
        yield _folded(f"Configuration{plain}", table(("argument", "value"), config_rows(loader)))


def _inside(loader: LoaderReport, of: str) -> Iterator[str]:
    """Hot functions of each stage, the transforms, and what is read."""
    code = loader.code
    for name, stage in code_stages(code):
        functions, own = hottest(stage, MAX_HOT, MAX_OWN)
        cells = [
            (
                row.share,
                row.itself,
                row.name,
                f"{row.where}: {row.code}" if row.code else row.where,
                "yours" if row.kind == "yours" else row.caller,
            )
            for row in (*functions, *own)
        ]
        if cells and code is not None:
            head = ("share (19 times in 20)", "itself", "function", "where", "called from")
            body = escaped(basis_text(code, stage)) + "\n\n" + table(head, cells, right=(0, 1))
            yield f"### Inside {escaped(name)}{of}\n\n{body}"
    if loader.transforms:
        cells2 = [
            (name, mean, share, calls)
            for name, mean, share, calls, _ in transform_rows(loader.transforms)
        ]
        head2 = ("transform", "a call", "of fetch", "calls")
        yield f"### The transforms{of}\n\n" + table(head2, cells2, right=(1, 2, 3))
    pairs = storage_rows(loader.storage)
    if pairs:
        yield f"### What is read{of}\n\n" + table(("", ""), pairs)


def _folded(title: str, body: str) -> str:
    """`body` behind a title that opens it; the title is HTML there, which Markdown leaves alone."""
    shown = "".join(ENTITIES.get(c, c) for c in title)
    return f"<details><summary>{shown}</summary>\n\n{body}\n</details>\n" if body else ""
