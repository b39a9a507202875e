"""One stage for all programs; those that were selected are run ahead, some at a time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harmless import catalogue
from harmless.stage import Stage, bare_of


@pytest.fixture(scope="session")
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    made = Stage()
    for item in request.session.items:
        given = getattr(item, "callspec", None)
        program = given.params.get("program") if given else None
        if isinstance(program, catalogue.Program) and not program.alone:
            for way in (bare_of(given.params["way"]), given.params["way"]):
                made.ask(program, way)
    yield made
    made.close()
