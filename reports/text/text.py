"""The report in full for a terminal: the verdict first, then where the time went. A pure function
of the `Report`."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.rule import Rule
from rich.text import Text

from ...advisors.schema.report_model import LoaderReport, Report, RunInfo
from ...profiler.base.metadata import clean
from ..words.inside import inside_notes
from ..words.ranks import who
from ..words.sentences import headroom_sentence, limit_sentence, overhead_sentence, throughput_line
from ..words.system_words import system_rows
from ..words.uses import use_of
from .advice_text import advice_lines
from .inside_text import inside_lines
from .layout import bullets, heading, indented, labelled
from .ranks_text import rank_lines
from .stages_text import stage_lines, unmeasured_stages, waiting_lines
from .terminal import fitting_width, printed
from .tuned_text import lead_lines, trial_lines

MAX_LOADERS = 32

STYLES = {
    "input-bound": "bold red",
    "balanced": "bold yellow",
    "compute-bound": "bold green",
    "too-short": "bold cyan",
}


def render_text(report: Report, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """All of the report as text of at most `width` columns, with ANSI colours if `color`, in ASCII
    unless `unicode`.

    Only lines of code to paste may be longer: they are never wrapped. Texts that come from the run
    are shown as they are, never as markup, and without control characters.
    """
    width = fitting_width(width)
    return printed(_parts(report, width), width, color, unicode)


def _parts(report: Report, width: int) -> Iterator[RenderableType]:
    for sentence in report.missing:
        yield Text(clean(sentence), style="bold red")
    for loader in report.costliest[:MAX_LOADERS]:
        yield from _loader(loader, width, several=len(report.loaders) > 1)
    if len(report.loaders) > MAX_LOADERS:
        yield Text(
            f"… and {len(report.loaders) - MAX_LOADERS} more loaders: --format json has them all"
        )
    if not report.loaders:
        yield Text("Nothing to report: no loader was recorded.", style="bold")
        yield Text("")
    yield heading("The machine")
    yield labelled(system_rows(report.system))
    yield Text("")
    yield heading("What recording cost")
    yield indented(overhead_sentence(report.overhead))
    if report.notes:
        yield Text("")
        yield heading("Notes")
        yield from bullets(report.notes)
    yield Text("")
    yield run_line(report.run)


def _loader(loader: LoaderReport, width: int, several: bool) -> Iterator[RenderableType]:
    yield Rule(style="dim", characters="─")
    yield title_line(loader, several)
    yield Text("")
    if loader.tuning is not None:
        yield from lead_lines(loader)
        yield Text("")
    yield indented(clean(loader.basis.sentence), "bold")
    if loader.verdict != "too-short":
        yield indented(headroom_sentence(loader))
    limit = limit_sentence(loader)
    if limit:
        yield indented(limit)
    yield from rank_lines(loader)
    yield Text("")
    yield from advice_lines(loader)
    yield from trial_lines(loader)
    yield indented(throughput_line(loader), "dim")
    config = _config(loader)
    if config:
        yield indented(config, "dim")
    yield Text("")
    yield heading("Where each batch's time goes")
    yield from stage_lines(loader, width)
    unmeasured = list(unmeasured_stages(loader))
    if unmeasured:
        yield indented("not measured: " + "; ".join(unmeasured), "dim")
    yield Text("")
    yield from inside_lines(loader, width)
    if loader.waiting is not None and loader.waiting.total_s > 0:
        yield from waiting_lines(loader, width)
    notes = (*loader.notes, *inside_notes(loader))
    if notes:
        yield from bullets(notes)
        yield Text("")


def title_line(loader: LoaderReport, several: bool) -> Text:
    """The verdict, the loader's name, and what it is for."""
    style = STYLES[loader.verdict]
    title = Text.assemble(
        ("● ", style), (loader.verdict, style), "  ", (clean(loader.name, 60), "bold")
    )
    use = use_of(loader)
    if use is not None:
        title.append(f"  {use}")
    whose = who(loader, several)
    if whose is not None:
        title.append(f"  {whose}", style="dim")
    return title


def _config(loader: LoaderReport) -> str:
    config = loader.config
    numbers = ("batch_size", "num_workers", "prefetch_factor")
    parts = [
        f"{name}={clean(config[name], 40)}" for name in numbers if config.get(name) is not None
    ]
    parts += [
        name
        for name in ("pin_memory", "persistent_workers", "drop_last")
        if config.get(name) is True
    ]
    for name in ("sampler", "collate_fn"):
        if isinstance(config.get(name), str):
            parts.append(clean(str(config[name]).rpartition(".")[2], 60))
    return " · ".join(parts)


def run_line(run: RunInfo) -> Text:
    """Which run this is."""
    parts = [f"run {clean(run.id, 60)}", run.state]
    if run.processes > 1:
        parts.append(f"{run.processes} processes")
    if run.argv:
        parts.append(clean(" ".join(run.argv), 60))
    for label, version in (("torch", run.torch), ("Python", run.python)):
        if version:
            parts.append(f"{label} {clean(version, 30)}")
    return Text(" · ".join(parts), style="dim")
