"""What a signal's handler raises arrives, at whatever moment the signal comes: at points of the first
half second, and at random; HARMLESS_SEED=N draws others. When all have ended, nothing of ours goes on."""

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
from started import until

MOMENTS = "moments/"
PROGRAMS = {name: each for name, each in catalogue.programs().items() if name.startswith(MOMENTS)}

# In ms after just before `watch`: the session opens in the first hundred, then batches come.
FIRST_TENTH = [*range(1, 10, 2), *range(10, 100, 10)]
FIRST_HALF_SECOND = [*FIRST_TENTH, *range(100, 200, 20), *range(200, 501, 50)]
SOME = FIRST_HALF_SECOND[::4]


def _split(moments_ms: list[int], every: int) -> list[Any]:
    """For `make test` every third or so, for `make test-slow` the rest."""
    few = moments_ms[::every]
    rest = [ms for ms in moments_ms if ms not in few]
    return [pytest.param(few, id="few"), pytest.param(rest, id="rest", marks=pytest.mark.slow)]


def wrong(name: str, way: str, moment_ms: float, seen: Seen, bare: Seen) -> list[str]:
    """What a run at this moment shows that bare ones, at whatever moment, do not."""
    if "Exception ignored in" in seen["stderr"] and "loaderscope" not in seen["stderr"]:
        return []  # Python itself drops what is raised in its callbacks around a fork, bare too
    # torch sets a handler of SIGCHLD when it starts workers, which a signal may forestall.
    chance = str(int(signal.SIGCHLD))
    handlers, of_bare = ({**one.get("end handlers", {}), chance: None} for one in (seen, bare))
    names = ("status", "arrived", "end blocked", "end gc")
    pairs = {each: (seen.get(each), bare.get(each)) for each in names}
    pairs["handlers"] = handlers, of_bare
    found = [f"{what}: {one!r}, bare {of!r}" for what, (one, of) in pairs.items() if one != of]
    if "arrived" in seen and not went_on(seen["folder"]):
        found.append("the next loop was not recorded")
    # A worker may find its parent gone, and says so.
    traced = "Traceback" in seen["stderr"] and "workers" not in name
    if "loaderscope" in seen["stderr"] or traced:
        found.append(seen["stderr"][-600:])
    return [f"{name} {way} at {moment_ms} ms: {each}" for each in found]


def went_on(folder: str) -> bool:
    """Whether the six batches of the loop after the signal were recorded as an epoch."""
    runs = [open_run(path) for path in Path(folder, "runs").glob("2*")]
    return any(6 in loader.epochs["batches"] for run in runs for loader in run.loaders)


def shown(stage: Stage, name: str, way: str, moments_ms: list[float]) -> list[str]:
    program = PROGRAMS[name]
    # Bare too, Python drops what is raised in its callbacks around the fork of a worker.
    bares = (stage.ask(program, BARE, number).result() for number in range(5))
    bare = next(run for run in bares if run.get("arrived") not in (None, "never"))

    def ask(ms: float, number: int = 0) -> Any:
        return stage.ask(program, way, number, HARMLESS_MOMENT=f"{ms / 1000}")

    found = []
    for ms, run in [(ms, ask(ms)) for ms in moments_ms]:
        runs = [run]
        if "workers" in name and wrong(name, way, ms, run.result(), bare):
            # Starting workers does not bear a signal at any moment: of 560 bare runs two hung.
            runs = [ask(ms, number) for number in (1, 2, 3)]
        found += [line for each in runs for line in wrong(name, way, ms, each.result(), bare)]
    return found


@pytest.mark.timeout(900)
@pytest.mark.parametrize("moments_ms", _split(FIRST_HALF_SECOND, 3))
@pytest.mark.parametrize("way", ["watch", "watch-pure"])
def test_every_point_of_the_first_half_second(stage, way, moments_ms):
    assert shown(stage, "moments/alarm", way, moments_ms) == []


@pytest.mark.timeout(900)
@pytest.mark.parametrize("moments_ms", _split(SOME, 2))
@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"moments/alarm"}))
def test_some_points_of_the_first_half_second(stage, name, moments_ms):
    assert shown(stage, name, "all", moments_ms) == []


free = settings(deadline=None, database=None, suppress_health_check=list(HealthCheck))


@pytest.mark.timeout(900)
def test_moments_at_random(stage: Stage) -> None:
    drawn = os.environ.get("HARMLESS_SEED", "")
    found: list[str] = []

    @settings(free, max_examples=16, derandomize=not drawn)
    @given(
        name=st.sampled_from(sorted(PROGRAMS)),
        way=st.sampled_from(catalogue.WATCHED),
        ms=st.floats(0.5, 1500, allow_nan=False).map(lambda ms: round(ms, 1)),
    )
    def at(name: str, way: str, ms: float) -> None:
        found.extend(shown(stage, name, way, [ms]))

    (seed(int(drawn))(at) if drawn else at)()
    assert found == []


@pytest.mark.timeout(1800)  # for those that are still on the stage
def test_every_sampler_has_ended(stage: Stage) -> None:
    """Also those of programs that were killed."""
    program = catalogue.programs()["signals/killed"]
    assert {stage.ask(program, way).result()["status"] for way in ("watch", BARE)} == {-9}
    stage.wait_until_idle()
    until(lambda: not using(stage.folder), "the end of all samplers")


def using(folder: Path) -> list[str]:
    """Command lines of processes that are about this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in line:
            found.append(line)
    return found
