"""What a signal's handler raises arrives, at whatever moment the signal comes: at each of the first
half second's points, and at moments drawn at random. The same moments in CI; HARMLESS_SEED=N draws
others."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from harmless import catalogue
from harmless.stage import BARE, Seen, Stage
from loaderscope import open_run

PROGRAMS = {
    name: program for name, program in catalogue.programs().items() if name.startswith("moments/")
}

# In ms after just before `watch`: the session opens in the first hundred, then batches come.
FIRST_HALF_SECOND = [
    *range(1, 10, 2),
    *range(10, 100, 10),
    *range(100, 200, 20),
    *range(200, 501, 50),
]
SOME = FIRST_HALF_SECOND[::4]


def _split(moments_ms: list[int], every: int) -> list[Any]:
    """For `make test` every third or so, for `make test-slow` the rest."""
    few = moments_ms[::every]
    rest = [ms for ms in moments_ms if ms not in few]
    return [pytest.param(few, id="few"), pytest.param(rest, id="rest", marks=pytest.mark.slow)]


def wrong(
    program: catalogue.Program, way: str, moment_ms: float, seen: Seen, bare: Seen
) -> list[str]:
    """What a run at this moment shows that bare ones, at whatever moment, do not."""
    if "Exception ignored in" in seen["stderr"] and "loaderscope" not in seen["stderr"]:
        return []  # Python itself drops what is raised in its callbacks around a fork, bare too
    # torch sets a handler of SIGCHLD when it starts workers, which a signal may forestall.
    chance = str(int(signal.SIGCHLD))
    handlers, of_bare = ({**one.get("end handlers", {}), chance: None} for one in (seen, bare))
    found = [
        f"{program.name} {way} at {moment_ms} ms: {name} is {seen.get(name)!r}, bare "
        f"{bare.get(name)!r}"
        for name in ("status", "arrived", "end blocked", "end gc")
        if seen.get(name) != bare.get(name)
    ]
    if handlers != of_bare:
        found.append(
            f"{program.name} {way} at {moment_ms} ms: handlers are {handlers}, bare {of_bare}"
        )
    if "arrived" in seen and not went_on(seen["folder"]):
        found.append(f"{program.name} {way} at {moment_ms} ms: the next loop was not recorded")
    # A worker may find its parent gone, and says so.
    if "loaderscope" in seen["stderr"] or (
        "Traceback" in seen["stderr"] and "workers" not in program.name
    ):
        found.append(f"{program.name} {way} at {moment_ms} ms: {seen['stderr'][-600:]}")
    return found


def went_on(folder: str) -> bool:
    """Whether the six batches of the loop after the signal were recorded as an epoch."""
    runs = [open_run(path) for path in Path(folder, "runs").glob("2*")]
    return any(6 in loader.epochs["batches"] for run in runs for loader in run.loaders)


def shown(stage: Stage, name: str, way: str, moments_ms: list[float]) -> list[str]:
    program = PROGRAMS[name]
    # Bare too, Python drops what is raised in its callbacks around the fork of a worker.
    bares = (stage.ask(program, BARE, number).result() for number in range(5))
    bare = next(run for run in bares if run.get("arrived") not in (None, "never"))
    runs = {ms: stage.ask(program, way, HARMLESS_MOMENT=f"{ms / 1000}") for ms in moments_ms}
    return [
        line for ms, run in runs.items() for line in wrong(program, way, ms, run.result(), bare)
    ]


def judge(name: str, found: list[str]) -> None:
    assert not found, f"{name}:\n" + "\n".join(found)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("moments_ms", _split(FIRST_HALF_SECOND, 3))
@pytest.mark.parametrize("way", ["watch", "watch-pure"])
def test_every_point_of_the_first_half_second(
    stage: Stage, way: str, moments_ms: list[int]
) -> None:
    judge(
        f"first half second-{way}",
        shown(stage, "moments/alarm", way, [float(ms) for ms in moments_ms]),
    )


@pytest.mark.timeout(900)
@pytest.mark.parametrize("moments_ms", _split(SOME, 2))
@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"moments/alarm"}))
def test_some_points_of_the_first_half_second(
    stage: Stage, name: str, moments_ms: list[int]
) -> None:
    judge(name, shown(stage, name, "all", [float(ms) for ms in moments_ms]))


@pytest.mark.timeout(900)
def test_moments_at_random(stage: Stage) -> None:
    """Asserts, for programs, ways of watching and moments drawn at random, what `wrong` looks for:
    the exit code, the error that arrived, the handlers and the blocked signals of a bare run, and
    no word of ours."""
    drawn = os.environ.get("HARMLESS_SEED", "")
    found: list[str] = []

    @settings(
        max_examples=16,
        derandomize=not drawn,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        name=st.sampled_from(sorted(PROGRAMS)),
        way=st.sampled_from(catalogue.WATCHED),
        ms=st.floats(0.5, 1500, allow_nan=False).map(lambda ms: round(ms, 1)),
    )
    def at(name: str, way: str, ms: float) -> None:
        found.extend(shown(stage, name, way, [ms]))

    (seed(int(drawn))(at) if drawn else at)()
    judge("at random", found)
