"""Where each batch's time goes, and where waiting came from, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...advisors.schema.report_model import LoaderReport, Stage
from ...profiler.base.metadata import clean
from ..words.glosses import CAUSES, GLOSSES, GROUPS
from ..words.layout import heading
from ..words.units import duration, micros, percent, plural

# Below this width the explanations go, from this one on they are longer.
SHORT_GLOSSES_FROM = 76
LONG_GLOSSES_FROM = 110


def stage_lines(loader: LoaderReport, width: int) -> Iterator[Text]:
    """The table of stages, laid out by hand: its headings span columns, which rich's tables cannot do."""
    glosses = 0 if width < SHORT_GLOSSES_FROM else 1 if width < LONG_GLOSSES_FROM else 2
    bars = 16 if glosses == 2 else 8 if width >= 58 else 0
    header = f"  {'':<11}" + "".join(f"{name:>9}" for name in ("mean", "p50", "p95")) + f"{'of step':>9}"
    yield Text(header, style="dim")
    workers = loader.config.get("num_workers")
    several = isinstance(workers, int) and workers > 0
    where = f"in {plural(int(workers or 0), 'worker', 'workers')}" if several else "in the training process"
    for title, names in GROUPS:
        shown = [name for name in names if _shown(name, loader)]
        if shown:
            yield Text(f"  {title.format(where=where)}", style="italic dim")
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


def unmeasured_stages(loader: LoaderReport) -> Iterator[str]:
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


def waiting_lines(loader: LoaderReport, width: int) -> Iterator[RenderableType]:
    waiting = loader.waiting
    assert waiting is not None
    yield heading(f"Where waiting came from ({duration(waiting.total_s)} in all)")
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
    no_core = waiting.fetch_core_wait_share
    if idle is not None and idle >= 0.05 and no_core is not None:
        yield (
            f"{percent(idle)} of fetch is waiting: {percent(no_core)} for a free core, "
            f"{percent(max(0.0, idle - no_core))} for I/O, locks and the like; the rest is computing."
        )
    elif idle is not None and idle >= 0.05:
        yield f"{percent(idle)} of fetch is waiting (I/O, locks, other processes); the rest is computing."
    elif idle is not None:
        yield "Fetch is computing nearly all of its time: the CPU makes the samples, not the disk."
