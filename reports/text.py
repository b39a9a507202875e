"""The report for a terminal: the verdict first, then where the time went. A pure function of the `Report`."""

from __future__ import annotations

import io
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ..advisors.model import LoaderReport, Overhead, Report, RunInfo, Stage
from ..profiler.metadata import clean
from .glosses import CAUSES, GLOSSES, GROUPS
from .system_text import system_lines
from .units import count, duration, factor, micros, percent, rate, size

# Below this width the explanations go, from this one on they are longer.
SHORT_GLOSSES_FROM = 76
LONG_GLOSSES_FROM = 110
MIN_WIDTH = 40
MAX_WIDTH = 140
MAX_LOADERS = 32

STYLES = {"input-bound": "bold red", "balanced": "bold yellow", "compute-bound": "bold green", "too-short": "bold cyan"}

# For terminals without Unicode; one character for one, so that columns stay aligned.
_ASCII = str.maketrans("█▉▊▋▌▍▎▏●·µ×–—…→─’\N{REPLACEMENT CHARACTER}", "#######" + ".*-ux--.>-'?")


def render_text(report: Report, width: int = 80, color: bool = False, unicode: bool = True) -> str:
    """The report as text of at most `width` columns, with ANSI colours if `color`, in ASCII unless `unicode`.

    Texts that come from the run are shown as they are, never as markup, and without control characters.
    """
    width = max(MIN_WIDTH, min(width, MAX_WIDTH))
    console = Console(
        file=io.StringIO(),
        width=width,
        color_system="standard" if color else None,
        force_terminal=color,
        no_color=not color,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    for part in _parts(report, width):
        console.print(part)
    output = console.file
    assert isinstance(output, io.StringIO)
    text = "\n".join(line.rstrip() for line in output.getvalue().splitlines()) + "\n"
    if not unicode:
        text = text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return text


def _parts(report: Report, width: int) -> Iterator[RenderableType]:
    for loader in report.loaders[:MAX_LOADERS]:
        yield from _loader(loader, report.run, width, several=len(report.loaders) > 1)
    if len(report.loaders) > MAX_LOADERS:
        yield Text(f"… and {len(report.loaders) - MAX_LOADERS} more loaders: --format json has them all")
    if not report.loaders:
        yield Text("Nothing to report: no loader was recorded.", style="bold")
        yield Text("")
    yield _heading("The machine")
    yield _facts(system_lines(report.system))
    yield Text("")
    yield _heading("What recording cost")
    yield Padding(Text(overhead_sentence(report.overhead)), (0, 0, 0, 2))
    if report.notes:
        yield Text("")
        yield _heading("Notes")
        yield from _bullets(report.notes)
    yield Text("")
    yield _run_line(report.run)


def _loader(loader: LoaderReport, run: RunInfo, width: int, several: bool) -> Iterator[RenderableType]:
    style = STYLES[loader.verdict]
    title = Text.assemble(("● ", style), (loader.verdict, style), "  ", (clean(loader.name, 60), "bold"))
    if several or loader.rank is not None:
        title.append(f"  process {loader.pid}" if loader.rank is None else f"  rank {loader.rank}", style="dim")
    yield Rule(style="dim", characters="─")
    yield title
    yield Text("")
    yield Padding(Text(clean(loader.basis.sentence), style="bold"), (0, 0, 0, 2))
    if loader.verdict != "too-short":
        yield Padding(Text(_headroom(loader)), (0, 0, 0, 2))
    yield Text("")
    yield Padding(Text(_throughput(loader), style="dim"), (0, 0, 0, 2))
    config = _config(loader)
    if config:
        yield Padding(Text(config, style="dim"), (0, 0, 0, 2))
    yield Text("")
    yield _heading("Where each batch's time goes")
    yield from _stage_lines(loader, width)
    unmeasured = list(_unmeasured(loader))
    if unmeasured:
        yield Padding(Text("not measured: " + "; ".join(unmeasured), style="dim"), (0, 0, 0, 2))
    yield Text("")
    if loader.waiting is not None and loader.waiting.total_s > 0:
        yield from _waiting(loader, width)
    if loader.notes:
        yield from _bullets(loader.notes)
        yield Text("")


def _heading(text: str) -> Text:
    return Text(text, style="bold underline")


def _bullets(lines: tuple[str, ...]) -> Iterator[RenderableType]:
    for line in lines:
        table = Table.grid(padding=(0, 1))
        table.add_column(width=3, justify="right")
        table.add_column(overflow="fold")
        table.add_row(Text("·"), Text(clean(line)))
        yield table


def _headroom(loader: LoaderReport) -> str:
    basis = loader.basis
    parts = []
    if loader.headroom is None:
        parts.append("Headroom: without loading, nothing would be left to do.")
    elif loader.headroom < 1.005:
        parts.append("Headroom: none, free loading would not be faster.")
    else:
        parts.append(f"Headroom: at most {factor(loader.headroom)} faster, if loading were free.")
    spread = ""
    if basis.stall_share_low is not None and basis.stall_share_high is not None:
        spread = f", {_span(basis.stall_share_low, basis.stall_share_high)}"
    parts.append(f"Confidence: {basis.confidence} ({count(basis.steady_batches)} steady batches{spread}).")
    return " ".join(parts)


def _span(low: float, high: float) -> str:
    first, second = percent(low), percent(high)
    return first if first == second else f"{first.removesuffix(' %')}–{second}"


def _throughput(loader: LoaderReport) -> str:
    parts = [_plural(loader.batches, "batch", "batches")]
    if loader.samples is not None:
        parts.append(_plural(loader.samples, "sample", "samples"))
    parts.append(_plural(loader.epochs, "epoch", "epochs"))
    if loader.wall_s is not None:
        parts.append(f"in {duration(loader.wall_s)}")
    if loader.batches_per_s is not None:
        parts.append(f"{rate(loader.batches_per_s)} batches/s")
    if loader.samples_per_s is not None:
        parts.append(f"{rate(loader.samples_per_s)} samples/s")
    if loader.bytes_per_batch is not None:
        parts.append(f"{size(loader.bytes_per_batch)} a batch")
    return " · ".join(parts)


def _plural(number: int, one: str, many: str) -> str:
    return f"{count(number)} {one if number == 1 else many}"


def _config(loader: LoaderReport) -> str:
    config = loader.config
    numbers = ("batch_size", "num_workers", "prefetch_factor")
    parts = [f"{name}={clean(config[name], 40)}" for name in numbers if config.get(name) is not None]
    parts += [name for name in ("pin_memory", "persistent_workers", "drop_last") if config.get(name) is True]
    for name in ("sampler", "collate_fn"):
        if isinstance(config.get(name), str):
            parts.append(clean(str(config[name]).rpartition(".")[2], 60))
    return " · ".join(parts)


def _stage_lines(loader: LoaderReport, width: int) -> Iterator[Text]:
    """The table, laid out by hand: its headings span columns, which rich's tables cannot do."""
    glosses = 0 if width < SHORT_GLOSSES_FROM else 1 if width < LONG_GLOSSES_FROM else 2
    bars = 16 if glosses == 2 else 8 if width >= 58 else 0
    header = f"  {'':<11}" + "".join(f"{name:>9}" for name in ("mean", "p50", "p95")) + f"{'of step':>9}"
    yield Text(header, style="dim")
    workers = loader.config.get("num_workers")
    several = isinstance(workers, int) and workers > 0
    where = f"in {_plural(int(workers or 0), 'worker', 'workers')}" if several else "in the training process"
    for heading, names in GROUPS:
        shown = [name for name in names if _shown(name, loader)]
        if shown:
            yield Text(f"  {heading.format(where=where)}", style="italic dim")
        for name in shown:
            label, *gloss = GLOSSES[name]
            line = Text(f"  {label:<11}", style="bold" if name == "wait" else "")
            line.append("".join(f"{cell:>9}" for cell in _cells(name, loader)), style="not bold")
            if bars:
                style = "red" if name in ("wait", "stall") else "cyan"
                line.append(f"  {bar(loader.stages[name].share, bars):<{bars}}", style=f"{style} not bold")
            if glosses:
                line.append(f" {gloss[glosses - 1]}", style="dim not bold")
                line.truncate(width, overflow="ellipsis")
            yield line


def _cells(name: str, loader: LoaderReport) -> list[str]:
    """Mean, p50, p95, share. CPU time is measured on a few batches: its mean is given as a part of the whole's."""
    stage = loader.stages[name]
    whole = loader.stages.get(name.removesuffix("_cpu"))
    if whole is None or whole is stage:
        return [micros(stage.mean_us), micros(stage.p50_us), micros(stage.p95_us), percent(stage.share)]
    if not whole.mean_us or not whole.share or stage.share is None:
        return [micros(stage.mean_us), "", "", ""]
    return [micros(whole.mean_us * stage.share / whole.share), "", "", percent(stage.share)]


def _shown(name: str, loader: LoaderReport) -> bool:
    stage = loader.stages.get(name)
    if stage is None or not stage.count:
        return False
    return not (name == "stall" and stage.reason)  # equals wait: said once is enough


def _unmeasured(loader: LoaderReport) -> Iterator[str]:
    """'pin (pin_memory is off)', stages with one reason together."""
    by_reason: dict[str, list[str]] = {}
    for name, stage in loader.stages.items():
        if not stage.count:
            by_reason.setdefault(_reason(stage), []).append(_label(name))
    for reason, labels in by_reason.items():
        yield f"{', '.join(labels)} ({reason})"


def _label(name: str) -> str:
    if name.endswith("_cpu"):
        return f"{name.removesuffix('_cpu')} CPU"
    return GLOSSES[name][0] if name in GLOSSES else clean(name, 40)


def _reason(stage: Stage) -> str:
    return clean(stage.reason or "no reason known", 200)


def bar(share: float | None, width: int) -> str:
    """A bar of eighths of a character; anything above zero shows."""
    if share is None or share <= 0:
        return ""
    eighths = max(1, round(min(share, 1.0) * width * 8))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def _waiting(loader: LoaderReport, width: int) -> Iterator[RenderableType]:
    waiting = loader.waiting
    assert waiting is not None
    yield _heading(f"Where waiting came from ({duration(waiting.total_s)} in all)")
    table = Table.grid(padding=(0, 1))
    for justify in ("left", "right", "right"):
        table.add_column(justify=justify, no_wrap=True)
    table.add_column(no_wrap=True, width=8)
    table.add_column(style="dim")
    causes = sorted(waiting.causes.items(), key=lambda item: -item[1].share)
    for name, cause in causes:
        if cause.share < 0.0005 and len(causes) > 1:
            continue
        meaning = CAUSES.get(name, "") if width >= SHORT_GLOSSES_FROM else ""
        table.add_row(
            Text(f"    {clean(name, 20)}"),
            duration(cause.seconds),
            percent(cause.share),
            Text(bar(cause.share, 8), style="red"),
            Text(meaning),
        )
    yield table
    for line in _waiting_sentences(loader):
        yield Padding(Text(line), (0, 0, 0, 4))
    yield Text("")


def _waiting_sentences(loader: LoaderReport) -> Iterator[str]:
    waiting = loader.waiting
    assert waiting is not None
    if "workers-busy" in waiting.causes and waiting.work:
        verbs = {"fetch": "fetching", "collate": "collating", "pack": "packing"}
        work = ", ".join(
            f"{verbs.get(name, clean(name, 20))} {percent(share)}"
            for name, share in sorted(waiting.work.items(), key=lambda item: -item[1])
            if share >= 0.005
        )
        if work:
            yield f"While the loop waited, the workers were {work} of that time."
    idle = waiting.fetch_idle_share
    if idle is not None and idle >= 0.05:
        yield f"{percent(idle)} of fetch is waiting (I/O, locks, other processes); the rest is computing."
    elif idle is not None:
        yield "Fetch is computing nearly all of its time: the CPU makes the samples, not the disk."


def _facts(lines: list[tuple[str, str]]) -> RenderableType:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, line in lines:
        table.add_row(Text(f"  {label}", style="dim"), Text(line))
    return Group(table)


def overhead_sentence(overhead: Overhead) -> str:
    """What recording cost, in one sentence or two."""
    if overhead.per_batch_us is None:
        first = f"The cost a batch was not measured ({overhead.reasons.get('per_batch_us', 'no reason known')})."
    else:
        share = f", {percent(overhead.share_of_step)} of a step" if overhead.share_of_step is not None else ""
        first = f"{micros(overhead.per_batch_us)} a batch{share}."
    if overhead.sampler_cpu_share is None:
        return first
    memory = f" and {size(overhead.sampler_rss_bytes)}" if overhead.sampler_rss_bytes is not None else ""
    return f"{first} The system sampler: {percent(overhead.sampler_cpu_share)} of one core{memory}."


def _run_line(run: RunInfo) -> Text:
    parts = [f"run {clean(run.id, 60)}", run.state]
    if run.processes > 1:
        parts.append(f"{run.processes} processes")
    if run.argv:
        parts.append(clean(" ".join(run.argv), 60))
    for label, version in (("torch", run.torch), ("Python", run.python)):
        if version:
            parts.append(f"{label} {clean(version, 30)}")
    return Text(" · ".join(parts), style="dim")
