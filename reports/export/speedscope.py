"""Recorded stacks as a speedscope file: opens in https://www.speedscope.app, which keeps it in the
browser, or offline.

The format: https://www.speedscope.app/file-format-schema.json, "sampled" profiles.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...advisors.schema.report_model import Report
from ...profiler.base.errors import UsageError
from ...profiler.base.metadata import clean
from ...profiler.store.run.run import Run
from ...profiler.store.stacks.stack_samples import STAGES, StackCapture
from ..words.inside import why_no_stacks

SCHEMA_URL = "https://www.speedscope.app/file-format-schema.json"
MAX_PROFILES = 256  # stages of processes; viewers list them all
LEAST_HZ = 1e-3  # no burst is slower: anything below is damage

Key = tuple[str, int, int]  # stage, host, process id
Frames = dict[tuple[str, str, int], int]  # function, file and line → its place in the file


def render_speedscope(report: Report, run: Run) -> str:
    """The stacks of all bursts as JSON text: a profile a stage and process, fetch first, the
    longest first.

    Weights are seconds: samples over the rate at which they were taken. Raises UsageError where
    there are no stacks.
    """
    frames: Frames = {}
    samples: dict[Key, dict[tuple[int, ...], float]] = {}
    for host, system in enumerate(run.systems):
        for burst in system.bursts:
            _add(samples, frames, host, burst)
    if not samples:
        raise UsageError(f"this run holds no stacks: {why_no_stacks(report, run)}")
    names = _process_names(run)
    places = {stage: place for place, stage in enumerate(STAGES)}
    order = sorted(
        samples,
        key=lambda key: (places.get(key[0], len(places)), -sum(samples[key].values()), key),
    )[:MAX_PROFILES]
    several = len(run.systems) > 1
    profiles = []
    for stage, host, pid in order:
        stacks = samples[stage, host, pid]
        where = f" on {clean(run.systems[host].host or 'another host', 60)}" if several else ""
        profiles.append(
            {
                "type": "sampled",
                "name": f"{clean(stage, 40)}: {names.get(pid, f'process {pid}')}{where}",
                "unit": "seconds",
                "startValue": 0,
                "endValue": sum(stacks.values()),
                "samples": [list(stack) for stack in stacks],
                "weights": list(stacks.values()),
            }
        )
    return json.dumps(
        {
            "$schema": SCHEMA_URL,
            "shared": {"frames": [_frame(*frame) for frame in frames]},
            "profiles": profiles,
            "name": clean(run.id, 100),
            "activeProfileIndex": 0,
            "exporter": f"loaderscope@{clean(run.loaderscope or '', 40)}",
        },
        allow_nan=False,
        separators=(",", ":"),
    )


def _frame(function: str, file: str, line: int) -> dict[str, Any]:
    frame = {"name": clean(function, 200) or "unknown", "file": clean(file), "line": max(0, line)}
    return {key: value for key, value in frame.items() if value}


def _add(
    samples: dict[Key, dict[tuple[int, ...], float]], frames: Frames, host: int, burst: StackCapture
) -> None:
    """The stacks of one burst, equal ones together. Stacks without a frame (idle threads) show
    nothing."""
    if not burst.rate_hz >= LEAST_HZ:
        return
    for stack in burst.stacks:
        named = [burst.frames[at] for at in stack.frames if 0 <= at < len(burst.frames)]
        if not named or stack.samples <= 0:
            continue
        path = tuple(
            frames.setdefault((frame.function, frame.file, frame.line), len(frames))
            for frame in named
        )
        into = samples.setdefault((stack.stage, host, stack.pid), {})
        into[path] = into.get(path, 0.0) + stack.samples / burst.rate_hz


def _process_names(run: Run) -> Mapping[int, str]:
    """'training process 4000', 'worker 2 (process 4102)'."""
    names: dict[int, str] = {}
    for process in run.processes:
        workers = process.workers
        for pid, worker in zip(workers["pid"].tolist(), workers["worker"].tolist(), strict=True):
            names[pid] = f"worker {worker} (process {pid})"
        rank = f", rank {process.rank}" if process.rank is not None else ""
        names[process.pid] = f"training process {process.pid}{rank}"
    return names
