"""The mutants of the benchmark, and what a loop is handed of a program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loaderscope

FOLDER = Path(loaderscope.__file__).resolve().parent / "benchmarks"


@pytest.fixture(scope="session")
def mutants() -> Iterator[Any]:
    sys.path.insert(0, str(FOLDER))
    try:
        import try_mutants

        yield try_mutants
    finally:
        sys.path.remove(str(FOLDER))
