"""Tests that a rule says nothing of cases one step away from those of which it speaks."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from loaderscope.advisors.case.case import Case
from rule_cases import outcomes


def silent(name: str, made: Callable[..., Case], *changes: Mapping[str, Any]) -> Any:
    """A test of this rule and of the cases that are made with each of these options."""

    @pytest.mark.parametrize("change", changes)
    def test(tmp_path: Path, change: Mapping[str, Any]) -> None:
        assert outcomes(name, made(tmp_path, **change)) == []

    return test
