"""Callbacks in their trainings: the same result, the verdict told, the figures logged."""

from __future__ import annotations

import re

import pytest

from running import needs, output_of, program, result

pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("transformers", ("hf_trainer.py", "FOLDER")),
        ("lightning", ("lightning_fit.py", "1")),
    ],
)
def test_callback(package: str, command: tuple[str, ...]) -> None:
    needs(package)
    said = output_of(*program(*command, "callback"))
    assert re.search(r"loaderscope: \w+( 2)? \(training\): input-bound", said)
    logged = said.partition("LOGGED ")[2].splitlines()[0]
    assert all(f"/{figure}'" in logged for figure in ("wait_share", "batches_per_s", "headroom"))
    without = output_of(*program(*command))
    assert "loaderscope:" not in without and "LOGGED []" in without
    assert result(said) == result(without) != []
