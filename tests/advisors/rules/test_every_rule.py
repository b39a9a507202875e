"""What holds of all rules: each has its documentation, its tests, and says nothing where nothing
was measured."""

from dataclasses import replace
from pathlib import Path

import pytest

from loaderscope.advisors.rules import NAMES, rule
from rule_cases import FakeWhatIf, case_of, outcomes
from rule_rows import main_loop

SECTIONS = ("What it looks for", "Why it matters", "What to change", "When not to")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_documented_and_has_tests_of_its_own(name: str) -> None:
    """`loaderscope rules NAME` prints a summary of one line, and four sections."""
    lines = rule(name).doc.splitlines()
    assert lines[0].endswith(".") and lines[1] == ""
    places = [lines.index(section) for section in SECTIONS]
    assert places == sorted(places)
    for place in places:
        assert lines[place + 1].startswith("    ") and len(lines[place + 1]) > 10, lines[place]
    texts = [path.read_text() for path in Path(__file__).parent.glob("*/test_*.py")]
    assert sum(f' = "{name}"\n' in text for text in texts) == 1


def test_every_file_is_a_rule_that_is_listed() -> None:
    import loaderscope.advisors.rules as rules

    files = {path.stem for path in Path(rules.__file__).parent.rglob("*.py")} - {"__init__"}
    assert files == {name.replace("-", "_") for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_it_leaves_a_loop_alone_that_does_not_wait(name: str, tmp_path: Path) -> None:
    case = case_of(tmp_path, main_loop(100, compute_ms=50.0, fetch=0.1), whatif=FakeWhatIf(1.0))
    assert outcomes(name, case) == []


@pytest.mark.parametrize("name", [each for each in NAMES if "prediction" in rule(each).needs])
def test_what_rests_on_a_prediction_is_not_said_without_one(name: str, tmp_path: Path) -> None:
    case = case_of(tmp_path, main_loop(100, fetch=30.0))
    assert outcomes(name, replace(case, whatif=None)) == []
