"""The first screen: the verdict, the pace, the queue between workers and loop, the stages, and what
to change."""

from textual.content import Content

from ...reports.document.stages import stage_table, waiting_blocks
from ...reports.words.sentences import headroom_sentence
from ...reports.words.units import percent, plural, rate
from ..facts import NOW_NS, course
from ..snapshot import LoaderView, Snapshot
from .marks import (
    BAD,
    DIM,
    FAIR,
    GOOD,
    MARK,
    VERDICTS,
    blocks,
    dim,
    graph,
    line,
    lines,
    needs_loader,
    text,
)

WAITING = "Waiting for the first batch."

# The queue, by the share of it that is ready: below these it is empty, or nearly.
_EMPTY, _LOW = 0.15, 0.4
# Stages that take less of a step are left to another screen.
LEAST_SHARE = 0.01


def verdict(s: Snapshot, width: int) -> Content:
    """The verdict in a sentence, how sure it is, and what free loading would gain."""
    if not s.loader:
        return line((text(s.problem) if s.problem else WAITING, "bold"))
    report = s.loader.report
    style = VERDICTS[report.verdict]
    basis = [headroom_sentence(report)] if report.verdict != "too-short" else []
    basis.append(f"{plural(report.batches, 'batch', 'batches')}, {plural(report.epochs, 'epoch')}.")
    if report.folded_batches:
        basis.append(f"The figures rest on the newest {report.batches - report.folded_batches:,}.")
    found = (f"{report.verdict}  ", f"bold {style}")
    said = (text(report.basis.sentence), "bold")
    return lines([line(("● ", style), found, said), dim(" ".join(basis))])


@needs_loader
def pace(v: LoaderView, width: int) -> Content:
    """Batches a second, samples a second, the stall share and the queue: now, and their course."""
    c = course(v.loader, v.now_ns)
    share = "stall share" if v.report.basis.lost == "stall" else "wait share"
    return lines(
        [
            graph("batches/s", rate(c.now(c.batches)), c.batches, MARK, width),
            graph("samples/s", rate(c.now(c.samples)), c.samples, MARK, width),
            graph(share, percent(c.now(c.lost)), c.lost, BAD, width, 1.0),
            queue(v, width),
        ]
    )


@needs_loader
def waiting(v: LoaderView, width: int) -> Content:
    """Where the waiting came from, largest first."""
    found = v.report.waiting
    if not found or found.total_s <= 0:
        return dim("no waiting was recorded")
    return blocks(waiting_blocks(v.report), width)


def queue(v: LoaderView, width: int) -> Content:
    """Batches ready, of those that may be made ahead: an empty queue is a loop that waits for its
    workers."""
    ready, t = v.loader.batches["ready"], v.loader.batches["t_ns"]
    t, ready = t[ready >= 0], ready[ready >= 0]
    room = v.loader.num_workers * v.loader.prefetch_factor
    if not len(t):
        why = "not measured" if room else "no workers: nothing is made ahead"
        return line("queue       ", (why, DIM))
    now = float(ready[t >= t[-1] - NOW_NS].mean())
    share = now / room if room else 1.0
    style = BAD if share < _EMPTY else FAIR if share < _LOW else GOOD
    return graph("queue", f"{now:.1f} of {room or '?'}", ready, style, width, room)


@needs_loader
def stages(v: LoaderView, width: int) -> Content:
    """Waiting, computing, and the stages that take their time."""
    return blocks(stage_table(v.report, LEAST_SHARE), width)
