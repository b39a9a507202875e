"""When all programs have ended, nothing of ours goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from harmless import catalogue
from harmless.stage import BARE, Stage
from started import until


@pytest.mark.timeout(1800)  # for those that are still on the stage
def test_every_sampler_has_ended(stage: Stage) -> None:
    """Also those of programs that were killed."""
    program = catalogue.programs()["signals/killed"]
    assert (
        stage.ask(program, "watch").result()["status"]
        == stage.ask(program, BARE).result()["status"]
        == -9
    )
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
