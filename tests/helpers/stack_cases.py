"""Stack samples made up for tests: "Set.__getitem__ /u/set.py:41 > load site/PIL/Image.py:425"."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import MS, T0, write_lane
from loaderscope.advisors.case.case import Case
from loaderscope.advisors.stacks.code_summary import code_of
from loaderscope.profiler.base import schema
from loaderscope.profiler.store.lanes.columns import Columns
from loaderscope.profiler.store.run.run import Run, SystemRun
from loaderscope.profiler.store.run.run_reader import open_run
from loaderscope.profiler.store.stacks.stack_samples import Frame, Stack, StackCapture

SITE = "/opt/venv/lib/python3.11/site-packages/"
STANDARD = "/usr/lib/python3.11/"
OWN = "/home/u/patches.py"


def frame(told: str) -> Frame:
    """One frame of "function file:line"; "site/" and "std/" stand for the usual folders."""
    function, _, place = told.rpartition(" ")
    file, _, line = place.rpartition(":")
    for short, long in (("site/", SITE), ("std/", STANDARD)):
        if file.startswith(short):
            file = long + file.removeprefix(short)
    return Frame(function, file, int(line))


def burst(
    *stacks: tuple[Any, ...], gil: Mapping[int, float] | None = None, **facts: Any
) -> StackCapture:
    """A burst of (pid, stage, frames joined by " > ", samples), and what was done in those."""
    table: dict[Frame, int] = {}
    made = []
    samples: dict[int, int] = {}
    for pid, stage, told, count, *waits in stacks:
        frames = tuple(frame(each) for each in told.split(" > ")) if told else ()
        places = tuple(table.setdefault(each, len(table)) for each in frames)
        made.append(Stack(pid, "MainThread", stage, places, count, *waits))
        samples[pid] = samples.get(pid, 0) + count
    known: dict[str, Any] = {"number": 0, "why": "steady", "rate_hz": 25.0, "gil": gil or {}}
    known |= {"t_begin_ns": T0, "t_end_ns": T0 + 8_000 * MS, **facts}
    return StackCapture(frames=tuple(table), stacks=tuple(made), samples=samples, **known)


def with_bursts(
    path: Path, *bursts: StackCapture, reasons: Mapping[str, str] | None = None, **host: Any
) -> Run:
    """The run in this directory as if its sampler had taken these bursts."""
    run = open_run(path)
    told = {**host, "reasons": reasons} if reasons else host
    system = replace(run.systems[0], bursts=bursts, **told)
    return replace(run, systems=(system, *run.systems[1:]))


def add_workers(path: Path, *workers: tuple[int, int, int]) -> None:
    """Worker processes of a recording process's folder: (t_ns, loader, pid)."""
    rows = [
        {"t_ns": t_ns, "loader": loader, "epoch": 0, "worker": number, "pid": pid}
        for number, (t_ns, loader, pid) in enumerate(workers)
    ]
    write_lane(path, "workers", schema.WORKER, rows)


def seen(
    case: Case, *stacks: tuple[Any, ...], text: str | None = None, stage: str = "fetch"
) -> Case:
    """The case as if these stacks of a stage had been sampled: ("frames joined by ' > '", samples),
    and what was done in those. `text` is the source of every own line."""
    made = burst(*((case.process.pid, stage, *each) for each in stacks))
    path = case.run.path
    assert not case.run.systems
    lanes = {"machine": schema.MACHINE, "process": schema.PROCESS, "gpu": schema.GPU}
    known: dict[str, Any] = {name: Columns.empty(each) for name, each in lanes.items()}
    known |= {"path": path, "gpus": (), "reasons": {}, "notes": (), "bursts": (made,)}
    host = SystemRun(**{**dict.fromkeys(SystemRun.__dataclass_fields__), **known})
    run = replace(case.run, systems=(host,))
    code = code_of(run, case.process, case.loader)
    assert code is not None
    if text is not None:
        stages = {
            name: replace(each, lines=tuple(replace(line, text=text) for line in each.lines))
            for name, each in code.stages.items()
        }
        code = replace(code, stages=stages)
    return replace(case, report=replace(case.report, code=code))
