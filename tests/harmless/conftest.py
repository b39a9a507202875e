"""One stage for all programs; those that were selected are run ahead, two at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harmless import catalogue
from harmless.stage import BARE, Stage


@pytest.fixture(scope="session")
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage()
    for item in request.session.items:
        given = getattr(item, "callspec", None)
        program = given.params.get("program") if given else None
        if isinstance(program, catalogue.Program) and not program.alone:
            for way, number in ((BARE, 0), (BARE, 1), (given.params["way"], 0)):
                made.ask(program, way, number)
    yield made
    made.close()
