"""Fields of a batch that a loop does not read."""

from __future__ import annotations

import pytest

from loaderscope.advisors.code.loop_fields import unread

BY_KEY = ("['graph'][0]", "['x']", "['y']")
BY_PLACE = ("[0]", "[1]", "[2]['id']")


@pytest.mark.parametrize(
    ("loop", "paths", "fields"),
    [
        ("for batch in loader:\n    step(batch['x'])\n    stop()", BY_KEY, ["['graph']", "['y']"]),
        ("for n, b in enumerate(tqdm(loader)):\n    f(b['x'], b['y'])", BY_KEY, ["['graph']"]),
        ("for x, y, meta in loader:\n    loss(model(x), y)", BY_PLACE, ["[2]"]),
        ("for n, (x, _, m) in enumerate(loader):\n    f(x, m)", BY_PLACE, ["[1]"]),
        ("for batch in loader:\n    x, y, _ = batch\n    f(x, y)", BY_PLACE, ["[2]"]),
        # of which all may be read
        ("for batch in loader:\n    step(batch)", BY_KEY, []),
        (
            "for b in loader:\n    b = {k: v.cuda() for k, v in b.items()}\n    f(b['x'])",
            BY_KEY,
            [],
        ),
        ("for batch in loader:\n    f(batch['x'], batch[key])", BY_KEY, []),
        ("for batch in loader:\n    f(batch['x'], locals())", BY_KEY, []),
        ("for x, *rest in loader:\n    f(x)", BY_PLACE, []),
        ("for x, y, m in loader:\n    y += 1\n    f(x, m)", BY_PLACE, []),
        ("for x, y in zip(loader, other):\n    f(x)", BY_PLACE, []),
        ("for x, y, m in moved(loader):\n    f(x)", BY_PLACE, []),
        ("for x, y, m in loader:\n    f(x", BY_PLACE, []),
        ("trainer.fit(model, loader)", BY_PLACE, []),
        ("", BY_PLACE, []),
    ],
)
def test_unread(loop: str, paths: tuple[str, ...], fields: list[str]) -> None:
    assert list(unread(loop.split("\n"), paths)) == fields
